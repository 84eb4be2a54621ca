"""A worker's handling of one op, in this process: binding, checks, methods, operators, recipes."""

from __future__ import annotations

import gc
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import msgspec
import pytest
import torch
from torch import Tensor

from opschema_cli.verify.binding import UnboundError
from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.loading import RefusedError, described, import_op
from opschema_cli.verify.model import Call, Cell, Finding, Input, Output, Ran, Target, Values
from opschema_cli.verify.own_gradients import GRADIENT
from opschema_cli.verify.protocol import Load, Loaded, Run
from opschema_cli.verify.recipes import Recipe
from opschema_cli.verify.refusals import wrong_calls
from opschema_cli.verify.runner import Runner
from opschema_cli.verify.state import left_changed, state
from opschema_cli.verify.worker import _load, _run


class Bench:
    """Runs cells of one op."""

    def __init__(
        self, kind: Callable[..., object], folder: Path, recipe: Recipe | None = None, *operators: str
    ) -> None:
        here = Path(__file__)
        self.target = target = Target(root=str(here.parent), module=here.stem, name="x", operators=operators)
        self.target = target = msgspec.structs.replace(target, operators_attribute="operator_names")
        self.runner = Runner(kind, Load(side="after", op="Op", target=target), recipe or Recipe())
        self.folder = folder

    def run(self, cell: Cell) -> Ran:
        return self.runner.run(Run(cell=cell, device="cpu", folder=str(self.folder), seconds=60))

    def findings(self, cell: Cell) -> list[tuple[str, str]]:
        return [(finding.check, finding.about) for finding in self.run(cell).findings]


def make_cell(
    shape: tuple[int, ...] = (3, 4),
    *,
    names: tuple[str, ...] = ("x",),
    mutated: str = "",
    params: dict[str, object] | None = None,
    outputs: tuple[str, ...] = ("y",),
    omitted: tuple[str, ...] = (),
    aliases: dict[str, str] | None = None,
    again: bool = False,
    values: Values = "normal",
) -> Cell:
    inputs = tuple(Input(name=name, shape=shape, dtype="float16", mutated=name == mutated) for name in names)
    call = Call(
        inputs=inputs,
        params=params or {},
        outputs=tuple(Output(name=name, shape=shape, dtype="float16") for name in outputs),
        omitted=omitted,
        aliases=aliases or {},
    )
    row = "x".join(map(str, shape))
    return Cell(op="Op", row=row, dtype="float16", call=call, again=again, values=values)


class Twice:
    """Sound."""

    def __init__(self, dtype: torch.dtype, bias: float = 0.0) -> None:
        self.dtype = dtype
        self.bias = bias

    def __call__(self, *args: Tensor) -> Tensor:
        return self.forward(*args)

    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == self.dtype
        return x * 2 + self.bias

    def _infer_output_shapes(self, x_shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        return {"y": x_shape}

    def _validate_dtypes(self, x: Tensor) -> None:
        if x.dtype != torch.float16:
            raise TypeError(x.dtype)

    def eval_roofline(self) -> tuple[int, int]:
        return 1, 2


@pytest.mark.parametrize("values", ["normal", "special", "zeros"])
def test_a_sound_op_has_no_findings(tmp_path: Path, values: Values) -> None:
    ran = Bench(Twice, tmp_path).run(make_cell(values=values))
    assert (ran.status, ran.findings) == ("ok", ())
    assert [(out.name, out.shape, out.dtype, out.strides) for out in ran.outputs] == [("y", (3, 4), "float16", (4, 1))]
    saved = torch.load(ran.file, weights_only=True)
    assert {name for name in saved if not name.startswith(GRADIENT)} == {"y"}
    assert saved["y"].dtype == torch.float16


def test_zero_rows_have_no_findings(tmp_path: Path) -> None:
    assert Bench(Twice, tmp_path).findings(make_cell((0, 4))) == []


def test_an_op_is_made_once_for_equal_arguments(tmp_path: Path) -> None:
    made: list[float] = []

    class Counts(Twice):
        def __init__(self, dtype: torch.dtype, bias: float = 0.0) -> None:
            super().__init__(dtype, bias)
            made.append(bias)

    bench = Bench(Counts, tmp_path)
    for shape in ((3, 4), (5, 6)):
        for bias in (0.0, 1.0):
            bench.run(make_cell(shape, params={"bias": bias}))
    assert made == [0.0, 1.0]


def test_a_function_is_its_own_op(tmp_path: Path) -> None:
    def add(x: Tensor, scale: float) -> Tensor:
        return x * scale

    assert Bench(add, tmp_path).run(make_cell(params={"scale": 2.0})).status == "ok"


def test_an_omitted_input_and_a_carrier(tmp_path: Path) -> None:
    def op(x: Tensor, bias: Tensor | None) -> Tensor:
        return x if bias is None else x + bias

    cell = make_cell(names=("x", "carrier"), omitted=("bias",), aliases={"y": "x"})
    assert Bench(op, tmp_path).findings(cell) == []


def test_a_call_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UnboundError, match="the call needs `x`"):
        Bench(Twice, tmp_path).run(make_cell(names=("input",)))


