"""Answers in the browser: runs ``opschema lint`` on the texts of the page. It is executed by Pyodide."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from opschema_cli.main import run

ENVIRONMENT = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "OPSCHEMA_CACHE_DIR": "/tmp/opschema-cache"}


def answer(files: str, folder: str = "/tmp/playground", columns: int = 100) -> str:
    """Lint texts, a JSON object by path.

    Returns:
        A JSON object: the exit ``code``, the ``text`` of a terminal with escape sequences, ``diagnostics`` as
        ``--output-format json`` has them, and ``errors``, what standard error was written.
    """
    root = Path(folder)
    _write(root, json.loads(files))
    os.environ.update(ENVIRONMENT, COLUMNS=str(columns))
    os.chdir(root)
    code, report, errors = _captured("lint", "--output-format", "json")
    if not report:
        return json.dumps({"code": code, "text": "", "diagnostics": [], "errors": errors})
    _, text, _ = _captured("lint")  # of an unchanged workspace, so from the cache
    return json.dumps({"code": code, "text": text, "diagnostics": json.loads(report)["diagnostics"], "errors": errors})


def _write(root: Path, texts: Mapping[str, str]) -> None:
    """Write texts below an empty folder, which is made a workspace of its own.

    Raises:
        ValueError: a path leads out of the folder.
    """
    root.mkdir(parents=True, exist_ok=True)
    os.chdir(root.parent)  # Emscripten removes no current folder
    shutil.rmtree(root)
    root.mkdir()
    for name, text in {"opschema.toml": "", **texts}.items():
        path = root / name
        if not path.resolve().is_relative_to(root.resolve()) or path.resolve() == root.resolve():
            raise ValueError(f"{name} is not a path inside the workspace")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _captured(*args: str) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run([*args])
    sys.stdout.flush()
    for stream in (out, err):
        stream.flush()
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
