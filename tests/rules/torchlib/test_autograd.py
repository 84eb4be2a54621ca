"""Registrations by ``register_autograd``: gradients, setup_context, saved values."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.examples import example_files
from opschema_rules.torchlib.pack import PACK

CODES = ["REG301", "REG302", "REG303", "REG304", "REG305", "REG306", "REG308"]

OP = """
@torch.library.custom_op("kit::f", mutates_args=())
def f(x: Tensor, y: Tensor, a: int = 1) -> Tensor:
    return x.clone()


{code}


f.register_autograd(backward{setup})
"""


def told(code: str, setup: str = ", setup_context=setup") -> list[tuple[str, str, str]]:
    """Each finding's code, the text at its place and its message, without the operator's name."""
    linted = lint_files([PACK], example_files([("python", OP.format(code=code, setup=setup))]), CODES)
    return [
        (item.code, linted.text(item.place), item.message.replace(" of `kit::f`", "")) for item in linted.diagnostics
    ]


SETUP = "def setup(ctx, inputs, output):\n    x, y, a = inputs\n    ctx.save_for_backward(x, y)\n    ctx.a = a\n\n\n"

SOUND = [
    "def backward(ctx, grad):\n    return grad, grad, None",
    "def backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return grad * y * ctx.a, grad * x, None",
    "def backward(ctx, *grads):\n    return (grads[0],) * 2 + (None,)",
    "def backward(ctx, grad, *, scale=1):\n    return grads_of(grad)",
    "def backward(ctx, grad):\n    grads = [grad, grad, None]\n    return tuple(grads)",
    "def backward(ctx, grad):\n    saved = ctx.saved_tensors\n    return saved[0], saved[1], None",
    "def backward(ctx, grad):\n    x, *rest = ctx.saved_tensors\n    return grad, rest[0], None",
    "def backward(ctx, grad):\n    def one(x):\n        return x\n    return one(grad), grad, None",
    "def backward(ctx, grad):\n    ctx.z = grad\n    return ctx.z, grad, None",
    "def backward(context, g):\n    if context.needs_input_grad[0]:\n        return g, g, None\n    return None, g, None",
    "def backward(ctx, grad):\n    raise NotImplementedError",
    "def backward(ctx, grad):\n    if ctx.a is None:\n        return grad, grad\n    return grad, grad, None",
    "def backward(ctx, grad):\n    if ctx.a is not None:\n        return grad, grad, None\n    else:\n        return grad, grad",
]


@pytest.mark.parametrize("backward", SOUND)
def test_sound_gradients(backward: str) -> None:
    assert told(SETUP + backward) == []


@pytest.mark.parametrize(
    "backward",
    [
        "def backward(ctx, grad):\n    if ctx.a is None:\n        return grad, grad\n    return grad, grad",
        "def backward(ctx, grad):\n    if ctx.a > 1:\n        return grad, grad\n    return grad, grad, None",
        "def backward(ctx, grad):\n    if ctx.a is None:\n        return grad\n    return grad, grad, None",
    ],
)
def test_fewer_gradients_are_for_an_argument_that_is_left_out(backward: str) -> None:
    assert {code for code, _, _ in told(SETUP + backward)} == {"REG301"}


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("grad, *((None,) * 2)", []),
        ("grad, *[None] * 2", []),
        ("(grad, grad) + (None,)", []),
        ("(grad,) * n", []),
        ("grad * 2", ["REG301"]),
        ("(grad,) * 2", ["REG301"]),
        ("grad, *((None,) * 1)", ["REG301"]),
        ("grad, *[None]", ["REG301"]),
        ("(grad,) + (None,)", ["REG301"]),
        ("(grad,) + n", []),
        ("grad, *n", []),
        ("(grad,) * 0", []),
        ("[grad] * 2", []),
        ("(((None,) * 999) * 999) * 999", []),
    ],
)
def test_gradients_of_which_several_are_written_as_one(returned: str, expected: list[str]) -> None:
    assert [code for code, _, _ in told(f"{SETUP}def backward(ctx, grad):\n    return {returned}")] == expected


def test_each_return_is_counted() -> None:
    backward = "def backward(ctx, grad):\n    if grad is None:\n        return None\n    return grad, grad"
    assert told(SETUP + backward) == [
        ("REG301", "None", "`backward` returns one gradient and the schema has 3 arguments before `*`: it fails"),
        (
            "REG301",
            "grad, grad",
            "`backward` returns 2 gradients and the schema has 3 arguments before `*`:"
            " a call that passes those with defaults fails in `backward`",
        ),
    ]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("grad.flip(0).contiguous()", ["REG301"]),
        ("(grad @ x).sum(0)", ["REG301"]),
        ("torch.zeros_like(x)", ["REG301"]),
        ("grad.split(2)", []),
        ("torch.split(grad, 1)", []),
        ("x.sum(0)", []),
        ("grad, grad, grad.sum()", ["REG307"]),
        ("grad, grad, z", ["REG307"]),
        ("grad, grad, w", []),
        ("grad, z * 2, None", []),
        ("grad, grad, grad.tolist()", []),
    ],
)
def test_what_gives_one_tensor(returned: str, expected: list[str]) -> None:
    made = "    z = torch.zeros_like(grad)\n    w = torch.ones(1)\n    w = None\n"
    code = f"def backward(ctx, grad):\n    x, _ = ctx.saved_tensors\n{made}    return {returned}"
    linted = lint_files(
        [PACK], example_files([("python", OP.format(code=SETUP + code, setup=", setup_context=setup"))])
    )
    assert [code for code in linted.codes() if code in ("REG301", "REG307")] == expected


def test_a_list_is_one_gradient() -> None:
    assert told(SETUP + "def backward(ctx, grad):\n    return [grad, grad, None]") == [
        (
            "REG301",
            "[grad, grad, None]",
            "`backward` returns a list, which is one gradient, and the schema has 3 arguments before `*`: it fails",
        )
    ]


@pytest.mark.parametrize(
    ("requires", "severity"),
    [("torch==2.13.0", None), ("torch>=2.8", "error"), ("", "warning")],
    ids=["2.13", "2.15 too", "not said"],
)
def test_a_none_behind_the_last_gradient_counts_from_torch_2_15_on(requires: str, severity: str | None) -> None:
    code = OP.format(
        code=SETUP + "def backward(ctx, grad):\n    return grad, grad, None, None", setup=", setup_context=setup"
    )
    files = {**example_files([("python", code)]), **({"requirements.txt": f"{requires}\n"} if requires else {})}
    found = lint_files([PACK], files, CODES).diagnostics
    assert [item.severity.value for item in found] == ([severity] if severity else [])
    assert all("torch 2.15 refuses it, earlier releases ignore `None`s at the end" in item.message for item in found)


@pytest.mark.parametrize(
    ("params", "place", "message"),
    [
        ("ctx", "backward", "`backward` takes no gradients, and is passed the context and one gradient, by position"),
        ("ctx, a, b", "b", "`backward` requires `b`, and is passed the context and one gradient, by position"),
        ("ctx, a, *, b", "b", "`backward` requires `b`, and is passed the context and one gradient, by position"),
    ],
)
def test_what_backward_takes(params: str, place: str, message: str) -> None:
    assert told(f"{SETUP}def backward({params}):\n    raise NotImplementedError") == [("REG302", place, message)]


BACKWARD = "\n\n\ndef backward(ctx, grad):\n    return grad, grad, None"


@pytest.mark.parametrize(
    ("params", "place", "what"),
    [
        ("ctx, inputs", "setup", "does not take `output`"),
        ("ctx, inputs, outputs", "outputs", "requires `outputs` and does not take `output`"),
        ("ctx, inputs, output, keyword_only_inputs", "keyword_only_inputs", "requires `keyword_only_inputs`"),
        (
            "ctx, inputs, output, /",
            "ctx",
            "requires `ctx`, `inputs`, `output` and does not take `ctx`, `inputs`, `output`",
        ),
    ],
)
def test_setup_context_is_called_by_name(params: str, place: str, what: str) -> None:
    found = told(f"def setup({params}):\n    pass{BACKWARD}")
    assert found == [("REG303", place, f"`setup_context` {what}; it is called with `ctx=`, `inputs=`, `output=`")]


@pytest.mark.parametrize(
    "params", ["output, ctx, inputs", "ctx, *, inputs, output", "ctx, **rest", "ctx, inputs, output, more=1"]
)
def test_setup_context_in_any_form_that_takes_the_names(params: str) -> None:
    assert told(f"def setup({params}):\n    pass{BACKWARD}") == []


@pytest.mark.parametrize("unpacked", ["x, y, a", "p, q, r", "x, *rest", "_, ctx.y, _", "a, b, c"])
def test_inputs_unpacked_as_they_are(unpacked: str) -> None:
    assert told(f"def setup(ctx, inputs, output):\n    {unpacked} = inputs{BACKWARD}") == []


def test_inputs_unpacked_in_another_number_or_order() -> None:
    assert told(f"def setup(ctx, inputs, output):\n    x, y = inputs{BACKWARD}") == [
        (
            "REG304",
            "x, y",
            "`setup_context` unpacks `inputs` into 2; the schema has 3 arguments before `*`: `x`, `y`, `a`",
        )
    ]
    assert told(f"def setup(ctx, inputs, output):\n    y, x, a = inputs{BACKWARD}") == [
        (
            "REG304",
            "y, x, a",
            "`setup_context` unpacks `inputs` as `y`, `x`, `a`; the schema's order is `x`, `y`, `a`: the arguments are shifted",
        )
    ]


def test_what_is_saved_is_what_is_unpacked() -> None:
    setup = "def setup(ctx, inputs, output):\n    x, y, a = inputs\n    ctx.save_for_backward(x)\n\n\n"
    backward = "def backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return grad * y, grad * ctx.a, None"
    assert told(setup + backward) == [
        ("REG305", "x, y", "`backward` unpacks 2 saved tensors; `setup_context` saves 1"),
        ("REG305", "ctx.a", "`backward` reads `ctx.a`, which `setup_context` does not set"),
    ]


def test_a_setup_context_may_also_set_attributes() -> None:
    setup = (
        "def setup(ctx, inputs, output):\n    x, y, a = inputs\n    ctx.save_for_backward(x)\n    ctx.b, ctx.n = a, 1\n"
    )
    backward = "\n\ndef backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    ctx.z = 1\n    return grad * y, grad * ctx.a, None"
    assert told(setup + backward) == [
        ("REG305", "x, y", "`backward` unpacks 2 saved tensors; `setup_context` saves 1"),
        ("REG305", "ctx.a", "`backward` reads `ctx.a`, which `setup_context` does not set"),
    ]
    assert told(setup.replace("(x)", "(x, y)").replace("ctx.b", "ctx.a") + backward) == []
    assert told(setup + "    keep(ctx)" + backward) == []


@pytest.mark.parametrize(
    "setup",
    [
        "    if x.requires_grad:\n        ctx.save_for_backward(x)\n    else:\n        ctx.save_for_backward(x, y)\n    ctx.a = a",
        "    ctx.save_for_backward(*inputs[:2])\n    ctx.a = a",
        "    keep(ctx, x, y, a)",
        "    for name in 'a':\n        setattr(ctx, name, a)\n    ctx.save_for_backward(x, y)",
        "    ctx.__setattr__('a', a)\n    ctx.save_for_backward(x, y)",
        "    object.__setattr__(ctx, 'a', a)\n    ctx.save_for_backward(x, y)",
    ],
)
def test_what_others_may_leave_on_the_context_is_not_asked_for(setup: str) -> None:
    backward = "\n\n\ndef backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return grad * y, grad * ctx.a, None"
    assert told(f"def setup(ctx, inputs, output):\n    x, y, a = inputs\n{setup}{backward}") == []


@pytest.mark.parametrize("setup", ["ctx.b = a", "ctx.b = ctx.c = a", "ctx.b: int = a", "ctx.b, ctx.c = a, y"])
@pytest.mark.parametrize(
    "read", ["return grad * ctx.a, grad, None", "if ctx.b:\n        grad = grad * ctx.a\n    return grad, grad, None"]
)
def test_an_attribute_that_is_not_among_those_set(setup: str, read: str) -> None:
    """A function that sets attributes does not pass the context on."""
    code = (
        f"def setup(ctx, inputs, output):\n    x, y, a = inputs\n    {setup}\n\n\ndef backward(ctx, grad):\n    {read}"
    )
    assert told(code) == [("REG305", "ctx.a", "`backward` reads `ctx.a`, which `setup_context` does not set")]


def test_tensors_are_counted_where_attributes_are_set() -> None:
    backward = "def backward(ctx, grad):\n    x, y, z = ctx.saved_tensors\n    return grad * y * ctx.a, grad * x, None"
    assert told(SETUP + backward) == [
        ("REG305", "x, y, z", "`backward` unpacks 3 saved tensors; `setup_context` saves 2")
    ]


@pytest.mark.parametrize(
    "setup",
    [
        "    ctx.b = a\n    keep(ctx)",
        "    ctx.b = a\n    ctx.__dict__.update(a=a)",
        "    ctx.b = ctx\n    ctx.b.a = a",
    ],
)
def test_attributes_that_may_be_set_elsewhere_after_one_is_set(setup: str) -> None:
    backward = "\n\n\ndef backward(ctx, grad):\n    return grad * ctx.a, grad, None"
    assert told(f"def setup(ctx, inputs, output):\n    x, y, a = inputs\n{setup}{backward}") == []


SHARED = """
def setup(ctx, inputs, output):
    ctx.kind = "f"