# Checks


def changes_input(x: Tensor) -> Tensor:
    y = x * 2
    x[0, 0] += 1
    return y


def returns_input(x: Tensor) -> Tensor:
    return x


def leaves_tail(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    y[:-1] = x[:-1]
    return y


def widens(x: Tensor) -> Tensor:
    return x.float()


def returns_two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1, x + 2


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (changes_input, [("input-changed", "x")]),
        (returns_input, [("shared-storage", "y")]),
        (leaves_tail, [("poison", "y")]),
        (widens, [("dtype", "y")]),
    ],
)
def test_faults(tmp_path: Path, op: Callable[..., object], expected: list[tuple[str, str]]) -> None:
    assert Bench(op, tmp_path).findings(make_cell()) == expected


def test_surplus_outputs_are_numbered(tmp_path: Path) -> None:
    ran = Bench(returns_two, tmp_path).run(make_cell())
    assert [out.name for out in ran.outputs] == ["output0", "output1"]
    assert {finding.check for finding in ran.findings} == {"outputs"}


def test_a_race_shows_in_repeats(tmp_path: Path) -> None:
    calls: list[int] = []

    def op(x: Tensor) -> Tensor:
        calls.append(1)
        return x + len(calls) % 2

    assert Bench(op, tmp_path).findings(make_cell()) == [("repeat", "y")]


def test_random_numbers_are_the_same_each_time(tmp_path: Path) -> None:
    def op(x: Tensor) -> Tensor:
        return x + torch.rand_like(x)

    assert Bench(op, tmp_path).findings(make_cell()) == [("state", "torch's random numbers")]


class Weights:
    def __init__(self) -> None:
        self.weight = torch.rand(4)

    def __call__(self, x: Tensor) -> Tensor:
        return (x * self.weight).half()


def test_random_weights_are_the_same_on_both_sides(tmp_path: Path) -> None:
    digests = []
    for _ in ("before", "after"):
        torch.rand(7)
        digests.append(Bench(Weights, tmp_path).run(make_cell()).outputs[0].digest)
    assert digests[0] == digests[1]


def test_a_mutated_input_is_fresh_for_each_call_and_saved(tmp_path: Path) -> None:
    def op(x: Tensor) -> None:
        x += 1

    ran = Bench(op, tmp_path).run(make_cell(mutated="x", outputs=()))
    assert ran.findings == ()
    assert [out.name for out in ran.outputs] == ["input:x"]
    assert torch.load(ran.file, weights_only=True).keys() == {"input:x"}


class StaleShape:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n = max(self.n, x.shape[-1])
        return x / self.n


def test_an_output_that_a_later_call_overwrites(tmp_path: Path) -> None:
    class Buffered:
        def __init__(self) -> None:
            self.buffer = torch.empty(0)

        def __call__(self, x: Tensor) -> Tensor:
            if self.buffer.shape != x.shape:
                self.buffer = torch.empty_like(x)
            return self.buffer.copy_(x)

    bench = Bench(Buffered, tmp_path)
    assert bench.findings(make_cell()) == [("overwritten", "y")]
    assert bench.findings(make_cell((0, 4))) == []
    declared = make_cell(mutated="x", aliases={"y": "x"})
    assert bench.findings(declared) == []


