"""Rules on what callers make of an operator: its results, REG405, and its name, REG406."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = "import torch\nfrom torch import Tensor\nfrom typing import List, Optional, Tuple\n\n"

OPS = """
@torch.library.custom_op("kit::pair", mutates_args=())
def pair(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x.clone(), x.clone()


@torch.library.custom_op("kit::rows", mutates_args=())
def rows(x: Tensor) -> List[Tensor]:
    return [x.clone()]


@torch.library.custom_op("kit::rms_norm_", mutates_args=("x",))
def rms_norm_(x: Tensor, n: int = 1) -> None:
    x.add_(n)


@torch.library.custom_op("kit::int4_gemm", mutates_args=())
def int4_gemm(x: Tensor) -> Tensor:
    return x.clone()


@torch.library.custom_op("kit::pack_segments", mutates_args=())
def pack_segments(x: Tensor) -> Tensor:
    return x.clone()


"""


def found(code: str, text: str, **more: str) -> list[str]:
    """The texts at the places of the findings in a file that uses the operators."""
    files = {"kit/__init__.py": "", "kit/ops.py": HEAD + OPS, "kit/use.py": f"{HEAD}from kit.ops import *\n\n{text}"}
    linted = lint_files([PACK], {**files, **{path.replace("__", "."): one for path, one in more.items()}}, [code])
    return [linted.text(item.place) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("a, b, c = torch.ops.kit.pair(x)", "a, b, c"),
        ("(a,) = torch.ops.kit.pair.default(x)", "a,"),
        ("a, b, c, *d = torch.ops.kit.pair(x)", "a, b, c, *d"),
        ("a, b = torch.ops.kit.rms_norm_(x)", "a, b"),
        ("x = torch.ops.kit.rms_norm_(x, 2)\n    return x.sum()", "x"),
        ("a, b = c = x = torch.ops.kit.rms_norm_(x)\n    return x", "a, b"),
    ],
)
def test_results_that_an_operator_does_not_have(body: str, place: str) -> None:
    assert found("REG405", f"def use(x):\n    {body}\n") == [place]


@pytest.mark.parametrize(
    "body",
    [
        "a, b = torch.ops.kit.pair(x)",
        "a, *b = torch.ops.kit.pair(x)",
        "a, b, *c = torch.ops.kit.pair(x)",
        "both = torch.ops.kit.pair(x)\n    a, b = both",
        "a, b, c = torch.ops.kit.pair(x)[0]",
        "a, b, c = torch.ops.kit.pair(x) + (x,)",
        "a, b, c = torch.ops.kit.rows(x)",
        "a, b, c = torch.ops.kit.int4_gemm(x)",
        "y = torch.ops.kit.rms_norm_(x)\n    return y",
        "x = torch.ops.kit.rms_norm_(x)",
        "x = torch.ops.kit.rms_norm_(x) or x\n    return x",
        "x = torch.ops.kit.int4_gemm(x)\n    return x",
    ],
)
def test_results_that_an_operator_may_have(body: str) -> None:
    assert found("REG405", f"def use(x):\n    {body}\n") == []


EITHER = """
def forward(x: Tensor, n: int = 1) -> Tuple[Tensor, Tensor]:
    return x.clone(), x.clone()


if torch.__version__ >= "2.4":
    wrapped = torch.library.custom_op("kit::forward", forward, mutates_args=())
    wrapped = {operator}
else:
    wrapped = {function}


def use(x):
    {call}
"""


@pytest.mark.parametrize(
    ("function", "call", "codes"),
    [
        ("forward", "a, b, c = wrapped(x)", ["REG405"]),
        ("forward", "wrapped(x, m=1)", ["REG401"]),
        ("forward", "a, b = wrapped(x, n=1)", []),
        ("other", "wrapped(x, m=1)", []),
        ("None", "wrapped(x, m=1)", []),
    ],
)
def test_a_name_for_the_operator_or_its_function(function: str, call: str, codes: list[str]) -> None:
    text = EITHER.format(operator="torch.ops.kit.forward", function=function, call=call)
    linted = lint_files([PACK], {"kit.py": f"{HEAD}def other(x, m):\n    return x\n{text}"}, ["REG401", "REG405"])
    assert linted.codes() == codes


@pytest.mark.parametrize(
    ("other", "call", "codes"),
    [
        ("f(Tensor x, float eps) -> (Tensor, Tensor)", "torch.ops.kit.f(x)", ["REG401"]),
        ("f(Tensor x, float eps, int n=1) -> (Tensor, Tensor)", "torch.ops.kit.f(x, 1.0, 2, 3)", ["REG401"]),
        ("f(Tensor x, float eps) -> (Tensor, Tensor)", "a, b, c = torch.ops.kit.f(x, 1.0)", ["REG405"]),
        ("f(Tensor x, float eps=1.0) -> (Tensor, Tensor)", "torch.ops.kit.f(x)", []),
        ("f(Tensor x, float eps) -> (Tensor, Tensor, Tensor)", "a, b, c = torch.ops.kit.f(x, 1.0)", []),
        ("f(Tensor x, float eps) -> (Tensor, Tensor)", "a, b = torch.ops.kit.f(x, 1.0)", []),
        ("f.out(Tensor x) -> (Tensor, Tensor)", "torch.ops.kit.f(x)", []),
        ("f(Tensor x, broken", "torch.ops.kit.f(x)", []),
    ],
)
def test_calls_of_what_two_builds_define(other: str, call: str, codes: list[str]) -> None:
    def block(schema: str) -> str:
        return f'#include <torch/library.h>\nTORCH_LIBRARY(kit, m) {{ m.def("{schema}"); }}\n'

    own = block("f(Tensor x, float eps) -> (Tensor, Tensor)")
    files = {"cpu/ops.cpp": block(other), "cuda/ops.cpp": own, "kit.py": f"{HEAD}def use(x):\n    {call}\n"}
    assert lint_files([PACK], files, ["REG401", "REG405"]).codes() == codes


@pytest.mark.parametrize(
    ("others", "codes"),
    [
        ("torch.ops.kit.mul_add(x)\n    torch.ops.kit.boxes(x)", []),
        ("torch.ops.kit.mul_add(x)\n    torch.ops.other.boxes(x)", ["REG401"]),
        (
            "torch.ops.kit.mul_add(x)\n    torch.ops.kit.boxes(x)\n    torch.ops.kit.g(x, x)\n    torch.ops.kit.h(x, x)",
            ["REG401"],
        ),
    ],
)
def test_calls_in_a_file_for_a_build_that_the_tree_does_not_hold(others: str, codes: list[str]) -> None:
    defined = "".join(f'm.def("{name}(Tensor x, Tensor y) -> Tensor"); ' for name in "fgh")
    files = {"ops.cpp": f"#include <torch/library.h>\nTORCH_LIBRARY(kit, m) {{ {defined}}}\n"}
    files["kit.py"] = f"{HEAD}def use(x):\n    torch.ops.kit.f(x)\n    {others}\n"
    assert lint_files([PACK], files, ["REG401"]).codes() == codes


@pytest.mark.parametrize(
    ("key", "path", "condition", "codes"),
    [
        ("CUDA", "kit.py", "current_platform.is_xpu()", []),
        ("CUDA", "kit.py", 'x.device.type == "npu"', []),
        ("CUDA", "kit/_xpu_ops.py", "x.is_contiguous()", []),
        ("CUDA", "kit.py", "current_platform.is_cuda()", ["REG401"]),
        ("CUDA", "kit/expunge.py", "x.is_contiguous()", ["REG401"]),
        ("XPU", "kit.py", "current_platform.is_xpu()", ["REG401"]),
        ("PrivateUse1", "kit/npu/ops.py", "x.is_contiguous()", ["REG401"]),
    ],
)
def test_calls_for_a_device_for_which_the_tree_has_no_kernel(
    key: str, path: str, condition: str, codes: list[str]
) -> None:
    cpp = '#include <torch/library.h>\nTORCH_LIBRARY(kit, m) { m.def("f(Tensor x, Tensor y) -> Tensor"); }\n'
    files = {"ops.cpp": f'{cpp}TORCH_LIBRARY_IMPL(kit, {key}, m) {{ m.impl("f", &f); }}\n'}
    files[path] = f"{HEAD}def use(x):\n    if {condition}:\n        torch.ops.kit.f(x)\n"
    assert lint_files([PACK], files, ["REG401"]).codes() == codes


def test_results_of_another_overload_are_not_compared() -> None:
    more = 'torch.library.define("kit::pair.more", "(Tensor x, Tensor y, Tensor z) -> (Tensor, Tensor, Tensor)")\n\n'
    assert found("REG405", f"{more}def use(x):\n    a, b, c = torch.ops.kit.pair(x)\n") == []


def test_results_that_a_kernel_returns_against_its_schema_are_its_own_fault() -> None:
    text = (
        'torch.library.define("kit::three", "(Tensor x) -> (Tensor, Tensor, Tensor)")\n\n'
        '@torch.library.impl("kit::three", "cpu")\ndef three(x):\n    return x.clone(), x.clone()\n\n\n'
        "def use(x):\n    a, b = torch.ops.kit.three(x)\n"
    )
    assert found("REG405", text) == []
    assert found("REG405", text.replace("x.clone(), x.clone()", "work(x)")) == ["a, b"]


def test_the_output_that_setup_context_unpacks() -> None:
    text = (
        "def setup(ctx, inputs, output):\n    {}\n\npair.register_autograd(lambda ctx, a, b: a, setup_context=setup)\n"
    )
    assert found("REG405", text.format("a, b, c = output")) == ["a, b, c"]
    assert found("REG405", text.format("a, b = output")) == []
    assert found("REG405", text.format("output = output + inputs; a, b, c = output")) == []


@pytest.mark.parametrize(
    "name", ["rmsnorm_", "rms_nrom_", "pack_segment", "int4_gem", "Pair", "pack_segmnets", "pack_segmentss"]
)
def test_misspelt_names(name: str) -> None:
    use = f"torch.ops.kit.{name}"
    assert found("REG406", f"def use(x):\n    if x is not None:\n        return {use}(x)\n") == [use]
    assert found("REG406", f"op = {use}.default\n") == [f"{use}.default"]


@pytest.mark.parametrize(
    "name",
    [
        "pairs",  # too short for a plural
        "rms_norm",  # what another package may define
        "int8_gemm",
        "int4_gemv2",
        "unpack_segments",
        "pack_segments_v2",
        "__name__",
        "pair",
    ],
)
def test_names_that_may_be_of_others(name: str) -> None:
    assert found("REG406", f"def use(x):\n    return torch.ops.kit.{name}(x)\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "def use(x):\n    try:\n        return torch.ops.kit.pack_segment(x)\n    except AttributeError:\n        return x\n",
        'def use(x):\n    return torch.ops.kit.pack_segment(x) if hasattr(torch.ops.kit, "pack_segment") else x\n',
        "# torch.ops.kit.pack_segment\n",
        '"""Calls torch.ops.kit.pack_segment."""\n',
        "def use(x):\n    return torch.ops.kit2.pack_segment(x)\n",
        'lib = torch.library.Library("kit", "FRAGMENT")\nlib.define(given())\nlib.define("pack_segment" + given())\n'
        "torch.ops.kit.pack_segment\n",
        "for name in given():\n    torch.library.define('kit::' + name, '() -> ()')\ntorch.ops.kit.pack_segment\n",
    ],
)
def test_names_that_may_be_defined_or_are_not_used(text: str) -> None:
    assert found("REG406", text) == []


def test_names_in_cpp_may_be_defined_by_a_macro() -> None:
    use = "def use(x):\n    return torch.ops.kit.pack_segment(x)\n"
    assert found("REG406", use, kit_x__cpp="DEFINE(pack_segment, 1)\n") == []
    assert found("REG406", use, kit_x__cpp='m.def("pack_segment(" ARGS);\n') == []
    assert found("REG406", use, kit_x__yaml="- pack_segment\n") == []
    assert found("REG406", use, kit_x__cpp="DEFINE(pack_segments, 1)\n") == ["torch.ops.kit.pack_segment"]
    assert found("REG406", use, kit_x__cpp="void pack_segment(int n);  // a pack_segment\n") == [
        "torch.ops.kit.pack_segment"
    ]


def test_names_of_another_torch_are_not_judged() -> None:
    assert found("REG406", "def use(self, torch):\n    return torch.ops.kit.pack_segment(self)\n") == []


ALLOWING = [
    "with pytest.raises(Exception):\n        {}",
    "with contextlib.suppress(Exception):\n        {}",
    "try:\n        {}\n    except Exception:\n        pass",
    "return\n    {}",
]


@pytest.mark.parametrize("around", ALLOWING)
@pytest.mark.parametrize(
    ("code", "statement"),
    [
        ("REG401", "torch.ops.kit.pair(x, 1)"),
        ("REG405", "a, b, c = torch.ops.kit.pair(x)"),
        ("REG406", "torch.ops.kit.packsegments(x)"),
    ],
)
def test_code_that_allows_for_errors(code: str, statement: str, around: str) -> None:
    head = "import contextlib\nimport pytest\n\n"
    assert found(code, f"{head}def use(x):\n    {around.format(statement)}\n") == []
    assert len(found(code, f"{head}def use(x):\n    if x:\n        {statement}\n")) == 1


@pytest.mark.parametrize(
    "body",
    [
        "x = torch.ops.kit.rms_norm_(x)\n    x = torch.ones(3)\n    return x",
        "if n:\n        x = torch.ops.kit.rms_norm_(x)\n        return None\n    return x",
        "x = torch.ops.kit.rms_norm_(x)\n    assert x is None",
        "for x in n:\n        x = torch.ops.kit.rms_norm_(x)\n    for x in n:\n        print(x)",
    ],
)
def test_a_result_of_nothing_that_no_code_takes_for_a_tensor(body: str) -> None:
    assert found("REG405", f"def use(x, n):\n    {body}\n") == []


def test_a_result_of_nothing_in_a_branch() -> None:
    body = "if n:\n        x = torch.ops.kit.rms_norm_(x)\n    return x"
    assert found("REG405", f"def use(x, n):\n    {body}\n") == ["x"]


def test_a_setup_context_of_several_operators() -> None:
    setup = "def setup(ctx, inputs, output):\n    if len(output) == 3:\n        a, b, c = output\n    ctx.n = 1\n"
    register = "pair.register_autograd(lambda ctx, *grads: grads[0], setup_context=setup)\n"
    assert found("REG405", setup + register) == []


@pytest.mark.parametrize(
    ("more", "name", "severity"),
    [
        ("", "packsegments", "error"),
        ("torch.ops.kit.flash(1)", "packsegments", "warning"),  # another package has operators in this namespace
        ("", "pack_segment", "warning"),
    ],
)
def test_names_that_another_package_may_define(more: str, name: str, severity: str) -> None:
    files = {"kit.py": f"{HEAD}{OPS}{more}\ntorch.ops.kit.{name}(2)\n"}
    linted = lint_files([PACK], files, ["REG406"])
    assert [item.severity.value for item in linted.diagnostics] == [severity]


@pytest.mark.parametrize(
    "text", ["torch.ops.kit.pack_segmentz(x)", "torch.ops.kit.packsegments = len\ntorch.ops.kit.packsegments(x)"]
)
def test_names_of_other_functions(text: str) -> None:
    assert found("REG406", text + "\n") == []


SWAPPED = """
@torch.library.custom_op("kit::scale", mutates_args=())
def scale(x: Tensor, y: Tensor, a: float) -> Tensor:
    return x * a


def use(x: Tensor, a: float, y: Tensor):
    {}return scale(x, a, y)
"""


@pytest.mark.parametrize(
    ("before", "count"),
    [("", 1), ("if isinstance(a, Tensor):\n        ", 0), ("a, y = y, a\n    ", 0)],
)
def test_parameters_in_each_other_s_place(before: str, count: int) -> None:
    linted = lint_files([PACK], {"kit.py": HEAD + SWAPPED.format(before)}, ["REG401"])
    message = "`kit::scale` is passed `a` (`float`) for `y` (`Tensor`), and `y` for `a`: the two are swapped"
    assert [item.message for item in linted.diagnostics] == [message] * count


NAMED = """
@torch.library.custom_op("kit::act", mutates_args=("out",))
def act(out: Tensor, x: Tensor, y: Tensor, a: float, b: bool) -> None:
    out.copy_(x)


def use(x: Tensor, y: Tensor, a: float, b: bool, n, out: Tensor = None):
    out = torch.empty_like(x) if out is None else out
    {}
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("act(x, out, y, a, b)", "warning `x` for `out`, and `out` for `x`: the two seem swapped"),
        ("act(out, x, y, b, a)", "error `b` (`bool`) for `a` (`float`), and `a` for `b`: the two are swapped"),
        ("act(out, x, y, b=a, a=b)", "error `b` (`bool`) for `a` (`float`), and `a` for `b`: the two are swapped"),
        ("act(out, y, x, a, b)", ""),
        ("act(x, n, y, a, b)", ""),
        ("act(x, x, y, a, b)", ""),
        ("act(n.x, n.out, y, a, b)", ""),
        ("a, b = b, a; act(out, x, y, b, a)", ""),
        ("isinstance(a, bool) and act(out, x, y, b, a)", ""),
        ("act(out, x, y, b, b)", ""),
    ],
)
def test_values_with_each_other_s_names(call: str, expected: str) -> None:
    linted = lint_files([PACK], {"kit.py": HEAD + NAMED.format(call)}, ["REG401"])
    found = [f"{item.severity.value} {item.message}" for item in linted.diagnostics]
    assert found == ([expected.replace(" ", " `kit::act` is passed ", 1)] if expected else [])


