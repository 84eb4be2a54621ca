"""Calls of rows that are followed through `forward()`, however its operators are registered, and the counts after them."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

CODES = ("ROO106", "SIG209", "SIG210", "SHP116", "DTY111")
CLASS = """\
class ExampleFwdOp(Op):
    _wrapped = None
    FLOPS = 2

    def __init__(self, eps: float = 0.5, *, kernel_map=None):
        self.eps = eps
        self.spec = None
        self.dispatch_kernel(kernel_map)

    def _infer_output_shapes(self, x_shape):
        return {"y": x_shape}

    def eval_roofline(self):
        ROOFLINE

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return type(self)._wrapped(x, self._instance_key)

    def eager(self, x):
        EAGER
        self.spec = x.numel(), x.dtype
        return self.kernel_map["example"](x, self.eps)


OPS = {}


"""
ROOFLINE = """\
if self.spec is None:
            raise RuntimeError("no forward() yet")
        n, dtype = self.spec
        return self.FLOPS * n, 2 * n * dtype.itemsize"""
BODY = "OPS[key].eager(x)"
FACTORY = """\
def register(cls, name):
    @torch.library.custom_op(name, mutates_args=())
    def wrapped(x: torch.Tensor, key: str) -> torch.Tensor:
        return BODY

    @wrapped.register_fake
    def _(x, key):
        return x.new_empty(FAKE)

    cls._wrapped = wrapped


for cls, name in ((ExampleFwdOp, "kit::example"),):
    register(cls, name)
"""
DECORATED = """\
@torch.library.custom_op("kit::example", mutates_args=())
def example(x: torch.Tensor, key: str) -> torch.Tensor:
    return BODY


@example.register_fake
def _(x, key):
    return x.new_empty(FAKE)


ExampleFwdOp._wrapped = example
"""
LIBRARY = """\
LIB = torch.library.Library("kit", "DEF")
LIB.define("example(Tensor x, str key) -> Tensor")


@torch.library.impl(LIB, "example", "CUDA")
def example(x, key):
    return BODY


