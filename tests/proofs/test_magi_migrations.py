"""The migrations of the pack magi, proved by programs that run before and after them.

Without checkouts of MagiCompiler the functions run without a decorator, which shows that a program computes the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from opschema_cli.migrate.migration import Migration
from opschema_cli.proof import Case, Files, prove, windows_lines
from opschema_cli.testing import migrate_files
from opschema_rules.magi import proofs
from opschema_rules.magi.examples import OPS_PATH, example_files
from opschema_rules.magi.pack import PACK
from tests.proofs import magi_oracle, magi_programs
from tests.proofs.magi_oracle import REAL
from tests.rules.magi.migrations.test_add_meta import PROVEN, op
from tests.rules.magi.migrations.test_behaviour import CASES, META, grouped

ORACLES = {proofs.PROGRAMS: magi_programs.observe, proofs.FAKES: magi_oracle.observe}
NO_FILES: Files = {}
MIGRATIONS = {item.name: item for item in PACK.all_migrations()}
WITH_PROGRAMS = [item for item in MIGRATIONS.values() if item.proof == proofs.PROGRAMS]
PLAIN = {"opschema.toml": '[magi]\nmagi = "plain"\n'}
"""The configuration of a workspace for the older decorator."""


def _migrated(
    name: str, title: str, text: str, options: tuple[str, ...], *, cures: bool, more: Files = NO_FILES
) -> Iterator[Case]:
    files = {**example_files([("python", text)]), **more}
    for number, before in enumerate((files, *windows_lines(files))):
        done = migrate_files(PACK, name, before, options)
        yield Case(f"{name} {title} variant {number}", before, done.files, cures=cures)


def program_cases() -> Iterator[Case]:
    """Programs before and after, without notes; what Magi refuses before is cured if its decorator is there."""
    for number, item in enumerate(CASES):
        title, cures = f"program {number}", REAL and bool(item.before)
        yield from _migrated(item.migration, title, item.text, item.options, cures=cures)
        if item.old:
            yield from _migrated(item.migration, f"plain {title}", item.text, item.options, cures=False, more=PLAIN)
    for seed in range(12):
        found = grouped(seed)
        if found is not None:
            before, after = ({OPS_PATH: text} for text in found)
            yield Case(f"group-flags seed {seed}", before, after, cures=False)


def fake_cases() -> Iterator[Case]:
    """Ops whose fakes are wrong before they are told what they are like."""
    yield from _migrated("add-meta", "a dataclass", META.partition("def run")[0], (), cures=True)
    for body in (item for item in PROVEN if not item.startswith("return torch.empty_like")):  # which has no value
        yield from _migrated("add-meta", body.splitlines()[0], op(body), (), cures=False)


@cache
def complaints() -> dict[str, list[str]]:
    """The errors that the oracles find after each migration. Each oracle is started once."""
    found: dict[str, list[str]] = defaultdict(list)
    lines = prove(list(program_cases()), magi_programs.observe)
    for line in lines + (prove(list(fake_cases()), magi_oracle.observe) if REAL else []):
        found[line.split()[0]].append(line)
    return found


def test_every_migration_has_an_oracle_and_cases() -> None:
    assert {item.proof for item in MIGRATIONS.values()} <= ORACLES.keys()
    assert {case.title.split()[0] for case in (*program_cases(), *fake_cases())} == MIGRATIONS.keys()


@pytest.mark.parametrize(
    "migration", [item for item in MIGRATIONS.values() if item.proof == proofs.PROGRAMS], ids=lambda item: item.name
)
def test_programs_compute_the_same(migration: Migration) -> None:
    assert not complaints()[migration.name], "\n".join(complaints()[migration.name])


@pytest.mark.corpus
@pytest.mark.skipif(not REAL, reason="OPSCHEMA_CORPUS has no oplibs/magi-e68e0b0(p)")
@pytest.mark.parametrize("migration", MIGRATIONS.values(), ids=lambda item: item.name)
def test_what_the_decorator_refused_it_takes(migration: Migration) -> None:
    assert not complaints()[migration.name], "\n".join(complaints()[migration.name])


def test_the_oracle_sees_a_program_that_computes_something_else() -> None:
    before = example_files([("python", CASES[0].text)])
    after = {path: text.replace("x * cfg.scale", "x + cfg.scale") for path, text in before.items()}
    assert prove([Case("another operator", before, after, cures=False)], magi_programs.observe)
