"""Many files as one step: killed at any moment, failed at any call, disturbed by others or by a hostile tree."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.regular_files import content_digest
from opschema_cli.transaction import JOURNAL
from opschema_cli.transaction.apply import check_finished, recover
from opschema_cli.transaction.journal import Plan, Step, head, locked, read_journal
from opschema_cli.transaction.steps import Work
from opschema_cli.workspace import Workspace
from opschema_cli.write import write_all
from tests.examples import examples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, modes and forks differ here")

Files = dict[str, str | None]

ONE: tuple[Files, Files] = ({"a.yaml": "old a\n"}, {"a.yaml": "new a\n"})
SEVERAL: tuple[Files, Files] = (
    {"a.yaml": "old a\n", "sub/b.py": "# old b\n", "sub/c.py": "# old c\n", "gone.md": "old\n", "kept.txt": "kept\n"},
    {
        "a.yaml": "new a\n" * 1000,
        "sub/b.py": "# new b\n",
        "sub/c.py": "# new c\n",
        "gone.md": None,
        "x/y/d.yaml": "added\n",
    },
)
MOVED: tuple[Files, Files] = (
    {"a.py": "# moves\n", "b.py": "# stays\n"},
    {"a.py": None, "pkg/a.py": "# moves\n", "b.py": "# follows\n"},
)
SETS = {"one": ONE, "several": SEVERAL, "moved": MOVED}
EFFECTS = (
    "open",
    "write",
    "fsync",
    "link",
    "replace",
    "unlink",
    "mkdir",
    "rmdir",
    "chmod",
    "chown",
    "ftruncate",
    "close",
)

STEP = 1 if "OPSCHEMA_SLOW" in os.environ else 3
"""Of how many calls one is a place to die at; the environment asks for each."""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    # What it waits for matters when the power fails, not when a process dies; the calls are counted all the same.
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def make(root: Path, files: Files) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text or "")
        (root / name).chmod(0o640)
    return root


def snapshot(root: Path) -> dict[str, str]:
    """All that lies in a folder; folders end with a slash."""
    return {
        path.relative_to(root).as_posix() + ("/" if path.is_dir() else ""): "" if path.is_dir() else path.read_text()
        for path in root.rglob("*")
    }


def expected(before: Files, after: Files) -> dict[str, str]:
    found = {path: text for path, text in {**before, **after}.items() if text is not None}
    folders = {f"{parent.as_posix()}/": "" for path in found for parent in Path(path).parents if parent.name}
    return {**found, **folders}


def in_child(act: Callable[[], None]) -> int:
    """Run something in a process of its own; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if not child:
        try:
            act()
            os._exit(0)
        except OpschemaError:
            os._exit(2)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def armed(
    number: int, *, torn: bool = False, failing: tuple[str, int] | None = None, act: Callable[[], None] = die
) -> None:
    """From now on this process dies at the ``number``-th call that changes the disk: before it, or in the middle of a
    write; or does something else, ``act``. ``failing`` names a call that fails, and from which time on.
    """
    left, failures = [number], [failing[1] if failing else 0]

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                if torn and name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                act()
            if failing and name == failing[0]:
                failures[0] -= 1
                if failures[0] == 0:
                    raise OSError(5, "Input/output error")
            return real(*args, **kwargs)

        return call

    for name in EFFECTS:
        setattr(os, name, wrap(name, getattr(os, name)))


def apply(root: Path, after: Files) -> None:
    workspace = Workspace(root)
    origins = {"pkg/a.py": "a.py"} if "pkg/a.py" in after else {}
    write_all(workspace, after, origins)


def kills(root: Path, files: tuple[Files, Files], first: int = 1, **kind: Any) -> Iterator[int]:
    """Apply over and over, dying one call later each time, until an apply lives to its end."""
    before, after = files
    for number in range(first, 1000, STEP):
        make(root, before)

        def act(number: int = number) -> None:
            armed(number, **kind)
            apply(root, after)

        code = in_child(act)
        if code != -signal.SIGKILL:
            assert code == (2 if kind.get("failing") else 0)
            return
        yield number
    raise AssertionError("it never ends")


