"""Rules on calls and on what kernels do, REG401 to REG404."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = (
    "import torch\nfrom torch import Tensor\nfrom typing import List, Optional, Tuple\nfrom elsewhere import given\n\n"
)


def lint(text: str, *select: str) -> Linted:
    return lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": HEAD + text}, select)


def found(text: str, *select: str) -> list[tuple[str, str]]:
    """Each finding's severity, and the text at its place."""
    linted = lint(text, *select)
    return [(item.severity.value, linted.text(item.place)) for item in linted.diagnostics]


def op(
    body: str, parameters: str = "x: Tensor, y: Tensor, n: int = 1", returns: str = "Tensor", mutates: str = "()"
) -> str:
    return f'@torch.library.custom_op("kit::f", mutates_args={mutates})\ndef f({parameters}) -> {returns}:\n    {body}\n\n\n'


CALLED = op("return x.clone()", "x: Tensor, n: int, s: str = 'a', l: Optional[List[int]] = None, *, k: float = 1.0")


@pytest.mark.parametrize(
    ("parameters", "call", "expected"),
    [
        ("x: Tensor, n: int, s: str", "f(x, s, n)", ["s"]),
        ("x: torch.Tensor, n: 'int', s", "f(n, x)", ["n"]),
        ("x: Tensor, n: int, s: str", "f(x=s, n=n, s=x)", ["s"]),
        ("x: Tensor, n: int, s: str", "f(x, n, s)", []),
        ("x: Tensor, n: int, s: Tensor", "f(n, 1)", []),  # one annotation alone may be wrong
        ("x: Tensor, n: Tensor, s: str", "f(x, n, s)", []),  # a tensor of one element
        ("x: Tensor, n: int, s: str", "n = str(n)\n    f(x, s, n)", []),
        ("x: Tensor, n: int, s: str", "x = n = x\n    f(x, s, n)", []),
        ("x, n, s", "f(x, s, n)", []),
        ("x: Tensor, n: Size, s: str", "f(x, s, n)", []),
        ("x: Optional[Tensor], n: int", "f(n, x)", []),
        ("x: Tensor, n: int, k: float", "f(x, n, k=n)", []),
    ],
)
def test_parameters_in_each_others_place(parameters: str, call: str, expected: list[str]) -> None:
    text = f"{CALLED}def use({parameters}):\n    {call}\n"
    assert [place for _, place in found(text, "REG401")] == expected


@pytest.mark.parametrize(
    ("call", "place", "words"),
    [
        ("f(x)", "f", "without the required `n`"),
        ("torch.ops.kit.f(n=1)", "torch.ops.kit.f", "without the required `x`"),
        ("f(x, 1, 'b', [1], 2.0)", "2.0", "pass `k` by name"),
        ("torch.ops.kit.f.default(x, 1, z=2)", "2", "no argument `z`"),
        ("f(x, 1, n=2)", "2", "twice"),
        ("f(x, 1.5)", "1.5", "takes no `1.5` for `n`, which is `SymInt`"),
        ("f(x, 'a')", "'a'", "`n`"),
        ("f(x, None)", "None", "`n`"),
        ("f(x, 1, 2)", "2", "`s`"),
        ("f(x, 1, l=3)", "3", "`l`"),
        ("f(x, 1, l=[1.5])", "[1.5]", "`l`"),
        ("f([x], 1)", "[x]", "`x`"),
        ("f(x, 1, k='1')", "'1'", "`k`"),
        ("f(*given, q=1)", "1", "no argument `q`"),
    ],
)
def test_calls_that_torch_refuses(call: str, place: str, words: str) -> None:
    linted = lint(f"{CALLED}def use(x):\n    return {call}\n", "REG401")
    (item,) = linted.diagnostics
    assert linted.text(item.place) == place
    assert words in item.message


@pytest.mark.parametrize(
    "call",
    [
        "f(x, 1)",
        "f(x, True, k=1)",
        "f(None, 1)",
        "f(x, n=x.shape[0], l=(1, 2))",
        "f(x, 1, 'b', None)",
        "f(*given)",
        "f(x, *given, k=2)",
        "f(x, **given)",
        "f(x, given, l=given)",
        "torch.ops.kit.g(x)",
        "torch.ops.tools.f()",
        "given.f()",
    ],
)
def test_calls_that_torch_takes(call: str) -> None:
    assert found(f"{CALLED}def use(x):\n    return {call}\n", "REG401") == []


def test_an_overload_may_take_it() -> None:
    text = 'torch.library.define("kit::g", "(Tensor x) -> Tensor")\n'
    text += 'torch.library.define("kit::g.n", "(Tensor x, int n) -> Tensor")\n'
    assert found(text + "\n\ndef use(x):\n    return torch.ops.kit.g(x, 1)\n", "REG401") == []


