"""The installed command, run as users run it, and in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from opschema_cli import main
from tests import forkserver

TILEKIT = Path(__file__).parents[1] / "fixtures/tilekit"
TOYPACK = Path(__file__).with_name("toypack.py")
EXECUTABLE = Path(sys.executable).with_name("opschema.exe" if sys.platform == "win32" else "opschema")


@dataclass(frozen=True)
class Done:
    """The result of a run: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


def environment(cache: Path, **changes: str | None) -> dict[str, str]:
    """This process's environment with a cache of its own; a change of None takes a variable away."""
    wanted = {**os.environ, "OPSCHEMA_CACHE_DIR": str(cache), "COLUMNS": "100", **changes}
    return {name: value for name, value in wanted.items() if value is not None}


class Opschema:
    """Runs ``opschema`` in a folder (see :mod:`tests.forkserver`); a traceback is a failure whatever the test asks."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.cache = cache

    def __call__(
        self,
        *args: str | Path,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float = 60,
    ) -> Done:
        command = [str(EXECUTABLE), *map(str, args)]
        environ = environment(self.cache, **(env or {}))
        run = forkserver.run(command, cwd=cwd or self.folder, env=environ, stdin=stdin or b"", timeout=timeout)
        out, err = run.stdout.decode("utf-8", "surrogateescape"), run.stderr.decode("utf-8", "surrogateescape")
        assert "Traceback" not in err, err
        return Done(run.returncode, out, err)


class Here:
    """Runs the command in a folder in this process, which has imported torch; the workers of a run are as ever its own."""

    def __init__(
        self, folder: Path, cache: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
    ) -> None:
        self._captured = captured
        patch.chdir(folder)
        for name, value in environment(cache).items():
            patch.setenv(name, value)

    def __call__(self, *args: str | Path) -> Done:
        code = main.run([*map(str, args)])
        out, err = self._captured.readouterr()
        assert "Traceback" not in err, err
        return Done(code, out, err)