# Killed


@pytest.mark.parametrize("torn", [False, True], ids=["between calls", "in a write"])
@pytest.mark.parametrize("name", SETS)
def test_killed_at_any_call_the_next_run_finds_the_old_tree_or_makes_the_new_one(
    tmp_path: Path, name: str, torn: bool
) -> None:
    before, after = SETS[name]
    old, new = expected(before, {}), expected(before, after)
    outcomes = []
    for _ in kills(tmp_path / "root", SETS[name], torn=torn):
        root = tmp_path / "root"
        found = {path: text for path, text in snapshot(root).items() if "/.opschema" not in f"/{path}"}
        try:
            check_finished(root)
        except OpschemaError:
            finished = False
        else:
            # What a reader takes for finished is; a run that was killed early may leave new folders, with nothing in them.
            finished = True
            assert found == new or {path: text for path, text in found.items() if path in old or text} == old
        completed = "completed" in recover(root)
        assert snapshot(root) in (old, new)
        assert completed or snapshot(root) == old or found == new
        assert finished or snapshot(root) == new, "what said commit is completed"
        assert {path.stat().st_mode & 0o777 for path in root.rglob("*") if path.name in before} <= {0o640}
        outcomes.append(snapshot(root) == new)
        assert recover(root) == ""
        if not outcomes[-1]:
            apply(root, after)
            assert snapshot(root) == new
    assert len(outcomes) > 30 // STEP
    assert True in outcomes
    assert False in outcomes


@pytest.mark.parametrize("failing", [("replace", 2), ("replace", 4)], ids=str)
def test_killed_while_a_failure_is_undone_the_next_run_finds_one_tree(tmp_path: Path, failing: tuple[str, int]) -> None:
    before, after = SEVERAL
    outcomes = []
    for _ in kills(tmp_path / "root", SEVERAL, failing=failing):
        recover(tmp_path / "root")
        outcomes.append(snapshot(tmp_path / "root"))
        assert outcomes[-1] in (expected(before, {}), expected(before, after))
    assert outcomes[-1] == expected(before, {}), "at the end all is undone"
    assert snapshot(tmp_path / "root") == expected(before, {})


@pytest.mark.parametrize("at", [30, 55, 62])
def test_killed_while_recovering_the_run_after_that_recovers(tmp_path: Path, at: int) -> None:
    before, after = SEVERAL
    left = tmp_path / "left"
    next(kills(left, SEVERAL, first=at))
    for number in range(1, 200):
        root = tmp_path / "root"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(left, root)

        def act(number: int = number, root: Path = root) -> None:
            armed(number)
            recover(root)

        code = in_child(act)
        recover(root)
        assert snapshot(root) in (expected(before, {}), expected(before, after))
        if code == 0:
            return
    raise AssertionError("it never ends")


def test_killed_at_any_time(tmp_path: Path) -> None:
    before, after = SEVERAL
    chance = random.Random(7)
    root = tmp_path / "root"
    old, new = expected(before, {}), expected(before, after)
    for _ in range(examples(100, 40)):
        make(root, before)
        child = os.fork()
        if not child:
            try:
                apply(root, after)
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0, 0.012))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        recover(root)
        assert snapshot(root) in (old, new)


def test_a_run_that_writes_nothing_does_not_complete_what_another_left(tmp_path: Path) -> None:
    root = killed_half_way(tmp_path)
    left = snapshot(root)
    with pytest.raises(OpschemaError, match=r"an apply is unfinished here.*`opschema migrate --recover` completes it"):
        check_finished(root)
    assert snapshot(root) == left


