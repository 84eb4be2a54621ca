"""The page on TileOPs' own validator: each check that it lists finds its fault by the rules that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK
from opschema_rules.torchlib.pack import PACK as TORCHLIB
from tests.rules.tileops.validator_faults import FAULTS

PAGE = Path(__file__).parents[3] / "docs/replacing-validate-manifest.md"
ROW = re.compile(r"(?m)^\| ([^|\n]+) \| [\d, ]+ \| ((?:, )?\[\w+\].*?) \|")
LISTED = {name: re.findall(r"\[(\w+)\]", rules) for name, rules in ROW.findall(PAGE.read_text())}


def test_the_page_lists_every_fault() -> None:
    assert LISTED.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_the_rule_of_a_check_finds_its_fault(name: str) -> None:
    texts = example_files([])
    for path, old, new in FAULTS[name]:
        assert old in texts.setdefault(path, "")
        texts[path] = texts[path].replace(old, new, 1)
    found = lint_files([PACK, TORCHLIB], texts).codes()
    assert not set(LISTED[name]).isdisjoint(found)
