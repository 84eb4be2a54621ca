"""Rules on subclasses of ``torch.autograd.Function``: REG309 on gradients, REG310 on what is saved."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = """import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch import Tensor

torch.library.define("kit::f", "(Tensor x, Tensor y, float a) -> Tensor")

"""

PLAIN = (
    "def forward(ctx, x, y, a):\n    ctx.a = a\n    ctx.save_for_backward(x, y)\n    return torch.ops.kit.f(x, y, a)"
)
SOUND = "def backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return grad * y * ctx.a, grad * x, None"


def found(forward: str, backward: str, base: str = "Function", more: str = "") -> list[tuple[str, str]]:
    """Each finding's code and the text at its place."""
    methods = "".join(f"@staticmethod\n{text}\n\n" for text in (forward, backward, more) if text)
    body = "".join(f"    {line}\n" if line else "\n" for line in methods.splitlines())
    linted = lint_files([PACK], {"kit.py": f"{HEAD}class F({base}):\n{body}"}, ["REG309", "REG310"])
    return [(item.code, linted.text(item.place)) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("returned", "place"),
    [
        ("grad * y, grad", "grad * y, grad"),
        ("grad", "grad"),
        ("(grad,)", "grad,"),
        ("None, None", "None, None"),
        ("(None,) * 2", "(None,) * 2"),
    ],
)
def test_fewer_gradients_than_arguments(returned: str, place: str) -> None:
    backward = f"def backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return {returned}"
    assert found(PLAIN, backward) == [("REG309", place)]


@pytest.mark.parametrize(
    "returned",
    [
        "grad, grad, None",
        "grad, grad, None, None",
        "(*grads(grad), None)",
        "grads(grad)",
        "(grad, grad) + (None,)",
        "grad, *((None,) * 2)",
        "tuple([grad, grad, None])",
        "None",  # it may never be called
    ],
)
def test_as_many_gradients_or_an_unknown_number(returned: str) -> None:
    assert found(PLAIN, f"def backward(ctx, grad):\n    return {returned}") == []


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("assert False, 'not implemented'", []),
        ("assert 0", []),
        ("raise NotImplementedError", []),
        ("assert grad is not None", [("REG309", "None, None")]),
        ("if grad is None:\n        raise ValueError", [("REG309", "None, None")]),
    ],
)
def test_a_value_that_is_never_returned(before: str, expected: list[tuple[str, str]]) -> None:
    assert found(PLAIN, f"def backward(ctx, grad):\n    {before}\n    return None, None") == expected


def test_a_gradient_that_is_written_may_be_several() -> None:
    assert found(PLAIN, "def backward(ctx, grad):\n    grad = split(grad)\n    return grad") == []


@pytest.mark.parametrize(
    ("returned", "params", "expected"),
    [
        ("x, y", "ctx, a", [("REG309", "backward")]),
        ("x, y", "ctx, a, b, c", [("REG309", "backward")]),
        ("x, y", "ctx, a, b", []),
        ("x, y", "ctx, a, b, c=None", []),
        ("x, y", "ctx, *grads", []),
        ("x, y", "ctx, a, *, b=None", [("REG309", "backward")]),
        ("outputs", "ctx, a, b", []),
        ("(x, *y)", "ctx, a", []),
        ("x if a else (x, y)", "ctx, a", []),
        ("x, y\n    return x", "ctx, a", []),
    ],
)
def test_gradients_that_backward_takes(returned: str, params: str, expected: list[tuple[str, str]]) -> None:
    forward = f"def forward(ctx, x, y, a):\n    return {returned}"
    assert found(forward, f"def backward({params}):\n    return a, None, None") == expected
    assert found(forward, f"def backward({params}):\n    return None, None, None") == []
    assert found(forward, f"def backward({params}):\n    raise NotImplementedError") == []