def killed_half_way(tmp_path: Path) -> Path:
    """A workspace in which some files are new and some are old."""
    before, after = SEVERAL
    for _ in kills(tmp_path / "root", SEVERAL, first=40):
        texts = snapshot(tmp_path / "root")
        if texts["a.yaml"] == after["a.yaml"] and texts["sub/c.py"] == before["sub/c.py"]:
            return tmp_path / "root"
    raise AssertionError("it was never half way")


# Failed


@pytest.mark.parametrize("call", [name for name in EFFECTS if name not in ("close", "chown", "ftruncate", "rmdir")])
def test_a_call_that_fails_at_any_time_leaves_the_old_tree(tmp_path: Path, call: str) -> None:
    before, after = SEVERAL
    root = tmp_path / "root"
    codes = []
    for number in range(1, 60):
        make(root, before)

        def act(number: int = number) -> None:
            armed(-1, failing=(call, number))
            apply(root, after)

        codes.append(in_child(act))
        if not codes[-1]:
            recover(root)
        if codes[-1] == 2 and snapshot(root) != expected(before, {}):
            assert call == "unlink", "cleaning up may fail when all is written"
            recover(root)
            assert snapshot(root) == expected(before, after)
        else:
            assert snapshot(root) == expected(before, {} if codes[-1] else after)
        if codes[-1] == 0 and codes[-2:-1] == [0]:
            break
    assert codes[-1] == 0


def test_an_interrupt_between_two_renames_brings_the_first_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = SEVERAL
    root = make(tmp_path / "root", before)
    real, calls = os.replace, []

    def replace(source: Path, target: Path) -> None:
        if root in target.parents:
            calls.append(target.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        apply(root, after)
    assert snapshot(root) == expected(before, {})
    assert calls == ["a.yaml", "b.py", "a.yaml", "gone.md"], "what was taken is put back"


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    before, after = SEVERAL
    root = make(tmp_path / "root", before)

    def act() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        apply(root, after)

    assert in_child(act) == 2
    assert snapshot(root) == expected(before, {})


def as_nobody(act: Callable[[], None]) -> int:
    def drop() -> None:
        os.setgid(65534)
        os.setuid(65534)
        act()

    return in_child(drop)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may look into; pytest's own lie below one that is closed."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


NOT_TO_BE_WRITTEN = [("sub/b.py", 0o444), ("gone.md", 0o444), ("a.yaml", 0o466), ("sub", 0o555), (".", 0o555)]


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
@pytest.mark.parametrize(("name", "mode"), NOT_TO_BE_WRITTEN)
def test_what_is_marked_read_only_is_left_alone_by_root_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mode: int
) -> None:
    before, after = SEVERAL
    root = make(tmp_path / "root", before)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    (root / name).chmod(mode)
    with pytest.raises(OpschemaError, match=r"nothing was written: .* is marked read-only; make it writable first"):
        apply(root, after)
    assert snapshot(root) == expected(before, {})
    (root / name).chmod(0o755)
    apply(root, after)
    assert snapshot(root) == expected(before, after)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="root runs it as nobody")
def test_a_file_of_another_user_is_not_replaced_by_one_of_ones_own(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = SEVERAL
    root = make(open_folder / "root", before)
    for path in [*root.rglob("*"), root]:
        path.chmod(0o777)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(open_folder / "cache"))
    assert as_nobody(lambda: apply(root, after)) == 2
    assert snapshot(root) == expected(before, {})


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="root runs it as nobody")
@pytest.mark.parametrize(("name", "mode"), NOT_TO_BE_WRITTEN)
def test_a_file_or_folder_that_is_not_to_be_written_changes_nothing(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, mode: int
) -> None:
    before, after = SEVERAL
    root = make(open_folder / "root", before)
    for path in [*root.rglob("*"), root]:
        os.chown(path, 65534, 65534)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(open_folder / "cache"))
    (root / name).chmod(mode)
    assert as_nobody(lambda: apply(root, after)) == 2
    assert snapshot(root) == expected(before, {})
    (root / name).chmod(0o755)
    assert as_nobody(lambda: apply(root, after)) == 0
    assert snapshot(root) == expected(before, after)


