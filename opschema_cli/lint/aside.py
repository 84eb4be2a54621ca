"""Packs that look at a workspace in a process of their own, while this one runs the others.

For a run after a change: nearly all is cached, so what is left is the packs' own time. What the other process asked of the
workspace is an input of this run too.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.runner import Looked
from opschema_cli.project import Project
from opschema_cli.source.python_workers import no_interrupts


class _Answer(msgspec.Struct, array_like=True):
    """What came of it: what the packs found, or why they refuse, and what was asked of the workspace for it."""

    looked: Looked | None = None
    refused: str = ""
    problems: list[Diagnostic] = msgspec.field(default_factory=list)
    inputs: list[str] = msgspec.field(default_factory=list)
    reads: dict[str, str] = msgspec.field(default_factory=dict)
    probes: dict[str, bool] = msgspec.field(default_factory=dict)
    admitted: list[str] = msgspec.field(default_factory=list)
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    pins: dict[str, str | None] = msgspec.field(default_factory=dict)


class Aside:
    """One such process. ``look`` runs in it, forked from this one, and gives what was found and the project that was asked.

    For systems that fork a process as it is, soundly: Linux.
    """

    def __init__(self, look: Callable[[], tuple[Looked, Project]]) -> None:
        ours, theirs = os.pipe()
        with no_interrupts():
            self._process = os.fork()
            if not self._process:
                os.close(ours)
                _serve(look, theirs)
        os.close(theirs)
        self._answer = os.fdopen(ours, "rb")

    def join(self, project: Project) -> Looked | None:
        """Wait for what was found, and make what was asked for inputs of ``project``; None if the process died, or read a file
        as it is no more.

        Raises:
            OpschemaError: a pack refuses its configuration, or cannot be loaded.
        """
        try:
            answer = msgspec.msgpack.decode(self._answer.read(), type=_Answer)
        except msgspec.DecodeError:
            return None
        finally:
            self.close()
        if answer.refused:
            raise OpschemaError(answer.refused)
        return answer.looked if _absorb(answer, project) else None

    def close(self) -> None:
        """End the process, if it has not ended."""
        if not self._answer.closed:
            self._answer.close()
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
            with suppress(ChildProcessError):  # where children are not waited for, it is gone by itself
                os.waitpid(self._process, 0)


def _absorb(answer: _Answer, project: Project) -> bool:
    """Make what was asked for inputs of a project; whether all files are as they were read."""
    workspace = project.workspace
    for path in answer.admitted:
        workspace.admit(Path(path))
    if any(workspace.digest(path) != digest for path, digest in answer.reads.items()):
        return False
    workspace.probes.update(answer.probes)
    workspace.environment.update(answer.environment)
    workspace.pins.update(answer.pins)
    project.inputs.update(answer.inputs)
    project.take_problems(answer.problems)
    return True


def _serve(look: Callable[[], tuple[Looked, Project]], pipe: int) -> NoReturn:
    try:
        with os.fdopen(pipe, "wb") as stream:
            stream.write(msgspec.msgpack.encode(_answer_of(look)))
    except BaseException:  # that it died is seen, and the packs run again where their failure is told
        os._exit(1)
    os._exit(0)


def _answer_of(look: Callable[[], tuple[Looked, Project]]) -> _Answer:
    try:
        looked, project = look()
    except OpschemaError as error:
        return _Answer(refused=str(error))
    workspace = project.workspace
    return _Answer(
        looked,
        "",
        list(project.problems.values()),
        sorted(project.inputs),
        workspace.reads,
        workspace.probes,
        sorted(workspace.admitted),
        workspace.environment,
        workspace.pins,
    )