def other(ctx, inputs, output):
    ctx.kind, ctx.a = "g", 2


def backward(ctx, grad):
    if ctx.kind == "g":
        return grad * ctx.a, grad, None
    return grad, grad, None
"""


def test_a_branch_of_a_shared_backward_reads_what_another_setup_context_sets() -> None:
    assert told(SHARED) == []
    found = told(SHARED.replace("grad * ctx.a", "grad * ctx.b"))
    assert [item[:2] for item in found] == [("REG305", "ctx.b")]


def test_without_setup_context_nothing_is_there() -> None:
    backward = "def backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return grad * y, grad * x, None"
    assert told(backward, "") == [
        (
            "REG305",
            "ctx.saved_tensors",
            "`backward` reads `ctx.saved_tensors`, and no `setup_context` is registered that leaves it there",
        )
    ]
    assert told("def backward(ctx, grad):\n    return grad, grad if ctx.needs_input_grad[1] else None, None", "") == []


def test_a_setup_context_that_cannot_be_followed_may_leave_anything() -> None:
    backward = "def backward(ctx, grad):\n    x, y = ctx.saved_tensors\n    return grad * y, grad * x, None"
    assert told(backward, ", setup_context=module.setup") == []


WRITES = """
TORCH_LIBRARY(kit, m) {{ m.def("f_(Tensor(a!) x) -> ()"); }}
TORCH_LIBRARY_IMPL(kit, {key}, m) {{ m.impl("f_", {kernel}); }}
"""


@pytest.mark.parametrize(
    "kernel",
    ["torch::CppFunction::makeFallthrough()", "torch::autograd::autogradNotImplementedFallback()", "&f_autograd"],
)
def test_what_cpp_registers_for_autograd_is_not_refused(kernel: str) -> None:
    cpp = WRITES.format(key="AutogradCUDA", kernel=kernel)
    python = 'torch.library.register_autograd("kit::f_", lambda ctx, grad: None)'
    assert lint_files([PACK], {"f.cpp": cpp}, ["REG306"]).codes() == []
    assert lint_files([PACK], {"f.cpp": cpp, "f.py": f"import torch\n\n{python}\n"}, ["REG306"]).codes() == ["REG306"]


FALLS_THROUGH = """
import torch

