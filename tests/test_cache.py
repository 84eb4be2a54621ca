"""The cache: what it keeps, and that nothing that happens to its file stops a run."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from opschema_cli import cache as module
from opschema_cli.cache import KEY_NAME, MAX_AGE_DAYS, Cache, cache_folder, decoded


def test_what_is_put_is_there_in_the_next_run(tmp_path: Path) -> None:
    Cache(tmp_path / "c.sqlite").put("facts", {"a": b"1", "b": b"2"})
    later = Cache(tmp_path / "c.sqlite")
    assert later.get("facts", ["b", "a", "b", "missing"]) == {"a": b"1", "b": b"2"}
    assert later.get("yaml", ["a"]) == {}


def test_a_later_value_replaces_an_earlier_one(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    cache.put("facts", {"a": b"old"})
    cache.put("facts", {"a": b"new"})
    assert cache.get("facts", ["a"]) == {"a": b"new"}


def test_thousands_of_keys_are_one_request(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    values = {f"key{number}": b"%d" % number for number in range(3000)}
    cache.put("facts", values)
    assert cache.get("facts", values) == values
    assert cache.stored("facts", [*values, "missing"]) == values.keys()


def test_entries_that_nothing_used_for_long_are_dropped_when_the_day_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    cache.put("facts", {"used": b"1", "forgotten": b"2"})
    start = time.time()
    for day in range(1, MAX_AGE_DAYS + 2):
        monkeypatch.setattr(module.time, "time", lambda day=day: start + day * 86400)
        assert cache.get("facts", ["used"]) == {"used": b"1"}
    assert cache.get("facts", ["used", "forgotten"]) == {"used": b"1"}


def test_no_cache_keeps_nothing() -> None:
    cache = Cache(None)
    cache.put("facts", {"a": b"1"})
    assert cache.get("facts", ["a"]) == {}
    assert cache.stored("facts", ["a"]) == set()


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "c.sqlite"
    cache = Cache(path)
    cache.put("facts", {"a": b"1"})
    cache.close()
    path.write_bytes(damage)
    for _ in range(2):  # the first run may find out only when it reads
        cache = Cache(path)
        cache.get("facts", ["a"])
        cache.put("facts", {"b": b"2"})
        cache.close()
    assert Cache(path).get("facts", ["b"]) == {"b": b"2"}


def test_a_file_damaged_in_the_middle_is_a_miss_now_and_mends_by_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = Cache(path)
    cache.put("facts", {f"key{number}": os.urandom(2000) for number in range(200)})
    cache.close()
    with path.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * 4096 * 20)
    keys = [f"key{number}" for number in range(200)]
    damaged = Cache(path)
    damaged.get("facts", keys)
    damaged.put("facts", {"a": b"1"})
    mended = Cache(path)
    mended.put("facts", {"a": b"2"})
    assert mended.get("facts", ["a"]) == {"a": b"2"}


def test_a_locked_file_is_a_miss_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.sqlite"
    Cache(path).put("facts", {"a": b"1"})
    connect = sqlite3.connect
    monkeypatch.setattr(
        module.sqlite3, "connect", lambda *args, **options: connect(*args, **{**options, "timeout": 0.05})
    )
    holder = connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        busy = Cache(path)
        busy.put("facts", {"b": b"2"})
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    cache = Cache(path)
    assert cache.get("facts", ["a", "b"]) == {"a": b"1"}
    busy.put("facts", {"c": b"3"})
    assert cache.get("facts", ["c"]) == {"c": b"3"}, "a failed write leaves no transaction open"


@pytest.mark.parametrize("blocked_by", ["a file", "a file above", "a folder"])
def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path, blocked_by: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.sqlite").mkdir()
    path = {"a file": "file/c.sqlite", "a file above": "file/x/c.sqlite", "a folder": "folder.sqlite"}[blocked_by]
    cache = Cache(tmp_path / path)
    cache.put("facts", {"a": b"1"})
    assert cache.get("facts", ["a"]) == {}


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_keeps_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    cache = Cache(tmp_path / "c.sqlite")
    cache.put("facts", {"a": b"1"})
    assert cache.get("facts", ["a"]) == {}


def test_a_user_without_a_home_has_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPSCHEMA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert Cache.for_workspace(tmp_path).get("facts", ["a"]) == {}


def test_the_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    Cache.for_workspace(Path("/one")).put("facts", {"a": b"1"})
    assert Cache.for_workspace(Path("/one")).get("facts", ["a"]) == {"a": b"1"}
    assert Cache.for_workspace(Path("/other")).get("facts", ["a"]) == {}
    if sys.platform != "win32":
        assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


WRITER = """
import sys
import threading
from pathlib import Path
from opschema_cli.cache import Cache
cache = Cache(Path(sys.argv[1]))
for number in range(100):
    cache.put("facts", {f"{sys.argv[2]}-{number}": b"x" * 500})
    cache.get("facts", [f"{other}-{number}" for other in "abcd"])
