"""^C, from a terminal or at any call of an apply: exit code 130, one tree, no traceback, and nobody left behind."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import opschema_cli.write
from opschema_cli.main import run
from opschema_cli.transaction import JOURNAL
from opschema_cli.transaction.apply import recover, write_files
from tests.command import EXECUTABLE, TILEKIT, TOYPACK, Opschema, environment
from tests.stalling import STALLING
from tests.test_transaction import armed, snapshot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

SOURCES = {"a.toy.yaml": "add: {doc: LOUD}\n", "sub/b.toy.yaml": "mul: {doc: LOUDER}\n"}
OLD = {"opschema.toml": 'plugins = ["toypack.py"]\npacks = ["toy"]\n', **SOURCES}
NEW = {**OLD, "a.toy.yaml": "add: {doc: loud}\n", "sub/b.toy.yaml": "mul: {doc: louder}\n"}


def make(root: Path, hook: str = "") -> Path:
    """A workspace in which `lower-docs` changes two files; ``hook`` runs when it is loaded."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "sub").mkdir(parents=True)
    (root / "toypack.py").write_text(TOYPACK.read_text() + hook)
    for name, text in OLD.items():
        (root / name).write_text(text)
    return root


def files(root: Path) -> dict[str, str]:
    """The texts of a workspace, but for what an unfinished apply keeps beside them."""
    found = {path.relative_to(root): path for path in root.rglob("*") if path.is_file()}
    return {
        name.as_posix(): path.read_text()
        for name, path in found.items()
        if not name.name.startswith(".opschema-") and "__pycache__" not in name.parts and name.name != "toypack.py"
    }


# At any call


def interrupted_at(number: int, root: Path, output: Path) -> int:
    """Apply in a process group of its own that gets a SIGINT at the ``number``-th call that changes the disk."""
    child = os.fork()
    if not child:
        try:
            os.setsid()
            os.chdir(root)
            sys.stdout = sys.stderr = output.open("w")

            def write(root: Path, writes: object) -> None:
                armed(number, act=lambda: os.killpg(os.getpgrp(), signal.SIGINT))
                write_files(root, writes)  # type: ignore[arg-type]

            opschema_cli.write.write_files = write
            code = run(["migrate", "lower-docs", "--apply"])
            sys.stderr.flush()
            os._exit(code)
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_interrupted_at_any_call_of_an_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root, output, trees = tmp_path / "root", tmp_path / "output", []
    for number in range(1, 200):
        make(root)
        code = interrupted_at(number, root, output)
        told = output.read_text()
        assert "Traceback" not in told
        if code == 0:
            break
        assert (code, "opschema: interrupted" in told) == (130, True), told
        assert files(root) in (OLD, NEW)
        finished = not (root / JOURNAL).exists()
        trees.append((files(root) == NEW, finished))
        recover(root)
        assert files(root) in (OLD, NEW)
        assert not list(root.rglob(".opschema-*"))
    assert code == 0, "an apply lives to its end at last"
    assert files(root) == NEW
    assert len(trees) > 15
    assert {new for new, _ in trees} == {True, False}


# From a terminal


def terminal(root: Path, cache: Path, *args: str) -> tuple[int, int]:
    """Start ``opschema`` as a terminal does; its process, which leads a session, and the terminal's other end."""
    process, screen = pty.fork()
    if not process:
        try:
            os.chdir(root)
            os.execve(EXECUTABLE, [str(EXECUTABLE), *args], environment(cache))
        finally:
            os._exit(99)
    return process, screen


def end(process: int, screen: int) -> tuple[int, str]:
    """The exit code and all that was shown."""
    shown = b""
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # nobody has the terminal any more
            break
        if not part:
            break
        shown += part
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.decode()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < until, "it never came to it"
        time.sleep(0.005)


HOLD = """

import os, signal
from pathlib import Path

_real, _held = os.replace, {names}

def _replace(source, target):
    if _held and Path(target).name == _held[0]:
        Path("held-" + _held.pop(0)).touch()
        signal.pause()
    _real(source, target)

os.replace = _replace
"""
"""Before files are replaced, one after the other: tell it, and wait for a signal."""


def held(root: Path, name: str) -> None:
    """Wait until the file is about to be replaced."""
    wait_for((root / f"held-{name}").exists)
    (root / f"held-{name}").unlink()


def test_a_terminals_interrupt_between_two_renames_brings_the_first_one_back(tmp_path: Path) -> None:
    root = make(tmp_path / "root", HOLD.format(names=["b.toy.yaml"]))
    process, screen = terminal(root, tmp_path / "cache", "migrate", "lower-docs", "--apply")
    held(root, "b.toy.yaml")
    assert files(root)["a.toy.yaml"] == NEW["a.toy.yaml"], "it is half way"
    os.write(screen, b"\x03")
    code, shown = end(process, screen)
    assert (code, "opschema: interrupted" in shown, "Traceback" in shown) == (130, True, False), shown
    assert files(root) == OLD
    assert not (root / JOURNAL).exists()


