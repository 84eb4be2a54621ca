"""The evaluator: Python's answers for what is allowed, an error for everything else, soon."""

from __future__ import annotations

import math
import pickle
import re
import time
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opschema_cli.schema.evaluate import (
    ROOFLINE_ARITHMETIC_FUNCTIONS,
    ROOFLINE_VARS_FUNCTIONS,
    SHAPE_FUNCTIONS,
    Budget,
    BudgetExceeded,
    EvaluateError,
    EvaluationError,
    Functions,
    Tensor,
    Unbound,
    Unsupported,
    Value,
    evaluate,
)
from opschema_cli.schema.expression import ExpressionSyntaxError, parse_expression
from tests.examples import examples

EVERY_FUNCTION = Functions({**ROOFLINE_VARS_FUNCTIONS, **SHAPE_FUNCTIONS})


def value(text: str, **names: Value) -> Value:
    return evaluate(parse_expression(text), names, functions=EVERY_FUNCTION)


def error(text: str, **names: Value) -> EvaluateError:
    with pytest.raises(EvaluateError) as caught:
        value(text, **names)
    return caught.value


X = Tensor((2, 8, 64), "x")


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("x.shape == (B, S, D)", {"x": X, "B": 2, "S": 8, "D": 64}, True),
        ("x.shape == [2, 8, 64]", {"x": X}, False),
        ("x.shape[-1] % 2 == 0 and x.ndim == 3", {"x": X}, True),
        ("x.shape[:-1] + (7,)", {"x": X}, (2, 8, 7)),
        ("x.shape[::-1]", {"x": X}, (64, 8, 2)),
        ("k[0] if isinstance(k, (tuple, list)) else k", {"k": [3, 5]}, 3),
        ("k[0] if isinstance(k, (tuple, list)) else k", {"k": 3}, 3),
        ("dim is None or -x.ndim <= dim < x.ndim", {"x": X, "dim": None}, True),
        ("dim is None or -x.ndim <= dim < x.ndim", {"x": X, "dim": 3}, False),
        ("all(-x.ndim <= d < x.ndim for d in ([dim] if isinstance(dim, int) else dim))", {"x": X, "dim": [-3, 2]}, True),
        ("isinstance(dim, (int, type(None))) or len({d % x.ndim for d in dim}) == len(dim)", {"x": X, "dim": [0, -3]}, False),
        ("x.shape == reduced_shape(y.shape, dim, keepdim, 'noop')", {"x": X, "y": X, "dim": [], "keepdim": False}, True),
        ("reduced_shape(x.shape, 1, keepdim=True)", {"x": X}, (2, 1, 64)),
        ("broadcast_shapes(x.shape, (8, 1), ())", {"x": X}, (2, 8, 64)),
        ("(weight is None) == (bias is None)", {"weight": None, "bias": X}, False),
        ("weight is not None", {"weight": X}, True),
        ("p == 'same' or p in ('valid', 'same')", {"p": "valid"}, True),
        ("ord == float('inf')", {"ord": math.inf}, True),
        ("n & (n - 1) == 0", {"n": 64}, True),
        ("product(x.shape[i] for i in range(x.ndim) if i != 1)", {"x": X}, 128),
        ("product(()), prod([2, 3]), ceil(log2(9)), floor(2.5), sqrt(9)", {}, (1, 6, 4, 2, 3.0)),
        ("opts['axis'] in opts['axes']", {"opts": {"axis": 1, "axes": [0, 1]}}, True),
        ("sorted(k for k in opts)", {"opts": {"b": 1, "a": 2}}, ["a", "b"]),
        ("max == 3 and min.shape == (1,)", {"max": 3, "min": Tensor((1,))}, True),
        ("int == type(3)", {}, True),
        ("type(None) is type(None)", {}, True),
        ("[i * j for i in range(3) for j in range(i) if j]", {}, [2]),
        ("[a + b for a, (b, c) in pairs]", {"pairs": [(1, (2, 3))]}, [3]),
        ("[[x for x in range(x)] for x in range(3)]", {}, [[], [0], [0, 1]]),
        ("any(x for x in range(10**12))", {}, True),
        ("not all(range(10**12))", {}, True),
        ("10**11 in range(10**12)", {}, True),
        ("5 in (i for i in range(10**12))", {}, True),
        ("range(10**12)[10**11:][0]", {}, 10**11),
        ("{1, 2} - {2} == reduced_axes(x, 1)", {"x": X}, True),
        ("sum([[1], [2]], [0]), sum([0.5, 1])", {}, ([0, 1, 2], 1.5)),
        ("min(3, 1), max([1, 2]), max([], default=7)", {}, (1, 2, 7)),
        ("int('ff', 16), int(2.9), float('1e3'), str(12), bool([]), list('ab'), tuple(range(2))", {},
         (255, 2, 1000.0, "12", False, ["a", "b"], (0, 1))),
        ("0 or '' or () or 3", {}, 3),
        ("True + True, ~True, -True, not 1, 7 // 2, -7 % 3, 2 ** -1, 1 / 4", {}, (2, -2, -1, False, 3, 2, 0.5, 0.25)),
    ],
)  # fmt: skip
def test_it_computes_what_python_computes(text: str, names: dict[str, Value], expected: Value) -> None:
    assert repr(value(text, **names)) == repr(expected)


