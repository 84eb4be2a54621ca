"""Whatever happens to the cache, a run finds what a cold run finds: damage is a miss, never a failure and never a finding."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.cache import KEY_NAME, Cache
from tests.command import TILEKIT, Opschema, environment

SEEDS = int(os.environ.get("OPSCHEMA_SEEDS", "8"))


class Warm:
    """A repository with findings, of the ops of one manifest, and the cache of a run over it."""

    def __init__(self, folder: Path) -> None:
        self.tree = Path(shutil.copytree(TILEKIT, folder / "tilekit"))
        for manifest in self.tree.glob("tilekit/manifest/*.yaml"):
            if manifest.stem != "generative":
                manifest.unlink()
        self.opschema = Opschema(self.tree, folder / "cache")
        self.cold = self.findings("--no-cache")
        assert len(self.cold[1]) > 1
        assert self.findings() == self.cold
        [self.file] = self.opschema.cache.glob("*.sqlite")
        self.saved = {path: path.read_bytes() for path in self.opschema.cache.iterdir()}

    def findings(self, *args: str, **env: str) -> tuple[int, list[object]]:
        done = self.opschema("lint", "--output-format", "json", *args, env=env)
        assert done.err == ""
        return done.code, json.loads(done.out)["diagnostics"]

    def restore(self) -> None:
        shutil.rmtree(self.opschema.cache, ignore_errors=True)
        self.opschema.cache.mkdir(mode=0o700)
        for path, data in self.saved.items():
            path.write_bytes(data)
            path.chmod(0o600)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Warm:
    return Warm(tmp_path_factory.mktemp("warm"))


@pytest.fixture
def warm(made: Warm) -> Warm:
    made.restore()
    return made


def rewrite(file: Path, change: Callable[[bytes], object]) -> None:
    """Change every stored value, of whatever kind it is."""
    db = sqlite3.connect(file)
    rows = db.execute("SELECT kind, key, value FROM entries").fetchall()
    assert {"run", "config", "installed packs"} <= {row[0] for row in rows}
    db.executemany(
        "UPDATE entries SET value = ? WHERE kind = ? AND key = ?", [(change(v), kind, key) for kind, key, v in rows]
    )
    db.commit()
    db.close()


def other_code(value: bytes) -> bytes:
    """A finding of a rule becomes one of another rule."""
    for code in (b"SIG203", b"WKL201", b"CAR106"):
        value = value.replace(code, code[:-1] + b"9")
    return value


VALUES: dict[str, Callable[[bytes], object]] = {
    "a byte that is not UTF-8 in the middle": lambda value: (
        value[: len(value) // 2] + b"\xff" + value[len(value) // 2 + 1 :]
    ),
    "the last byte": lambda value: value[:-1] + bytes([value[-1] ^ 1]),
    "the first byte": lambda value: bytes([value[0] ^ 128]) + value[1:],
    "cut in half": lambda value: value[: len(value) // 2],
    "cut to less than a seal": lambda value: value[:5],
    "one byte more": lambda value: value + b"\0",
    "empty": lambda value: b"",
    "a text": lambda value: value.decode("latin-1").replace("\0", "x"),
    "a number": lambda value: 7,
    "no value": lambda value: None,
    "without its seal": lambda value: value[16:],
    "another finding": other_code,
    "another value under a right length": lambda value: random.Random(len(value)).randbytes(len(value)),
}


@pytest.mark.parametrize("change", VALUES.values(), ids=VALUES)
def test_all_values_changed(warm: Warm, change: Callable[[bytes], object]) -> None:
    rewrite(warm.file, change)
    assert warm.findings() == warm.cold
    assert warm.findings() == warm.cold, "also once it has mended"


STATEMENTS = {
    "values of other keys": "UPDATE entries SET value = (SELECT e.value FROM entries e WHERE e.key != entries.key LIMIT 1)",
    "values under other kinds": "UPDATE entries SET value = (SELECT e.value FROM entries e WHERE e.kind != entries.kind LIMIT 1)",
    "days that are texts": "UPDATE entries SET used = 'x'",
    "days that are nothing": "UPDATE entries SET used = NULL",
    "days that are floats": "UPDATE entries SET used = 1e300",
    "days long ago": "UPDATE entries SET used = -1",
    "keys that are not text": "UPDATE entries SET key = CAST(key AS BLOB)",
    "keys that are not UTF-8": "UPDATE entries SET key = CAST(x'ff' || substr(key, 2) AS TEXT)",
    "no table": "DROP TABLE entries",
    "another table": "DROP TABLE entries; CREATE TABLE entries (name TEXT, kind INTEGER)",
    "fewer columns": "ALTER TABLE entries DROP COLUMN used",
    "more columns": "ALTER TABLE entries ADD COLUMN more TEXT",
    "a trigger": "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END",
    "a trigger on change": "CREATE TRIGGER t AFTER UPDATE ON entries BEGIN DELETE FROM entries; END",
    "a view": "ALTER TABLE entries RENAME TO e; CREATE VIEW entries AS SELECT * FROM e",
    "another program's file": "DROP TABLE entries; CREATE TABLE moz_places (id INTEGER); PRAGMA user_version = 9",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_tables_changed(warm: Warm, statement: str) -> None:
    db = sqlite3.connect(warm.file)
    try:
        db.executescript(statement)
    except sqlite3.OperationalError as error:
        pytest.skip(f"this sqlite cannot do that: {error}")
    finally:
        db.close()
    assert warm.findings() == warm.cold
    assert warm.findings() == warm.cold


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_damage_to_the_file(warm: Warm, seed: int) -> None:
    """Bytes, stretches and the length of the file change; half of the time pages of values alone, which sqlite does not notice."""
    chance = random.Random(seed)
    for _ in range(3):
        if not warm.file.exists():  # discarded as damaged
            break
        data = bytearray(warm.file.read_bytes())
        if not data:
            break
        first = chance.choice([0, min(2 * 16_384, len(data) - 1)])
        for _ in range(chance.choice([1, 20, 500])):
            at = chance.randrange(first, len(data))
            data[at : at + chance.choice([1, 1, 1, 64])] = chance.randbytes(1)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        warm.file.write_bytes(data)
        assert warm.findings() == warm.cold


def test_a_log_that_another_program_left_beside_the_file(warm: Warm) -> None:
    for tail in ("-wal", "-shm", "-journal"):
        Path(f"{warm.file}{tail}").write_bytes(random.Random(1).randbytes(40_000))
    assert warm.findings() == warm.cold
    assert warm.findings() == warm.cold


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop"])
def test_a_file_that_is_none(warm: Warm, kind: str) -> None:
    file = warm.file
    file.unlink()
    make: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(file),
        "folder": lambda: (file / "x").mkdir(parents=True),
        "device": lambda: file.symlink_to("/dev/zero"),
        "loop": lambda: file.symlink_to(file),
    }
    make[kind]()
    assert warm.findings() == warm.cold


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes")
def test_a_disk_that_is_full(warm: Warm) -> None:
    """Every write beyond the first 64 KiB fails, of the first run and of one that has something to read."""
    import resource
    import subprocess

    for path in (*warm.opschema.cache.iterdir(),):
        path.unlink()

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))

    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-m", "opschema_cli", "lint", "--output-format", "json"],
            cwd=warm.tree, env=environment(warm.opschema.cache), capture_output=True, preexec_fn=full, timeout=60,
        )  # fmt: skip
        assert (run.returncode, json.loads(run.stdout)["diagnostics"], run.stderr) == (*warm.cold, b"")
    assert warm.findings() == warm.cold


# Who may write what is believed


@pytest.mark.skipif(sys.platform == "win32", reason="owners and modes")
@pytest.mark.parametrize("trick", ["mode", "link", "length", "folder"])
def test_a_cache_that_came_with_the_tree_is_not_believed(warm: Warm, trick: str) -> None:
    """A pull request may bring a cache folder and its key where ``OPSCHEMA_CACHE_DIR`` lies in the checkout: Git checks files out
    for others to read, too, so that key is not a key.
    """
    file, key = warm.file, warm.opschema.cache / KEY_NAME
    brought = key.read_bytes()
    forged = Cache(file)
    [name] = sqlite3.connect(file).execute("SELECT key FROM entries WHERE kind = 'run'").fetchone()
    value = forged.get("run", [name])[name]
    forged.put("run", {name: other_code(value)})
    forged.close()
    assert warm.findings() != warm.cold, "who has the key is believed"
    key.unlink()
    if trick == "mode":
        key.write_bytes(brought)
        key.chmod(0o644)
    elif trick == "link":
        (warm.tree.parent / "elsewhere").write_bytes(brought)
        (warm.tree.parent / "elsewhere").chmod(0o600)
        key.symlink_to(warm.tree.parent / "elsewhere")
    elif trick == "length":
        key.write_bytes(b"")
        key.chmod(0o600)
    else:
        (key / "x").mkdir(parents=True)
    assert warm.findings() == warm.cold
    if trick != "folder":
        status = key.lstat()
        assert (status.st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
        assert key.read_bytes() != brought


def test_the_file_of_a_workspace_has_a_name_that_others_cannot_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for user in ("one", "other"):
        monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / user))
        Cache.for_workspace(Path("/tree")).put("facts", {"a": b"1"})
        names += [path.name for path in (tmp_path / user).glob("*.sqlite")]
    assert len(set(names)) == 2
