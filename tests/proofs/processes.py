"""Runs an oracle in a process of its own, which answers for each workspace from a fork, once what is slow to import is there."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from opschema_cli.proof import Files, Observation, Seen

ROOT = Path(__file__).parents[2]
SECONDS = 120
"""How long one workspace may take."""

Examine: TypeAlias = Callable[[Files], dict[str, Seen]]
"""Gives the outcomes of one workspace, in a process that nothing else uses."""


def ask(module: str, workspaces: Sequence[Files], *arguments: str) -> list[Observation]:
    """The answers of an oracle: a module that calls :func:`serve` when it is run, or that reads and answers as that does.

    Line ends of Windows are given as others, so that texts that differ in these alone are observed once: Python, YAML and C++ are
    defined to read both alike.

    Raises:
        subprocess.CalledProcessError: the oracle itself fails.
        subprocess.TimeoutExpired: it does not end.
    """
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    texts = [
        msgspec.json.encode({path: text.replace("\r\n", "\n") for path, text in files.items()}) for files in workspaces
    ]
    different = list(dict.fromkeys(texts))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, *arguments],
        input=b"[" + b",".join(different) + b"]",
        stdout=subprocess.PIPE,
        check=True,
        timeout=1200,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
    )
    answers = [msgspec.json.decode(line, type=dict[str, Seen]) for line in done.stdout.splitlines()]
    by_text = dict(zip(different, answers, strict=True))
    return [by_text[text] for text in texts]


def failure(error: BaseException) -> Seen:
    """A refusal in the words of the error."""
    return Seen("refused", f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"[:300])


def serve(examine: Examine) -> None:
    """Answer a line for each workspace that standard input holds."""
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=list[dict[str, str]])
    gc.freeze()  # a fork that looked through what is imported for garbage would also copy it
    for files in given:
        sys.stdout.buffer.write(_answer(examine, files) + b"\n")


def in_folder(examine: Callable[[Path, Files], dict[str, Seen]]) -> Examine:
    """Examine a workspace that lies in a folder."""

    def of_files(files: Files) -> dict[str, Seen]:
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), files)
            return examine(Path(folder), files)

    return of_files


def write_files(folder: Path, files: Files) -> None:
    """Write a workspace to a folder."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


def _answer(examine: Examine, files: Files) -> bytes:
    """The outcomes of a workspace, from a fork; a process that dies is a refusal."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a workspace prints is not an answer
        os.dup2(1, 2)
        signal.alarm(SECONDS)
        try:
            with os.fdopen(writer, "wb") as stream:
                stream.write(msgspec.json.encode(examine(files)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return data or msgspec.json.encode({"process": Seen("refused", "the process died")})