def test_names_hide_functions_and_types() -> None:
    assert value("isinstance(2, int)") is True
    assert value("int + 1", int=2) == 3
    assert error("max(1, 2)", max=X).reason == "`max` is a value here, not the function"


@pytest.mark.parametrize(
    ("text", "name", "offset"),
    [
        ("B == 1 and S == 2", "S", 11),
        ("  y.shape == (1,)", "y.shape", 2),
        ("y.ndim", "y.shape", 0),
        ("reduced_axes(y, 0)", "y.shape", 0),
        ("len == 3", "len", 0),
        ("[a for a in a]", "a", 12),
    ],
)
def test_what_has_no_value_is_unbound(text: str, name: str, offset: int) -> None:
    caught = error(text, B=1, y=Tensor(None, "y"))
    assert isinstance(caught, Unbound)
    assert (caught.name, caught.offset) == (name, offset)


@pytest.mark.parametrize("text", ["B or S", "0 and S", "1 if B else S", "2 < B < S", "[S for i in ()]"])
def test_what_is_not_reached_needs_no_value(text: str) -> None:
    value(text, B=1)


@pytest.mark.parametrize(
    ("text", "reason", "offset"),
    [
        ("1 + 2 // 0", "integer division or modulo by zero", 4),
        ("x.shape[3]", "tuple index out of range", 0),
        ("bias.shape == (1,)", "`bias` is None, which has no `.shape`", 0),
        ("B and bias.ndim", "`bias` is None, which has no `.ndim`", 6),
        ("x + 1", "`+` cannot combine 'Tensor' and 'int'", 0),
        ("(1,) + [2]", "`+` cannot combine 'tuple' and 'list'", 0),
        ("'%d' % 5", "`%` cannot combine 'str' and 'int'", 0),
        ("x == x", "tensors compare element by element; compare their shapes", 0),
        ("not x", "a tensor has no truth value; test `is None` or its shape", 0),
        ("1 < 'a'", "'<' not supported between instances of 'int' and 'str'", 0),
        ("5 is 5", "`is` compares places in memory; compare values with `==`", 0),
        ("opts['b']", "there is no such key", 0),
        ("len(5)", "object of type 'int' has no len()", 0),
        ("len(1, 2)", "`len()` does not take these arguments: too many positional arguments", 0),
        ("type('X', (), opts)", "`type()` does not take these arguments: too many positional arguments", 0),
        ("max([1], key=int)", "`max()` does not take these arguments: got an unexpected keyword argument 'key'", 0),
        ("(-8) ** 0.5", "a negative number has no real root of this degree", 0),
        ("[a for a, b in [(1,)]]", "2 loop variables cannot take this number of items", 0),
        ("list[int]", "'type' takes no index", 0),
        ("{1}[0]", "'set' takes no index", 0),
        ("[1 for i in 5]", "'int' cannot be iterated", 0),
        ("dim_uniqueness(x, ['%1000000000d'])", "an axis is a number, not 'str'", 0),
        ("dim_range_validity(5, 0)", "'int' object has no attribute 'ndim'", 0),
        ("str(i for i in ())", "a generator can only be iterated here", 0),
    ],
)
def test_what_python_refuses_is_an_error_with_a_place(text: str, reason: str, offset: int) -> None:
    caught = error(text, x=X, bias=None, B=1, opts={"a": 1})
    assert isinstance(caught, EvaluationError)
    assert caught.reason == reason
    assert caught.offset == offset


