"""Whatever the kernels look like: no rule fails, migrations leave Python that parses, and all end in time."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.reporters.operators.show import cells, part_lines
from opschema_cli.testing import lint_files, migrate_files
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.pack import PACK
from tests.command import TILEKIT
from tests.examples import examples
from tests.rules.flydsl.hostile import HEAD, LARGE, PROGRAMS
from tests.rules.flydsl.mutants import mutants

REVISION = "flydsl/11c4174d"
REAL = (
    "examples/01-vectorAdd.py",
    "examples/04-preshuffle_gemm.py",
    "kernels/norm/softmax_bwd_kernel.py",
    "kernels/gemm/rdna_f16_gemm.py",
    "kernels/gemm/fp8_gemm_8wave.py",
    "kernels/moe/topk_gating_softmax_kernel.py",
)
KITS = [
    path
    for kit in ("flykit", "flykit_broken")
    for path in sorted(TILEKIT.with_name(kit).glob("flykit/**/*.py"))
    if path.name != "__init__.py"
]
MIGRATIONS = sorted(item.name for item in PACK.all_migrations())
VERSIONS = ("0.1.8", "0.4.2")
SECONDS = 20
"""Most CPU seconds for one program; they need a fraction of one."""


def configured(files: dict[str, str], version: str = "0.4.2") -> dict[str, str]:
    return {"opschema.toml": f'[flydsl]\nversion = "{version}"\n', "kit/__init__.py": "", **files}


def crashes(files: dict[str, str]) -> list[str]:
    """The failures of the pack on these files: its rules, its descriptions and its output."""
    found = [item.message for item in lint_files([PACK], files).diagnostics if item.code == "OPS900"]
    project, options = Project(Workspace(Path("nowhere"), files)), FlydslOptions(version="0.4.2")
    PACK.describe(project, options)
    for operator in PACK.operators(project, options):
        assert list(part_lines(operator, project.source))
        list(cells(operator, project.source))
    return found


def options_of(name: str, text: str) -> list[str]:
    """Options that give a migration something to do in a text."""
    constants = re.findall(r"(?m)^\s*([A-Z][A-Z_]*) *=", text) or ["N"]
    return [f"names={','.join(dict.fromkeys([*constants[:3], 'n', 'rows']))}"] if "extent" in name else []


def migrate(name: str, files: dict[str, str]) -> None:
    """Run one migration; it raises if that fails, changes something when it is run again, or leaves what does not parse."""
    with contextlib.suppress(OpschemaError):  # it refuses the names
        migrate_files(PACK, name, files, options_of(name, "".join(files.values())))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_rule_fails(name: str) -> None:
    for version in VERSIONS:
        assert crashes(configured(PROGRAMS[name], version)) == []


@pytest.mark.parametrize("migration", MIGRATIONS)
def test_no_migration_fails(migration: str) -> None:
    for files in PROGRAMS.values():
        migrate(migration, configured(files))


@pytest.mark.parametrize("name", LARGE)
def test_many_of_one_thing_end_in_time(name: str) -> None:
    text, count = LARGE[name]
    started = time.process_time()
    assert crashes(configured({"kit/kernels.py": HEAD + text})) == []
    assert time.process_time() - started < SECONDS, count


def faulty(paths: list[Path], each: int) -> Iterator[dict[str, str]]:
    """Workspaces of kernels of which one has faults."""
    for seed, path in enumerate(paths):
        for text in mutants(path.read_text(encoding="utf-8"), each, seed):
            yield configured({f"kit/{path.name}": text})


@pytest.mark.parametrize("path", KITS, ids=lambda path: "/".join(path.parts[-4:]))
def test_faulty_copies_of_the_kits(path: Path) -> None:
    for number, files in enumerate(faulty([path], examples(25, 8))):
        assert crashes(files) == [], files
        migrate(MIGRATIONS[number % len(MIGRATIONS)], files)


@pytest.mark.corpus
@pytest.mark.parametrize("path", REAL)
def test_faulty_copies_of_real_kernels(path: str) -> None:
    root = Path(os.environ.get("OPSCHEMA_CORPUS", "nowhere")) / REVISION
    if not (root / path).is_file():
        pytest.skip(f"{REVISION}/{path} is not below OPSCHEMA_CORPUS")
    for number, files in enumerate(faulty([root / path], 50)):
        assert crashes(files) == [], files
        if number % 5 == 0:
            migrate(MIGRATIONS[number // 5 % len(MIGRATIONS)], files)
