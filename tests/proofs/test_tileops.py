"""The fixes of the pack `tileops`, proved by torch on the workload rows and, with a checkout, by TileOPs' own validator."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import chain

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import Case, Files, Oracle, cases_of, fix_cases, windows_lines
from opschema_rules.tileops import proofs
from opschema_rules.tileops.pack import PACK
from tests.proofs import yaml_variants
from tests.proofs.by_rule import complaints_by_rule
from tests.proofs.tileops_oracle import rows, validator
from tests.proofs.tileops_variants import revalued

FIXABLE = [pytest.param(rule, id=f"{rule.code}-{rule.name}") for rule in PACK.rules if rule.fixable]
SLOW = bool(os.environ.get("OPSCHEMA_SLOW"))
NEEDS_TILEOPS = "the validator needs tilelang"

#: Rules that compare values.
VALUED = {"MAN202", "MAN203", "SIG203", "SIG205", "YML102"}

#: Files that a docstring cannot hold.
MORE = {"YML104": {"a tab": {"family: example": "family:\texample"}}}


def _variants(files: Files) -> Iterator[Files]:
    forms = yaml_variants.FORMS if SLOW else (yaml_variants.comments,)
    return chain(windows_lines(files), yaml_variants.forms(files, forms))


def _values(files: Files) -> Iterator[Files]:
    return chain(_variants(files), revalued(files) if SLOW else list(revalued(files))[::2])


def _cases(rule: Rule) -> Iterator[Case]:
    yield from fix_cases(PACK, rule, _values if SLOW or rule.code in VALUED else _variants)
    for title, changes in MORE.get(rule.code, {}).items():
        files = dict(PACK.example([]))
        for old, new in changes.items():
            files = {path: text.replace(old, new) for path, text in files.items()}
        yield from cases_of(PACK, rule, files, f"{rule.code} {title}", cures=True)


@cache
def _cases_of_all() -> dict[str, list[Case]]:
    return {rule.code: list(_cases(rule)) for rule in PACK.rules if rule.fixable}


@cache
def _complaints(oracle: Oracle, proof: str) -> dict[str, list[str]]:
    """The errors that an oracle finds after the fixes of each rule. The fixes must remove the error that the oracle proves."""
    cured = {rule.code for rule in PACK.rules if rule.proof == proof}
    return complaints_by_rule(_cases_of_all(), oracle, cured=cured)


@pytest.mark.parametrize("rule", FIXABLE)
def test_every_fix_names_its_proof(rule: Rule) -> None:
    assert rule.proof in (proofs.ROWS, proofs.VALIDATOR)
    assert any(case.cures for case in _cases_of_all()[rule.code])


@pytest.mark.parametrize("rule", FIXABLE)
def test_torch_proves_fixes(rule: Rule) -> None:
    assert _complaints(rows, proofs.ROWS)[rule.code] == []


@pytest.mark.corpus
@pytest.mark.skipif(not os.environ.get("OPSCHEMA_CORPUS"), reason="OPSCHEMA_CORPUS names no checkouts")
@pytest.mark.skipif(find_spec("tilelang") is None, reason=NEEDS_TILEOPS)
@pytest.mark.parametrize("rule", FIXABLE)
def test_the_validator_proves_fixes(rule: Rule) -> None:
    assert _complaints(validator, proofs.VALIDATOR)[rule.code] == []