ESCAPES = [
    "().__class__.__mro__[1].__subclasses__()",
    "x.__class__",
    "x.shape.__len__",
    "[g.gi_frame.f_back.f_builtins for g in [(g for g in ())]]",
    "[g.gi_frame.f_back.f_back.f_back.f_builtins for g in [(g.gi_frame for g in ())]][0]['eval']('1')",
    "'{0.__class__}'.format(x)",
    "'{0.__class__}'.format_map({})",
    "f'{x.__class__}'",
    "f'{x!r:{10**9}}'",
    "type('X', (), {})",
    "getattr(x, 'shape')",
    "vars(x)",
    "__import__('os').system('true')",
    "__builtins__",
    "eval('1')",
    "open('/etc/passwd')",
    "len(*[[1]])",
    "max(**opts)",
    "[*x.shape]",
    "(y := 5)",
    "[y for x in [1] if (y := x)]",
    "lambda: 0",
    "(lambda: 0)()",
    "await x",
    "(yield)",
    "(yield from x)",
    "[i async for i in x]",
    "(i for i in ())",
    "min([], default=(i for i in ()))",
    "sum([], (i for i in ()))",
    "x.numel()",
    "x.dtype.itemsize",
    "[1 for x.shape in [1]]",
    "[1 for a[0] in [1]]",
    "{'a': 1}",
    "b'a'",
    "1j",
    "...",
    "1 @ 2",
    "x.shape[0:1, 2]",
    "[a for q in [1] for a in b for b in [1]]",
    "x is None or x.__class__",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_what_is_not_whitelisted_is_refused_even_if_not_reached(text: str) -> None:
    assert isinstance(error(text, x=X, opts={"a": 1}), Unsupported)
    assert isinstance(error(f"True or ({text})", x=X, opts={"a": 1}), Unsupported)


BOMBS = [
    "10**10**10",
    "9**9**9**9",
    "1 << 10**9",
    "product(range(1, 10**5))",
    "'a' * 10**9",
    "[0] * 10**9",
    "10**9 * (0,)",
    "'%1000000000d' % 5",
    "all(i >= 0 for i in range(10**12))",
    "any(i < 0 for i in range(10**12))",
    "all(range(1, 10**12))",
    "[i for i in range(10**12)]",
    "{i for i in range(10**12)}",
    "sum(range(10**12))",
    "sorted(range(10**12))",
    "tuple(range(10**12))",
    "max(range(10**12))",
    "0.5 in range(10**12)",
    "-1 in (i for i in range(10**12))",
    "broadcast_shapes(range(10**12))",
    "dim_range_validity(x, range(10**12))",
    "reduced_shape(range(10**9), 0)",
    "[0 for a in range(1000) for b in range(1000) for c in range(1000)]",
    "[[[0 for a in range(1000)] for b in range(1000)] for c in range(1000)]",
    "[[[0] * 1000] * 1000] * 1000 == [[[0] * 1000] * 1000] * 1000",
    "[[[0] * 1000] * 1000] * 1000 < [[[0] * 1000] * 1000] * 1000",
    "str([[[0] * 1000] * 1000] * 1000)",
    "{(((0,) * 1000,) * 1000,) * 1000}",
    "opts[(((0,) * 1000,) * 1000,) * 1000]",
    "sorted([[[0] * 1000] * 1000] * 1000)",
    "isinstance(1, (((str,) * 1000,) * 1000,) * 1000)",
    "{i * (2**61 - 1) for i in range(9000)}",
    "set([i * (2**61 - 1) for i in range(9000)])",
    "[s + s for i in range(1000)]",
    "[s == s + '' for i in range(1000)]",
    "[('b' + s) in s for i in range(1000)]",
    "sum([[0] * 1000 for i in range(1000)], [])",
    "int('9' * 100000)",
    "float('9' * 100000) and [float('9' * 90000) for i in range(1000)]",
    "[str(big) for i in range(10**6)]",
    "big * big",
    "len(" + "[z, z] for z in [" * 30 + "1" + "]" * 30 + ")",
    "[" + "+".join(["'aaaaaaaaaaaaaaaa' * 4000"] * 40) + " for i in range(9)]",
]


@pytest.mark.parametrize("text", BOMBS)
def test_what_explodes_is_stopped(text: str) -> None:
    start = time.process_time()
    caught = error(text, x=X, s="a" * 90_000, big=10**4000, opts={"a": 1})
    # The budget is 50 ms; a loaded machine charges several times that for the same work.
    assert time.process_time() - start < 0.5
    assert isinstance(caught, (BudgetExceeded, EvaluationError))
    assert caught.offset >= 0


@pytest.mark.parametrize(
    ("budget", "which"),
    [
        (Budget(steps=100), "steps"),
        (Budget(items=10), "size"),
        (Budget(bits=4), "size"),
        (Budget(seconds=0.0), "time"),
        (Budget(steps=1), "steps"),
    ],
)
def test_the_budget_is_the_callers(budget: Budget, which: str) -> None:
    expression = parse_expression("sum([i * 3 for i in range(1000)]) and 3 * 3")
    assert evaluate(expression, {}) == 9
    with pytest.raises(BudgetExceeded) as caught:
        evaluate(expression, {}, budget=budget)
    assert caught.value.which == which


def test_the_deepest_expression_is_evaluated() -> None:
    assert value("-" * 98 + "1") == 1
    assert value("[" * 49 + "1" + "]" * 49 + "[0]" * 49) == 1


def test_layers_differ_in_what_they_may_call() -> None:
    assert set(ROOFLINE_ARITHMETIC_FUNCTIONS) == {"ceil", "floor", "log2"}
    assert "product" not in SHAPE_FUNCTIONS
    assert "broadcast_shapes" not in ROOFLINE_VARS_FUNCTIONS
    expression = parse_expression("max(M, 1)")
    assert evaluate(expression, {"M": 4}) == 4
    with pytest.raises(Unsupported):
        evaluate(expression, {"M": 4}, functions=ROOFLINE_ARITHMETIC_FUNCTIONS)


def test_errors_survive_a_process_pool() -> None:
    caught = error("1 + y", z=1)
    copy = pickle.loads(pickle.dumps(caught))
    assert (type(copy), copy.reason, copy.offset) == (Unbound, "`y` has no value", 4)


# Against Python itself --------------------------------------------------------------------------------

NAMES: dict[str, Value] = {"a": 3, "b": -2, "c": 0, "t": (4, 5, 6), "n": None, "u": [1, [2]]}

WORDS = {
    "atom": ["0", "1", "2", "7", "(-3)", "0.5", "True", "False", "()", "[]", *NAMES],
    "sign": ["+", "-", "*", "//", "%", "/", "&", "|", "^"],
    "compares": ["==", "!=", "<", "<=", ">", ">=", "in", "not in"],
    "prefix": ["not ", "-", "+", "~"],
    "power": ["-1", "0", "1", "2", "3"],
    "call": ["len", "sum", "max", "min", "sorted", "tuple", "list", "set", "all", "any", "abs", "bool", "int"],
}
TEMPLATES = [
    *["<atom>", "(E <sign> E)", "(E <compares> E)", "(E <compares> E <compares> E)", "(E and E)", "(E or E)"],
    *["(<prefix>E)", "(E ** <power>)", "(E if E else E)", "(E, E, E)", "(E,)", "[E, E]", "{E, E}", "E[E]"],
    *["E[E:]", "E[:E:E]", "[E for a in E if E]", "{E for b in E}", "[(p, q, E) for p in E for q in (E, p)]"],
    *["<call>(E)", "<call>(E for c in E)", "max(E, E)", "sum(E, E)", "isinstance(E, (int, tuple))"],
]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    template = draw(st.sampled_from(TEMPLATES if depth else TEMPLATES[:1]))
    text = re.sub("E", lambda _: draw(expressions(depth - 1)), template)
    return re.sub("<([a-z]+)>", lambda word: draw(st.sampled_from(WORDS[word[1]])), text)


def python(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(text, dict(NAMES))
    except (ArithmeticError, LookupError, TypeError, ValueError, NameError):
        return "an error"
    return "an error" if isinstance(result, complex) else repr(result)


def ours(text: str) -> str:
    try:
        return repr(evaluate(parse_expression(text), NAMES))
    except EvaluationError:
        return "an error"


@settings(max_examples=examples(500, 150), deadline=None)
@given(expressions())
@example("(a, b) == [a, b]")
@example("1 < 3 > 2 != None")
@example("(set(t) - {4})")
@example("sum(a for c in [])")
def test_random_expressions_give_what_python_gives(text: str) -> None:
    assert ours(text) == python(text)


TOKENS = [
    *"()[]{},.:+-*/%<>=&|^~@",
    *["==", "**", "//", "<<", ":=", "f'{", "}'", "if", "else", "for", "in", "is", "not", "and", "or", "lambda", "None"],
    *["x", "x.shape", "x.ndim", "a", "n", "1", "10**9", "'s'", "__class__", "await", "yield", "len(", "range("],
    *["type(", "isinstance(", "reduced_axes(", "all(", "str(", "set(", "max(", "broadcast_shapes("],
]


@settings(max_examples=examples(400, 150), deadline=None)
@given(st.text(max_size=30) | st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join))
def test_no_text_raises_anything_but_our_errors(text: str) -> None:
    place = 0
    try:
        evaluate(parse_expression(text), {"x": X, "n": None, "a": 2})
    except (ExpressionSyntaxError, EvaluateError) as caught:
        place = caught.offset
    assert 0 <= place <= len(text)