"""


def test_many_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, name], stderr=subprocess.PIPE) for name in "abcd"]
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    keys = [f"{name}-{number}" for name in "abcd" for number in range(100)]
    assert len(Cache(path).get("facts", keys)) == 400


def test_a_file_that_another_process_just_begins_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")  # what makes a file a WAL one meanwhile fails at once, whatever its timeout
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(path, timeout=2, isolation_level=None).execute("PRAGMA journal_mode=WAL")
    release = threading.Timer(0.2, other.execute, ["ROLLBACK"])
    release.start()
    cache = Cache(path)
    release.join()
    cache.put("facts", {"a": b"1"})
    assert Cache(path).get("facts", ["a"]) == {"a": b"1"}


def _stored(path: Path) -> list[bytes]:
    db = sqlite3.connect(path)
    try:
        return [value for (value,) in db.execute("SELECT value FROM entries")]
    finally:
        db.close()


def _replace(path: Path, value: bytes) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE entries SET value = ?", (value,))
    db.close()


def test_a_value_that_was_edited_is_a_miss_and_can_be_stored_again(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    Cache(path).put("findings", {"a": b"SIG203"})
    [stored] = _stored(path)
    _replace(path, stored.replace(b"SIG203", b"SIG204"))
    cache = Cache(path)
    assert cache.get("findings", ["a"]) == {}
    cache.put("findings", {"a": b"SIG205"})
    assert Cache(path).get("findings", ["a"]) == {"a": b"SIG205"}


def test_a_value_of_another_key_kind_or_user_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    Cache(path).put("findings", {"a": b"1"})
    [sealed] = _stored(path)
    for change in ("kind = 'run'", "key = 'b'"):
        db = sqlite3.connect(path, isolation_level=None)
        db.execute(f"UPDATE entries SET {change}")
        db.close()
    cache = Cache(path)
    assert [cache.get(kind, ["a", "b"]) for kind in ("findings", "run")] == [{}, {}]
    other = Cache(tmp_path / "other" / "c.sqlite")
    other.put("findings", {"a": b"2"})
    _replace(tmp_path / "other" / "c.sqlite", sealed)
    assert other.get("findings", ["a"]) == {}, "another key"
    assert len({(folder / KEY_NAME).read_bytes() for folder in (tmp_path, tmp_path / "other")}) == 2


@pytest.mark.parametrize(
    "data",
    [b"\xa2\xff\xff", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000, b"\xc1", b"", b"\x93\x01"],
    ids=["not UTF-8", "a length that lies", "a hundred thousand lists", "no type", "nothing", "cut off"],
)
def test_what_cannot_be_decoded_is_a_miss(data: bytes) -> None:
    assert [decoded(data, kind) for kind in (str, list[str], dict[str, str])] == [None, None, None]


def test_two_processes_that_make_the_key_at_once_have_one(tmp_path: Path) -> None:
    code = "import sys, pathlib, opschema_cli.user_key as made; print(made.user_key(pathlib.Path(sys.argv[1])).hex())"
    command = [sys.executable, "-c", code, str(tmp_path / "new" / KEY_NAME)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert len({process.communicate(timeout=60)[0] for process in processes}) == 1