def test_a_second_interrupt_while_the_first_is_undone_leaves_it_to_the_next_run(tmp_path: Path) -> None:
    root = make(tmp_path / "root", HOLD.format(names=["b.toy.yaml", "a.toy.yaml"]))
    process, screen = terminal(root, tmp_path / "cache", "migrate", "lower-docs", "--apply")
    for name in ("b.toy.yaml", "a.toy.yaml"):
        held(root, name)
        os.write(screen, b"\x03")
    code, shown = end(process, screen)
    assert (code, "opschema: interrupted" in shown, "Traceback" in shown) == (130, True, False), shown
    assert files(root) == {**OLD, "a.toy.yaml": NEW["a.toy.yaml"]}

    (root / "toypack.py").write_text(TOYPACK.read_text())
    opschema = Opschema(root, tmp_path / "cache")
    refused = opschema("lint")
    assert (refused.code, "`opschema migrate --recover` completes it" in refused.err) == (2, True)
    assert opschema("migrate", "--recover").code == 0
    assert files(root) == OLD
    assert opschema("migrate", "lower-docs", "--apply").code == 0
    assert files(root) == NEW


# While workers parse


def members(session: int) -> dict[int, float]:
    """The processes of a session, with the processor time in seconds that each took; what is dead is none."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own, *rest = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(own) == session and state != "Z":
            found[int(path.parent.name)] = (int(rest[7]) + int(rest[8])) / os.sysconf("SC_CLK_TCK")
    return found


def is_worker(process: int, leader: int) -> bool:
    """Whether a process was forked from another and runs the same program."""
    try:
        lines = [Path(f"/proc/{item}/cmdline").read_bytes() for item in (process, leader)]
    except OSError:
        return False
    return process != leader and lines[0] == lines[1] != b""


@pytest.mark.parametrize("command", [("lint",), ("migrate", "drop-carrier", "--apply")], ids=lambda args: args[0])
@pytest.mark.parametrize("seconds", [0.0, 0.6], ids=["at their start", "at work"])
def test_interrupted_while_workers_parse(tmp_path: Path, command: tuple[str, ...], seconds: float) -> None:
    root = Path(shutil.copytree(TILEKIT, tmp_path / "root", ignore=shutil.ignore_patterns("__pycache__")))
    (root / "tilekit/ops/stalling.py").write_text(STALLING)
    before = snapshot(root)
    leader, screen = terminal(root, tmp_path / "cache", *command)
    wait_for(lambda: any(is_worker(one, leader) and spent >= seconds for one, spent in members(leader).items()))
    os.write(screen, b"\x03")
    code, shown = end(leader, screen)
    assert (code, "opschema: interrupted" in shown, "Traceback" in shown) == (130, True, False), shown
    assert members(leader) == {}
    assert snapshot(root) == before


def test_a_worker_that_is_interrupted_before_its_first_line_parses_all_the_same() -> None:
    program = """
import os, signal
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
from opschema_cli.source.python_workers import Parsers
parsers = Parsers(1)
parsers.submit({"a": "x = 1"})
print(len(parsers.collect(wait=True)[0][1]) > 0)
parsers.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_worker_that_is_terminated_with_its_command_says_nothing() -> None:
    program = """
import os, signal
signal.signal(signal.SIGTERM, signal.default_int_handler)  # as `verify` does
from opschema_cli.source.python_workers import Parsers
parsers = Parsers(1)
parsers.submit({"a": "x = 1"})
parsers.collect(wait=True)
process = parsers._workers[0].process
os.kill(process.pid, signal.SIGTERM)
process.join(30)
print(process.exitcode == -signal.SIGTERM)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


LOSES = """
import os, signal, sys
from pathlib import Path
from opschema_cli import main
from opschema_cli.workspace import Workspace
from opschema_cli.write import write_all

class Dies:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            pass

def command(args, **options):
    Dies()
    print("goes on")
    if args:
        write_all(Workspace(Path.cwd()), {"a.txt": "new"})

main.cli.main = command
print(main.run(sys.argv[1:]))
"""


@pytest.mark.parametrize("args", [[], ["write"]])
def test_an_interrupt_whose_exception_python_loses_counts_all_the_same(tmp_path: Path, args: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOSES, *args], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Exception ignored in" in done.stderr, "Python did not lose it"
    assert (done.returncode, done.stdout) == (0, "goes on\n130\n")
    assert done.stderr.endswith("opschema: interrupted\n")
    assert not (tmp_path / "a.txt").exists()


def test_whoever_wants_interrupts_keeps_them() -> None:
    mine = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run(["--version"]) == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, mine)
    assert run(["--version"]) == 0
    assert signal.getsignal(signal.SIGINT) is mine