ExampleFwdOp._wrapped = torch.ops.kit.example
"""


def lint(
    eager: str = "pass",
    roofline: str = ROOFLINE,
    registering: str = FACTORY,
    body: str = BODY,
    fake: str = "x.shape",
    entry: str = "",
    old: str = "",
    new: str = "",
    head: str = "",
) -> Linted:
    made = registering.replace("BODY", body).replace("FAKE", fake)
    code = head + CLASS.replace("EAGER", eager).replace("ROOFLINE", roofline).replace(old, new) + made
    return lint_files([PACK], example_files([("yaml", entry), ("python", code)]), CODES)


def found(linted: Linted) -> list[str]:
    return [f"{item.code} {item.message}" for item in linted.diagnostics]


@pytest.mark.parametrize("registering", [FACTORY, DECORATED, LIBRARY])
def test_nothing_is_wrong_however_the_operator_is_registered(registering: str) -> None:
    assert found(lint(registering=registering)) == []


@pytest.mark.parametrize("registering", [FACTORY, DECORATED])
def test_other_counts(registering: str) -> None:
    linted = lint(registering=registering, old="FLOPS = 2", new="FLOPS = 3")
    assert found(linted) == [
        "ROO106 `eval_roofline()` returns 96 for `flops`; the manifest's formula is 64: `x` is (4, 8); `x` float16"
    ]
    (item,) = linted.diagnostics
    assert linted.text(item.place) == "self.FLOPS * n, 2 * n * dtype.itemsize"
    assert [linted.text(other.place) for other in item.related[:1]] == ['"2 * N"']


RIGHT_COUNTS = [
    {"roofline": "n, d = self.spec\n        return n + n, n * d.itemsize + n * d.itemsize"},  # another spelling
    {"roofline": "n, d = self.spec\n        return 2.0 * n, 2 * n * torch.cuda.device_count()"},  # not known
    {"roofline": "n, d = self.spec\n        return 2 * n + 0.5, 2 * n * d.itemsize"},  # rounding
    {"roofline": "return self.kernel_map['example'].counts()"},  # the kernel's
    {"entry": "roofline: {func: kit.perf.formulas.example_roofline}\n", "old": "FLOPS = 2", "new": "FLOPS = 3"},
    {"entry": "status: spec-only\n", "old": "FLOPS = 2", "new": "FLOPS = 3"},
    {"roofline": "raise NotImplementedError"},  # reported by another rule, if at all
]


@pytest.mark.parametrize("case", RIGHT_COUNTS)
def test_no_other_counts_that_are_certain(case: dict[str, str]) -> None:
    assert found(lint(**case)) == []


def test_the_roofline_of_an_op_whose_forward_is_not_followed() -> None:
    """It is not a rejection if nothing was bound yet."""
    linted = lint(registering=LIBRARY, roofline=ROOFLINE)
    assert found(linted) == []


FAILING = [
    ({"eager": "x = x * self.scale"}, "AttributeError", "'ExampleFwdOp' object has no attribute 'scale'"),
    ({"body": "OPS[key].eager()"}, "TypeError", "ExampleFwdOp.eager() missing 1 required positional argument: 'x'"),
    ({"eager": 'size = {"a": 1}["b"]'}, "KeyError", "b"),
    ({"old": "(x, self._instance_key)", "new": "(x)"}, "TypeError", "missing 1 required positional argument: 'key'"),
    ({"eager": "n, m, k = x.shape"}, "ValueError", "not enough values to unpack"),
    ({"registering": ""}, "TypeError", "'NoneType' object is not callable"),
    ({"roofline": "return self.total, 2 * self.spec[0]"}, "AttributeError", "no attribute 'total'"),
    (
        {"old": "self.eps = eps", "new": "self.eps = scaled(eps, by=2)"},
        "",
        "",
    ),  # a name that nothing defines is for others
]


@pytest.mark.parametrize(("case", "error", "message"), FAILING)
def test_a_call_that_fails(case: dict[str, str], error: str, message: str) -> None:
    texts = found(lint(**case))
    assert [text for text in texts if text.startswith("SIG209")] == texts[: 1 if error else 0]
    assert all(f"fails with `{error}`: " in text and message in text for text in texts[:1])


def test_a_fake_that_fails() -> None:
    (text,) = found(lint(fake='OPS[key]._infer_output_shapes(tuple(x.shape))["z"]'))
    assert text.startswith("SIG209 with its fake, `forward()` fails with `KeyError`")
    assert found(lint(fake='OPS[key]._infer_output_shapes(tuple(x.shape))["y"]')) == []


SOUND = [
    {"eager": 'x = getattr(self, "missing", x)'},
    {"eager": "x = x if self.kernel_map is None else self.kernel_map.cast(x)"},
    {"eager": "try:\n            x = x * self.scale\n        except AttributeError:\n            pass"},
    {"eager": 'size = {8: 1, 16: 2}.get(x.shape[-1])'},
    {"old": "def eager(self, x):", "new": "def eager(self, x, y=None, **words):"},
]  # fmt: skip


@pytest.mark.parametrize("case", SOUND)
def test_a_call_that_works(case: dict[str, str]) -> None:
    assert found(lint(**case)) == []


CHECK = 'if {}:\n            raise ValueError("no")'


def test_rows_and_dtypes_that_forward_refuses() -> None:
    (text,) = found(lint(CHECK.format("x.ndim != 3")))
    assert text == "SHP116 `forward()` refuses the workload row with `ValueError`: no: `x` is (4, 8); `x` float16"
    (text,) = found(lint(CHECK.format("x.dtype not in (torch.float16, torch.bfloat16)")))
    assert text.startswith(
        "DTY111 `forward()` refuses dtypes that the manifest declares, with `ValueError`: `x` is (4, 8)"
    )
    assert text.endswith("; `x` float32")


TAKEN = ["x.dtype not in (torch.half, torch.float)", "not x.is_cuda", "x.ndim != 2", "torch.cuda.device_count() < 2"]


@pytest.mark.parametrize("condition", TAKEN)
def test_nothing_that_is_certainly_refused(condition: str) -> None:
    assert found(lint(CHECK.format(condition))) == []


WITH_LENGTHS = """\
signature:
  inputs:
    x: {dtype: "float16 | float32"}
    lengths: {dtype: "int32"}
