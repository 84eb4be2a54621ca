"""The migrations of the pack `flydsl`, proved by the FlyDSL that `OPSCHEMA_FLYDSL` names."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from opschema_cli.migrate.migration import Migration
from opschema_cli.proof import Files, Observation, judge
from opschema_cli.testing import migrate_files
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.examples import example_files
from opschema_rules.flydsl.pack import PACK
from tests.proofs.flydsl_oracle import observe
from tests.rules.flydsl.key_oracle import RELEASES

MIGRATIONS = {item.name: item for item in PACK.all_migrations()}

PROOFS = {
    "rename-api": proofs.TRACED,
    "drop-mark-static": proofs.TRACED,
    "drop-num-records": proofs.BYTES,
    "extent-to-parameter": proofs.ROUND,
    "parameter-to-extent": proofs.ROUND,
    "add-num-records": proofs.NOTHING,
    "drop-size-guard": proofs.RESTORED,
}

KERNEL = """\
M, N = 4, 4


@flyc.kernel
def scale(A: fx.Tensor):
    A = fx.rocdl.make_buffer_tensor(A, max_size=False)
    A[0, 0] = A[0, 1]


@flyc.jit
def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    scale(A).launch(grid=(M, 1, 1), block=(64, 1, 1), stream=stream)
"""
COUNTED = KERNEL.replace("max_size=False", "max_size=False, num_records_bytes=M * N * 4")
CALLED = "\n\ndef main():\n    launch(torch.zeros(M, N, dtype=torch.float32))\n"
RENAMED = "from flydsl.compiler.jit_function import FlyDSLCompileError\n\n" + KERNEL
STATIC = KERNEL + "\n\npinned = flyc.from_dlpack(torch.zeros(M, N)).mark_static()\n"
EXTENT = COUNTED.replace("M, N = 4, 4", "M = 4").replace("M * N", "M * 4") + "\n\ndef main(a):\n    launch(a)\n"


MAKER = "flydsl/expr/rocdl/universal.py"
DERIVED = "    if num_records_bytes is None and not max_size:\n"
GUARD = """\
        from ..._mlir.dialects.fly import LayoutType

        if not LayoutType(layout.type).is_static_shape:
"""
RAISE = """
        else:
            raise ValueError("pass num_records_bytes")"""


def _files(text: str, version: str) -> Files:
    return example_files([("toml", f'[flydsl]\nversion = "{version}"\n'), ("python", text)])


def _migrated(name: str, text: str, version: str, *options: str) -> tuple[Files, Files]:
    files = _files(text, version)
    return files, migrate_files(PACK, name, files, options).files


def _cases() -> dict[str, tuple[Files, Files]]:
    """The files before and after each migration that writes."""
    extent, given = _migrated("extent-to-parameter", EXTENT, "0.4.2", "names=M")
    back = migrate_files(PACK, "parameter-to-extent", given, ["names=M"]).files
    return {
        "rename-api": _migrated("rename-api", RENAMED, "0.2.0", "to=0.4.2"),
        "drop-mark-static": _migrated("drop-mark-static", STATIC, "0.2.0"),
        "drop-num-records": _migrated("drop-num-records", COUNTED + CALLED, "0.4.2"),
        "extent-to-parameter": (extent, given),
        "parameter-to-extent": (given, back),
    }


@cache
def _observed(folder: Path) -> dict[str, tuple[Observation, Observation]]:
    cases = _cases()
    cases["another count"] = (_files(COUNTED, "0.4.2"), _files(COUNTED.replace("* 4)", "* 8)"), "0.4.2"))
    seen = observe(folder, [files for pair in cases.values() for files in pair])
    return dict(zip(cases, zip(seen[::2], seen[1::2], strict=True), strict=True))


@pytest.mark.parametrize("migration", MIGRATIONS.values(), ids=lambda item: item.name)
def test_every_migration_names_its_proof(migration: Migration) -> None:
    assert migration.proof == PROOFS[migration.name]


@pytest.mark.parametrize("name", [name for name in PROOFS if name not in ("add-num-records", "drop-size-guard")])
def test_every_example_is_changed(name: str) -> None:
    before, after = _cases()[name]
    assert before != after


@pytest.mark.parametrize("folder", RELEASES)
@pytest.mark.parametrize("name", ["rename-api", "drop-mark-static"])
def test_what_was_removed_is_used_no_more(name: str, folder: Path) -> None:
    before, after = _observed(folder)[name]
    assert list(judge(before, after, cures=True)) == []
    assert after["launch traced"].level == "right"


@pytest.mark.parametrize("folder", RELEASES)
def test_descriptors_keep_their_bytes(folder: Path) -> None:
    before, after = _observed(folder)["drop-num-records"]
    assert before["launch traced"].level == after["launch traced"].level == "right"
    assert before["launch traced"].result != after["launch traced"].result, "the program knows no count of its own"
    assert before["launch described"].result == after["launch described"].result == "[64]"


@pytest.mark.parametrize("folder", RELEASES)
def test_an_extent_that_comes_back_is_the_same_program(folder: Path) -> None:
    first, given = _observed(folder)["extent-to-parameter"]
    again, back = _observed(folder)["parameter-to-extent"]
    assert given == again
    assert given["launch traced"].level == "right"
    assert first == back != given


@pytest.mark.parametrize("folder", RELEASES)
def test_another_count_is_seen(folder: Path) -> None:
    before, after = _observed(folder)["another count"]
    assert (before["launch described"].result, after["launch described"].result) == ("[64]", "[128]")


@pytest.mark.parametrize("folder", RELEASES)
def test_the_guard_is_taken_out_of_flydsl_itself(folder: Path) -> None:
    text = (folder / MAKER).read_text()
    if DERIVED not in text:
        pytest.skip("this FlyDSL derives byte counts in another place")
    head, _, rest = text.partition(DERIVED)
    derived, end, rest = rest.partition("\n\n")
    shifted = "\n".join(f"    {line}" for line in derived.splitlines())
    guarded = f"{head}{DERIVED}{GUARD}{shifted}{RAISE}{end}{rest}"
    files = {
        MAKER: guarded,
        "flydsl/compiler/jit_argument.py": (folder / "flydsl/compiler/jit_argument.py").read_text(),
        **dict.fromkeys(["flydsl/__init__.py", "flydsl/expr/__init__.py", "flydsl/expr/rocdl/__init__.py"], ""),
    }
    assert migrate_files(PACK, "drop-size-guard", files).files[MAKER] == text
