"""Constants: what expressions of a module are, as the evaluator tells it."""

from __future__ import annotations

import math

import pytest

from opschema_cli.source.resolution import ClassRef, Folded, Unresolved
from tests.evaluation.evaluating import evaluator_of

KNOWN = {
    "1 + 2 * 3": 7,
    "-2 ** 2": -4,
    "7 // 2 - 7 % 4": 0,
    "1 / 4": 0.25,
    "1 << 10 | 1": 1025,
    'float("-inf")': -math.inf,
    "math.pi": math.pi,
    "True": True,
    "not 0": True,
    "3 > 2 >= 2": True,
    '"a" in ("a", "b")': True,
    '"a" + "b" * 2': "abb",
    'f"{WIDTH}x{NAME!r}:{WIDTH:03d}"': "8x'kit':008",
    '"{}_{name}".format(WIDTH, name=NAME)': "8_kit",
    '"-".join(["a", NAME])': "a-kit",
    'NAME.upper().replace("K", "B")': "BIT",
    'NAME[1:] + NAME[0] + NAME[-1]': "itkt",
    '"yes" if WIDTH > 4 else "no"': "yes",
    "WIDTH or 3": 8,
    "(1, 2) + (3,)": (1, 2, 3),
    "[0] * 3": [0, 0, 0],
    "SIZES[1]": 64,
    'NESTED["d"]': 1,
    'KEPT["a"]["b"]': 1,
    "SIZES[:-1]": (32, 64),
    "len(SIZES)": 3,
    'TABLE["b"]': 2,
    'TABLE.get("c", 5)': 5,
    "BY_NUMBER[1]": "one",
    "tuple(reversed(SIZES))": (128, 64, 32),
    "min(2, 3) + max(1, 4)": 6,
    "Limits.low + Limits.high": 12,
    "Mode.ADD.value": "add",
    "Mode.ADD.name": "ADD",
    'Mode("sub").name': "SUB",
    'Mode["SUB"].value': "sub",
    "double(21)": 42,
    "doubled(4)": 8,
    "LATE": 3,
    "[n * 2 for n in SIZES if n > 32]": [128, 256],
    "[f'{a}{b}' for a in 'xy' for b in range(2)]": ["x0", "x1", "y0", "y1"],
    "{k: v + 1 for k, v in TABLE.items()}['b']": 3,
    "', '.join(name for _, name in zip(SIZES, ['a', 'b']))": "a, b",
    "[i for i, (low, high) in enumerate([(1, 2), (3, 4)]) if high > 2]": [1],
    "[m.value for m in Mode]": ["add", "sub"],
    "[*SIZES[:1], *reversed([1, 2])]": [32, 2, 1],
    "SIZES[::2]": (32, 128),
}  # fmt: skip

UNKNOWN = (
    "10 ** 100",
    "10 ** (10 ** 10)",
    "1 << 1000000",
    '"a" * 10 ** 6 * 10 ** 6',
    "[0] * 10 ** 6",
    "1 / 0",
    '"a" + 1',
    "1 < 'a'",
    "f'{WIDTH:99999999}'",
    "GROWN",
    "len(GROWN)",
    "GROWN_BY_HELPER[0]",
    'OPEN["b"]',
    'NESTED["a"]["b"]',
    'NESTED["c"][0]',
    "PAIRS[0][0]",
    "EITHER",
    "REBOUND",
    "Mode.ADD",
    "{1, 2}",
    "range(10 ** 9)",
    "unknown(1)",
)

MODULE = """
import math
from enum import Enum
from functools import partial
from elsewhere import unknown, condition

WIDTH = 8
NAME = "kit"
SIZES = (32, 64, 128)
TABLE = {"a": 1, **{"b": 2}}
BY_NUMBER = {0: "zero", WIDTH - 7: "one"}
GROWN = []
GROWN.append(1)
GROWN_BY_HELPER = [1]
OPEN = {"a": 1}
NESTED = {"a": {"b": 1}, "c": [1], "d": 1}
NESTED["a"]["b"] = 2
NESTED["c"].append(2)
PAIRS = ([1], 2)
PAIRS[0][0] = 3
KEPT = {"a": {"b": 1}}
EITHER = 1
if condition:
    EITHER = 2
REBOUND = 1
LATE = 1
LATE = 2
LATE = LATE + 1

class Limits:
    low = 4
    high = low * 2

class Mode(Enum):
    ADD = "add"
    SUB = "sub"

def double(x):
    return x * 2

doubled = partial(double)

def helper(name):
    global REBOUND
    REBOUND = unknown()
    OPEN[name] = 1
    GROWN_BY_HELPER[0] = 5

found = EXPR
"""


def fold(expression: str) -> Folded | Unresolved:
    return found_in(MODULE.replace("EXPR", expression))


def found_in(text: str) -> Folded | Unresolved:
    """The constant that a module assigns to `found`."""
    evaluator = evaluator_of({"a.py": text})
    file = evaluator.program.load("a.py")
    assert file is not None
    value = file.assigns["found"][-1].value
    assert value is not None
    return evaluator.fold(file, value)