def test_an_output_that_the_op_keeps(tmp_path: Path) -> None:
    class Table:
        def __init__(self) -> None:
            self.table = torch.ones(3, 4).half()

        def __call__(self, x: Tensor) -> Tensor:
            return self.table

    class Rows(Table):
        def __call__(self, x: Tensor) -> Tensor:
            return self.table.clone()

    assert Bench(Table, tmp_path).findings(make_cell()) == [("kept-output", "y")]
    assert Bench(Rows, tmp_path).findings(make_cell()) == []


@pytest.mark.parametrize(
    ("leave", "about"),
    [
        (lambda: torch.set_default_dtype(torch.float64), "the default dtype"),
        (lambda: torch.set_grad_enabled(True), "whether gradients are recorded"),
        (lambda: torch.set_num_threads(3), "the number of threads"),
        (lambda: torch.use_deterministic_algorithms(False), "whether algorithms are deterministic"),
        (lambda: torch.set_flush_denormal(True), "whether denormals are flushed"),
        (lambda: torch.rand(3), "torch's random numbers"),
        (lambda: torch.manual_seed(0), "torch's random numbers"),
        (random.random, "Python's random numbers"),
        (gc.disable, "whether garbage is collected"),
        (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN), "the handlers of signals"),
        (lambda: torch.autograd.set_detect_anomaly(True), "the detection of anomalies in gradients"),
        (lambda: setattr(torch.backends.mkldnn, "enabled", False), "whether oneDNN is used"),
    ],
)
def test_what_a_call_leaves_changed(tmp_path: Path, leave: Callable[[], object], about: str) -> None:
    def op(x: Tensor) -> Tensor:
        leave()
        return x + 1

    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    handler = signal.getsignal(signal.SIGINT)
    try:
        found = Bench(op, tmp_path).findings(make_cell())
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)
        gc.enable()
        signal.signal(signal.SIGINT, handler)
        torch.autograd.set_detect_anomaly(False)
        torch.backends.mkldnn.enabled = True
    assert found == [("state", about)]


