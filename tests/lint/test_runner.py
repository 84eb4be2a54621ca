"""Running rules: one finding for one cause, the same order every time, and crashes that stay where they are."""

from __future__ import annotations

import random

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Place, Severity
from opschema_cli.lint.runner import _join
from opschema_cli.source.text import Span
from opschema_cli.testing import Linted, lint_files
from tests.toypack import PACK


def lint(files: dict[str, str] | str, *select: str) -> Linted:
    return lint_files([PACK], {"a.toy.yaml": files} if isinstance(files, str) else files, select)


def lines(linted: Linted) -> list[str]:
    """Findings as ``path:line:column code``."""
    found = []
    for item in linted.diagnostics:
        position = linted.position(item.place)
        found.append(f"{item.place.path}:{position.line}:{position.column} {item.code}")
    return found


def test_findings_carry_code_name_severity_and_ops() -> None:
    linted = lint("add: {dtype: f16}\nmul: {doc: SHOUT}\n")
    assert [(item.code, item.name, item.severity, item.ops) for item in linted.diagnostics] == [
        ("TOY101", "missing-doc", Severity.ERROR, ("add",)),
        ("TOY102", "loud-doc", Severity.WARNING, ("mul",)),
    ]


def test_one_cause_is_one_finding_that_names_all_ops_and_shows_the_first_places() -> None:
    ops = [f"op{number}" for number in range(30)]
    manifest = "".join(f"{op}: {{doc: x, impl: base.py}}\n" for op in ops)
    linted = lint({"a.toy.yaml": manifest, "base.py": "class Base: ...\n"})
    [only] = linted.diagnostics
    assert (only.code, only.place.path, only.ops) == ("TOY104", "base.py", tuple(ops))
    assert [linted.text(other.place) for other in only.related] == ops[:8]


def test_findings_that_differ_in_place_or_message_or_code_stay_apart() -> None:
    def finding(code: str = "A", start: int = 0, message: str = "m", op: str = "x") -> Diagnostic:
        return Diagnostic(message, Place("p", Span(start, start)), code=code, ops=(op,))

    joined = _join([finding(), finding("B"), finding(start=1), finding(message="n"), finding(op="y"), finding(op="x")])
    assert [item.ops for item in joined] == [("x", "y"), ("x",), ("x",), ("x",)]


def test_output_is_sorted_by_path_place_code_and_message() -> None:
    files = {
        "b.toy.yaml": "zeta: {dtype: bad}\nadd: {doc: LOUD}\n",
        "a.toy.yaml": "mul: {dtype: bad}\nTODO: {doc: x}\n",
    }
    expected = [
        "a.toy.yaml:1:1 TOY101",
        "a.toy.yaml:1:14 TOY103",
        "a.toy.yaml:2:1 TOY303",
        "b.toy.yaml:1:1 TOY101",
        "b.toy.yaml:1:15 TOY103",
        "b.toy.yaml:2:12 TOY102",
    ]
    for seed in range(5):
        order = list(files.items())
        random.Random(seed).shuffle(order)
        assert lines(lint(dict(order))) == expected


def test_only_selected_rules_run() -> None:
    linted = lint("add: {dtype: bad, crash: yes}\n", "missing-doc")
    assert linted.codes() == ["TOY101"]
    assert list(linted.outcome.timings) == ["TOY101"]
    assert not linted.outcome.crashed


def test_timings_count_runs_findings_and_seconds() -> None:
    timings = lint("add: {doc: x}\nmul: {}\n").outcome.timings
    assert (timings["TOY101"].runs, timings["TOY101"].findings) == (2, 1)
    assert (timings["TOY303"].runs, timings["TOY303"].findings) == (1, 0)
    assert timings["TOY101"].seconds > 0


def test_counts() -> None:
    outcome = lint({"a.toy.yaml": "add: {doc: x}\nmul: {doc: x}\n", "b.toy.yaml": "", "c.yaml": "x: 1"}).outcome
    assert (outcome.ops, outcome.files, outcome.packs) == (2, 2, ["toy"])


def test_nothing_of_a_packs_kind() -> None:
    assert lint({"c.yaml": "x: 1"}).outcome.packs == []


# Crashes


def test_a_crashing_rule_is_a_finding_at_its_subject_and_the_rest_goes_on() -> None:
    linted = lint("add: {crash: yes}\nmul: {dtype: f8}\n")
    assert linted.outcome.crashed
    assert lines(linted) == [
        "a.toy.yaml:1:1 OPS900",
        "a.toy.yaml:1:1 TOY101",
        "a.toy.yaml:1:1 TOY301",
        "a.toy.yaml:2:1 TOY101",
        "a.toy.yaml:2:14 TOY103",
    ]
    message = linted.diagnostics[0].message
    assert message.startswith(
        "the rule TOY301 (crash) of the pack `toy` failed on `add`: ZeroDivisionError: the toy broke (line "
    )
    assert "toypack.py)" in message


def test_a_crash_on_a_subject_without_a_place_is_a_finding_of_the_workspace() -> None:
    linted = lint("bare_crash: {doc: x}\n")
    assert [(item.code, item.place) for item in linted.diagnostics] == [("OPS900", Place("", Span(0, 0)))]


def test_a_crash_is_told_whatever_is_selected_or_ignored_in_the_file() -> None:
    config = "[per-file-ignores]\n'*' = ['ALL']\n"
    linted = lint({"opschema.toml": config, "a.toy.yaml": "add: {crash: yes}\n"}, "crash")
    assert linted.codes() == ["OPS900"]


def test_a_pack_that_fails_hides_nothing_of_the_others() -> None:
    config = "[toy]\nfail = 'load'\n"
    linted = lint({"opschema.toml": config, "a.toy.yaml": "add: {}\n"})
    assert linted.outcome.crashed
    assert [item.message.partition(" (line")[0] for item in linted.diagnostics] == [
        "the pack `toy` failed: RuntimeError: the toy cannot load"
    ]


# What could not be checked


@pytest.mark.parametrize("select", [(), ("missing-doc",)])
def test_a_file_that_does_not_parse_is_told_and_hides_no_other(select: tuple[str, ...]) -> None:
    files = {"bad.toy.yaml": "a: [1\nb: 2\n", "good.toy.yaml": "add: {}\n", "other.toy.yaml": "mul: {impl: bad.py}\n"}
    linted = lint({**files, "bad.py": "def (\n"}, *select)
    assert linted.codes() == ["OPS102"] * (not select) + ["YML001", "TOY101", "TOY101"]


def test_it_is_not_told_if_ignored() -> None:
    linted = lint({"opschema.toml": "ignore = ['YML001']\n", "a.toy.yaml": "a: [1\nb: 2\n"})
    assert linted.codes() == []
