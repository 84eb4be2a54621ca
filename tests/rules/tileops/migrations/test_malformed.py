"""No malformed entry takes a migration down: each part of one entry, replaced by values that do not belong there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.source.yaml_compose import compose
from opschema_rules.tileops.pack import PACK
from tests.rules.tileops.migrations.drafts import YAML, files, migrate
from tests.rules.tileops.test_malformed import ENTRY, nodes

RUNS: dict[str, dict[str, object]] = {
    "rename-op": {"old": "ExampleFwdOp", "new": "SampleFwdOp"},
    "rename-input": {"old": "x", "new": "input"},
    "move-sources": {},
    "split-manifest": {"into": "family"},
    "merge-manifest": {"to": "kit/manifest/all.yaml"},
    "sync-signature": {"from": "code", "what": "kw_only,defaults,order"},
    "add-field": {"path": "signature.params.*.kw_only", "value": "true", "replace": True},
    "derive-field": {"path": "source.kernel_map"},
    "drop-field": {"path": "signature.params.eps", "where": "has:signature.inputs, status=implemented, lacks:nothing"},
    "drop-param": {"param": "eps,dims"},
}

VALUES = (
    "[]",
    "null",
    "3",
    "x",
    "'same_as('",
    "[[1]]",
    "{1: 2}",
    "{<<: {x: b}}",
    "!!python/name:os.system x",
    "*whole",
)


def manifests(value: str, step: int, start: int) -> Iterator[str]:
    """The manifest with ``value`` in the place of every ``step``-th node."""
    for number, node in enumerate(nodes(compose(ENTRY).root)):
        if number % step == start:
            body = ENTRY[: node.start] + value + ENTRY[node.end :]
            anchor = "W: &whole {family: example}\n" if value == "*whole" else ""
            yield f"{anchor}ExampleFwdOp:\n" + "".join(f"  {line}\n" for line in body.splitlines())


@pytest.mark.parametrize("name", RUNS)
def test_a_malformed_part_is_left_or_refused(name: str) -> None:
    migration = next(item for item in PACK.all_migrations() if item.name == name)
    for start, value in enumerate(VALUES):
        for text in manifests(value, 2 * len(VALUES), start):
            try:
                compose(text)
            except ValueError:
                continue
            with suppress(OpschemaError):  # an option does not fit the tree
                migrate({**files(), YAML: text}, migration, **RUNS[name])
