"""Rules on fakes, REG206 to REG211: what is there, and what they return and take."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = """\
import torch
from torch import Tensor
from typing import List, Optional, Tuple
from elsewhere import given

One = Tuple[Tensor]

"""
OLD = {"requirements.txt": "torch<2.7\n"}


def lint(text: str, *select: str, files: dict[str, str] | None = None) -> Linted:
    return lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": HEAD + text, **(files or {})}, select)


def found(text: str, *select: str, files: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Each finding's severity, and the text at its place."""
    linted = lint(text, *select, files=files)
    return [(item.severity.value, linted.text(item.place)) for item in linted.diagnostics]


def op(
    parameters: str = "x: Tensor",
    returns: str = "Tensor",
    options: str = "mutates_args=()",
    body: str = "return run(x)",
) -> str:
    return f'@torch.library.custom_op("kit::f", {options})\ndef f({parameters}) -> {returns}:\n    {body}\n\n\n'


def fake(body: str, parameters: str = "x") -> str:
    return f"@f.register_fake\ndef fake({parameters}):\n    {body}\n"


def kernel(key: str) -> str:
    return f'@torch.library.impl("kit::f", "{key}")\ndef kernel_{key.lower()}(x):\n    return run(x)\n\n\n'


DEFINE = 'torch.library.define("kit::f", "(Tensor x) -> Tensor")\n\n\n'
FAKE = '@torch.library.register_fake("kit::f")\ndef fake(x):\n    return torch.empty_like(x)\n\n\n'


@pytest.mark.parametrize(
    "text",
    [
        op(options='mutates_args=("x",)'),
        op(returns="None", parameters="x: Tensor, n: int = 1"),
        op(options="mutates_args=(), device_types='cuda'")
        + "@f.register_kernel('cpu')\ndef g(x):\n    return run(x)\n",
        DEFINE + kernel("cpu"),
    ],
)
def test_a_fake_is_missing(text: str) -> None:
    assert [severity for severity, _ in found(text, "REG206")] == ["warning"]


@pytest.mark.parametrize(
    "text",
    [
        op() + fake("return torch.empty_like(x)"),
        op() + "if given:\n    f.register_fake(given)\n",
        op(returns="None", options='mutates_args=("x",)'),
        op(returns="None", options='mutates_args="unknown"'),
        op(returns="None", options="mutates_args=given"),
        op(options='mutates_args=("x",), tags=torch.Tag.inplace'),
        op(options="mutates_args=(), tags=given"),
        op().replace("custom_op", "triton_op"),
        op("n: int", "int"),
        op() + "given(f)\n",
        DEFINE,
        DEFINE + kernel("CompositeExplicitAutograd"),
        DEFINE + kernel("cpu") + kernel("Meta"),
        DEFINE + kernel("cpu") + 'torch.library.impl("kit::f", given)(run)\n',
        DEFINE + kernel("cpu") + "torch.library.register_fake(given)(run)\n",
        op("x"),
    ],
)
def test_no_fake_is_missing(text: str) -> None:
    assert found(text, "REG206") == []


def test_a_missing_fake_of_cpp_is_an_info() -> None:
    cpp = 'TORCH_LIBRARY(kit, m) { m.def("g(Tensor x) -> Tensor"); m.def("h(Tensor x) -> Tensor", &h); }\n'
    cpp += 'TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("g", &g); }\n'
    assert found("", "REG206", files={"csrc/ops.cpp": cpp}) == [("info", 'm.def("g(Tensor x) -> Tensor")')]


def test_a_fake_beside_a_kernel_for_meta() -> None:
    text = DEFINE + kernel("Meta") + FAKE
    assert [severity for severity, _ in found(text, "REG207")] == ["warning"]
    assert [severity for severity, _ in found(text, "REG207", files=OLD)] == ["error"]
    assert found(op() + kernel("Meta") + FAKE, "REG207") == []