@pytest.mark.parametrize("condition", ["torch.__version__ >= '2.0'", "not hasattr(torch.ops.kit, 'pair3')"])
def test_code_behind_a_condition_on_what_exists_that_leaves(condition: str) -> None:
    text = "def run(x):\n    if {}:\n        {}\n    a, b, c = torch.ops.kit.pair({})\n"
    for code, arguments, place in (("REG405", "x", "a, b, c"), ("REG401", "x, 1", "1")):
        assert found(code, text.format(condition, "return torch.ops.kit.pair(x)", arguments)) == []
        assert found(code, text.format(condition, "x = x + 1", arguments)) == [place]
        assert found(code, text.format("x is None", "return x", arguments)) == [place]


@pytest.mark.parametrize(("name", "expected"), [("cat", 0), ("gem", 1), ("cout", 1), ("coubt", 1)])
def test_a_letter_that_lacks_in_a_short_word_makes_another_name(name: str, expected: int) -> None:
    text = HEAD + "".join(
        f'torch.library.define("kit::{known}", "(Tensor x) -> Tensor")\n' for known in ("cast", "gemm", "count")
    )
    linted = lint_files([PACK], {"kit.py": f"{text}\n\ndef run(x):\n    return torch.ops.kit.{name}(x)\n"}, ["REG406"])
    assert len(linted.diagnostics) == expected


