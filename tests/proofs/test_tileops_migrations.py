"""The migrations of the pack `tileops`, proved by torch, which runs the ops on their rows before and after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import pytest

from opschema_cli.migrate.migration import Migration
from opschema_cli.proof import Files, Observation, judge
from opschema_cli.testing import migrate_files
from opschema_rules.tileops import proofs
from opschema_rules.tileops.examples import MANIFEST_PATH, example_files
from opschema_rules.tileops.pack import PACK
from tests.proofs.tileops_oracle import rows

MIGRATIONS = {item.name: item for item in PACK.all_migrations()}

UNUSED = """\
signature:
  params:
    n: {type: int}
    eps: {type: float, default: 0.5}
  shape_rules:
    - "n > 0"
workloads:
  - {x_shape: [4, 8], n: 4, dtypes: [float16], label: "small"}
  - {x_shape: [8, 8], n: 2, dtypes: [float16, float32], label: "large"}
"""
UNUSED_OP = """\
class ExampleFwdOp(Op):
    def __init__(self, n: int, eps: float = 0.5, *, kernel_map=None):
        self.eps = eps

    def forward(self, x):
        return x + self.eps
"""
OTHER_DEFAULT = """\
class ExampleFwdOp(Op):
    def __init__(self, eps: float = 0.25, *, kernel_map=None):
        self.eps = eps

    def forward(self, x):
        return x + self.eps
"""
MOVED = """\
source:
  op: kit/ops/old_place.py
"""


@dataclass(frozen=True)
class Example:
    """A migration of a small repository. ``renamed`` are patterns in the names of probes, which the migration renames, or, where
    nothing is left of the name, of what it removes.
    """

    name: str
    options: tuple[str, ...]
    files: Files
    renamed: Mapping[str, str] = field(default_factory=dict)
    cures: bool = False


def _two_files(files: Files) -> Files:
    other = (
        files[MANIFEST_PATH].replace("status: implemented", "status: spec-only").replace("ExampleFwdOp", "OtherFwdOp")
    )
    return {**files, "kit/manifest/other.yaml": other.replace("family: example", "family: other")}


def _one_file(files: Files) -> Files:
    two = _two_files(files)
    text = two[MANIFEST_PATH] + "\n" + two["kit/manifest/other.yaml"]
    return {**files, MANIFEST_PATH: text}


SOUND = example_files([])
FLAGGED = {**SOUND, MANIFEST_PATH: SOUND[MANIFEST_PATH] + "  torch_compile_fullgraph: true\n"}
NO_N = {'"n": \\d+': "", r"^ExampleFwdOp (without )?n( .*)?$": ""}
ANY_FILE = {r"^\S+\.yaml": "manifest"}


def _without_kernels(files: dict[str, str]) -> dict[str, str]:
    return {path: re.sub(r"\n +kernel_map: \{.*\}", "", text) for path, text in files.items()}


EXAMPLES = (
    Example("add-field", ("path=torch_compile_fullgraph", "value=true"), SOUND),
    Example("derive-field", ("path=source.kernel_map",), _without_kernels(SOUND)),
    Example("drop-field", ("path=torch_compile_fullgraph",), FLAGGED),
    Example("drop-param", ("param=n",), example_files([("yaml", UNUSED), ("python", UNUSED_OP)]), NO_N),
    Example("merge-manifest", ("to=kit/manifest/all.yaml",), _two_files(SOUND), ANY_FILE),
    Example("split-manifest", ("into=family",), _one_file(SOUND), ANY_FILE),
    Example("move-sources", (), example_files([("yaml", MOVED)]), cures=True),
    Example("rename-input", ("old=x", "new=image"), SOUND, {'"x"': '"image"'}),
    Example("rename-op", ("old=ExampleFwdOp", "new=SampleFwdOp"), SOUND, {"ExampleFwdOp": "SampleFwdOp"}),
    Example("sync-signature", ("from=code", "what=defaults"), example_files([("python", OTHER_DEFAULT)]), cures=True),
)


def _named(seen: Observation, renamed: Mapping[str, str]) -> Observation:
    """The probes under the names that they have after the migration."""
    found = dict(seen)
    for old, new in renamed.items():
        found = {re.sub(old, new, probe): outcome for probe, outcome in found.items()}
    return {probe: outcome for probe, outcome in found.items() if probe}


@cache
def _observed() -> dict[str, tuple[Files, Files, Observation, Observation]]:
    pairs = [(item.files, migrate_files(PACK, item.name, item.files, item.options).files) for item in EXAMPLES]
    seen = rows([files for pair in pairs for files in pair])
    return {
        item.name: (*pair, before, after)
        for item, pair, before, after in zip(EXAMPLES, pairs, seen[::2], seen[1::2], strict=True)
    }


@pytest.mark.parametrize("migration", MIGRATIONS.values(), ids=lambda item: item.name)
def test_every_migration_names_its_proof(migration: Migration) -> None:
    """`drop-carrier` is proved by the harness: tests/e2e/test_migrate_verify.py."""
    proved = {item.name for item in EXAMPLES}
    assert migration.proof == (proofs.ROWS if migration.name in proved else proofs.HARNESS)


@pytest.mark.parametrize("item", EXAMPLES, ids=lambda item: item.name)
def test_migrations_are_proved(item: Example) -> None:
    before, after, seen, now = _observed()[item.name]
    assert before != after, "the migration changes nothing"
    assert any(" row " in probe and outcome.level == "right" for probe, outcome in now.items()), now
    assert list(judge(_named(seen, item.renamed), _named(now, item.renamed), cures=item.cures)) == []