def test_a_fake_beside_a_kernel_for_meta_in_cpp() -> None:
    cpp = 'TORCH_LIBRARY(kit, m) { m.def("f(Tensor x) -> Tensor"); }\nTORCH_LIBRARY_IMPL(kit, Meta, m) { m.impl("f", &f); }\n'
    linted = lint(FAKE, "REG207", files={"csrc/ops.cpp": cpp, **OLD})
    assert [linted.text(item.related[0].place) for item in linted.diagnostics] == ['m.impl("f", &f)']


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (op() + FAKE + FAKE, 1),
        (op() + FAKE, 0),
        (op() + "def fake(x):\n    return x\n\nf.register_fake(fake)\nf.register_fake(fake)\n", 0),
        (op() + "if given:\n    f.register_fake(run)\n" + FAKE, 0),
    ],
)
def test_two_fakes(text: str, count: int) -> None:
    assert len(found("def run(x):\n    return x.clone()\n\n" + text, "REG208")) == count


DECORATED = '@torch.library.impl("kit::f", "CompositeImplicitAutograd")\n'
LIBRARY = 'LIB = torch.library.Library("kit", "FRAGMENT")\nLIB.define("f(Tensor x) -> Tensor")\n'


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (DEFINE + kernel("CompositeImplicitAutograd") + FAKE, 1),
        (LIBRARY + 'LIB.impl("f", lambda x: x.clone())\n' + FAKE, 1),
        (DEFINE + FAKE + kernel("CompositeImplicitAutograd"), 0),
        (DEFINE + kernel("default") + FAKE, 0),
        (LIBRARY + 'LIB.impl("f", lambda x: x.clone(), "CPU")\n' + FAKE, 0),
        (DEFINE + DECORATED + FAKE, 0),  # the last decorator is applied first
        (DEFINE + FAKE.replace("def", f"{DECORATED}def"), 1),
        (DEFINE + '@torch._custom_ops.impl("kit::f")\ndef run(x):\n    return x.clone()\n\n\n' + FAKE, 0),
    ],
)
def test_fakes_of_composites(text: str, count: int) -> None:
    assert len(found(text, "REG209")) == count


PAIR = (
    'torch.library.define("kit::pair", "(Tensor x) -> (Tensor, Tensor)")\n\n\n'
    '@torch.library.impl("kit::pair", "cpu")\ndef pair(x):\n    {}\n\n\n'
)


@pytest.mark.parametrize(
    ("returns", "body", "place"),
    [
        ("Tensor", "return x.new_empty(1), x.new_empty(2)", "x.new_empty(1), x.new_empty(2)"),
        ("Tensor", "return [x]", "[x]"),
        ("Tensor", "return 1", "1"),
        ("int", "return 1.0", "1.0"),
        ("bool", "return ''", "''"),
        ("Tensor", "pass", "fake"),
        ("Tensor", "if x.shape[0] > 1:\n        return None", "fake"),
        ("Tuple[Tensor, Tensor]", "return torch.empty_like(x)", "torch.empty_like(x)"),
        ("Tuple[Tensor, Tensor]", "y = torch.empty(3)\n    return y", "y"),
        ("Tuple[Tensor, Tensor]", "return x, x, x", "x, x, x"),
        ("Tuple[Tensor, Tensor]", "return 2 * (x + 1)", "2 * (x + 1)"),
        ("Tuple[Tensor, Tensor]", "return torch.nn.functional.silu(x)", "torch.nn.functional.silu(x)"),
        ("Tuple[Tensor, Tensor]", "return x.sum(0)", "x.sum(0)"),
        ("List[Tensor]", "return torch.empty_like(x)", "torch.empty_like(x)"),
        ("None", "return torch.empty_like(x)", "torch.empty_like(x)"),
        ("None", "return x", "x"),
        ("None", "y = x\n    return y", "y"),
        ("Tuple[Tensor, Tensor]", "return x", "x"),
        ("List[Tensor]", "return x", "x"),
        ("Tuple[Tensor]", "return torch.empty_like(x)", "torch.empty_like(x)"),
    ],
)
def test_fakes_that_return_something_else(returns: str, body: str, place: str) -> None:
    assert found(op(returns=returns) + fake(body), "REG210") == [("error", place)]


