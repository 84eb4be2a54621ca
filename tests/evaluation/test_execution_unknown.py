"""Random functions with unknown conditions: the outcome holds whatever they are."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from opschema_cli.evaluation.execution import executor as executor_module
from opschema_cli.evaluation.execution.outcomes import Raised, Returned
from tests.evaluation.executing import executor_of, named
from tests.evaluation.test_execution_random import expected_of, same

CONDITIONS = [f"{word}{name}" for name in "pqr" for word in ("", "not ")]
CONDITIONS += ["p and q", "q or r", "p is None", "q is not None"]
VALUES = ["1", "2", "a", "b", "[a]", "(a, b)", "a + 1", "c", "len(c)", "u('p')", "k(b)", "(lambda: a)()"]
SIMPLE = [
    *(
        "a = {v}",
        "b = {v}",
        "c.append({v})",
        "c = [{v}]",
        "c += [{v}]",
        "d['k'] = {v}",
        "o.x = {v}",
        "a = o.x",
        "b = d['k']",
    ),
    *(
        "v({v})",
        "e = {v}",
        "b = e",
        "a, b = b, a",
        "return {v}",
        "raise ValueError",
        "c = list(c)",
        "b = tuple(x for x in c)",
    ),
    *("b = next(it)", "it = iter(c)", "v(c)", "break_ = {v}", "m(c)", "a = c[0]", "del d['k']", "b = f'{{a}}'"),
]
START = """
from other import u, v
class O:
    x = 0
    def __init__(self, y):
        self.y = y
def k(z):
    return z if u('q') else a_constant
a_constant = 5
def m(z):
    z.append(9)
def f():
    p, q, r = u('p'), u('q'), u('r')
    a, b, c, d, e, o = 1, 2, [3], {'k': 4}, None, O(6)
    it = iter((7, 8, 9, 10, 11))
"""


def _simple() -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(SIMPLE), st.sampled_from(VALUES)).map(lambda item: item[0].format(v=item[1]))


def _block(lines: list[str]) -> str:
    return "".join(f"\n    {line}" for text in lines for line in text.split("\n"))


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    blocks = st.lists(inner, min_size=1, max_size=2).map(_block)
    condition = st.sampled_from(CONDITIONS)
    return st.one_of(
        st.tuples(condition, blocks).map(lambda item: f"if {item[0]}:{item[1]}"),
        st.tuples(condition, blocks, blocks).map(lambda item: f"if {item[0]}:{item[1]}\nelse:{item[2]}"),
        st.tuples(blocks).map(lambda item: f"for x in (1, 2):{item[0]}"),
        st.tuples(blocks, blocks).map(lambda item: f"try:{item[0]}\nexcept Exception:{item[1]}"),
        st.tuples(condition, blocks).map(lambda item: f"for x in (1, 2):{item[1]}\n    if {item[0]}:\n        break"),
        st.tuples(blocks).map(lambda item: f"for x in u('list'):{item[0]}"),
    )


PROGRAMS = st.lists(st.recursive(_simple(), _compound, max_leaves=5), min_size=1, max_size=4)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("paths", [64, 3])
def test_the_outcome_holds_for_all_conditions(paths: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "MAX_PATHS", paths)

    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(PROGRAMS)
    def check(lines: list[str]) -> None:
        text = START + _block(lines)[1:] + "\n    return a, b, c, d, e, o.x, o.y\n"
        executor = executor_of(text)
        outcome = executor.call(named(executor, "f"))
        for answers in product((True, False, None), repeat=3):
            expected = _run(text, dict(zip("pqr", answers, strict=True)))
            if isinstance(outcome, Returned) and isinstance(expected, Returned):
                assert same(outcome.value, expected.value), (text, answers, outcome, expected)
            elif isinstance(outcome, Raised):
                assert isinstance(expected, Raised), (text, answers, outcome, expected)
                assert outcome.exception in (expected.exception, "Exception"), (text, answers, outcome, expected)

    check()


def _run(text: str, answers: dict[str, object]) -> Returned | Raised:
    """What Python gives where ``u`` answers so, and ``v`` changes the list that it is given."""

    def change(value: object) -> None:
        if isinstance(value, list):
            value.append("changed")

    names: dict[str, object] = {"u": lambda name: answers.get(name, [5, 6, 7]), "v": change}
    exec(compile(text.replace("from other import u, v", ""), "a.py", "exec", dont_inherit=True), names)
    function = names["f"]
    assert callable(function)
    return expected_of(function)
