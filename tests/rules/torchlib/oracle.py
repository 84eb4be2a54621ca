"""What torch itself makes of a module that registers operators: each case is imported and its operators are called, in
forked processes, since some faults kill the process.

A :class:`Case` is a module's text with the calls to try; :func:`judge` says for each which faults torch has with
it: none when all calls give what they should. Run as a script it reads cases (JSON) from stdin and answers a line each.

How a call is tried (``Probe.how``), ``x`` being a float32 tensor of shape (2, 3), ``y`` a like one:

- ``real``: on the CPU. Its output must have ``Probe.shape`` when that is given; no input may change or share its storage with
  an output, as ``torch.library.opcheck``'s schema test tells.
- ``fake``: under FakeTensorMode; the output's number, shapes, dtypes and devices must be those of the real call.
- ``backward``: with inputs that require gradients, then ``backward()`` of the summed outputs.
- ``vmap``: over the first dimension of ``x``; the output is of shape (3, ...) for each.
"""

from __future__ import annotations

import gc
import inspect
import logging
import os
import re
import subprocess
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    import torch

How: TypeAlias = Literal["real", "fake", "backward", "vmap"]
Phase: TypeAlias = Literal["registration", "real", "fake", "backward", "vmap", "process"]


class Probe(msgspec.Struct, frozen=True):
    """A call to try: an expression over the module's names, ``x`` and ``y``. ``shape`` is that of its one output."""

    how: How
    call: str
    shape: tuple[int, ...] | None = None


class Case(msgspec.Struct, frozen=True):
    """A module and what to call of it. ``name`` is its module's, unique; ``title`` says what it is."""

    name: str
    title: str
    source: str
    probes: tuple[Probe, ...]


class Fault(msgspec.Struct, frozen=True, order=True):
    """What torch has with a case: in which phase, of which kind (:data:`KINDS`), and what it says."""

    phase: Phase
    kind: str
    message: str = ""


#: The file that a case's code is said to stand in.
_FILE = "<case>"

#: Kinds of faults by torch's own words, of any phase; the first that matches.
KINDS: tuple[tuple[str, str], ...] = (
    (r"must have a type annotation|No return type annotation", "missing-annotation"),
    (r"do not support positional-only args, varargs", "parameter-kind"),
    (r"do not support Tuple inputs", "tuple-parameter"),
    (r"Return has unsupported type", "return-type"),
    (r"Parameter .* has unsupported type", "parameter-type"),
    (r"Unsupported type annotation", "string-annotation"),
    (r"unsupported default value type", "default-value"),
    (r"were not found in the custom op's|mutates_args must either|only Tensors or collections of", "mutates-args"),
    (r"^'NoneType' object is not iterable", "mutates-args"),
    (r"The schema suggests that the op mutates", "mutates-schema"),
    (r"operator tagged with torch\.Tag\.\w+ must return", "tagged-return"),
    (r"Out variants do not support autograd|for non-functional operator", "non-functional"),
    (r"torch\.Tag\.", "tag"),
    (r"kwarg-only Tensor args", "keyword-only-tensor"),
    (r"Functions without tensor inputs", "no-device"),
    (r"^tuple index out of range", "index"),
    (r"Expected one of cpu, cuda|to not have a device index|could not parse dispatch key", "device-type"),
    (r"values to unpack \(expected \d", "unpacking"),
    (r"Expected `qualname` to be of the form|not a legal overload name", "name"),
    (r"expected schema to look like", "schema-form"),
    (r"multiple times|already has a (fake impl|DispatchKey::Meta)|already a kernel registered", "duplicate"),
    (r"because it has a CompositeImplicitAutograd", "composite-fake"),
    (r"reserved namespace|single TORCH_LIBRARY can|does not match namespace|Unsupported kind", "namespace"),
    (r"inside of a TORCH_LIBRARY_IMPL|with the wildcard namespace", "namespace"),
    (r"^operator \S+ does not exist|'_OpNamespace' '\w+' object has no attribute|has no overload name", "unknown-op"),
    (r"got unexpected type for op", "not-an-operator"),
    (r"no fake impl registered|UnsupportedOperatorException|^t\d+\.\w+\.\w+$", "no-fake"),
    (r"Could not run '|There were no tensor arguments", "no-kernel"),
    (r"must not also be an input|View operation returned a tensor that is the same", "alias"),
    (r"is not defined to alias output but was aliasing", "alias"),
    (r"is not defined as mutable but was mutated", "undeclared-mutation"),
    (r"::\S+\(\) (is missing value|Expected a value|expected at most|takes \d+ positional)", "call-arguments"),
    (
        r"Unknown keyword argument '|failed to match any schema|^!argument\.default_value|expected int$",
        "call-arguments",
    ),
    (r"^(CustomOpDef|Library)\.\w+\(\) missing|^register_autograd\(\) missing 1 .*'backward'", "no-function"),
    (r"^CustomOpDef\.\w+\(\)|^(custom_op|triton_op|register_\w+)\(\) (missing|takes|got)", "registering-call"),
    (
        r"\(\) (missing \d+ required|takes .* positional|got an unexpected|got some positional|got multiple)",
        "arguments",
    ),
    (r"incorrect number of gradients", "gradient-count"),
    (r"save_for_backward can only save variables", "saved-value"),
    (
        r"a gradient different than None|a non-None gradient|expected Variable or None|of the same structure as the inputs",
        "gradient-value",
    ),
    (r"no autograd formula was registered", "no-autograd"),
    (r"Expected the vmap staticmethod|returned an incompatible \(output, out_dims\)", "vmap-result"),
    (
        r"Unable to cast|not an instance of 'sequence'|^Object tensor|different number of elements|to return None but it",
        "returned-value",
    ),
    # Of a value too many torch makes what lies in its place: mostly the process dies, and sometimes it says this.
    (r"^cannot extract \w+ from tensor with meta storage", "returned-value"),
    (r"^expected .* (but )?found|^unknown type|^!seen_default_arg|^invalid numeric|^stoll", "schema-text"),
)


