"""Run some packs in a forked process while this process runs the others.

After a small change nearly everything is cached, and most of the time is that of the packs, which two processes share:

1. :class:`ForkedRun` forks. The child parses the changed files into the cache and sends one byte, :data:`_PARSED`.
2. :meth:`ForkedRun.wait_parsed` waits for that byte; this process then finds the parsed files in the cache.
3. The child loads its packs, writes what they share to a file in memory, and sends one byte, :data:`_SHARED`.
   :meth:`ForkedRun.shared` reads it.
4. The child sends one :class:`_Answer`: findings, file problems, and all it asked of the workspace.
5. :meth:`ForkedRun.join` reads the answer and adds what the child asked to the inputs of this run. Without an answer
   (the child died, or read a file that has changed since) it raises :class:`LostForkError`, and the caller runs all packs again.

After many changes the files are parsed first, and the child has nothing to parse.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import IO, Generic, NoReturn, TypeAlias, TypeVar

import msgspec

from opschema_cli.cache import decoded
from opschema_cli.errors import OpschemaError
from opschema_cli.interrupts import no_interrupts
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.shared_work import LostForkError
from opschema_cli.project import Project
from opschema_cli.workspace import Asked

T = TypeVar("T")

_PARSED, _SHARED = b"1", b"2"

_PATIENCE = 5.0
"""Seconds to wait for a child that has answered, while it stores readings in the cache."""

Publish: TypeAlias = "Callable[[Mapping[str, bytes]], None]"
"""Receives the data that packs share, by pack."""

Task: TypeAlias = "Callable[[Callable[[], None], Publish], tuple[T, Project]]"
"""The child's work. Its arguments are functions to call once the changed files are parsed, and with what packs share once they are
loaded; it returns what it found and the project that was read, whose readings are then cached.
"""


class _Answer(msgspec.Struct, array_like=True):
    """The child's encoded result, problems of the files it read, its inputs, and all it asked of the workspace.

    ``refused`` is the message of an :class:`OpschemaError`; nothing else is set then.
    """

    found: bytes = b""
    problems: list[Diagnostic] = msgspec.field(default_factory=list)
    inputs: list[str] = msgspec.field(default_factory=list)
    asked: Asked | None = None
    refused: str = ""


class ForkedRun(Generic[T]):
    """A forked child that runs ``task``, which finds a value of a ``kind`` that msgspec encodes. Linux only: elsewhere a fork of a
    running program is not safe.

    Raises:
        OSError: no process can be started, or too many files are open.
    """

    def __init__(self, task: Task[T], kind: type[T]) -> None:
        self._kind = kind
        with ExitStack() as on_error:
            reader, writer = os.pipe()
            on_error.callback(os.close, reader)
            on_error.callback(os.close, writer)
            memory = os.memfd_create("opschema")  # a pipe holds too little: the child would wait for this process
            on_error.callback(os.close, memory)
            with no_interrupts():
                self._pid = os.fork()
                if not self._pid:
                    os.close(reader)
                    _run_child(task, writer, memory)
            on_error.pop_all()
        os.close(writer)
        self._pipe = os.fdopen(reader, "rb")
        self._memory = os.fdopen(memory, "rb")
        self._shared: dict[str, bytes] | None = None
        self._parsed = False
        self._answered = False

    def wait_parsed(self) -> None:
        """Wait until the child has parsed the changed files, or has died."""
        if not self._parsed:
            self._pipe.read(len(_PARSED))
            self._parsed = True

    def shared(self) -> Mapping[str, bytes]:
        """Wait for the data that the child's packs share, by pack; nothing if the child died."""
        if self._shared is None:
            self.wait_parsed()
            self._shared = {}
            if self._pipe.read(len(_SHARED)) == _SHARED:
                self._memory.seek(0)
                self._shared = decoded(self._memory.read(), dict[str, bytes]) or {}
        return self._shared

    def join(self, project: Project) -> T:
        """Wait for what the child finds, and add its inputs and file problems to ``project``.

        Raises:
            LostForkError: the child died, or a file that it read has changed since.
            OpschemaError: a pack refuses its configuration, or cannot be loaded.
        """
        self.shared()
        answer = decoded(self._pipe.read(), _Answer)
        self._answered = answer is not None
        if answer is not None and answer.refused:
            raise OpschemaError(answer.refused)
        # `ask_again` also records the child's questions as inputs of this run.
        if answer is None or answer.asked is None or project.workspace.ask_again(answer.asked) != []:
            raise LostForkError
        found = decoded(answer.found, self._kind)
        if found is None:
            raise LostForkError
        project.inputs.update(answer.inputs)
        project.take_problems(answer.problems)
        return found

    def close(self) -> None:
        """End the child: after :data:`_PATIENCE` seconds if it has answered, at once otherwise."""
        if self._pipe.closed:
            return
        self._pipe.close()
        self._memory.close()
        deadline = time.monotonic() + (_PATIENCE if self._answered else 0)
        ended = False
        try:
            while not (ended := self._has_ended()) and time.monotonic() < deadline:
                time.sleep(0.002)
        finally:
            if not ended:
                os.kill(self._pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(self._pid, 0)

    def _has_ended(self) -> bool:
        try:
            return os.waitpid(self._pid, os.WNOHANG)[0] != 0
        except ChildProcessError:  # SIGCHLD is ignored here, so the kernel has reaped it
            return True


def _run_child(task: Task[T], pipe: int, memory: int) -> NoReturn:
    faulthandler.disable()  # the parent runs the packs again if this process dies
    try:
        with os.fdopen(pipe, "wb") as stream:
            report_parsed, report_shared = _once(stream, _PARSED), _once(stream, _SHARED)

            def publish(shared: Mapping[str, bytes]) -> None:
                report_parsed()
                os.write(memory, msgspec.msgpack.encode(shared))
                report_shared()

            answer, project = _answer_of(lambda: task(report_parsed, publish))
            report_parsed()
            report_shared()
            stream.write(msgspec.msgpack.encode(answer))
        if project is not None:
            project.save_readings()  # the parent does not wait for this
    except BaseException:  # the parent runs the packs again, and reports why they fail
        os._exit(1)
    os._exit(0)


def _once(stream: IO[bytes], data: bytes) -> Callable[[], None]:
    """A function that writes ``data`` when it is first called."""
    written = False

    def write() -> None:
        nonlocal written
        if not written:
            written = True
            stream.write(data)
            stream.flush()

    return write


def _answer_of(task: Callable[[], tuple[T, Project]]) -> tuple[_Answer, Project | None]:
    try:
        found, project = task()
    except OpschemaError as error:
        return _Answer(refused=str(error)), None
    problems, inputs = list(project.problems.values()), sorted(project.inputs)
    return _Answer(msgspec.msgpack.encode(found), problems, inputs, project.workspace.asked), project
