"""The judgement of :mod:`opschema_cli.proof`, with an oracle that reads numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from opschema_cli.proof import Case, Files, Observation, Seen, judge, prove, windows_lines

RIGHT, OTHER = Seen("right", result="1"), Seen("right", result="2")
REFUSED, WRONG = Seen("refused", "no"), Seen("wrong", "unused")


@pytest.mark.parametrize(
    ("before", "after", "fine"),
    [
        (RIGHT, RIGHT, True),
        (RIGHT, OTHER, False),
        (RIGHT, REFUSED, False),
        (RIGHT, WRONG, False),
        (REFUSED, RIGHT, True),
        (REFUSED, REFUSED, True),
        (REFUSED, WRONG, False),
        (WRONG, RIGHT, True),
        (WRONG, REFUSED, True),
        (WRONG, WRONG, True),
    ],
)
def test_no_probe_gets_worse(before: Seen, after: Seen, fine: bool) -> None:
    assert (list(judge({"call": before}, {"call": after}, cures=False)) == []) is fine


def test_an_unsafe_fix_may_silence_a_refusal_but_in_no_example() -> None:
    before, after = {"call": REFUSED}, {"call": WRONG}
    assert list(judge(before, after, cures=False, doubted=True)) == []
    assert len(list(judge(before, after, cures=True, doubted=True))) == 2
    assert len(list(judge({"call": RIGHT}, after, cures=False, doubted=True))) == 1


def test_a_probe_that_one_side_lacks_counts_as_refused() -> None:
    assert list(judge({}, {"call": WRONG}, cures=False)) == [
        "call: was refused (there is no such probe on this side) and is silently wrong now: unused"
    ]
    assert list(judge({"call": RIGHT}, {}, cures=False)) == [
        "call: was right and is refused now: there is no such probe on this side"
    ]


def test_a_cure_makes_something_right() -> None:
    assert list(judge({"call": REFUSED}, {"call": RIGHT}, cures=True)) == []
    assert len(list(judge({"call": RIGHT}, {"call": RIGHT}, cures=True))) == 1
    assert len(list(judge({}, {}, cures=True))) == 1, "an oracle that observes nothing proves nothing"


def test_a_fault_that_another_rule_reports_is_not_silent() -> None:
    assert list(judge({"call": REFUSED}, {"call": WRONG}, cures=False, others=lambda: True)) == []
    assert len(list(judge({"call": RIGHT}, {"call": REFUSED}, cures=False, others=lambda: True))) == 1


def _even(workspaces: Sequence[Files]) -> list[Observation]:
    return [{"even": Seen("right") if int(files["n"]) % 2 == 0 else Seen("refused", "odd")} for files in workspaces]


def test_all_cases_are_observed_together() -> None:
    cases = [Case("one to two", {"n": "1"}, {"n": "2"}, True), Case("two to three", {"n": "2"}, {"n": "3"}, False)]
    assert prove(cases, _even) == ["two to three: even: was right and is refused now: odd"]


def test_windows_lines() -> None:
    assert list(windows_lines({"a.py": "x\ny\n"})) == [{"a.py": "x\r\ny\r\n"}]