def test_numpy_draws_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy may be missing, and a call may be the first to import it."""
    monkeypatch.delitem(sys.modules, "numpy.random", raising=False)
    before = state()
    drawn = [("MT19937", torch.arange(3), place) for place in (1, 1, 2)]
    monkeypatch.setitem(sys.modules, "numpy.random", SimpleNamespace(get_state=lambda: drawn.pop(0)))
    first, second, third = state(), state(), state()
    assert list(left_changed(before, first)) == list(left_changed(first, second)) == []
    assert list(left_changed(second, third)) == [
        ("NumPy's random numbers", "the call draws or seeds NumPy's random numbers")
    ]


def test_outputs_of_inference_mode(tmp_path: Path) -> None:
    def inferred(x: Tensor) -> Tensor:
        with torch.inference_mode():
            return x + 1

    assert Bench(inferred, tmp_path).findings(make_cell()) == [("inference-tensor", "y")]


def test_outputs_that_require_a_gradient_unasked(tmp_path: Path) -> None:
    def asks(x: Tensor) -> Tensor:
        return (x + 1).requires_grad_()

    assert Bench(asks, tmp_path).findings(make_cell()) == [("unasked-gradient", "y")]
    assert Bench(lambda x: (x + 1).requires_grad_(x.requires_grad), tmp_path).findings(make_cell()) == []


@pytest.mark.parametrize(
    ("op", "shares"),
    [
        (lambda x: (y := x + 1, y), True),
        (lambda x: (y := torch.cat([x, x]), y[1:4]), True),
        (lambda x: torch.cat([x, x]).chunk(2), False),
        (lambda x: torch.stack([x, x], -1).unbind(-1), False),  # between each other's elements
        (lambda x: (x + 1, x + 1), False),
        (lambda x: (y := x[:0] + 1, y), False),
    ],
)
def test_outputs_in_each_others_memory(tmp_path: Path, op: Callable[[Tensor], object], shares: bool) -> None:
    found = Bench(op, tmp_path).findings(make_cell(outputs=("y", "z")))
    assert {check for check, _ in found} - {"shape"} == ({"shared-outputs"} if shares else set())


@pytest.mark.parametrize(
    ("op", "structure"),
    [
        (lambda x: x + 1, "Tensor"),
        (lambda x: [x + 1], "list of 1"),
        (lambda x: (x + 1,), "tuple of 1"),
        (lambda x: {"y": x + 1}, "dict of y"),
        (lambda x: {"y": x + 1, "a": None}, "dict of a, y"),
    ],
)
def test_what_holds_the_outputs(tmp_path: Path, op: Callable[[Tensor], object], structure: str) -> None:
    ran = Bench(op, tmp_path).run(make_cell())
    assert (ran.structure, ran.findings) == (structure, ())


def without_gradient(x: Tensor) -> Tensor:
    if x.requires_grad:
        raise NotImplementedError("no gradient")
    return x + 1


@pytest.mark.parametrize(
    ("op", "grad"),
    [
        (lambda x: x + 1, True),
        (lambda x: x.detach() + 1, False),
        (without_gradient, None),
    ],
)
def test_whether_an_output_requires_a_gradient(
    tmp_path: Path, op: Callable[[Tensor], object], grad: bool | None
) -> None:
    bench = Bench(op, tmp_path)
    assert [output.grad for output in bench.run(make_cell()).outputs] == [grad]
    assert [output.grad for output in bench.run(make_cell(values="special")).outputs] == [None]


def test_a_result_that_changes_with_history(tmp_path: Path) -> None:
    bench = Bench(StaleShape, tmp_path)
    assert bench.findings(make_cell((3, 4))) == []
    assert bench.findings(make_cell((3, 8))) == []
    assert bench.findings(make_cell((3, 8), again=True)) == []
    assert bench.findings(make_cell((3, 4), again=True)) == [("changes-with-history", "y")]


def test_again_without_a_first_time_tells_nothing(tmp_path: Path) -> None:
    assert Bench(StaleShape, tmp_path).findings(make_cell(again=True)) == []


@pytest.mark.parametrize("result", ["text", [["nested"]], object()])
def test_a_result_that_is_no_tensor(tmp_path: Path, result: object) -> None:
    with pytest.raises(RefusedError, match="which cannot be compared"):
        Bench(lambda x: result, tmp_path).run(make_cell())


# Methods


def messages(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.check, finding.message.partition("\n")[0]) for finding in findings]


class Lies(Twice):
    def _infer_output_shapes(self, x_shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        return {"y": x_shape[1:]}

    def _validate_dtypes(self, x: Tensor) -> None:
        raise TypeError("never")

    def eval_roofline(self) -> tuple[int, int]:
        return 1, 0


def test_methods_that_contradict_the_call(tmp_path: Path) -> None:
    assert messages(Bench(Lies, tmp_path).run(make_cell()).findings) == [
        ("infer-output-shapes", "`y` is (3, 4); it infers (4,)"),
        ("validate-dtypes", "for a call that ran it raises TypeError: never"),
        ("eval-roofline", "it returns 1 flops and 0 bytes for a call that computed something"),
    ]


class Absent(Twice):
    """Its methods ask for what the call does not have, or are not there."""

    def _infer_output_shapes(self, input_shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        return {"y": ()}

    def _validate_dtypes(self, *tensors: Tensor, **named: Tensor) -> None:
        raise TypeError("missing a required argument: 'proto'")

    def eval_roofline(self) -> tuple[int, int]:
        raise NotImplementedError


def test_methods_that_cannot_be_asked_are_lints(tmp_path: Path) -> None:
    assert Bench(Absent, tmp_path).findings(make_cell()) == []


# Operators


@torch.library.custom_op("opschema_test_worker::sound", mutates_args=())
def sound(x: Tensor) -> Tensor:
    return x + 1


@sound.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("opschema_test_worker::transposed", mutates_args=())
def transposed(x: Tensor) -> Tensor:
    return x.clone().t()


@transposed.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(tuple(reversed(x.shape)))


@torch.library.custom_op("opschema_test_worker::narrow", mutates_args=())
def narrow(x: Tensor) -> Tensor:
    return x[:1].clone()


@narrow.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("opschema_test_worker::bare", mutates_args=())
def bare(x: Tensor) -> Tensor:
    return x + 1


@torch.library.custom_op("opschema_test_worker::raises", mutates_args=())
def raises(x: Tensor) -> Tensor:
    return x + 1


@raises.register_fake
def _(x: Tensor) -> Tensor:
    raise KeyError("no such instance")


@torch.library.custom_op("opschema_test_worker::secret", mutates_args=())
def secret(x: Tensor) -> Tensor:
    y = x + 1
    x.zero_()
    return y


@secret.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def operator_checks(name: str, tmp_path: Path, values: Values = "normal") -> set[str]:
    op = getattr(torch.ops.opschema_test_worker, name)

    def forward(x: Tensor) -> Tensor:
        y: Tensor = op(x)
        return y

    bench = Bench(forward, tmp_path, None, f"opschema_test_worker::{name}")
    found = bench.run(make_cell(values=values)).findings
    return {finding.check for finding in found if "-" in finding.check} - {"gradient-raises"}  # they have no formula


def test_a_sound_operator(tmp_path: Path) -> None:
    assert operator_checks("sound", tmp_path) == set()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transposed", "fake-strides"),
        ("narrow", "fake-shape"),
        ("bare", "fake-missing"),
        ("raises", "fake-raises"),
    ],
)
def test_a_fake_kernel_against_the_real_one(tmp_path: Path, name: str, expected: str) -> None:
    assert operator_checks(name, tmp_path, values="special") == {expected}


class Listed:
    """An op whose operators only the live object names."""

    def __init__(self) -> None:
        self.operator_names = ("opschema_test_worker::narrow",)

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.opschema_test_worker.narrow(x)
        return y


def test_operators_that_the_live_op_names_are_checked(tmp_path: Path) -> None:
    assert "fake-shape" in {finding.check for finding in Bench(Listed, tmp_path).run(make_cell()).findings}


class Keeps:
    """Keeps the result of each call."""

    def __init__(self) -> None:
        self.results: list[Tensor] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.results.append(x + 1)
        return self.results[-1].clone()


def test_memory_that_every_call_keeps(tmp_path: Path) -> None:
    found = Bench(Keeps, tmp_path).run(make_cell((32, 32))).findings
    assert [finding.check for finding in found] == ["memory"]


class Strict:
    """Refuses other dtypes than float16."""

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype is not torch.float16:
            raise TypeError(f"float16 is expected, not {x.dtype}")
        return x + 1


def test_wrong_calls_are_made_as_they_are(tmp_path: Path) -> None:
    cell = make_cell()
    wrong = {
        name: msgspec.structs.replace(cell, shape=name, call=call) for name, call in wrong_calls(cell.call).items()
    }
    bench = Bench(Strict, tmp_path)
    with pytest.raises(TypeError, match=r"not torch\.int64"):
        bench.run(wrong["wrong-dtype"])
    ran = bench.run(wrong["wrong-rank"])
    assert [output.shape for output in ran.outputs] == [(1, 3, 4)]
    with pytest.raises(RefusedError, match="no other device"):
        bench.run(wrong["wrong-device"])


class Noisy:
    """Adds a random last bit, or leaves it."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.float() + 2.0**-10 * random.randrange(2)


