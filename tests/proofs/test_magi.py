"""The fixes of the pack magi, proved by MagiCompiler's own decorators, from checkouts, and by torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import Case, Files, case_of, fix_cases, prove, windows_lines
from opschema_cli.testing import lint_files
from opschema_rules.magi import proofs
from opschema_rules.magi.pack import PACK
from tests.proofs.magi_oracle import REAL, observe, observe_torch, only_torch
from tests.proofs.python_variants import python_variants
from tests.rules.magi.faults import CASES, HEAD

ORACLES = {proofs.CALLS: observe}
FIXABLE = {rule.code: rule for rule in PACK.rules if rule.fixable}


def variants(files: Files) -> Iterator[Files]:
    yield from windows_lines(files)
    yield from python_variants(files)


def written_cases() -> Iterator[tuple[str, Case]]:
    """The result of each fix in the modules of the differential test, for the decorator with dataclasses and for the one before."""
    for number, item in enumerate(CASES):
        future = "from __future__ import annotations\n\n" if item.postponed else ""
        text = future + HEAD + item.text.replace("NS", f"n{number}")
        for contract in ("dataclasses", "plain"):
            files = {"opschema.toml": f'[magi]\nmagi = "{contract}"\n', "kit/ops.py": text}
            for found in lint_files([PACK], files, FIXABLE).diagnostics:
                if found.fix is not None:
                    yield found.code, case_of(f"{found.code} {item.title} ({contract})", files, found.fix)


@cache
def cases() -> dict[str, list[Case]]:
    """All changes by rule."""
    found = {code: list(fix_cases(PACK, rule, variants)) for code, rule in FIXABLE.items()}
    for code, case in written_cases():
        found[code].append(case)
    return found


@cache
def complaints() -> dict[str, list[str]]:
    """The errors of the decorators and of torch after each rule's fixes. They are started once."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in prove([case for items in cases().values() for case in items], observe):
        found[line.split()[0]].append(line)
    return found


def test_every_fix_has_an_oracle() -> None:
    assert {rule.proof for rule in FIXABLE.values()} <= ORACLES.keys()


@pytest.mark.corpus
@pytest.mark.skipif(not REAL, reason="OPSCHEMA_CORPUS has no oplibs/magi-e68e0b0(p)")
@pytest.mark.parametrize("rule", FIXABLE.values(), ids=lambda rule: rule.code)
def test_fixes_are_proved(rule: Rule) -> None:
    assert any(case.cures for case in cases()[rule.code]), "no Bad example has a fix"
    assert not complaints()[rule.code], "\n".join(complaints()[rule.code])


BY_TORCH = ("MAG323", "MAG331", "MAG340")
"""Rules on how torch calls functions, and what it refuses of their results."""


@cache
def complaints_of_torch() -> dict[str, list[str]]:
    """The errors of torch after the fixes of those rules where the decorator lowers nothing."""
    found: dict[str, list[str]] = defaultdict(list)
    asked = [case for code in BY_TORCH for case in cases()[code] if only_torch(case.before)]
    for line in prove(asked, observe_torch):
        found[line.split()[0]].append(line)
    return found


@pytest.mark.parametrize("code", BY_TORCH)
def test_fixes_are_proved_by_torch_alone(code: str) -> None:
    assert any(case.cures and only_torch(case.before) for case in cases()[code])
    assert not complaints_of_torch()[code], "\n".join(complaints_of_torch()[code])