workloads:
  - {x_shape: [4, 8], lengths_shape: [4], dtypes: [float16], label: "small"}
"""
TAKES_LENGTHS = """\
class ExampleFwdOp(Op):
    def __init__(self, eps: float = 0.5, *, kernel_map=None):
        self.dispatch_kernel(kernel_map)

    def _validate_dtypes(self, x, lengths):
        CHECK

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        CHECK
        return self.kernel_map["example"](x, 0.5)
"""


@pytest.mark.parametrize(
    ("condition", "codes"),
    [
        ("lengths.device == x.device", []),  # lengths are on the host
        ("not x.is_cuda or lengths.is_cuda", []),
        ("x.device != lengths.device", []),
        ("x.is_cuda != lengths.is_cuda or x.ndim == 2", ["SHP116", "DTY109"]),
        ("x.is_cuda and x.ndim == 2 or not x.is_cuda", ["SHP116", "DTY109"]),
    ],
)
def test_an_op_may_demand_inputs_on_the_host(condition: str, codes: list[str]) -> None:
    code = TAKES_LENGTHS.replace("CHECK", CHECK.format(condition))
    files = example_files([("yaml", WITH_LENGTHS), ("python", code)])
    assert [item.code for item in lint_files([PACK], files, ("SHP116", "DTY109", "DTY111")).diagnostics] == codes


@pytest.mark.parametrize("param", ["dtype=torch.float16", "size=3"])
def test_a_constructor_that_takes_more_than_the_manifest_declares(param: str) -> None:
    """It may be what refuses."""
    eager = CHECK.format("x.dtype not in (torch.float16,) or x.ndim == 2")
    assert found(lint(eager, old="eps: float = 0.5, *,", new=f"eps: float = 0.5, *, {param},")) == []


LISTS = ("    _wrapped = None\n", '    _wrapped = None\n    compile_op_names = ("kit::{}",)\n')
OTHER = """\


