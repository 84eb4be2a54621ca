"""The fixes of the pack `bindings`, proved by modules that g++ compiles with pybind11 or nanobind and Python imports and calls."""

from __future__ import annotations

import pytest

from opschema_cli.lint.rule import Rule, examples
from opschema_cli.proof import Files, cases_of, check_fixes, fix_cases, judge, prove, windows_lines
from opschema_rules.bindings import proofs
from opschema_rules.bindings.pack import PACK
from tests.proofs.bindings_libraries import has_nanobind
from tests.proofs.bindings_modules import observe
from tests.proofs.bindings_oracle import can_compile

FIXABLE = [pytest.param(rule, id=rule.code) for rule in PACK.rules if rule.fixable]

pytestmark = pytest.mark.skipif(not can_compile(), reason="g++ or torch is not installed")


def test_every_fix_names_its_proof() -> None:
    assert {rule.proof for rule in PACK.rules if rule.fixable} == {proofs.CALLED}


@pytest.mark.parametrize("rule", FIXABLE)
def test_fixes_are_proved_by_calls(rule: Rule) -> None:
    check_fixes(PACK, rule, observe, windows_lines)


@pytest.mark.skipif(not has_nanobind(), reason="nanobind is not installed")
@pytest.mark.parametrize("rule", FIXABLE)
def test_fixes_are_proved_by_calls_with_nanobind(rule: Rule) -> None:
    bad = [PACK.example(example.fences) for example in examples(rule.doc) if example.kind == "bad"]
    cases = [case for files in bad for case in cases_of(PACK, rule, _in_nanobind(files), rule.code, cures=True)]
    assert cases
    assert prove(cases, observe) == []


def _in_nanobind(files: Files) -> Files:
    """The same bindings with nanobind in the place of pybind11."""
    return {path: text.replace("PYBIND11_MODULE", "NB_MODULE").replace("py::", "nb::") for path, text in files.items()}


def test_a_spoiled_fix_is_found() -> None:
    rule = next(rule for rule in PACK.rules if rule.code == "BND102")
    case = next(case for case in fix_cases(PACK, rule) if case.cures)
    spoiled = {
        path: text.replace("double low, double high", "double high, double low") for path, text in case.after.items()
    }
    before, now = observe([case.before, spoiled])
    assert "call clamp" in "\n".join(judge(before, now, cures=True))