@pytest.mark.parametrize("params", ["x, y, a=1", "x, *args", "x, y, **options"])
def test_arguments_that_a_call_may_omit_have_no_gradient(params: str) -> None:
    forward = f"def forward(ctx, {params}):\n    return x"
    assert found(forward, "def backward(ctx, grad):\n    return grad, grad") == []


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ("F.apply(x, 1, 2)", ["REG309"]),
        ("[F.apply(x, 1, 2) for x in x]", ["REG309"]),
        ("F.apply(x), F.apply(x, 1, 2)", ["REG309"]),
        ("F.apply(x, 1)", []),
        ("F.apply(x, *a)", []),
        ("F.apply(*x, 1, 2)", []),
        ("G.apply(x, 1, 2)", []),
        ("F.apply", []),
    ],
)
def test_arguments_that_a_call_passes_have_a_gradient(called: str, expected: list[str]) -> None:
    text = "class F(Function):\n    @staticmethod\n    def forward(ctx, x, a=1, b=2):\n        return x\n\n"
    text += "    @staticmethod\n    def backward(ctx, grad):\n        return grad, None\n\n\n"
    text += f"def f(x, a):\n    return {called}\n"
    assert lint_files([PACK], {"kit.py": HEAD + text}, ["REG309"]).codes() == expected
    again = f"if torch.version.hip:\n{''.join(f'    {line}' for line in text.splitlines(keepends=True))}\n"
    assert lint_files([PACK], {"kit.py": HEAD + text + again}, ["REG309"]).codes() == []


@pytest.mark.parametrize(("method", "count"), [("forward", 0), ("backward", 0), ("helper", 1)])
def test_calls_that_autograd_does_not_record(method: str, count: int) -> None:
    inner = "class F(Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x, x\n\n"
    inner += "    @staticmethod\n    def backward(ctx, grad):\n        return grad\n"
    outer = "import kit\nfrom torch.autograd import Function\n\n\nclass G(Function):\n"
    for name in ("forward", "backward", "helper"):
        value = "kit.F.apply(x)[0]" if name == method else "x"
        outer += f"    @staticmethod\n    def {name}(ctx, x):\n        return {value}\n\n"
    linted = lint_files([PACK], {"kit.py": HEAD + inner, "outer.py": outer}, ["REG309"])
    assert len(linted.diagnostics) == count


def test_files_without_operators_are_read() -> None:
    text = "import torch\n\n\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, y):\n"
    text += (
        "        ctx.save_for_backward(x)\n        return x * y\n\n    @staticmethod\n    def backward(ctx, grad):\n"
    )
    text += "        x, y = ctx.saved_tensors\n        return grad\n"
    linted = lint_files([PACK], {"kit.py": HEAD, "plain.py": text, "tests/test_plain.py": text}, ["REG309", "REG310"])
    found = {(item.code, item.place.path) for item in linted.diagnostics}
    assert found == {("REG309", "plain.py"), ("REG310", "plain.py")}


def test_a_forward_with_setup_context_has_no_context() -> None:
    forward = "def forward(x, y):\n    return torch.ops.kit.f(x, y, 1.0)"
    setup = "def setup_context(ctx, inputs, output):\n    ctx.save_for_backward(*inputs)\n    ctx.a = 1"
    backward = "def backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return grad * ctx.{}, grad"
    assert found(forward, backward.format("a"), more=setup) == []
    assert found(forward, backward.format("b"), more=setup) == [("REG310", "ctx.b")]
    assert found(forward, "def backward(ctx, grad):\n    return grad", more=setup) == [("REG309", "grad")]


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("ctx.a = a\n    ctx.save_for_backward(x)", [("REG310", "x, y")]),
        ("ctx.save_for_backward(x, y)", [("REG310", "ctx.a")]),
        ("ctx.save_for_backward(x, y)\n    ctx.a, ctx.b = a, 1", []),
        ("ctx.save_for_backward(x, y)\n    setattr(ctx, 'a', a)", []),
        ("keep(ctx, x, y, a)", []),
        ("ctx.__dict__.update(a=a)\n    ctx.save_for_backward(x, y)", []),
        ("ctx.a = a\n    ctx.save_for_backward(*(x, y))", []),
        ("ctx.a = a\n    if a:\n        ctx.save_for_backward(x)\n    else:\n        ctx.save_for_backward(x, y)", []),
    ],
)
def test_what_is_saved(forward: str, expected: list[tuple[str, str]]) -> None:
    assert found(f"def forward(ctx, x, y, a):\n    {forward}\n    return x", SOUND) == expected


@pytest.mark.parametrize("base", ["Base", "Function, Mixin", "function(1)"])
def test_only_classes_below_autograds_own_are_read(base: str) -> None:
    assert found(PLAIN, "def backward(ctx, grad):\n    return grad", base=base) == []