class Expected(Recipe):
    deterministic = False


def test_an_op_that_varies_is_called_often_and_its_spread_measured(tmp_path: Path) -> None:
    cell, random_state = make_cell(), random.getstate()
    for recipe, found in ((None, {"repeat"}), (Expected(), set())):
        random.seed(3)
        ran = Bench(Noisy, tmp_path, recipe).run(cell)
        assert {finding.check for finding in ran.findings} & {"repeat"} == found
        assert ran.varies == (recipe is not None)
    assert {"y", "low:y", "high:y"} <= torch.load(ran.file).keys()
    bench = Bench(Noisy, tmp_path)
    many = bench.runner.run(Run(cell=cell, device="cpu", folder=str(tmp_path), seconds=60, repeats=24))
    assert [finding.check for finding in many.findings] == ["repeat"]
    assert sorted(torch.load(many.file)) == ["high:y", "low:y"]
    random.setstate(random_state)


def test_inputs_are_saved_beside_indices(tmp_path: Path) -> None:
    ran = Bench(lambda x: x.argmax(-1), tmp_path).run(make_cell())
    assert sorted(torch.load(ran.file)) == ["in:x", "y"]


def test_opcheck_sees_a_mutation(tmp_path: Path) -> None:
    assert operator_checks("secret", tmp_path) == {"input-changed", "opcheck-schema"}


