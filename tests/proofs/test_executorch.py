"""The fixes of the pack `executorch`, proved by the linker; ``tests/corpus/test_executorch.py`` asks the code generator."""

from __future__ import annotations

import shutil

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import check_fixes, fix_cases, judge
from opschema_rules.executorch import proofs
from opschema_rules.executorch.pack import PACK
from tests.proofs.executorch_oracle import observe


def of_proof(proof: str) -> list[object]:
    return [pytest.param(rule, id=rule.code) for rule in PACK.rules if rule.fixable and rule.proof == proof]


def test_every_fix_names_its_proof() -> None:
    fixable = [rule for rule in PACK.rules if rule.fixable]
    assert len(of_proof(proofs.READ)) + len(of_proof(proofs.LINKED)) == len(fixable)


@pytest.mark.parametrize("rule", of_proof(proofs.LINKED))
def test_fixes_are_proved_by_the_linker(rule: Rule) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    check_fixes(PACK, rule, observe)


def test_a_spoiled_fix_is_found() -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    rule = next(rule for rule in PACK.rules if rule.proof == proofs.LINKED)
    case = next(case for case in fix_cases(PACK, rule) if case.cures)
    spoiled = {path: text.replace("kit::abs_out", "kat::abs_out") for path, text in case.after.items()}
    before, now = observe([case.before, spoiled])
    assert "got better" in "\n".join(judge(before, now, cures=True))