@pytest.mark.parametrize(
    "use",
    [
        "def use(f):\n    return f()",
        "def use(fs):\n    return [f() for f in fs]",
        "def use(fs):\n    return {name: f() for name, (f, _) in fs.items()}",
        "def use(fs):\n    return any(f() == x for f in fs for x in f.values)",
        "print({f() for f in (list, dict)})",
        "def use(calls):\n    return map(lambda f: f(), calls)",
        "def use(calls):\n    return map(lambda *f, **g: g(f()), calls)",
        "def use(run):\n    try:\n        run()\n    except (ValueError, (KeyError)) as f:\n        f()",
        "def use(opened):\n    with opened as f:\n        f()",
        "def use(x):\n    match x:\n        case [f]:\n            f()",
    ],
)
def test_a_local_name_hides_the_operator(use: str) -> None:
    assert found(f"{CALLED}{use}\n", "REG401") == []


@pytest.mark.parametrize(
    ("imports", "count"),
    [
        ("from kit.ops import f\nfrom kit.fast import *", 0),
        ("from kit.ops import *\nfrom kit.fast import *", 0),
        ("from kit.fast import *\nfrom kit.ops import f", 1),
        ("from kit.ops import f\nfrom kit.slow import *", 1),
    ],
)
def test_a_star_import_may_hide_the_operator(imports: str, count: int) -> None:
    files = {
        "kit/__init__.py": "",
        "kit/ops.py": HEAD + CALLED,
        "kit/fast.py": "def f(x):\n    return x\n",
        "kit/slow.py": "def g(x):\n    return x\n",
        "kit/use.py": f"{imports}\n\n\ndef use(x):\n    return f(x)\n",
    }
    assert len(lint_files([PACK], files, ["REG401"]).diagnostics) == count


def test_a_variable_of_a_comprehension_hides_nothing_outside_it() -> None:
    use = "def use(fs):\n    return [f() for f in fs], f(), [x for x in fs if f()]"
    assert len(found(f"{CALLED}{use}\n", "REG401")) == 2


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("return x", "x"),
        ("return x.view(-1, n)", "x.view(-1, n)"),
        ("return x[0, :, None].t()", "x[0, :, None].t()"),
        ("if n == 0:\n        return y.detach()\n    return x.clone()", "y.detach()"),
        ("z = x.unsqueeze(0)\n    return z", "z"),
        ("x += 1\n    return x", "x"),
        ("return x.clone() if n else y.t()", "y.t()"),
        ("return x + 1 if n else (x.clone() if n > 1 else x)", "x"),
    ],
)
def test_returned_inputs(body: str, place: str) -> None:
    assert found(op(body), "REG402") == [("error", place)]


@pytest.mark.parametrize(
    "body",
    [
        "return x.contiguous()",
        "return x.reshape(-1)",
        "return x.to(torch.float32)",
        "x = x.clone()\n    return x",
        "for x in given:\n        pass\n    return x",
        "with given() as x:\n        return x",
        "return x[y]",
        "return x[n]",
        "return x.view(-1) + 1",
        "z = x\n    if n:\n        z = x.clone()\n    return z",
        "z = x\n    z = z.clone()\n    return z",
        "def inner():\n        return x\n    return inner().clone()",
        "return (lambda: x)().clone()",
        "return [x for x in given][0]",
        "return x.clone() if x.dim() else y + 1",
        "return (x if n else y).clone()",
    ],
)
def test_results_that_may_be_new(body: str) -> None:
    assert found(op(body), "REG402") == []


def test_results_in_tuples_and_of_lists() -> None:
    text = op("return x.clone(), xs[0]", "x: Tensor, xs: List[Tensor]", "Tuple[Tensor, Tensor]")
    assert found(text, "REG402") == [("error", "xs[0]")]
    assert found(op("return n", "x: Tensor, n: int", "int"), "REG402") == []


def test_one_tensor_twice() -> None:
    assert found(op("z = x.clone()\n    return z, z", returns="Tuple[Tensor, Tensor]"), "REG402") == [("error", "z")]
    assert found(op("z = given(x)\n    return z, z", returns="Tuple[Tensor, Tensor]"), "REG402") == []
    assert found(op("z = 2\n    return z, z", returns="Tuple[int, int]"), "REG402") == []


def test_an_operator_of_define_only_misleads() -> None:
    kernel = '@torch.library.impl("kit::g", "cpu")\ndef g(x):\n    return x.t()\n'
    assert found(f'torch.library.define("kit::g", "(Tensor x) -> Tensor")\n{kernel}', "REG402") == [
        ("warning", "x.t()")
    ]
    assert found(f'torch.library.define("kit::g", "(Tensor(a) x) -> Tensor(a)")\n{kernel}', "REG402") == []