# Recipes


class Renames(Recipe):
    """Calls an op that has other names than its declaration, and that needs more."""

    def skip(self, cell: Cell) -> str:
        return "too wide" if cell.call.inputs[0].shape[-1] > 8 else ""

    def inputs(self, cell: Cell, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**tensors, "x": tensors["x"].abs()}

    def arguments(self, cell: Cell, arguments: dict[str, object]) -> dict[str, object]:
        return {**arguments, "columns": cell.call.inputs[0].shape[-1]}

    def call(self, op: Callable[..., object], tensors: dict[str, Tensor], params: dict[str, object]) -> object:
        return op(data=tensors["x"])


class Root:
    def __init__(self, columns: int) -> None:
        self.columns = columns

    def __call__(self, data: Tensor) -> Tensor:
        assert data.shape[-1] == self.columns
        return data.sqrt()


def test_a_recipe(tmp_path: Path) -> None:
    bench = Bench(Root, tmp_path, Renames())
    ran = bench.run(make_cell(params={"unknown": 1}))
    assert (ran.status, ran.findings) == ("ok", ())
    assert not torch.load(ran.file, weights_only=True)["y"].isnan().any()
    with pytest.raises(RefusedError, match="too wide"):
        bench.run(make_cell((2, 9)))


# Loading


@pytest.fixture
def fresh_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = dict(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    yield
    for name, module in list(sys.modules.items()):
        if known.get(name) is not module:
            del sys.modules[name]
    sys.modules.update(known)


@pytest.mark.usefixtures("fresh_imports")
@pytest.mark.parametrize(
    ("library", "module", "name", "reason"),
    [
        ("", "opschema_gone.away", "Op", "there is no module `opschema_gone.away` in "),
        ("", "opschema_lib", "Op", "`opschema_lib` has no `Op` in "),
        ("Op = 1", "opschema_lib", "Op", "is neither a class nor a function"),
        ("import opschema_gone", "opschema_lib", "Op", "`opschema_gone`, which it imports, is not installed"),
    ],
)
def test_what_cannot_be_imported_here(tmp_path: Path, library: str, module: str, name: str, reason: str) -> None:
    (tmp_path / "opschema_lib.py").write_text(library)
    with pytest.raises(RefusedError, match=reason):
        import_op(Target(root=str(tmp_path), module=module, name=name))


@pytest.mark.usefixtures("fresh_imports")
@pytest.mark.parametrize("library", ["import opschema_lib.gone", "import opschema_beside.gone"])
def test_a_broken_import_in_the_tree_is_its_own_fault(tmp_path: Path, library: str) -> None:
    (tmp_path / "opschema_lib.py").write_text(library)
    (tmp_path / "opschema_beside.py").write_text("")
    with pytest.raises(ModuleNotFoundError):
        import_op(Target(root=str(tmp_path), module="opschema_lib", name="Op"))


@pytest.mark.usefixtures("fresh_imports")
def test_a_library_from_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "opschema_lib.py").write_text("def op(): ...")
    (tmp_path / "root").mkdir()
    monkeypatch.syspath_prepend(elsewhere)
    with pytest.raises(RefusedError, match=f"was imported from {elsewhere}/opschema_lib.py, which is not in"):
        import_op(Target(root=str(tmp_path / "root"), module="opschema_lib", name="op"))