lib = torch.library.Library("kit", "DEF")
lib.define("f(Tensor x) -> Tensor")


def f(x):
    return x.clone()


lib.impl("f", f, "CPU")
lib.impl("f", {kernel}, "{key}")
"""


def test_a_fallthrough_is_no_fake_and_no_gradient() -> None:
    def codes(kernel: str, key: str) -> list[str]:
        text = FALLS_THROUGH.format(kernel=kernel, key=key)
        return lint_files([PACK], {"f.py": text}, ["REG206"]).codes()

    assert codes("torch.library.fallthrough_kernel", "Meta") == ["REG206"], "a call under FakeTensorMode fails"
    assert codes("torch.library.fallthrough_kernel", "Autograd") == ["REG206"]
    assert codes("f", "Meta") == []


def test_only_tensors_are_saved() -> None:
    setup = "def setup(ctx, inputs, output):\n    x, y, a = inputs\n    ctx.save_for_backward(x, a, *inputs, [y])"
    ends = "to `save_for_backward`, which takes tensors and `None`: every call that needs gradients fails;"
    assert told(setup + BACKWARD) == [
        ("REG308", place, f"`setup_context` passes {what} {ends} store it as an attribute of `ctx`")
        for place, what in (("a", "`a`, which is `SymInt`,"), ("inputs", "`a`, which is `SymInt`,"), ("[y]", "a list"))
    ]


def test_the_list_for_the_only_argument_may_be_returned_by_itself() -> None:
    text = "torch.library.define('kit::g', '({}) -> Tensor')\n"
    text += "torch.library.register_autograd('kit::g', lambda ctx, grad: None)\n"
    text += "def backward(ctx, grad):\n    return [grad, grad]\n"
    text += "torch.library.register_autograd('kit::g', backward)\n"
    for schema, count in (("Tensor[] x", 0), ("Tensor[] x, float a", 1), ("Tensor x", 1)):
        linted = lint_files([PACK], {"kit.py": "import torch\n" + text.format(schema)}, ["REG301"])
        assert len([item for item in linted.diagnostics if "list" in item.message]) == count


@pytest.mark.parametrize("condition", ["len(inputs) == 2", "ctx.needs_input_grad[1]"])
def test_a_setup_context_that_several_operators_share(condition: str) -> None:
    setup = f"def setup(ctx, inputs, output):\n    if {condition}:\n        x, y = inputs\n\n\n"
    assert told(setup + "def backward(ctx, grad):\n    return grad, grad, None") == []


def test_reads_that_may_fail() -> None:
    read = "def backward(ctx, grad):\n    try:\n        {}\n    except {}:\n        pass\n    return grad, grad, None"
    assert told(read.format("a = ctx.scale", "AttributeError"), setup="") == []
    assert told(SETUP + read.format("x, y, z = ctx.saved_tensors", "ValueError")) == []
    plain = "def backward(ctx, grad):\n    x, y, z = ctx.saved_tensors\n    return grad, grad, None"
    assert [code for code, *_ in told(SETUP + plain)] == ["REG305"]
