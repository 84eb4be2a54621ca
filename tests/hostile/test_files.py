"""Hostile files: each brings a finding with a place or none, in time, and the findings of its neighbours still come."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from functools import cache
from pathlib import Path

import pytest

import opschema_cli.source.cst_facts  # noqa: F401 - so that forked workers need not import libcst
from opschema_cli.config import Config
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.source import parsing
from opschema_cli.source.python_workers import PATIENCE, Parsers
from opschema_cli.workspace import ReadError, Workspace
from tests.command import TILEKIT, Opschema
from tests.hostile.files import PYTHON, YAML
from tests.stalling import STALLING
from tests.toypack import PACK

SLOW = ("patterns in each other", "six thousand sums", "a hundred thousand minus signs")
SECONDS = 8.0
"""No file may take longer, of processor time on a slow machine: a million nodes, the most that are read, take half of it."""


def lint(root: Path, jobs: int = 0) -> list[Diagnostic]:
    registry = Registry((PACK,))
    job = Job(registry, resolve_settings(Config(), registry))
    parsers = cache(lambda: Parsers(jobs)) if jobs else None
    return run(job, Project(Workspace(root), parsers=parsers)).diagnostics


def check(found: list[Diagnostic], path: str, expected: str, data: bytes) -> None:
    mine = [item for item in found if item.place.path == path]
    assert expected in [item.code for item in mine] or not expected, mine
    assert expected or not {item.code for item in mine} & {"OPS101", "OPS102", "YML001"}, mine
    assert all(0 <= item.place.span.start <= max(len(data), 1) for item in mine)
    assert not [item.message for item in found if item.code == "OPS900"]
    assert [item.code for item in found if item.place.path == "good.toy.yaml"] == ["TOY101"], (
        "the neighbour's finding comes"
    )


@pytest.mark.parametrize("kind", YAML)
def test_yaml(tmp_path: Path, kind: str) -> None:
    data, expected = YAML[kind]
    (tmp_path / "bad.toy.yaml").write_bytes(data)
    (tmp_path / "good.toy.yaml").write_text("add: {}\n")
    started = time.process_time()
    check(lint(tmp_path), "bad.toy.yaml", expected, data)
    assert time.process_time() - started < SECONDS
    assert not (tmp_path / "ran").exists()


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds at once, by two workers that die of several of them; impatient ones, to save the test's time."""
    monkeypatch.setattr(parsing, "SECONDS", 0.5)
    for number, (data, _) in enumerate(PYTHON.values()):
        (tmp_path / f"m{number}.py").write_bytes(data)
        (tmp_path / f"m{number}.toy.yaml").write_text(f"op: {{doc: x, impl: m{number}.py}}\n")
    (tmp_path / "good.toy.yaml").write_text("add: {}\n")
    started = time.monotonic()
    found = lint(tmp_path, jobs=2)
    assert time.monotonic() - started < len(PYTHON) * SECONDS
    for number, (data, expected) in enumerate(PYTHON.values()):
        check(found, f"m{number}.py", expected, data)
    assert not (tmp_path / "ran").exists()


def test_many_texts_that_stall_the_parser_cost_little_time_each_and_the_sound_ones_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parsing, "SECONDS", 0.2)
    texts = {f"bad{number}": f"# {number}\n{STALLING}" for number in range(3 * PATIENCE)}
    sound = {f"good{number}": f"x = {number}\n" for number in range(3)}
    parsers = Parsers(1)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        parsers.submit({**texts, **sound})
        found: dict[str, bytes] = {}
        while len(found) < len(texts) + len(sound):
            found |= {item.key: item.facts for item in parsers.collect(wait=True)}
    finally:
        parsers.close()
    assert {key for key, facts in found.items() if facts} == set(sound)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert spent < len(texts) * 0.2, "the first are tried twice, the others get a share of the time"