@pytest.mark.parametrize(("expression", "value"), KNOWN.items())
def test_constants_are_computed(expression: str, value: object) -> None:
    found = fold(expression)
    assert isinstance(found, Folded), found
    assert found.value == value
    assert type(found.value) is type(value)


@pytest.mark.parametrize("expression", UNKNOWN)
def test_what_may_be_something_else_or_is_too_large_is_not(expression: str) -> None:
    assert isinstance(fold(expression), Unresolved)


def test_names_of_other_packages_are_symbols() -> None:
    assert fold("elsewhere.float16".replace("elsewhere", "math.no")) == Folded(symbol="math.no.float16")
    found = fold('float("nan")')
    assert isinstance(found, Folded)
    assert isinstance(found.value, float)
    assert math.isnan(found.value)


def test_parameters_are_told_from_every_call() -> None:
    text = """
class Base:
    kind = "add"
class Other(Base):
    kind = "sub"
def make(cls, suffix):
    name = f"{cls.kind}_{suffix}"
    return name
make(Base, "op")
def all_of(suffix):
    make(Other, suffix)
all_of("x")
"""
    evaluator = evaluator_of({"a.py": text})
    (body,) = [
        item
        for item in evaluator.bodies.of(evaluator.bodies.files[0])
        if item.function and item.function.name == "make"
    ]
    value = body.scope.assigns[0].value
    assert value is not None
    assert evaluator.texts(body, value) == {"add_op", "sub_x"}


CIRCLES = {
    "a circle of names": "A = B\nB = A\nfound = A\n",
    "a class that may be changed": "from elsewhere import Meta\nclass Op(metaclass=Meta):\n    width = 1\nfound = Op.width\n",
}


@pytest.mark.parametrize("text", CIRCLES.values(), ids=CIRCLES)
def test_names_that_are_not_known(text: str) -> None:
    assert isinstance(found_in(text), Unresolved)


GROWING = {
    "tuples of tuples": "(X{}, X{}, X{})",
    "sums of tuples": "X{} + X{}[:]",
    "unpacked tuples": "(*X{}, *X{})",
    "sums of strings": "X{} + X{} + str(X{})",
    "formatted strings": "f'{{X{}}}{{X{}}}'",
    "joined strings": "''.join([X{}, X{}])",
    "comprehensions": "[a for a in X{} for b in X{}]",
    "powers": "X{} ** 60 * X{} ** 60",
}


@pytest.mark.parametrize("form", GROWING.values(), ids=GROWING)
def test_what_doubles_with_each_name_stays_small(form: str) -> None:
    count = form.count("{}")
    lines = [f"X{i} = " + form.format(*[i + 1] * count) for i in range(50)]
    for end in ("'ab'", "(1, 2)", "7"):
        assert isinstance(found_in("\n".join([f"X50 = {end}", *reversed(lines), "found = X0"])), Unresolved | Folded)


def test_a_default_sees_the_class_body_first() -> None:
    evaluator = evaluator_of({"a.py": "EPS = 1\nclass Op:\n    EPS = 2\n    def __init__(self, eps=EPS): ...\n"})
    file = evaluator.program.load("a.py")
    assert file is not None
    op = ClassRef(file, file.body.classes[0])
    default = op.cls.body.functions[0].params[1].default
    assert default is not None
    assert evaluator.fold(op, default) == Folded(2)
    assert evaluator.fold(file, default) == Folded(1)


DEEP = (
    "(X{},)", "f'a{{X{}}}'", "[x for x in X{} if x and X{}]", "(X{},)[0]", "f(X{})", "X{}.upper()", "''.join([X{}])",
    "X{} if X{} else 0", "{{'a': X{}}}['a']", "tuple(enumerate(X{}))", "'{{}}'.format(X{})", "not (X{} and (X{} or X{}))",
)  # fmt: skip


@pytest.mark.parametrize("form", DEEP)
def test_long_chains_of_names_end_before_the_stack_does(form: str) -> None:
    lines = [f"X{i} = " + form.format(*[i + 1] * form.count("X{}")) for i in reversed(range(3000))]
    text = "\n".join(["def f(x): return x", "X3000 = 'ab'", *lines, "found = X0"])
    assert isinstance(found_in(text), Unresolved)


LARGE = {
    "searches in comprehensions": "L = list(range(5000))\nfound = [a for a in L if a in L]",
    "nested comprehensions": "found = [a + b for a in range(5000) for b in range(5000)]",
    "a replacement by itself": "A = 'a' * 4000\nB = A.replace('a', A)\nfound = B.replace('a', B)",
    "a long join": "A = 'abcdefgh' * 1000\nfound = ''.join([A for a in range(5000)])",
    "squares of squares": "X0 = 10 ** 60\n"
    + "\n".join(f"X{i + 1} = X{i} * X{i}" for i in range(40))
    + "\nfound = f'{X40}'",
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_large_results_are_not_computed(text: str) -> None:
    assert isinstance(found_in(text), Unresolved)
