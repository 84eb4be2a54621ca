"""Random functions give what Python gives, or are unresolved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from opschema_cli.evaluation.execution.outcomes import Raised, Returned, Unresolved
from tests.evaluation.executing import executor_of, named

VARIABLES = ("a", "b", "c", "d")
OPERATORS = ["+", "-", "*", "//", "%", "&", "|", "^", "/", "<", "<=", "==", "!=", "is", "in", "and", "or"]
FUNCTIONS = {
    **{
        name: f"{name}({{}})"
        for name in ("len", "tuple", "list", "set", "sorted", "max", "min", "sum", "str", "repr", "bool")
    },
    **{name: f"{name}({{}})" for name in ("int", "abs", "any", "all", "dict")},
    "isinstance": "isinstance({}, (int, str))",
    "reversed": "list(reversed({}))",
}
STATEMENTS = {
    "assign": "{name} = {first}",
    "augmented": "{name} += {first}",
    "unpack": "{name}, *b = {first}",
    "item": "{name}[{first}] = {second}",
    "append": "{name}.append({first})",
    "if": "if {first}:\n        {name} = {second}\n    else:\n        c = 1",
    "for": "for {name} in {first}:\n        if {name} == 2:\n            break\n        d = {second}\n    else:\n        a = 7",
    "try": "try:\n        {name} = {first}\n    except (TypeError, KeyError) as e:\n        b = 'caught'\n    finally:\n"
    "        d = {second}",
    "inner": "def g(x, y={first}):\n        z = {name}\n        return x, y, z\n    c = g({second})",
    "while": "n = 0\n    while n < 3:\n        n += 1\n        {name} = {first}",
}
PLAIN = st.one_of(
    st.integers(-3, 9).map(str),
    st.sampled_from(
        [
            "'x'",
            "'ab'",
            "''",
            "None",
            "True",
            "False",
            "2.5",
            "()",
            "[]",
            "{}",
            "(1, 2)",
            "[3, 'y']",
            "{1: 2}",
            "range(3)",
        ]
    ),
    st.sampled_from(VARIABLES),
)


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of others."""
    pair = st.tuples(inner, inner)
    binary = st.tuples(inner, st.sampled_from(OPERATORS), inner)
    called = st.sampled_from(sorted(FUNCTIONS))
    return st.one_of(
        binary.map(lambda item: f"({item[0]} {item[1]} {item[2]})"),
        st.tuples(called, inner).map(lambda item: FUNCTIONS[item[0]].format(item[1])),
        pair.map(lambda item: f"{item[0]}[{item[1]}]" if not item[0][0].isdigit() else f"({item[0]})[{item[1]}]"),
        pair.map(lambda item: f"({item[0]}, {item[1]})"),
        pair.map(lambda item: f"[{item[0]}, *{item[1]}]"),
        pair.map(lambda item: "{" + f"{item[0]}: {item[1]}" + "}"),
        pair.map(lambda item: f"[(v, {item[0]}) for v in {item[1]}]"),
        pair.map(lambda item: f"({item[0]} if {item[1]} else a)"),
        inner.map(lambda item: f"({item})[1:]"),
        inner.map(lambda item: f"(not {item})"),
        inner.map(lambda item: f"f'{{{_quoted(item)}}}'"),
        inner.map(lambda item: f"(lambda v: v)({item})"),
    )


def _quoted(text: str) -> str:
    return text.replace("'", '"') if '"' not in text and "{" not in text else "a"


EXPRESSIONS = st.recursive(PLAIN, _wider, max_leaves=4)


def _statement(item: tuple[str, str, str, str]) -> str:
    kind, name, first, second = item
    return STATEMENTS[kind].format(name=name, first=first, second=second)


KINDS = st.sampled_from(sorted(STATEMENTS))
PROGRAMS = st.lists(
    st.tuples(KINDS, st.sampled_from(VARIABLES), EXPRESSIONS, EXPRESSIONS).map(_statement), min_size=1, max_size=5
)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
@given(PROGRAMS, EXPRESSIONS)
def test_random_functions(statements: list[str], result: str) -> None:
    start = ["a, b, c, d = 2, [1, 2], (3, 'z'), {1: 'q'}", *statements, f"return {result}, a, b, c, d"]
    text = "def f():\n" + "".join(f"    {line}\n" for line in start)
    names: dict[str, object] = {}
    exec(compile(text, "a.py", "exec", dont_inherit=True), names)
    function = names["f"]
    assert callable(function)
    executor = executor_of(text)
    outcome = executor.call(named(executor, "f"))
    expected = expected_of(function)
    if isinstance(outcome, Unresolved) or (isinstance(expected, Raised) and "Opaque(" in repr(outcome)):
        return  # what is not known may raise
    if isinstance(expected, Raised):
        assert isinstance(outcome, Raised), (text, outcome)
        assert outcome.exception == expected.exception, (text, outcome)
    else:
        assert isinstance(outcome, Returned), (text, outcome)
        assert same(outcome.value, expected.value), (text, outcome, expected)


def expected_of(function: Callable[[], object]) -> Returned | Raised:
    """The outcome of running a function."""
    try:
        return Returned(function())
    except Exception as error:
        return Raised(type(error).__name__)


def same(found: object, expected: object, depth: int = 9) -> bool:
    """Whether a result is that of Python, but for parts that are not known."""
    if not depth or type(found).__name__ in ("Opaque", "ExternalName", "Running"):
        return True
    if isinstance(found, tuple | list) and isinstance(expected, tuple | list):
        pairs = zip(found, expected, strict=False)
        return (
            type(found) is type(expected)
            and len(found) == len(expected)
            and all(same(*pair, depth - 1) for pair in pairs)
        )
    return repr(found) == repr(expected) or (isinstance(found, dict) and len(found) == len(expected))  # type: ignore[arg-type]
