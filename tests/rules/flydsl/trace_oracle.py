"""What the real FlyDSL says of launches: it traces them on a machine without a GPU, up to the linker.

The process is one of its own (``python -m tests.rules.flydsl.trace_oracle FOLDER``, FLYDSL lying on its path). It gets, as
JSON, modules with a function ``run``; it answers with the error of each, empty for none.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from tests.rules.flydsl.key_oracle import ROOT

_LINKING = ("lld", "ld.lld")

_MOST = 4000
"""Bytes of an error that are told, which a pipe holds."""

_LAUNCH = re.compile(r"(?<![.\w])launch\b")
"""Launchers of that name: 0.2.0 to 0.2.2 take the `launch` of a kernel for them, and never end."""


def errors(folder: Path, modules: Sequence[str]) -> list[str]:
    """The error of each module's ``run``, as ``Type: message``.

    Raises:
        subprocess.CalledProcessError: FlyDSL does not import, or ends the process.
    """
    return _answer(folder, modules)


def errors_apart(folder: Path, modules: Sequence[str]) -> list[str]:
    """The same of modules for which FlyDSL may end the process: each runs in a process of its own.

    Raises:
        subprocess.CalledProcessError: FlyDSL does not import.
    """
    return _answer(folder, modules, "apart")


def _answer(folder: Path, modules: Sequence[str], *how: str) -> list[str]:
    settings = {"ARCH": "gfx942", "COMPILE_ONLY": "1", "FLYDSL_RUNTIME_ENABLE_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.rules.flydsl.trace_oracle", *how],
        input=json.dumps([_LAUNCH.sub("start", module) for module in modules]),
        env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    answer: list[str] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _error(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        module.run()
    except Exception as error:  # whatever FlyDSL and Python refuse a program with
        told = str(error)
        return "" if any(word in told for word in _LINKING) else f"{type(error).__name__}: {told}"
    return ""


def _error_apart(path: Path, text: str) -> str:
    """The error in a copy of this process, or how that ended."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.write(writing, _error(path, text).encode()[:_MOST])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read().decode(errors="replace")
    _, status = os.waitpid(process, 0)
    return f"ends with the status {status}" if status else told


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in ("torch", "flydsl.compiler", "flydsl.expr"):
        importlib.import_module(name)
    find = _error_apart if sys.argv[1:] == ["apart"] else _error
    with tempfile.TemporaryDirectory() as own:
        found = [find(Path(own, f"kit_{number}.py"), text) for number, text in enumerate(json.load(sys.stdin))]
    print(json.dumps(found))
