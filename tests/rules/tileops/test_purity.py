"""Values cached by an entry's content depend only on it, and not on code or another file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.project import Project
from opschema_cli.source.program import Program
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.detection import TileopsOptions
from opschema_rules.tileops.load import load
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.pack import PACK

TILEKIT = Path(__file__).parents[3] / "fixtures" / "tilekit"
CACHED = [rule for rule in PACK.rules if rule.subject is OpEntry and (rule.pure or rule.candidates)]


def _looked(*args: object, **keywords: object) -> None:
    raise AssertionError("it looks at other files")


@pytest.fixture(scope="module")
def entries() -> Iterator[list[OpEntry]]:
    """The entries of tilekit, in a project that fails when it is asked for anything else."""
    project = Project(Workspace(TILEKIT))
    loaded = load(project, TileopsOptions(spec=["latest"]))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("source", "python", "yaml", "load_python", "readings"):
            patch.setattr(project, name, _looked)
        for name in ("resolve", "mro", "member", "attribute", "module_path", "module_member"):
            patch.setattr(Program, name, _looked)
        yield [subject for subject in loaded.subjects if isinstance(subject, OpEntry)]


@pytest.mark.parametrize("rule", CACHED, ids=lambda rule: rule.code)
def test_what_is_cached_by_content_looks_at_no_other_file(rule: Rule, entries: list[OpEntry]) -> None:
    assert len(entries) > 5
    for entry in entries:
        list(rule(entry) if rule.candidates is None else rule.candidates(entry))


def test_there_is_something_to_cache() -> None:
    assert {"ROO101", "ROO102", "MAN202", "WKL104"} <= {rule.code for rule in CACHED}