@torch.library.custom_op("kit::other", mutates_args=())
def other(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
"""


@pytest.mark.parametrize("registering", [FACTORY, DECORATED])
def test_an_operator_that_is_not_listed(registering: str) -> None:
    linted = lint(registering=registering + OTHER, old=LISTS[0], new=LISTS[1].format("other"))
    assert found(linted) == [
        "SIG210 `forward()` calls the operator `kit::example`; `compile_op_names` lists `kit::other`"
    ]
    (item,) = linted.diagnostics
    assert linted.text(item.place) == "compile_op_names"
    assert item.severity.value == "warning"
    promised = lint(
        registering=registering + OTHER,
        old=LISTS[0],
        new=LISTS[1].format("other"),
        entry="torch_compile_fullgraph: true\n",
    )
    assert [item.severity.value for item in promised.diagnostics] == ["error"]


@pytest.mark.parametrize("registering", [FACTORY, DECORATED, LIBRARY])
def test_operators_that_are_listed(registering: str) -> None:
    listed = LISTS[1].format("example")
    assert found(lint(registering=registering + OTHER, old=LISTS[0], new=listed)) == []
    several = listed.replace('",)', '", "kit::other")')
    assert found(lint(registering=registering + OTHER, old=LISTS[0], new=several)) == []
    inner = lint(registering=registering + OTHER, old=LISTS[0], new=listed, body="other(x)")
    assert not [text for text in found(inner) if text.startswith("SIG210")]


CALLS_NONE = "`forward()` fails with `TypeError`: 'NoneType' object is not callable"
REGISTER = "def register(cls):\n    cls._wrapped = print\n\n\n"


@pytest.mark.parametrize(
    ("registering", "expected"),
    [
        (REGISTER + "for cls in Op.__subclasses__():\n    register(cls)\n", []),
        (REGISTER + "for cls in list(globals().values()):\n    register(cls)\n", []),
        ("for cls in Op.__subclasses__():\n    setattr(cls, '_wrapped', print)\n", []),
        (REGISTER + "register(Op)\n", [f"SIG209 {CALLS_NONE}"]),
        ("for cls in vars(kit).values():\n    cls._wrapped = print\n", []),
        ("for cls in kit.__dict__.values():\n    setattr(cls, name, print)\n", []),
        ("NAMES = Op.__subclasses__()\n", [f"SIG209 {CALLS_NONE}"]),
        ("def note(self, name):\n    setattr(self, name, 'x' in Op.__dict__)\n", [f"SIG209 {CALLS_NONE}"]),
    ],
)
def test_an_operator_that_code_may_set_on_classes_that_it_looks_for(registering: str, expected: list[str]) -> None:
    assert found(lint(registering=registering)) == expected


def test_what_the_own_dispatch_method_sets() -> None:
    own = "    def dispatch_kernel(self, kernel_map=None):\n        super().dispatch_kernel(kernel_map)\n        self.tag = 1\n\n"
    own += "    def _infer"
    assert found(lint("self.tag", old="    def _infer", new=own)) == []
    assert found(lint("self.tag")) == [
        "SIG209 `forward()` fails with `AttributeError`: 'ExampleFwdOp' object has no attribute 'tag'"
    ]


@pytest.mark.parametrize("count", ["x.shape.numel()", "x.size().numel()", "x.shape[:-1].numel() * x.shape[-1]"])
def test_the_number_of_elements_of_a_size(count: str) -> None:
    assert found(lint(f"if {count} != x.numel():\n            raise ValueError")) == []


WRAPS = """\
def logged(function):
    def inner(*arguments, **words):
        return function(*arguments, **words)

    return inner


"""


@pytest.mark.parametrize("method", ["__init__", "_infer_output_shapes", "forward", "eager"])
def test_a_decorator_that_hides_the_parameters_of_a_method(method: str) -> None:
    wrapped = {"old": f"    def {method}(", "new": f"    @logged\n    def {method}(", "head": WRAPS}
    assert found(lint(**wrapped)) == []
    told = [text for text in found(lint("self.tag", **wrapped)) if "no attribute 'tag'" in text]
    assert len(told) == (0 if method in ("__init__", "forward") else 1)


@pytest.mark.parametrize("name", ['"kit::{}".format(name)', "unknown(name)"])
def test_an_operator_whose_name_is_not_known(name: str) -> None:
    registering = FACTORY.replace("custom_op(name", f"custom_op({name}").replace('"kit::example"),', '"example"),')
    assert found(lint(registering=registering, old=LISTS[0], new=LISTS[1].format("example"))) == []


ALSO = """\
def also(cls, name):
    @torch.library.custom_op(f"{name}_inplace", mutates_args=("x",))
    def inplace(x: torch.Tensor) -> None:
        x.zero_()

    cls.compile_op_names = LISTED + (f"{name}_inplace",)


also(ExampleFwdOp, "kit::example")
"""


@pytest.mark.parametrize(("before", "count"), [("tuple(cls.compile_op_names)", 0), ("()", 1)])
def test_names_that_are_added_to_others(before: str, count: int) -> None:
    attached = FACTORY.replace("    cls._wrapped = wrapped\n", "    cls._wrapped = wrapped\n    note(cls, name)\n")
    texts = found(lint(registering=attached + "\n\n" + ALSO.replace("LISTED", before)))
    assert len([text for text in texts if text.startswith("SIG210")]) == count


@pytest.mark.parametrize(("method", "count"), [("prepare", 0), ("_prepare", 1)])
def test_an_attribute_that_a_caller_may_have_set(method: str, count: int) -> None:
    sets = f"    def {method}(self, scale):\n        self.scale = scale\n\n    def _infer"
    assert len(found(lint("x = x * self.scale", old="    def _infer", new=sets))) == count


@pytest.mark.parametrize("receiver", ["type(self)", "self.__class__", "ExampleFwdOp"])
def test_an_attribute_that_the_constructor_sets_on_the_class(receiver: str) -> None:
    sets = f"self.eps = eps\n        {receiver}.scale = 2"
    assert found(lint("x = x * self.scale", old="self.eps = eps", new=sets)) == []
