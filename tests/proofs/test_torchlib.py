"""The fixes of the pack torchlib, proved by torch: for the Bad examples of the rules, and for generated modules."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import Case, Files, fix_cases, prove, windows_lines
from opschema_rules.torchlib import proofs
from opschema_rules.torchlib.pack import PACK
from tests.proofs.python_variants import python_variants
from tests.proofs.torch_oracle import observe
from tests.proofs.torch_variants import SMALL, generated_cases, modules

ORACLES = {proofs.CALLS: observe, proofs.REGISTRATION: observe}
FIXABLE = {rule.code: rule for rule in PACK.rules if rule.fixable}
SEEDS = range(100, 110) if os.environ.get("OPSCHEMA_SLOW") else ()
"""Of further generated modules."""


def variants(files: Files) -> Iterator[Files]:
    yield from windows_lines(files)
    yield from python_variants(files)


@cache
def cases() -> dict[str, list[Case]]:
    """All changes by rule."""
    found = {code: list(fix_cases(PACK, rule, variants)) for code, rule in FIXABLE.items()}
    for code, case in generated_cases(PACK, FIXABLE, modules(SEEDS)):
        found[code].append(case)
    return found


@cache
def complaints() -> dict[str, list[str]]:
    """The errors of torch after each rule's fixes, and in the Bad examples by title. It is started once."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in prove([*SMALL, *(case for items in cases().values() for case in items)], observe):
        found[line.split()[0]].append(line)
        found[line.split(":")[0]].append(line)
    return found


def test_every_fix_has_an_oracle() -> None:
    assert {rule.proof for rule in FIXABLE.values()} <= ORACLES.keys()


@pytest.mark.parametrize("rule", FIXABLE.values(), ids=lambda rule: rule.code)
def test_fixes_are_proved(rule: Rule) -> None:
    assert any(case.cures for case in cases()[rule.code]), "no Bad example has a fix"
    assert not complaints()[rule.code], "\n".join(complaints()[rule.code])


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.title)
def test_the_oracle_sees_a_bad_fix(case: Case) -> None:
    """Fixes that opschema made, or might make, and that are wrong."""
    assert complaints()[case.title], "torch has nothing against it"
