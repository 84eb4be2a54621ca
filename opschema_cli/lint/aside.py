"""Packs that look at a workspace in a process of their own, while this one runs the others.

For a run after a change: nearly all is cached, so what is left is the packs' own time. What the other process asked of the
workspace is an input of this run too.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypeAlias

import msgspec

from opschema_cli.cache import decoded
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.runner import Looked
from opschema_cli.project import Project
from opschema_cli.source.interrupts import no_interrupts
from opschema_cli.workspace import Asked


class _Answer(msgspec.Struct, array_like=True):
    """What came of it: what the packs found, what is wrong with files, which were read, and what was asked of the workspace; or
    why a pack refuses.
    """

    looked: Looked | None = None
    problems: list[Diagnostic] = msgspec.field(default_factory=list)
    inputs: list[str] = msgspec.field(default_factory=list)
    asked: Asked | None = None
    refused: str = ""


_PATIENCE = 5.0
"""Seconds that a process which has answered is waited for."""

Look: TypeAlias = "Callable[[Callable[[], None]], tuple[Looked, Project]]"
"""What runs in the process: it is given what it calls when it has :meth:`Aside.begun`, and gives what was found and the project
that was asked, whose readings are kept for later runs.
"""


class Aside:
    """One such process, forked from this one, in which ``look`` runs.

    For systems that fork a process as it is, soundly: Linux.
    """

    def __init__(self, look: Look) -> None:
        ours, theirs = os.pipe()
        with no_interrupts():
            self._process = os.fork()
            if not self._process:
                os.close(ours)
                _serve(look, theirs)
        os.close(theirs)
        self._answer = os.fdopen(ours, "rb")
        self._waits = True
        self._answered = False

    def begun(self) -> None:
        """Wait until it says that what others wait for is done, or until it has died."""
        if self._waits:
            self._answer.read(len(_BEGUN))
            self._waits = False

    def join(self, project: Project) -> Looked | None:
        """Wait for what was found, and make what was asked for inputs of ``project``; None if the process died, or read a file
        as it is no more.

        Raises:
            OpschemaError: a pack refuses its configuration, or cannot be loaded.
        """
        self.begun()
        answer = decoded(self._answer.read(), _Answer)
        self._answered = answer is not None
        if answer is not None and answer.refused:
            raise OpschemaError(answer.refused)
        # Asking again makes what was asked there an input of this run.
        if answer is None or answer.asked is None or project.workspace.ask_again(answer.asked) != []:
            return None
        project.inputs.update(answer.inputs)
        project.take_problems(answer.problems)
        return answer.looked

    def close(self) -> None:
        """Wait a little for the process, which may still keep what it was told of files; then end it, or if it has not answered."""
        if not self._answer.closed:
            self._answer.close()
            until = time.monotonic() + (_PATIENCE if self._answered else 0)
            ended = False
            try:
                while not (ended := self._has_ended()) and time.monotonic() < until:
                    time.sleep(0.002)
            finally:
                if not ended:
                    os.kill(self._process, signal.SIGKILL)
                    with suppress(ChildProcessError):
                        os.waitpid(self._process, 0)

    def _has_ended(self) -> bool:
        try:
            return os.waitpid(self._process, os.WNOHANG)[0] != 0
        except ChildProcessError:  # where children are not waited for, it is gone by itself
            return True


_BEGUN = b"1"


def _serve(look: Look, pipe: int) -> NoReturn:
    faulthandler.disable()  # that it dies is not worth a word
    try:
        with os.fdopen(pipe, "wb") as stream:
            said: list[bytes] = []

            def begun() -> None:
                if not said:
                    said.append(_BEGUN)
                    stream.write(_BEGUN)
                    stream.flush()

            answer, project = _answer_of(lambda: look(begun))
            begun()
            stream.write(msgspec.msgpack.encode(answer))
        if project is not None:
            project.save_readings()  # while the other process goes on
    except BaseException:  # that it died is seen, and the packs run again where their failure is told
        os._exit(1)
    os._exit(0)


def _answer_of(look: Callable[[], tuple[Looked, Project]]) -> tuple[_Answer, Project | None]:
    try:
        looked, project = look()
    except OpschemaError as error:
        return _Answer(refused=str(error)), None
    problems, inputs = list(project.problems.values()), sorted(project.inputs)
    return _Answer(looked, problems, inputs, project.workspace.asked), project
