"""The fixes of the pack `pypto`, proved by running the descriptions and orchestrations that they change."""

from __future__ import annotations

from functools import cache

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import Case, fix_cases, judge
from opschema_rules.pypto import proofs
from opschema_rules.pypto.pack import PACK
from tests.proofs.by_rule import complaints_by_rule
from tests.proofs.pypto_oracle import observe
from tests.proofs.pypto_variants import variants

FIXABLE = [pytest.param(rule, id=f"{rule.code}-{rule.name}") for rule in PACK.rules if rule.fixable]


@cache
def _cases() -> dict[str, list[Case]]:
    return {rule.code: list(fix_cases(PACK, rule, variants)) for rule in PACK.rules if rule.fixable}


@cache
def _complaints() -> dict[str, list[str]]:
    """The errors that the oracle finds after the fixes of each rule."""
    same = {rule.code for rule in PACK.rules if rule.proof == proofs.SAME}
    return complaints_by_rule(_cases(), observe, cured=_cases().keys() - same, same=same)


@pytest.mark.parametrize("rule", FIXABLE)
def test_every_fix_names_its_proof(rule: Rule) -> None:
    assert rule.proof in (proofs.RECORDED, proofs.LOADED, proofs.SAME, proofs.SPECS)
    assert any(case.cures for case in _cases()[rule.code]), "no Bad example has a fix"


@pytest.mark.parametrize("rule", FIXABLE)
def test_fixes_are_proved(rule: Rule) -> None:
    assert _complaints()[rule.code] == []


@pytest.mark.parametrize(
    ("code", "right", "spoiled", "message"),
    [
        ("PTO101", "D.IN, D.OUT]}", "D.IN, D.INOUT]}", "got better"),
        ("PTO102", "[D.IN, D.IN, D.OUT]},", "[D.IN, D.SCALAR, D.OUT]},", "got better"),
        ("PTO106", "D.INOUT", "D.IN", "got better"),
        ("PTO113", '"aicpu_orchestration_entry', '"aicpu_orchestration_entrance', "got better"),
        ("PTO109", '"func_id": 1', '"func_id": 2', "gave"),
    ],
)
def test_a_spoiled_fix_is_found(code: str, right: str, spoiled: str, message: str) -> None:
    case = next(case for case in _cases()[code] if case.cures)
    after = {path: text.replace(right, spoiled) for path, text in case.after.items()}
    before, now = observe([case.before, after])
    assert message in "\n".join(judge(before, now, cures=case.cures))
