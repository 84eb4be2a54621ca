"""The process of an oracle: it answers for each workspace from a fork, once what is slow to import is there."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from opschema_cli.proof import Files, Seen

SECONDS = 120
"""How long one workspace may take."""

Examine: TypeAlias = Callable[[Files], dict[str, Seen]]
"""Gives the outcomes of one workspace, in a process that nothing else uses."""


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