# Disturbed


@pytest.mark.parametrize("name", ["a.yaml", "sub/b.py", "sub/c.py", "gone.md", "x/y/d.yaml"])
@pytest.mark.parametrize("moment", ["stage", "mark", "forward"])
def test_a_file_that_changes_at_the_last_moment_stops_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, moment: str
) -> None:
    before, after = SEVERAL
    root = make(tmp_path / "root", before)
    real: Callable[..., None] = getattr(Work, moment)

    def disturbed(self: object, *args: object) -> None:
        if args[:1] != ("abort",):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("theirs\n")
        real(self, *args)

    monkeypatch.setattr(Work, moment, disturbed)
    with pytest.raises(OpschemaError, match="nothing was written: "):
        apply(root, after)
    texts = snapshot(root)
    assert texts[name] == "theirs\n"
    assert {path: text for path, text in texts.items() if path in before and path != name} == {
        path: text for path, text in before.items() if path != name
    }
    assert not [path for path in texts if ".opschema" in path]


def test_a_file_that_changes_between_two_renames_brings_the_first_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = SEVERAL
    root = make(tmp_path / "root", before)
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        real(source, target)
        if target.name == "a.yaml":
            (root / "sub/c.py").write_text("theirs\n")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OpschemaError, match=r"nothing was written: sub/c\.py changed on disk since it was read"):
        apply(root, after)
    assert snapshot(root) == {**expected(before, {}), "sub/c.py": "theirs\n"}


def test_of_two_at_once_one_is_refused(tmp_path: Path) -> None:
    before, after = SEVERAL
    root = make(tmp_path / "root", before)
    with (
        locked(root),
        pytest.raises(OpschemaError, match="another opschema is writing here; try again when it is done"),
    ):
        apply(root, after)
    assert snapshot(root) == expected(before, {})
    apply(root, after)
    assert snapshot(root) == expected(before, after)


def test_many_at_once_leave_one_tree(tmp_path: Path) -> None:
    before, after = SEVERAL
    root = make(tmp_path / "root", before)
    children = []
    for _ in range(8):
        child = os.fork()
        if not child:
            code = 2
            try:
                apply(root, after)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert 0 in codes
    assert set(codes) <= {0, 2}
    assert snapshot(root) == expected(before, after)


def test_what_changed_between_the_kill_and_the_recovery_is_not_overwritten(tmp_path: Path) -> None:
    root = killed_half_way(tmp_path)
    (root / "sub/c.py").write_text("theirs\n")
    left = snapshot(root)
    with pytest.raises(OpschemaError, match=r"cannot be completed: sub/c\.py changed on disk"):
        recover(root)
    assert snapshot(root) == left


def test_a_new_text_that_was_tampered_with_is_not_put_in_place(tmp_path: Path) -> None:
    root = killed_half_way(tmp_path)
    for path in root.rglob("*.new"):
        path.write_text("evil\n")
    with pytest.raises(OpschemaError, match="differs from the text that was written"):
        recover(root)
    assert "evil\n" not in {text for path, text in snapshot(root).items() if not path.endswith(".new")}


# A hostile tree


def plant(root: Path, plan: Plan, data: bytes | None = None, states: bytes = b"commit\n") -> None:
    """A journal that this user never wrote."""
    (root / JOURNAL).write_bytes((data if data is not None else forged(plan)) + states)


def forged(plan: Plan) -> bytes:
    """A journal's head under the seal of somebody else."""
    mine = os.environ["OPSCHEMA_CACHE_DIR"]
    os.environ["OPSCHEMA_CACHE_DIR"] = mine + "-theirs"
    try:
        return head(plan)
    finally:
        os.environ["OPSCHEMA_CACHE_DIR"] = mine


