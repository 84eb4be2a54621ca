"""Runs ``opschema`` in forks of a process that has imported it, so that a run costs no start of Python.

In all else what is forked is the installed command: a process with its own folder, environment, standard streams and exit code,
which ends as Python ends. Its own start, its lazy imports and what a terminal does to it are the matter of tests that start a
process themselves.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from pkgutil import walk_packages
from select import select
from typing import NoReturn

import opschema_cli
import opschema_rules

STREAMS = ("in", "out", "err")
"""The files that are a run's standard streams, in a folder of its own."""
LEFT_OUT = ("opschema_cli.__main__", "opschema_cli.server", "opschema_cli.testing", "opschema_cli.verify.")
LIBRARIES = ("jsonschema_rs", "multiprocessing.popen_fork", "rich.console", "rich.table", "ruamel.yaml")
"""Modules that are imported when first used."""


def run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: bytes, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """As ``subprocess.run`` does; in a process from the start where it cannot be forked from one with another environment.

    Raises:
        subprocess.TimeoutExpired: it took longer than ``timeout`` seconds, and was killed.
    """
    if sys.platform != "linux" or _of_python(env) != _of_python(os.environ):
        return subprocess.run(command, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
    return _server(_of_python(env)).run(command, cwd, env, stdin, timeout)


def _of_python(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The environment variables that Python reads when it starts."""
    return tuple(sorted(item for item in environ.items() if item[0].startswith(("PYTHON", "LANG", "LC_", "LD_"))))


@cache
def _server(_: object) -> ForkServer:
    """The server for this environment; it ends with this process."""
    return ForkServer()


class ForkServer:
    """The server, from the side that asks it, one command at a time."""

    def __init__(self) -> None:
        command, root = [sys.executable, "-m", "tests.forkserver"], Path(__file__).parents[1]
        # Without buffers: what is awaited must not have been read before.
        process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._requests, self._answers = process, process.stdin, process.stdout
        atexit.register(self.end)

    def end(self) -> None:
        """End the server, which waits for requests."""
        self._requests.close()
        self._process.wait()

    def run(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        """See :func:`run`."""
        with tempfile.TemporaryDirectory(prefix="opschema-tests-") as folder:
            files = [Path(folder) / name for name in STREAMS]
            files[0].write_bytes(stdin)
            request = {"command": command, "cwd": str(cwd), "env": env, "streams": list(map(str, files))}
            self._requests.write(json.dumps(request).encode() + b"\n")
            pid = self._answer()
            late = not select([self._answers], [], [], timeout)[0]
            if late:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            code, out, err = self._answer(), files[1].read_bytes(), files[2].read_bytes()
        if late:
            raise subprocess.TimeoutExpired(command, timeout, out, err)
        return subprocess.CompletedProcess(command, code, out, err)

    def _answer(self) -> int:
        return int(self._answers.readline())


def main() -> None:
    """Fork for each request; tell the fork's number, then its exit code."""
    _import_all()
    _lint_once()
    gc.freeze()
    for line in sys.stdin.buffer:
        pid = os.fork()
        if not pid:
            _become(**json.loads(line))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _import_all() -> None:
    """Import all that a run may need, but for the harness."""
    for package in (opschema_cli, opschema_rules):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(LEFT_OUT):
                import_module(module.name)
    for name in LIBRARIES:
        import_module(name)


def _lint_once() -> None:
    """Compile regular expressions and read tables that each run would again."""
    from opschema_cli.main import run

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        run(["lint", "--no-cache", "--jobs", "1", "fixtures/tilekit"])
    gc.enable()


def _become(command: list[str], cwd: str, env: dict[str, str], streams: list[str]) -> NoReturn:
    """Be the command, to its end; taking down all that is imported would take longer than most runs."""
    from opschema_cli.main import run

    for number, path in enumerate(streams):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = command
    sys.path[0] = str(Path(command[0]).parent)
    code = 1
    try:
        code = run(command[1:])
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
