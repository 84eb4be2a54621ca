"""`sort-lists` on pytorch/xla's YAML: each list in the order that it nearly has, and not a line more or less."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from opschema_cli.testing import migrate_files
from opschema_rules.aten.pack import PACK

YAML = "codegen/xla_native_functions.yaml"
MAIN = 262
"""How many operators of `supported` stand above the first comment that heads others."""


def letters(name: str) -> str:
    return name.replace("_", "").lower()


def test_the_lists_of_pytorch_xla(corpus: Path) -> None:
    path = corpus / "aten/xla-head" / YAML
    if not path.is_file():
        pytest.skip("aten/xla-head is not below OPSCHEMA_CORPUS")
    before = path.read_text()
    after = migrate_files(PACK, "sort-lists", {YAML: before}).files[YAML]
    assert sorted(after.splitlines()) == sorted(before.splitlines())
    comments = [[line for line in text.splitlines() if "#" in line] for text in (before, after)]
    assert comments[0] == comments[1]
    old, new = yaml.safe_load(before), yaml.safe_load(after)
    assert {key: sorted(new[key]) for key in new} == {key: sorted(old[key]) for key in old}
    assert new["full_codegen"] == sorted(old["full_codegen"], key=letters)
    assert new["supported"][:MAIN] == sorted(old["supported"][:MAIN])
    assert new["supported"][MAIN:] == [*sorted(old["supported"][MAIN:-5]), *sorted(old["supported"][-5:])]
