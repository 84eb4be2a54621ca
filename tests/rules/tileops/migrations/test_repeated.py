"""Two entries with one name: which of them is meant is not known, so both stay, and the notes show both places."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import OptionError
from opschema_rules.tileops.pack import PACK
from tests.rules.tileops.migrations.drafts import CODE, YAML, files, migrate

OTHER = "kit/manifest/other.yaml"

RUNS: dict[str, dict[str, object]] = {
    "rename-input": {"old": "x", "new": "input"},
    "sync-signature": {"from": "code"},
    "add-field": {"path": "notes", "value": "1"},
    "drop-field": {"path": "family"},
    "drop-param": {"param": "eps"},
    "split-manifest": {"into": "status"},
    "merge-manifest": {"to": "kit/manifest/all.yaml"},
}


def repeated(where: str) -> tuple[dict[str, str], str]:
    """A workspace with two entries of one name, in one file or in two, and where these stand."""
    texts = files()
    texts[CODE] = texts[CODE].replace("eps: float = 0.5", "eps: float = 0.25")
    lines = len(texts[YAML].splitlines())
    if where == "one file":
        texts[YAML] += texts[YAML]
        return texts, f"{YAML}:1 and {YAML}:{lines + 1}"
    texts[OTHER] = texts[YAML]
    return texts, f"{YAML}:1 and {OTHER}:1"


@pytest.mark.parametrize("where", ["one file", "two files"])
@pytest.mark.parametrize("name", RUNS)
def test_both_entries_stay(name: str, where: str) -> None:
    texts, places = repeated(where)
    migration = next(item for item in PACK.all_migrations() if item.name == name)
    done = migrate(texts, migration, **RUNS[name])
    assert done.texts == {}
    assert done.sites == []
    assert done.left
    assert all(f"`ExampleFwdOp` has 2 entries, {places}" in message for _, _, message in done.said)


def test_an_op_with_two_entries_is_not_renamed() -> None:
    texts, places = repeated("two files")
    migration = next(item for item in PACK.all_migrations() if item.name == "rename-op")
    with pytest.raises(OptionError) as error:
        migrate(texts, migration, old="ExampleFwdOp", new="SampleFwdOp")
    assert str(error.value) == f"`ExampleFwdOp` has 2 entries, {places}; which of them is meant?"


def test_another_entry_of_the_same_run_is_migrated() -> None:
    texts, _ = repeated("two files")
    texts[YAML] += texts[YAML].replace("ExampleFwdOp", "OtherFwdOp").replace("implemented", "spec-only")
    migration = next(item for item in PACK.all_migrations() if item.name == "add-field")
    done = migrate(texts, migration, path="notes", value="1")
    assert [site.ops for site in done.sites] == [("OtherFwdOp",)]
    assert list(done.texts) == [YAML]