HELD = """
@torch.library.custom_op("kit::f", mutates_args=())
def f(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    return x * n, x.clone()


class Runner:
    op = torch.ops.kit.f


r = Runner()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r.op = len\nr.op([1])", 0),
        ("setattr(r, 'op', len)\na, b, c = r.op([1], 1)", 0),
        ("torch.ops.kit.f = len\ntorch.ops.kit.f([1])", 0),
        ("with patch('kit.f', len):\n    f([1])", 0),
        ("globals()['f'] = len\nf([1])", 0),
        ("r.other = len\nr.op(r, 1, 2)", 1),
        ("r.op = torch.ops.kit.f\nr.op(r, 1, 2)", 1),
        ("a, b, c = r.op(r, 1)", 1),
    ],
)
def test_a_name_that_the_file_gives_another_value(text: str, expected: int) -> None:
    linted = lint_files([PACK], {"kit.py": f"{HEAD}{HELD}{text}\n"}, ["REG401", "REG405"])
    assert len(linted.diagnostics) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if V == 1:\n        return torch.ops.kit.f(x)", 0),
        ("if V == 1 and x is not None:\n        a, b, c = torch.ops.kit.f(x, x)", 0),
        ("return torch.ops.kit.f(x) if V < 2 else x", 0),
        ("if V != 1:\n        return x\n    return torch.ops.kit.f(x)", 0),
        ("if V == 2:\n        return torch.ops.kit.f(x)", 1),
        ("if x.V == 1:\n        a, b, c = torch.ops.kit.f(x, x)", 1),
    ],
)
def test_calls_that_never_run(body: str, expected: int) -> None:
    text = f"{HEAD}V = 2\ntorch.library.define('kit::f', '(Tensor x, Tensor y) -> (Tensor, Tensor)')\n\n\ndef run(x):\n    {body}\n"
    assert len(lint_files([PACK], {"kit.py": text}, ["REG401", "REG405"]).diagnostics) == expected
