"""The fixes of the pack aten, observed by torchgen, torch's parser of schemas and g++ (:mod:`tests.proofs.aten_oracle`)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import Case, Files, Oracle, fix_cases, prove, windows_lines
from opschema_rules.aten import proofs
from opschema_rules.aten.examples import NATIVE
from opschema_rules.aten.pack import PACK
from tests.proofs import yaml_variants
from tests.proofs.aten_oracle import observe

pytestmark = pytest.mark.skipif(not version("torch").startswith("2.13."), reason="the examples are of torch 2.13")

ORACLES: Mapping[str, Oracle] = {proofs.WRITTEN: observe, proofs.LINKED: observe}

RULES = [rule for rule in PACK.rules if rule.fixable]

LAST = "- func: cube(Tensor self) -> Tensor\n  variants: function, method\n"
"""An entry behind those of an example."""


SLOW = bool(os.environ.get("OPSCHEMA_SLOW"))

FORMS = yaml_variants.FORMS if SLOW else (yaml_variants.flow,)


def variants(files: Files) -> Iterator[Files]:
    """Other forms of the files, and the example's entries between others."""
    yield from windows_lines(files)
    yield from yaml_variants.forms(files, FORMS)
    yield yaml_variants.with_entries(files, NATIVE, LAST)


@cache
def complaints() -> Mapping[str, list[str]]:
    """The faults of the fixes of each rule. One process observes all of them."""
    cases = [case for rule in RULES for case in fix_cases(PACK, rule, variants)]
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in prove(_different(cases), observe):
        found[line.partition(" ")[0]].append(line)
    return found


def _different(cases: Iterable[Case]) -> list[Case]:
    """The cases, without those that change the same texts to the same."""
    known = {(tuple(case.before.items()), tuple(case.after.items()), case.cures): case for case in cases}
    return list(known.values())


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_the_fixes_are_proved(rule: Rule) -> None:
    assert complaints()[rule.code] == []


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_each_fix_names_its_proof_and_has_an_example(rule: Rule) -> None:
    assert rule.proof in ORACLES
    assert any(case.cures for case in fix_cases(PACK, rule)), "no Bad example has a fix"
