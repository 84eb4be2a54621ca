"""Compilers' caches that are kept across runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from opschema_cli.verify.kernel_caches import (
    CachesInUse,
    caches_folder,
    caches_of,
    caches_of_search,
    clear_caches,
    remove_abandoned_locks,
)
from opschema_cli.verify.results import Header, Version
from opschema_cli.verify.run import Run


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CXXFLAGS", raising=False)


def run_of(before: Version | None, after: Version) -> Run:
    header = Header(run="", shard=1, shards=1, total=0, before=before, after=after, device="cpu-sim", cells=())
    return Run(header=header, plans=(), compared=before is not None, folder="")


OLD, NEW = Version(name="HEAD~1", commit="0ld"), Version(name=".", content="new")


def test_a_cache_is_of_a_side_a_content_and_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(OLD, NEW)
    usual = caches_of(run)
    assert set(usual) == {"before", "after", "reference"}
    assert len(set(usual.values())) == 3
    assert caches_of(run_of(Version(name="../old", commit="0ld"), NEW)) == usual
    assert caches_of(run_of(NEW, NEW))["before"] not in usual.values()
    assert not set(caches_of(msgspec.structs.replace(run, sanitizer="memcheck")).values()) & set(usual.values())
    monkeypatch.setenv("CXXFLAGS", "-O3")
    assert not set(caches_of(run).values()) & set(usual.values())
    assert caches_of(run_of(None, Version(name="the draft"))) == {}


def test_a_search_compiles_for_the_sides() -> None:
    kept = caches_of(run_of(OLD, NEW))
    assert caches_of_search(OLD, NEW, "cpu-sim") == {"search": kept["after"], "search-before": kept["before"]}
    assert caches_of_search(None, NEW, "cpu-sim") == {"search": kept["after"]}
    assert caches_of_search(OLD, NEW, "a GPU") != caches_of_search(OLD, NEW, "cpu-sim")
    assert caches_of_search(None, Version(name="the draft"), "cpu-sim") == {}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_locks_that_a_process_holds_open_stay(tmp_path: Path) -> None:
    held, left = (tmp_path / "extensions" / name / "lock" for name in ("held", "left"))
    for lock in (held, left):
        lock.parent.mkdir(parents=True)
        lock.touch()
    with held.open("rb"):
        remove_abandoned_locks(tmp_path)
        assert (held.exists(), left.exists()) == (True, False)


def test_locks_of_killed_builds_are_removed_by_who_is_alone() -> None:
    wanted = caches_of(run_of(OLD, NEW))
    used = CachesInUse(wanted)
    assert used.folders == wanted
    lock = used.folders["after"] / "extensions" / "py311_cpu" / "norm" / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    beside = CachesInUse(wanted)  # another process of the run
    assert lock.exists()
    beside.close()
    used.close()
    CachesInUse(wanted).close()
    assert lock.parent.exists()
    assert lock.exists() is (os.name == "nt")


def test_what_no_run_used_for_a_month_is_removed_and_all_on_request() -> None:
    old = caches_of(run_of(None, OLD))["after"]
    CachesInUse(caches_of(run_of(None, OLD))).close()
    os.utime(old / "in-use", (0, 0))
    new = CachesInUse(caches_of(run_of(None, NEW)))
    assert not old.exists()
    assert all(folder.exists() for folder in new.folders.values())
    new.close()
    clear_caches()
    assert not caches_folder().exists()


def test_without_a_place_to_write_a_run_has_no_kept_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "file"))
    assert CachesInUse(caches_of(run_of(OLD, NEW))).folders == {}