def test_a_run_that_has_spent_its_time_names_the_files_that_it_does_not_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "SECONDS", 0.3)
    monkeypatch.setattr(parsing, "RUN_SECONDS", 1.0)
    for number in range(40):
        (tmp_path / f"m{number}.py").write_text(f"# {number}\n{STALLING}")
        (tmp_path / f"m{number}.toy.yaml").write_text(f"op: {{doc: x, impl: m{number}.py}}\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = [item for item in lint(tmp_path, jobs=2) if item.code == "OPS102"]
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert {item.place.path for item in found} == {f"m{number}.py" for number in range(40)}
    assert sum("was not parsed" in item.message for item in found) > 25
    assert spent < 4, "40 texts with 0.3 seconds each, the first twice, would take more"


# Files that are not files


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes need rights here")
def test_links_pipes_and_folders(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret.toy.yaml"
    root.mkdir()
    secret.write_text("secret_op: {}\n")
    os.mkfifo(root / "pipe.toy.yaml")
    os.mkfifo(root / "pipe.py")
    (root / "folder.toy.yaml").mkdir()
    (root / "out.toy.yaml").symlink_to("../secret.toy.yaml")
    (root / "absolute.toy.yaml").symlink_to(secret)
    (root / "loop.toy.yaml").symlink_to("loop.toy.yaml")
    (root / "dangling.toy.yaml").symlink_to("nowhere")
    (root / "device.toy.yaml").symlink_to("/dev/zero")
    (root / "up").symlink_to("..")
    (root / "down").mkdir()
    (root / "down/again").symlink_to("..")
    (root / "good.toy.yaml").write_text(
        "add: {}\nmul: {doc: x, impl: pipe.py}\nsub: {doc: x, impl: up/secret.toy.yaml}\n"
    )
    found = {(item.code, item.place.path) for item in lint(root)}
    assert found == {
        ("TOY101", "good.toy.yaml"),
        ("OPS101", "pipe.py"),
        ("OPS101", "up/secret.toy.yaml"),
        ("OPS101", "out.toy.yaml"),
        ("OPS101", "absolute.toy.yaml"),
    }


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    (tmp_path / "good.toy.yaml").write_text("add: {}\n")
    (tmp_path / "bad.toy.yaml").write_text("add: {}\n")
    (tmp_path / "bad.toy.yaml").chmod(0)
    assert [(item.code, item.place.path) for item in lint(tmp_path)] == [
        ("OPS101", "bad.toy.yaml"),
        ("TOY101", "good.toy.yaml"),
    ]


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error"), FileNotFoundError(2, "gone")]
)
def test_a_file_that_fails_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    (tmp_path / "good.toy.yaml").write_text("add: {}\n")
    (tmp_path / "bad.toy.yaml").write_text("add: {}\n")
    opened = os.open

    def failing(path: str | Path, flags: int, *args: int) -> int:
        if str(path).endswith("bad.toy.yaml"):
            raise error
        return opened(path, flags, *args)

    monkeypatch.setattr(os, "open", failing)
    found = lint(tmp_path)
    assert [(item.code, item.place.path) for item in found] == [("OPS101", "bad.toy.yaml"), ("TOY101", "good.toy.yaml")]


def test_a_file_that_vanishes_between_listing_and_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("good.toy.yaml", "bad.toy.yaml"):
        (tmp_path / name).write_text("add: {}\n")
    read = Workspace.data

    def vanishing(self: Workspace, path: str) -> bytes:
        (tmp_path / "bad.toy.yaml").unlink(missing_ok=True)
        return read(self, path)

    monkeypatch.setattr(Workspace, "data", vanishing)
    found = lint(tmp_path)
    assert [(item.code, item.place.path) for item in found] == [("OPS101", "bad.toy.yaml"), ("TOY101", "good.toy.yaml")]
    assert found[0].message == "this file cannot be read: it does not exist"


def test_a_file_that_becomes_a_pipe_between_listing_and_reading(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    (tmp_path / "bad.toy.yaml").write_text("")
    workspace = Workspace(tmp_path)
    assert workspace.files == ("bad.toy.yaml",)
    (tmp_path / "bad.toy.yaml").unlink()
    os.mkfifo(tmp_path / "bad.toy.yaml")
    with pytest.raises(ReadError, match="it is not a regular file"):
        workspace.data("bad.toy.yaml")


# The same, as a user meets them


@pytest.fixture
def tilekit(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TILEKIT, tmp_path / "tilekit"))


def test_among_the_files_of_a_real_repository(tmp_path: Path, tilekit: Path) -> None:
    """Hostile neighbours change nothing about what is found in the other files, and there is no traceback."""
    opschema = Opschema(tilekit, tmp_path / "cache")
    clean = json.loads(opschema("lint", "--output-format", "json").out)["diagnostics"]
    for number, (data, _) in enumerate(YAML.values()):
        if len(data) < 2**21:
            (tilekit / f"tilekit/manifest/hostile{number}.yaml").write_bytes(data)
    for number, (kind, (data, _)) in enumerate(PYTHON.items()):
        if len(data) < 10**5 and kind not in SLOW:
            (tilekit / f"tilekit/ops/hostile{number}.py").write_bytes(data)
    names = ["\x1b]0;owned\x07.yaml", "line\nbreak.yaml", "a b'\".yaml", "\u202eevil.yaml"]
    for name in names if sys.platform != "win32" else []:
        (tilekit / "tilekit/manifest" / name).write_text("{")
    done = opschema("lint", "--output-format", "json", timeout=120)
    found = json.loads(done.out)["diagnostics"]
    assert done.code == 2
    assert not [item for item in found if item["code"] == "OPS900"]
    assert all(item["line"] >= 1 and item["column"] >= 1 for item in found)
    missing = [item for item in clean if item not in found]
    assert [(item["path"], item["code"], item["message"]) for item in missing] == []

    for report in ("text", "concise"):
        done = opschema("lint", "--output-format", report)
        assert done.code == 2
        assert "\x1b" not in done.out + done.err
        assert "\u202e" not in done.out