def judge(cases: Sequence[Case]) -> dict[str, list[Fault]]:
    """The faults of each case by its name, in a process of its own.

    Raises:
        subprocess.CalledProcessError: the oracle itself fails.
        subprocess.TimeoutExpired: a case does not end.
    """
    data = msgspec.json.encode(list(cases))
    done = subprocess.run([sys.executable, __file__], input=data, stdout=subprocess.PIPE, check=True, timeout=1200)
    return dict(msgspec.json.decode(line, type=tuple[str, list[Fault]]) for line in done.stdout.splitlines())


def kind_of(error: BaseException) -> str:
    """The kind of an error: by torch's words; ``body`` when the case's own code raises it, else ``other``."""
    first = _first_line(error)
    known = next((kind for pattern, kind in KINDS if re.search(pattern, first)), None)
    if known is not None:
        return known
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "body" if last.filename == _FILE and last.name != "<module>" else "other"


def _first_line(error: BaseException) -> str:
    return next(iter(f"{error}".strip().splitlines()), "")


def _said(phase: Phase, error: BaseException, kind: str | None = None) -> Fault:
    return Fault(phase, kind or kind_of(error), f"{type(error).__name__}: {_first_line(error)}"[:300])


# --- in the forked process


def examine(case: Case) -> list[Fault]:
    """The faults of one case; the first of each phase and kind."""
    module = types.ModuleType(case.name)
    sys.modules[case.name] = module
    # Torch asks for the module of a frame by its file, time and again; what is not known here is sought in all modules.
    inspect.modulesbyfile[_FILE] = inspect.modulesbyfile[os.path.abspath(_FILE)] = case.name
    try:
        exec(compile(case.source, _FILE, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        return [_said("registration", error)]
    found: dict[tuple[str, str], Fault] = {}
    for probe in case.probes:
        for fault in _TRY[probe.how](probe, module.__dict__):
            found.setdefault((fault.phase, fault.kind), fault)
    return sorted(found.values())


def _evaluate(call: str, names: dict[str, object], x: torch.Tensor, y: torch.Tensor) -> object:
    return eval(call, names, {"x": x, "y": y})


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    return torch.arange(6, dtype=torch.float32).reshape(2, 3), torch.ones(2, 3)


def _flat(output: object) -> list[object]:
    """The returned values, one by one. A list of tensors counts as its tensors."""
    if isinstance(output, (tuple, list)):
        return [item for part in output for item in _flat(part)]
    return [output]


def _looks(output: object) -> list[object]:
    import torch

    return [
        (tuple(item.shape), str(item.dtype), item.device.type)
        if isinstance(item, torch.Tensor)
        else type(item).__name__
        for item in _flat(output)
    ]


def _shapes(output: object) -> list[tuple[int, ...]]:
    import torch

    return [tuple(item.shape) for item in _flat(output) if isinstance(item, torch.Tensor)]


def _real(probe: Probe, names: dict[str, object]) -> Iterator[Fault]:
    x, y = _inputs()
    before = (x.clone(), y.clone())
    try:
        output = _evaluate(probe.call, names, x, y)
    except Exception as error:
        yield _said("real", error)
        return
    if probe.shape is not None and _shapes(output) != [probe.shape]:
        yield Fault("real", "wrong-value", f"{probe.call} gives {_looks(output)}, not {probe.shape}")
    if not (before[0].equal(x) and before[1].equal(y)) or _shares(output, (x, y)):
        yield from _schema_test(probe, names)


def _shares(output: object, inputs: tuple[torch.Tensor, ...]) -> bool:
    import torch

    storages = {item.untyped_storage().data_ptr() for item in inputs}
    tensors = [item for item in _flat(output) if isinstance(item, torch.Tensor)]
    return any(item.untyped_storage().data_ptr() in storages for item in tensors)


def _schema_test(probe: Probe, names: dict[str, object]) -> Iterator[Fault]:
    """What opcheck says of an operator that changes an input or gives it back: whether its schema tells."""
    from torch._subclasses.schema_check_mode import SchemaCheckMode

    x, y = _inputs()
    try:
        with SchemaCheckMode():
            _evaluate(probe.call, names, x, y)
    except Exception as error:
        yield _said("real", error)


def _fake(probe: Probe, names: dict[str, object]) -> Iterator[Fault]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        real = _evaluate(probe.call, names, *_inputs())
    except Exception:
        return  # a fault of the real call, which a probe of its own tells
    mode = FakeTensorMode()
    try:
        with mode:
            fake = _evaluate(probe.call, names, *(mode.from_tensor(item) for item in _inputs()))
    except Exception as error:
        yield _said("fake", error)
        return
    if len(_flat(fake)) != len(_flat(real)) or len(_shapes(fake)) != len(_shapes(real)):
        yield Fault("fake", "wrong-count", f"{probe.call}: fake {_looks(fake)}, real {_looks(real)}")
    elif _looks(fake) != _looks(real):
        yield Fault("fake", "wrong-metadata", f"{probe.call}: fake {_looks(fake)}, real {_looks(real)}")


def _backward(probe: Probe, names: dict[str, object]) -> Iterator[Fault]:
    import torch

    x, y = (item.requires_grad_() for item in _inputs())
    try:
        output = _evaluate(probe.call, names, x, y)
        total = sum(item.sum() for item in _flat(output) if isinstance(item, torch.Tensor) and item.requires_grad)
        assert isinstance(total, torch.Tensor), "an output that requires no gradient"
        torch.autograd.backward([total])
    except Exception as error:
        yield _said("backward", error)
        return
    if x.grad is None:
        yield Fault("backward", "no-gradient", probe.call)


def _vmap(probe: Probe, names: dict[str, object]) -> Iterator[Fault]:
    import torch

    x, y = _inputs()
    try:
        output = torch.vmap(lambda x: _evaluate(probe.call, names, x, y))(x)
    except Exception as error:
        yield _said("vmap", error)
        return
    if probe.shape is not None and _shapes(output) != [(2, 3, *probe.shape[1:])]:
        yield Fault("vmap", "wrong-value", f"{probe.call} gives {_looks(output)}")


_TRY: dict[str, Callable[[Probe, dict[str, object]], Iterator[Fault]]] = {
    "real": _real,
    "fake": _fake,
    "backward": _backward,
    "vmap": _vmap,
}


# --- the process that forks


def _warm() -> None:
    """Load what the cases need before the forks, but for autograd's engine, whose threads do not survive a fork."""
    import torch
    import torch._functorch.autograd_function
    import torch._functorch.pyfunctorch
    import torch._subclasses.schema_check_mode
    from torch._subclasses.fake_tensor import FakeTensorMode

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mode = FakeTensorMode()
    mode.from_tensor(torch.ones(2)).new_empty((2,))
    gc.freeze()  # a fork that looked through all of torch for garbage would also copy it


def _work(cases: Iterable[Case], out: int) -> None:
    for case in cases:
        os.write(out, msgspec.json.encode((case.name, examine(case))) + b"\n")


def _answers(cases: Sequence[Case]) -> Iterator[bytes]:
    """An answer a case; when the process dies, it is for the case it was at, and another goes on."""
    while cases:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.dup2(2, 1)  # what a case prints is not an answer
            try:
                _work(cases, writer)
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            lines = stream.read().splitlines()
        os.waitpid(child, 0)
        yield from lines
        cases = cases[len(lines) :]
        if cases:
            yield msgspec.json.encode((cases[0].name, [Fault("process", "died")]))
            cases = cases[1:]


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Case])
    _warm()
    for answer in _answers(given):
        sys.stdout.buffer.write(answer + b"\n")
