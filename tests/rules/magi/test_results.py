"""The results, saved values and arguments of an op's functions, and their comparison."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.magi.examples import example_files
from opschema_rules.magi.pack import PACK

CODES = tuple(f"MAG{number}" for number in (301, 302, 308, 312, 313, 321, 330, 332, 333, 334, 341, 344, 351))
FROZEN = "@dataclass(frozen=True)\nclass Config:\n    k: float\n    side: Literal['left', 'right'] = 'left'\n\n\n"
MODE = "class Mode(str, Enum):\n    ADD = 'add'\n    MUL = 'mul'\n\n\n"


def told(text: str, more: dict[str, str] | None = None) -> list[tuple[str, str, str]]:
    """Code, text at the place, and message of each finding."""
    linted = lint_files([PACK], {**example_files([("python", text)]), **(more or {})}, CODES)
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


def op(params: str = "x: Tensor", body: str = "return x + 1", given: str = "", returns: str = "Tensor") -> str:
    return f'@magi_register_custom_op("kit::f"{given})\ndef f({params}) -> {returns}:\n    {body}\n\n\n'


TWO = "tuple[Tensor, Tensor]"
SPLIT = op(body="return x + 1, x + 2", given=', infer_output_meta_fn=["x", "x"]', returns=TWO)


def test_a_body_that_returns_another_number() -> None:
    assert told(op(body="return x + 1, x + 2")) == [
        ("MAG333", "x + 1, x + 2", "`kit::f` returns 2 values in a tuple, and the op's annotation is `Tensor`")
    ]
    assert told(SPLIT.replace("x + 2", "x + 2, x + 3")) == [
        (
            "MAG333",
            "x + 1, x + 2, x + 3",
            "`kit::f` returns 3 values in a tuple, and the op's annotation is `(Tensor, Tensor)`",
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        SPLIT,
        SPLIT.replace("return x + 1, x + 2", "return tuple(x + i for i in range(2))"),
        SPLIT.replace("return x + 1, x + 2", "return helper(x)"),
        SPLIT.replace("return x + 1, x + 2", "return *(x + 1,), x + 2"),
        op(body="return [x + 1, x + 2]", given=', infer_output_meta_fn=["x", "x"]', returns="list[Tensor]"),
        op(body="def g():\n        return 1, 2\n    return x + g()[0]"),
        "import pytest\n\n\ndef test_it():\n    " + SPLIT.replace("x + 2", "x + 2, x").strip().replace("\n", "\n    ")
        + "\n    with pytest.raises(RuntimeError):\n        f(1)\n",
    ],
)  # fmt: skip
def test_a_body_that_may_return_what_it_says(text: str) -> None:
    assert told(text) == []


META = "def meta(x):\n    return {0}\n\n\n"
WITH_META = SPLIT.replace('["x", "x"]', "meta")


def test_a_meta_function_that_returns_another_number() -> None:
    one = "torch.empty_like(x)"
    message = "the meta function of `kit::f` returns {0}, and the op's annotation is `(Tensor, Tensor)`"
    assert told(META.format(f"{one}, {one}, {one}") + WITH_META) == [
        ("MAG321", f"{one}, {one}, {one}", message.format("3 values in a tuple"))
    ]
    assert [item[0] for item in told(META.format(one) + WITH_META)] == ["MAG321"]
    assert told(META.format(f"{one}, {one}") + WITH_META) == []
    assert told(META.format(f"[{one}, {one}]") + WITH_META) == []
    assert told(META.format("made(x)") + WITH_META) == []


@pytest.mark.parametrize(
    ("use", "count"), [("a, b, c = f(x)\n    return a + b + c", 3), ("(a,) = f(x)\n    return a", 1)]
)
def test_outputs_unpacked_into_another_number(use: str, count: int) -> None:
    (found,) = told(f"{SPLIT}def run(x):\n    {use}\n")
    assert found[0] == "MAG334"
    assert found[2] == f"`kit::f` returns 2 tensors, unpacked into {count} here"


@pytest.mark.parametrize(
    "text",
    [
        SPLIT + "def run(x):\n    a, b = f(x)\n    return a + b\n",
        SPLIT + "def run(x):\n    a, *b = f(x)\n    return a\n",
        SPLIT + "def run(x):\n    both = f(x)\n    return both[0]\n",
        SPLIT + "def run(x):\n    (a, b), c = f(x), 1\n    return a\n",
        SPLIT + "def run(x):\n    a, b, c = f(x)[0]\n    return a\n",
        SPLIT + "def run(x):\n    try:\n        a, b, c = f(x)\n    except ValueError:\n        pass\n",
        op() + "def run(x):\n    a, b = f(x)\n    return a\n",  # a tensor of two rows
    ],
)
def test_outputs_unpacked_as_they_are(text: str) -> None:
    assert told(text) == []


def test_a_misspelt_argument_of_the_decorator_is_read_as_meant() -> None:
    text = op("x: Tensor, y: Tensor", "x.add_(y)\n    return y + 1", ', mutate_args=("x",)')
    message = "`magi_register_custom_op()` has no parameter `mutate_args`; did you mean `mutates_args`?"
    assert told(text) == [("MAG351", "mutate_args", message)]


OWN = "def magi_register_custom_op(name=None, mutates_args=(), infer_output_meta_fn=None, setup_context_fn=None{0}):\n    ...\n"


def test_the_trees_own_decorator_says_which_arguments_there_are() -> None:
    text = op(given=", has_internal_collective=True")
    assert told(text) == []
    own = {"magi_compiler/__init__.py": "", "magi_compiler/api.py": OWN.format("")}
    message = "`magi_register_custom_op()` has no parameter `has_internal_collective`"
    assert told(text, own) == [("MAG351", "has_internal_collective", message)]
    for more in (", has_internal_collective=False", ", **options"):
        assert told(text, {**own, "magi_compiler/api.py": OWN.format(more)}) == []


@pytest.mark.parametrize(
    "given",
    [", **OPTIONS", ", mutates_args=(), extra_triton_kernels=[]", ", is_subgraph_boundary=True", ", force_register_mode=True"],
)  # fmt: skip
def test_arguments_that_the_decorator_may_have(given: str) -> None:
    assert told(f"OPTIONS = dict(mutates_args=())\n\n\n{op(given=given)}") == []


GRADIENT = ", setup_context_fn=setup, backward_fn=backward"
BACKWARD = "def backward(ctx, grad):\n    return grad, None\n\n\n"


def test_a_number_that_is_saved() -> None:
    setup = "def setup(ctx, inputs, output):\n    x, k = inputs\n    ctx.save_for_backward(x, k)\n\n\n"
    text = setup + BACKWARD + op("x: Tensor, k: int", given=GRADIENT)
    ((code, place, message),) = told(text)
    assert (code, place) == ("MAG344", "k")
    assert message.startswith("`setup_context_fn` of `kit::f` passes `k`, which is `int`, to `save_for_backward`")
    assert told(text.replace("x, k)", "x, output, None)")) == []


def test_an_attribute_that_is_not_set_beside_one_that_is() -> None:
    setup = "def setup(ctx, inputs, output):\n    ctx.k = inputs[1].k\n\n\n"
    backward = "def backward(ctx, grad):\n    return grad * ctx.kk, None\n\n\n"
    text = setup + backward + FROZEN + op("x: Tensor, c: Config", given=GRADIENT)
    assert [item[:2] for item in told(text)] == [("MAG341", "ctx.kk")]
    assert told(text.replace("ctx.kk", "ctx.k")) == []


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (
            FROZEN + op("x: Tensor, c: Config", "return x if c.side == 'rigth' else x + 1"),
            "'rigth'",
            "`c.side` is compared with 'rigth', which is not one of `Literal['left', 'right']`",
        ),
        (
            MODE + op("x: Tensor, mode: Mode", "return x + 1 if mode in ('add', 'sub') else x + 2"),
            "'sub'",
            "`mode` is compared with 'sub', which is not a value of `Mode`",
        ),
        (
            FROZEN.replace("= 'left'", "= 'lefft'") + op("x: Tensor, c: Config"),
            "'lefft'",
            "field `Config.side` defaults to 'lefft', not one of `Literal['left', 'right']`: nothing checks it",
        ),
        (
            op("x: Tensor, side: Literal['a', 'b'] = 'c'"),
            "'c'",
            "parameter `side` defaults to 'c', not one of `Literal['a', 'b']`: nothing checks it",
        ),
    ],
)
def test_a_string_that_is_not_listed(text: str, place: str, message: str) -> None:
    found = [item for item in told(text) if item[0] == "MAG308"]
    assert found == [("MAG308", place, message)]


@pytest.mark.parametrize(
    "text",
    [
        FROZEN + op("x: Tensor, c: Config", "return x + 1 if c.side == 'right' else x + 2"),
        FROZEN + op("x: Tensor, c: Config", "return x + 1 if c.side.upper() == 'RIGHT' else x + 2"),
        MODE + op("x: Tensor, mode: Mode = Mode.ADD", "return x + 1 if mode in ('add', Mode.MUL) else x + 2"),
        MODE.replace("'mul'", "made()") + op("x: Tensor, mode: Mode", "return x + 1 if mode == 'made' else x + 2"),
        op("x: Tensor, s: Literal['a', 'b']", "s = s + '!'\n    return x + 1 if s == 'a!' else x + 2"),
        op("x: Tensor, s: str = 'c'", "return x + 1 if s == 'd' else x + 2"),
        op("x: Tensor, s: Literal['a'] = 'a', t: str = 'z'", "return x + 1 if t == s else x + 2"),
    ],
)
def test_strings_that_are_listed_or_not_known(text: str) -> None:
    assert told(text) == []


OUTER = "@dataclass(frozen=True)\nclass Outer:\n    scale: float = 1.0\n    inner: {0}\n\n\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (FROZEN.replace("(frozen=True)", "") + OUTER.format("Config"), "MAG301"),
        (FROZEN + OUTER.format("Optional[Config]"), "MAG313"),
        (OUTER.format("dict[str, int]"), "MAG302"),
    ],
)
def test_the_order_of_a_field_with_a_refused_type_is_not_judged(text: str, code: str) -> None:
    assert [item[0] for item in told(text + op("x: Tensor, c: Outer"))] == [code]


def test_the_order_of_other_fields_is_judged_beside_one_with_a_refused_type() -> None:
    text = OUTER.format("int").replace("inner: int", "inner: int\n    more: dict[str, int]")
    assert sorted(item[0] for item in told(text + op("x: Tensor, c: Outer"))) == ["MAG302", "MAG312"]


def test_a_misspelt_name_in_mutates_args_is_one_finding() -> None:
    text = op("x: Tensor, y: Tensor", "x.add_(y)\n    return y + 1", ', mutates_args=("xx",)')
    assert [item[:2] for item in told(text)] == [("MAG332", '"xx"')]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("assert side not in ('', 'auto')\n    return x + 1", 0),
        ("if side == 'both':\n        raise ValueError(side)\n    return x + 1", 0),
        ("if side == 'both':\n        return x * 2\n    return x + 1", 1),
    ],
)
def test_checks_of_what_is_passed_are_no_comparisons(body: str, count: int) -> None:
    assert len(told(op("x: Tensor, side: Literal['left', 'right']", body))) == count


@pytest.mark.parametrize("body", ["return x.nonzero(as_tuple=True)", "out = []\n    fill(out, x)\n    return out"])
def test_bodies_that_may_return_two(body: str) -> None:
    assert told(op(body=body, given=', infer_output_meta_fn=["x", "x"]', returns=TWO)) == []


def test_an_argument_of_another_release_that_is_tried() -> None:
    new = op(given=", mutate_args=()").replace("\n", "\n    ").rstrip()
    old = op().replace("\n", "\n    ").rstrip()
    assert told(f"try:\n    {new}\nexcept TypeError:\n    {old}\n") == []


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("(grad,) + (None,) * 2", 0),
        ("(grad,) + 2 * (None,)", 0),
        ("grads + (None,)", 0),
        ("grad, None, None", 0),
        ("grad * 2.0", 1),
        ("(grad * grad) + 1", 1),
        ("(grad,)", 1),
    ],
)
def test_gradients_in_sums_of_tuples(returned: str, expected: int) -> None:
    backward = f"def backward(ctx, grad):\n    grads = (grad, None)\n    return {returned}\n\n\n"
    text = backward + op("x: Tensor, a: float, b: int", given=", backward_fn=backward")
    assert len(lint_files([PACK], example_files([("python", text)]), ["MAG342"]).diagnostics) == expected