def replacement(path: str) -> Plan:
    return Plan("0123456789abcdef", [Step(path, content_digest(b"old"), content_digest(b"evil"))], [])


def test_a_journal_that_the_tree_brings_is_not_obeyed(tmp_path: Path) -> None:
    root = make(tmp_path / "root", {"a.yaml": "old", ".opschema-0123456789abcdef-0.new": "evil"})
    plant(root, replacement("a.yaml"))
    left = snapshot(root)
    for act in (recover, check_finished, lambda root: apply(root, {"a.yaml": "new"})):
        with pytest.raises(
            OpschemaError, match=r"is not a journal of yours \(it does not have your seal\)|left by another"
        ):
            act(root)
        assert snapshot(root) == left


@pytest.mark.parametrize("path", ["../theirs", "/etc/theirs", "sub/../../theirs", "link/theirs", "%2e%2e/theirs"])
def test_not_even_a_sealed_journal_leads_out_of_the_root(tmp_path: Path, path: str) -> None:
    root = make(tmp_path / "root", {"a.yaml": "old"})
    (root / "link").symlink_to("..")
    (tmp_path / "theirs").write_text("old")
    (tmp_path / ".opschema-0123456789abcdef-0.new").write_text("evil")
    plant(root, replacement(path), head(replacement(path)))
    with pytest.raises(OpschemaError, match="which is not inside"):
        recover(root)
    assert (tmp_path / "theirs").read_text() == "old"


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 50, b"{", b"opschema journal 1 \n", b"opschema journal 1 00\n{}"],
    ids=["empty", "zeros", "json", "seal only", "no line end"],
)
def test_a_journal_that_was_cut_off_is_removed_by_the_next_run_that_writes(tmp_path: Path, data: bytes) -> None:
    root = make(tmp_path / "root", {"a.yaml": "old"})
    (root / JOURNAL).write_bytes(data)
    check_finished(root)
    assert recover(root) == ""
    assert snapshot(root) == {"a.yaml": "old"}


@pytest.mark.parametrize("data", [b"\n\n\n", b"opschema journal 1 \xff\n{}\ncommit\n", b"x\n" * 10])
def test_any_other_journal_is_left_to_a_person(tmp_path: Path, data: bytes) -> None:
    root = make(tmp_path / "root", {"a.yaml": "old"})
    (root / JOURNAL).write_bytes(data)
    for act in (recover, check_finished):
        with pytest.raises(OpschemaError, match="is not a journal of yours"):
            act(root)
    assert (root / JOURNAL).read_bytes() == data


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe"])
def test_a_journal_that_is_no_file_is_neither_followed_nor_waited_for(tmp_path: Path, kind: str) -> None:
    root = make(tmp_path / "root", {"a.yaml": "old"})
    (tmp_path / "outside").write_bytes(b"theirs")
    made: dict[str, Callable[[Path], None]] = {
        "link": lambda path: path.symlink_to(tmp_path / "outside"),
        "dangling": lambda path: path.symlink_to(tmp_path / "nowhere"),
        "folder": Path.mkdir,
        "pipe": os.mkfifo,
    }
    made[kind](root / JOURNAL)
    for act in (recover, check_finished, lambda root: apply(root, {"a.yaml": "new"})):
        with pytest.raises(OpschemaError):
            act(root)
    assert (root / "a.yaml").read_text() == "old"
    assert (tmp_path / "outside").read_bytes() == b"theirs"
    assert not (tmp_path / "nowhere").exists()


def test_without_a_folder_for_the_key_an_apply_works_and_its_journal_counts_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "file" / "no folder"))
    root = make(tmp_path / "root", {"a.yaml": "old"})
    apply(root, {"a.yaml": "new"})
    assert snapshot(root) == {"a.yaml": "new"}
    plant(root, replacement("a.yaml"), head(replacement("a.yaml")))
    with pytest.raises(OpschemaError, match="it does not have your seal"):
        read_journal(root)