def test_decorators_that_may_change_arguments() -> None:
    backward = "def backward(ctx, grad):\n    return grad"
    assert found(PLAIN, f"@once_differentiable\n{backward}") == [("REG309", "grad")]
    assert found(f"@torch.amp.custom_fwd(device_type='cuda')\n{PLAIN}", backward) == [("REG309", "grad")]
    assert found(PLAIN, f"@contiguous\n{backward}") == []
    assert found(f"@contiguous\n{PLAIN}", backward) == []


def test_a_class_with_methods_of_two_kinds() -> None:
    backward = "def backward(ctx, grad):\n    return grad"
    assert found(PLAIN, backward, more="def vjp(ctx, grad):\n    return grad, grad, None") == []
    assert found(PLAIN, backward, more="def backward(ctx, grad):\n    return grad, grad, None") == []


@pytest.mark.parametrize("marked", ["x, y", "*outputs"])
def test_outputs_without_a_gradient(marked: str) -> None:
    forward = "def forward(ctx, x, y, a):\n    ctx.mark_non_differentiable({})\n    return x, y"
    backward = "def backward(ctx, grad):\n    return grad, None, None"
    assert found(forward.format(marked), backward) == []
    assert found(forward.format("x"), backward) == [("REG309", "backward")]


@pytest.mark.parametrize(
    "more",
    [
        "def run(x):\n    out = F.apply(x)\n    out.grad_fn.scale = 3\n",
        "class G(F):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.scale = 2\n        return F.forward(ctx, x)\n",
    ],
)
def test_attributes_that_other_code_sets(more: str) -> None:
    text = (
        "class F(Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n\n    @staticmethod\n"
    )
    text += "    def backward(ctx, grad):\n        return grad * ctx.scale\n\n\n"
    other = text.replace("class F", "class H").replace("return x", "ctx.scale = 1\n        return x")
    codes = ["REG310"]
    assert lint_files([PACK], {"kit.py": HEAD + text + more}, codes).diagnostics == []
    assert [item.code for item in lint_files([PACK], {"kit.py": HEAD + other + text}, codes).diagnostics] == codes


@pytest.mark.parametrize(
    "body",
    [
        "try:\n        s = ctx.scale\n    except AttributeError:\n        s = 1\n    return grad * s, None, None",
        "if len(ctx.saved_tensors) == 3:\n        x, y, z = ctx.saved_tensors\n    return grad, None, None",
        "assert ctx.requires_grad\n    return grad, None, None",
    ],
)
def test_what_a_backward_asks_for(body: str) -> None:
    assert found(PLAIN, f"def backward(ctx, grad):\n    {body}") == []


@pytest.mark.parametrize(
    "asked",
    [
        "tensors = ctx.saved_tensors\n    n = len(tensors)\n    if n == 3:\n        x, y, z = ctx.saved_tensors",
        "try:\n        x, y, z = ctx.saved_tensors\n    except ValueError:\n        x, y = ctx.saved_tensors",
        "if not hasattr(torch, 'new'):\n        return grad, None, None\n    x, y, z = ctx.saved_tensors",
    ],
)
def test_a_backward_that_allows_for_another_number_of_saved_tensors(asked: str) -> None:
    assert found(PLAIN, f"def backward(ctx, grad):\n    {asked}\n    return grad, None, None") == []


def test_a_test_of_one_saved_tensor_says_nothing_of_their_number() -> None:
    asked = (
        "x = ctx.saved_tensors[0]\n    if x is None:\n        return None, None, None\n    x, y, z = ctx.saved_tensors"
    )
    backward = f"def backward(ctx, grad):\n    {asked}\n    return grad, None, None"
    assert found(PLAIN, backward) == [("REG310", "x, y, z")]


@pytest.mark.parametrize(("base", "expected"), [("F", []), ("kit.F", []), ("F2", ["REG310", "REG310"])])
def test_a_class_in_another_file_that_inherits(base: str, expected: list[str]) -> None:
    text = "class F(Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n"
    text += "        return x * 2\n\n    @staticmethod\n    def backward(ctx, grad):\n"
    text += "        x, y = ctx.saved_tensors\n        return grad * ctx.scale\n"
    heir = f"import kit\nfrom kit import *\n\n\nclass G({base}):\n    @staticmethod\n    def forward(ctx, x):\n"
    heir += "        ctx.scale = 2\n        ctx.save_for_backward(x, x)\n        return x\n"
    assert lint_files([PACK], {"kit.py": HEAD + text, "gated.py": heir}, ["REG310"]).codes() == expected