@pytest.mark.parametrize(
    ("returns", "body", "place"),
    [
        ("str", "return torch.empty_like(x)", "torch.empty_like(x)"),
        ("str", "return 0", "0"),
        ("str", "return ''", ""),
        ("str", "return str(x)", ""),
        ("str?", "return ''", ""),
        ("str?", "return 0", "0"),
        ("ScalarType", "return x", "x"),
        ("ScalarType", "return 6", ""),
        ("Scalar", "return 1.5", ""),
        ("SymInt", "return 1.5", "1.5"),
        ("int[]", "return 1", "1"),
        ("(str, int)", "return 0, ''", ""),
    ],
)
def test_fakes_of_schemas_with_other_types(returns: str, body: str, place: str) -> None:
    text = f'torch.library.define("kit::f", "(Tensor x) -> {returns}")\n\n\n'
    text += f'@torch.library.register_fake("kit::f")\ndef fake(x):\n    {body}\n'
    assert found(text, "REG210") == ([("error", place)] if place else [])


@pytest.mark.parametrize(
    ("returns", "body"),
    [
        ("Tensor", "return run(x)"),
        ("Tensor", "raise NotImplementedError"),
        ("Tensor", "given.raise_error(x)"),
        ("Tensor", "while True:\n        pass"),
        ("Tensor", "if x.shape[0] > 1:\n        return x\n    return None"),
        ("Tensor", "def inner():\n        return 1, 2\n    return inner"),
        ("Tuple[Tensor, Tensor]", "return [x, x]"),
        ("Tuple[Tensor, Tensor]", "return x, None"),
        ("Tuple[Tensor, Tensor]", "return (x, *given)"),
        ("Tuple[Tensor, Tensor]", "y = torch.empty_like(x)\n    if given:\n        y = (x, x)\n    return y"),
        ("Tuple[Tensor, Tensor]", "x = given(x)\n    return x * 2"),
        ("Tuple[Tensor, Tensor]", "for x in given:\n        return x * 2"),
        ("Tuple[Tensor, Tensor]", "x = given(x)\n    return x"),
        ("Tuple[Tensor, Tensor]", "with given as x:\n        return x"),
        ("Tuple[Tensor, Tensor]", "return given(x := (x, x)) and x"),
        ("Tuple[Tensor, Tensor]", "def inner():\n        nonlocal x\n        x = x, x\n    inner()\n    return x"),
        ("None", "def inner():\n        return x\n    inner()"),
        ("None", "return given"),
        ("Tuple[Tensor, Tensor]", "return (x, x) * 1"),
        ("Tuple[Tensor, Tensor]", "return torch.max(x, 0)"),
        ("Tuple[Tensor, Tensor]", "return x.split(2)"),
        ("Tuple[Tensor, Tensor]", "return given.sum(0)"),
        ("Tuple[Tensor]", "return (x,)"),
        ("List[Tensor]", "return x, x, x"),
        ("List[Tensor]", "return ()"),
        ("int", "return 2"),
        ("int", "return True"),
        ("int", "return x"),
        ("float", "return 2"),
        ("bool", "return 0"),
        ("None", "return None"),
        ("None", "return"),
        ("given", "return x, x"),
        ("One", "return (x,)"),
    ],
)
def test_fakes_that_may_return_it(returns: str, body: str) -> None:
    assert found(op(returns=returns) + fake(body), "REG210") == []


@pytest.mark.parametrize(
    ("returns", "count"),
    [
        ("Tensor?", 0),
        ("Tensor[]?", 0),
        ("int?", 0),
        ("Any", 0),
        ("(Tensor?)", 0),
        ("Tensor", 1),
        ("Tensor?[]", 1),
        ("(Tensor?, Tensor?)", 1),
    ],
)
@pytest.mark.parametrize("body", ["return None", "x.size()"])
def test_a_fake_may_return_none_for_an_optional_value(returns: str, count: int, body: str) -> None:
    text = f'torch.library.define("kit::f", "(Tensor x) -> {returns}")\n'
    text += f'@torch.library.register_fake("kit::f")\ndef _(x):\n    {body}\n'
    assert len(found(text, "REG210")) == count


