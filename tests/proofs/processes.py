"""Runs an oracle's examination of each workspace in a fork of one process, which has imported what is slow to import."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from opschema_cli.proof import Files, Observation, Seen

SECONDS = 120
"""How long one workspace may take."""

Examine = Callable[[Path, Mapping[str, str]], dict[str, Seen]]
"""The outcomes of one workspace, which lies in a folder; called in a process that nothing else uses."""


def observe_with(script: str, workspaces: Sequence[Files], *arguments: str) -> list[Observation]:
    """Run a script that calls :func:`serve`, and give it the workspaces.

    Raises:
        subprocess.CalledProcessError: the oracle itself fails.
        subprocess.TimeoutExpired: a workspace does not end.
    """
    texts = [msgspec.json.encode(dict(sorted(files.items()))) for files in workspaces]
    once = list(dict.fromkeys(texts))
    data = b"[" + b",".join(once) + b"]"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True, timeout=1200, env=environment)
    seen = [msgspec.json.decode(line, type=dict[str, Seen]) for line in done.stdout.splitlines()]
    found = dict(zip(once, seen, strict=True))
    return [found[text] for text in texts]


def failure(error: BaseException) -> Seen:
    """A refusal in the words of the error."""
    return Seen("refused", f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"[:300])


def serve(examine: Examine) -> None:
    """Answer a line for each workspace that standard input holds."""
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=list[dict[str, str]])
    gc.freeze()  # a fork that looked through what is imported for garbage would also copy it
    for files in given:
        sys.stdout.buffer.write(_answer(examine, files) + b"\n")


def _answer(examine: Examine, files: Mapping[str, str]) -> bytes:
    """The outcomes of a workspace, from a fork; a process that dies is a refusal."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a workspace prints is no answer
        os.dup2(1, 2)
        signal.alarm(SECONDS)
        try:
            with tempfile.TemporaryDirectory() as folder, os.fdopen(writer, "wb") as stream:
                stream.write(msgspec.json.encode(examine(_written(Path(folder), files), files)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return data or msgspec.json.encode({"process": Seen("refused", "the process died")})


def _written(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    return folder