def test_the_tag_inplace_wants_it() -> None:
    text = op("x.add_(1)\n    return x", mutates='("x",), tags=torch.Tag.inplace')
    assert found(text, "REG402") == []


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("x.add_(1)", "x.add_(1)"),
        ("x[0] = 1", "x[0]"),
        ("x[y] = 1", "x[y]"),
        ("x += 1", "x"),
        ("x[:n] += 1", "x[:n]"),
        ("x.view(-1)[0], n = 1, 2", "x.view(-1)[0]"),
        ("x.data.copy_(y)", "x.data.copy_(y)"),
        ("torch.relu_(x)", "torch.relu_(x)"),
        ("torch.add(y, 1, out=x)", "x"),
        ("if n:\n        x.zero_()", "x.zero_()"),
    ],
)
def test_undeclared_writes(body: str, place: str) -> None:
    text = op(f"{body}\n    return x.sum()")
    assert found(text, "REG403") == [("error", place)]
    assert found(op(f"{body}\n    return x.sum()", mutates='["x"]'), "REG403") == []
    assert found(op(f"{body}\n    return x.sum()", mutates="given"), "REG403") == []


@pytest.mark.parametrize(
    "body",
    [
        "x = x.clone()\n    x.add_(1)",
        "x, y = x.clone(), y\n    x[0] = 1",
        "z = x + 1\n    z.add_(1)",
        "x[y].add_(1)",
        "x.clone().add_(1)",
        "x.to(torch.float32).add_(1)",
        "x.requires_grad_(True)",
        "x.t_()",
        "n += 1",
        "given.launch(out=x)",
        "x.__len__()",
        "def inner(x):\n        x.add_(1)",
        "z = [x.add_(1) for x in given]",
        "z = {}\n    z['x'] = x",
    ],
)
def test_writes_to_something_else(body: str) -> None:
    assert found(op(f"{body}\n    return y.sum()"), "REG403") == []


CALLED_OPS = """
lib.define("lambda_(Tensor x) -> Tensor")
lib.define("log(Tensor x, str out) -> Tensor")
lib.define("fill_(Tensor x, *, Tensor(a!) to) -> ()")
lib.define("scale(Tensor x, *, Tensor(a!) out) -> ()")
lib.define("fill_.at(Tensor(a!) to, int n) -> ()")
"""


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ("torch.ops.kit.lambda_(x).mul_(2)", []),
        ("torch.ops.kit.log(y, out=x)", []),
        ("torch.ops.other.lambda_(x)", []),
        ("torch.ops.other.log(y, out=x)", []),
        ("torch.ops.kit.fill_(x, to=y.clone())", []),
        ("torch.ops.kit.fill_(y, to=x)", ["x"]),
        ("torch.ops.kit.fill_.default(y, to=x[0])", ["x[0]"]),
        ("torch.ops.kit.fill_.at(x, 1)", ["x"]),
        ("torch.ops.kit.scale(y, out=x)", ["x"]),
        ("torch.ops.aten.add_(x, 1)", ["torch.ops.aten.add_(x, 1)"]),
    ],
)
def test_an_operator_writes_what_its_schema_says(body: str, places: list[str]) -> None:
    text = f'lib = torch.library.Library("kit", "FRAGMENT"){CALLED_OPS}' + op(f"{body}\n    return x.sum()")
    assert found(text, "REG403") == [("error", place) for place in places]


def test_writes_of_a_kernel_under_other_names() -> None:
    text = 'torch.library.define("kit::g", "(Tensor x, Tensor(a!) y) -> ()")\n'
    text += '@torch.library.impl("kit::g", "cpu")\ndef g(first, second):\n    second.copy_(first)\n    first.zero_()\n'
    assert found(text, "REG403") == [("error", "first.zero_()")]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("y.zero_()", 1),
        ("given(x)", 0),
        ("given(locals())", 0),
        ("...", 0),
        ("def inner():\n        x.zero_()\n    inner()", 0),
        ("match y:\n        case Point(x=3):\n            given(y)", 1),
        ("match y:\n        case Point(x=3):\n            given(x)", 0),
    ],
)
def test_declared_and_never_used(body: str, count: int) -> None:
    text = op(body, returns="None", mutates='("x", "y")').replace("y: Tensor", "y: Tensor")
    assert [place for _, place in found(text, "REG404")].count("x") == count


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ('TORCH_LIBRARY(kit, m) {\n  m.def("nms", &kit::nms);\n}\n', '"nms"'),
        ('static auto ops = torch::RegisterOperators().op("kit::nms", &kit::nms);\n', '"kit::nms"'),
    ],
)
def test_a_schema_that_torch_infers_from_c_is_shown_where_the_operator_is_named(definition: str, shown: str) -> None:
    kernel = "namespace kit {\nat::Tensor nms(const at::Tensor& x, double by, bool sorted) { return x; }\n}\n"
    files = {
        "ops.cpp": f"#include <torch/all.h>\n{kernel}{definition}",
        "a.py": "import torch\ntorch.ops.kit.nms(x, 0.5)\n",
    }
    linted = lint_files([PACK], files, ["REG401"])
    (diagnostic,) = linted.diagnostics
    assert "`kit::nms` is called without the required `_2`" in diagnostic.message
    assert [linted.text(other.place) for other in diagnostic.related] == [shown]