THREE = "Tuple[Tensor, Tensor, Tensor]"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (op(returns=THREE) + fake("return x, x"), "warning"),
        (op(returns=THREE) + fake("return x, x") + "def use(x):\n    a, b, c = f(x)\n", "error"),
        (op(returns=THREE) + fake("return x, x") + "def use(x):\n    a, *b, c = f(x)\n", "warning"),
        (op(returns=THREE) + fake("return (x,)"), "error"),
        (op(returns=THREE) + fake("return x, x, x, x"), "error"),
        (op(returns=THREE, body="return x.clone(), x.clone()"), "warning"),
        (op(returns=THREE, body="return [x.clone()]"), "error"),
        (PAIR.format("return (x.clone(),)"), "warning"),
        (PAIR.format("return x.clone(), x.clone(), x.clone()"), "warning"),
        (PAIR.format("return (x.clone(),)") + "def use(x):\n    a, b = torch.ops.kit.pair(x)\n", "error"),
        (PAIR.format("return x * 2"), "error"),
    ],
)
def test_numbers_of_values_that_torch_hands_on(text: str, severity: str) -> None:
    assert [found_as for found_as, _ in found(text, "REG210")] == [severity]


def test_kernels_and_the_function_itself() -> None:
    text = op(body="return x.clone(), x.clone()") + "@f.register_kernel('cpu')\ndef g(x):\n    return [x]\n"
    assert [place for _, place in found(text, "REG210")] == ["x.clone(), x.clone()", "[x]"]
    assert found(op(returns="Tuple[()]", body="return ()"), "REG210") == []
    assert len(found(op(returns="Tuple[()]", body="return ()") + fake("return ()"), "REG210")) == 1
    assert found(op(returns="None", body="return x"), "REG210") == []
    assert len(found(op(returns="None", body="return x"), "REG402")) == 1
    assert found(op(body="raise NotImplementedError"), "REG210") == found(op(body="..."), "REG210") == []


MIXED = "n: int, a: Tensor, m: str, b: Tensor, k: int = 1"


@pytest.mark.parametrize(
    ("parameters", "body", "place"),
    [
        ("*xs", "return torch.empty_like(xs[0])", "xs[0]"),
        ("n, *xs", "return a.new_empty(n, dtype=xs[1].dtype)", "xs[1]"),
        ("n, a, *xs", "return [torch.empty_like(x) for x in xs]", "xs"),
        ("n, a, *xs", "for x in xs:\n        print(x.shape)", "xs"),
    ],
)
def test_numbers_in_args(parameters: str, body: str, place: str) -> None:
    (finding,) = found(op(MIXED) + fake(body, parameters), "REG211")
    assert place in finding[1]


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        ("n, *xs", "return torch.empty_like(xs[0])"),
        ("n, a, m, *xs", "return torch.empty_like(xs[0])"),
        ("n, *xs", "return torch.empty_like(xs[-2])"),
        ("*xs", "return torch.empty(xs[0])"),
        ("*xs", "xs = [x for x in xs if isinstance(x, Tensor)]\n    return torch.empty_like(xs[0])"),
        ("*xs", "return [torch.empty_like(x) for x in xs if isinstance(x, Tensor)]"),
        ("*xs", "for x in xs:\n        if hasattr(x, 'shape'):\n            return x.shape"),
        ("*xs", "return given(*xs)"),
        ("*xs", "return [(lambda y: y.shape) for x in xs]"),
    ],
)
def test_args_that_are_used_rightly(parameters: str, body: str) -> None:
    assert found(op(MIXED) + fake(body, parameters), "REG211") == []


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return x.nonzero(as_tuple=True)", 0),
        ("return torch.nonzero(x, as_tuple=True)", 0),
        ("return torch.nonzero(x)", 1),
        ("out = []\n    out.append(x)\n    fill(out)\n    return out", 0),
        ("out = [x, x, x]\n    return out", 1),
    ],
)
def test_values_that_may_be_two(body: str, count: int) -> None:
    assert len(found(op(returns="Tuple[Tensor, Tensor]") + fake(body), "REG210")) == count