@pytest.mark.usefixtures("fresh_imports")
def test_a_tree_comes_before_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/colorsys.py").write_text("class Inner:\n    def op(): ...")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    target = Target(root=str(tmp_path), module="colorsys", name="Inner.op", paths=("src",))
    assert import_op(target).__name__ == "op"


def loaded(root: Path, library: str, recipes: str) -> Loaded:
    (root / "opschema_lib.py").write_text(library)
    (root / "recipes.py").write_text(recipes)
    target = Target(root=str(root), module="opschema_lib", name="op", recipe="recipes.py")
    return _load(Load(side="after", op="op", target=target))[0]


@pytest.mark.usefixtures("fresh_imports")
def test_recipes_are_read_before_the_op_is_imported(tmp_path: Path) -> None:
    library = "import sys\nassert sys.opschema_set_up\ndef op(): ..."
    assert loaded(tmp_path, library, "import sys\nsys.opschema_set_up = True").status == "ok"


@pytest.mark.usefixtures("fresh_imports")
@pytest.mark.parametrize(
    ("library", "status", "says"),
    [
        ("def op(): ...", "failed", "the recipes cannot be read: "),
        ("raise OSError('broken')", "raised", "importing `opschema_lib`: OSError: broken"),
    ],
)
def test_recipes_that_cannot_be_read_hide_no_broken_import(
    tmp_path: Path, library: str, status: str, says: str
) -> None:
    found = loaded(tmp_path, library, "1 / 0")
    assert found.status == status
    assert found.detail.startswith(says)


def raised(kind: Callable[..., object], folder: Path, cell: Cell) -> Ran:
    bench = Bench(kind, folder)
    request = Run(cell=cell, device="cpu", folder=str(folder), seconds=60)
    return _run(bench.runner, request, Load(side="after", op="Op", target=bench.target)).ran


def test_what_an_op_raises_is_the_same_in_both_trees(tmp_path: Path) -> None:
    class Picky:
        def __call__(self, x: Tensor) -> Tensor:
            raise ValueError(f"{object()!r} of {Path(__file__).parent}/kernel.cu refuses {tuple(x.shape)}")

    ran = raised(Picky, tmp_path, make_cell())
    assert (ran.status, ran.error) == ("raised", "ValueError: <object object at 0x> of /kernel.cu refuses (3, 4)")


def test_what_nothing_can_write_is_told_all_the_same(tmp_path: Path) -> None:
    class Odd:
        def __call__(self, x: Tensor) -> Tensor:
            raise ValueError("\ud800")

    ran = raised(Odd, tmp_path, make_cell())
    assert ran.error == "ValueError: \\ud800"
    msgspec.msgpack.encode(ran)
    named = raised(lambda x: {"\ud800": x + 1}, tmp_path, make_cell())
    assert named.outputs[0].name == "\\ud800"
    msgspec.msgpack.encode(named)


def test_a_failure_of_the_harness_is_not_the_op_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sound:
        def __call__(self, x: Tensor) -> Tensor:
            return x + 1

    assert raised(Sound, tmp_path / "nowhere", make_cell()).status == "failed"
    with monkeypatch.context() as full:
        full.setattr("opschema_cli.verify.results_file._write", Mock(side_effect=RuntimeError("unexpected pos")))
        full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
        assert raised(Sound, tmp_path, make_cell()).detail.endswith("no space is left there")
    monkeypatch.setattr("opschema_cli.verify.runner.metadata", len)
    ran = raised(Sound, tmp_path, make_cell())
    assert (ran.status, "len() takes exactly one argument" in ran.detail) == ("failed", True)
    assert raised(lambda x: x / "no", tmp_path, make_cell()).status == "raised"


def test_an_exception_is_described_with_its_last_place_in_the_tree() -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(b"{")
    says, place = described(caught.value, str(Path(__file__).parent)).splitlines()
    assert says.startswith("DecodeError: ")
    assert place.startswith("test_worker.py:")
    assert described(caught.value, "/nowhere") == says


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"), True),
        (RuntimeError("shapes differ"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_memory_that_is_out(error: Exception, expected: bool) -> None:
    assert out_of_memory(error) is expected
