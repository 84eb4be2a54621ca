"""A process that parses Python texts, its requests and answers, and its stand-in if no process can be started."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import NamedTuple

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.interrupts import no_interrupts
from opschema_cli.source.parsing import HURRIED, at_risk, encoded, parsed, reading_values, values_along

IN_FLIGHT = 256 * 1024
"""Maximum number of bytes of texts to send to a worker before it has answered, so that it does not wait for a busy program."""

MAX_PIPE = 1024 * 1024
"""The requested capacity of a pipe in bytes; no system allows everyone more."""


class Parsed(NamedTuple):
    """The encoded facts of the text ``key``, empty if the parser crashed; its packed tree, if requested; the seconds that it
    took; the encoded values of readings, by name. ``refused`` if it was not parsed because the run has no time left for such
    texts; ``died`` if the worker did.
    """

    key: str
    facts: bytes
    tree: bytes = b""
    seconds: float = 0.0
    values: Mapping[str, bytes] = {}
    refused: bool = False
    died: bool = False


class Wanted(NamedTuple):
    """The results to compute for a text: its facts, and its packed tree ``with_tree``; with ``functions`` (``module:name``), only
    their results for the text or, with ``cpp``, for its tree. ``along`` are readings that a worker computes from the facts.
    """

    with_tree: bool = False
    along: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    cpp: bool = False


class Task(NamedTuple):
    """A text, its key, the requested results, and whether nobody waits for it yet."""

    key: str
    text: str
    wanted: Wanted = Wanted()
    ahead: bool = False


class LocalWorker:
    """The stand-in for a worker if no process can be started: it parses a text when its result is requested.

    There are no timers in WebAssembly, and nothing survives a parser that dies. The limits on the length, the nesting and the
    chains of a text bound what one text costs; once texts have taken :data:`parsing.RUN_SECONDS`, the rest of the run is refused.
    A program that must answer is to run this where it can be ended from outside, as a page does in a web worker.
    """

    starting = False
    ran_out_of_time = False

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    @property
    def in_flight(self) -> int:
        """The number of texts that wait here, none of them started."""
        return len(self.tasks)

    @property
    def takes_texts(self) -> bool:
        """Whether it waits for a text. Further texts stay with the caller, who may refuse them."""
        return not self.tasks

    def give(self, task: Task, *, hurried: bool = False) -> bool:
        """Accept a text; False if it already has one. There is no time limit to be ``hurried`` by."""
        if self.tasks:
            return False
        self.tasks.append(task)
        return True

    def result(self) -> tuple[Task, Parsed]:
        """Parse the text that it has, and return the result."""
        task = self.tasks.pop()
        began = time.process_time()
        from opschema_cli.source.chains import refused

        if facts := refused(task.text):
            return task, Parsed(task.key, facts)
        found, tree = parsed(task.text, with_tree=task.wanted.with_tree)
        return task, Parsed(task.key, encoded(found), tree, time.process_time() - began)

    def stop(self) -> None:
        """Drop the text that has not been parsed."""
        self.tasks.clear()


class Worker:
    """A process and the texts sent to it, in the order of its answers."""

    def __init__(self, context: BaseContext, others: Sequence[Worker | LocalWorker]) -> None:
        self.tasks: list[Task] = []
        self.in_flight = 0
        self._sizes: list[int] = []
        self.starting = True
        texts, self._texts = context.Pipe(duplex=False)
        self.answers, answers = context.Pipe(duplex=False)
        self._room = min(_widened(self._texts), _widened(answers)) // 4
        # A forked process also holds our ends of all pipes, and would not notice that we are gone.
        forked = [self, *others] if context.get_start_method() == "fork" else []
        workers = [worker for worker in forked if isinstance(worker, Worker)]
        ours = [pipe for worker in workers for pipe in (worker._texts, worker.answers)]
        self.process = context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(texts, answers, ours), daemon=True
        )
        with no_interrupts(), nullcontext() if forked else _among_pythons_own():
            self.process.start()
        texts.close()
        answers.close()

    def has_started(self) -> None:
        """Receive the sign that it is ready.

        Raises:
            OpschemaError: it died at its start, and so would the next.
        """
        try:
            self.answers.recv_bytes()
        except (EOFError, ConnectionResetError):
            raise OpschemaError("the process that parses Python does not start") from None
        self.starting = False

    @property
    def takes_texts(self) -> bool:
        """Whether a text can be sent without waiting for the process to start."""
        return not self.starting or self._room > 0

    def give(self, task: Task, *, hurried: bool = False) -> bool:
        """Send it a text, with less time if ``hurried``. Return False if it has enough to do, if the pipe may not accept the
        text before others are read, or if it has not started.
        """
        text = task.text.encode("utf-8", "surrogatepass")
        content = msgspec.msgpack.encode(_Order(text, task.wanted, hurried))
        if (self.tasks or self.starting) and self.in_flight + len(content) > min(IN_FLIGHT, self._room):
            return False
        self.tasks.append(task)
        self._sizes.append(len(content))
        self.in_flight += len(content)
        with suppress(BrokenPipeError, ConnectionResetError):  # then `result` finds the pipe closed
            self._texts.send_bytes(content)
        return True

    def result(self) -> tuple[Task, Parsed | None]:
        """Return the first text sent to it, and its result; None if the process died."""
        task = self.tasks.pop(0)
        self.in_flight -= self._sizes.pop(0)
        try:
            found = _ANSWERS.decode(self.answers.recv_bytes())
            return task, Parsed(task.key, found.facts, found.tree, found.seconds, found.values)
        except (EOFError, ConnectionResetError):
            self.process.join()
            self._close()
            return task, None

    def _close(self) -> None:
        self._texts.close()
        self.answers.close()

    @property
    def ran_out_of_time(self) -> bool:
        """Whether it died because its time was used up. Once may be chance, as a virtual machine charges its own pauses to its
        processes.
        """
        return bool(sys.platform != "win32" and self.process.exitcode == -signal.SIGPROF)

    def stop(self) -> None:
        """Stop the process, whatever it is doing."""
        self._close()
        self.process.kill()
        self.process.join()


@contextmanager
def _among_pythons_own() -> Iterator[None]:
    """Start a process in the folder of the standard library: a new Python (``-c``) imports first from its current folder, which
    must not be the linted tree. It changes to the current folder once it has its own module path.
    """
    here = os.getcwd()
    os.chdir(os.path.dirname(os.__file__))
    try:
        yield
    finally:
        os.chdir(here)


def _widened(pipe: Connection) -> int:
    """Return the capacity of a pipe in bytes, after enlarging it as far as possible; 0 if that is not known."""
    if sys.platform != "linux":
        return 0
    import fcntl

    with suppress(OSError):
        return fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, MAX_PIPE)
    return 0


class _Order(msgspec.Struct, array_like=True):
    """A request to a worker: one text to parse."""

    text: bytes
    wanted: Wanted
    hurried: bool


class _Answer(msgspec.Struct, array_like=True):
    """Its answer."""

    facts: bytes
    tree: bytes
    seconds: float
    values: dict[str, bytes]


_ORDERS = msgspec.msgpack.Decoder(_Order)
_ANSWERS = msgspec.msgpack.Decoder(_Answer)


def _serve(texts: Connection, answers: Connection, inherited: Sequence[Connection]) -> None:
    for connection in inherited:
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a command may have turned it into an interrupt
    faulthandler.disable()  # a crash of a worker should not be reported
    gc.disable()  # trees hold no cycles, and looking for some among half a million nodes costs a tenth of the parse
    from opschema_cli.source import python_facts  # noqa: F401 - before the first text comes

    with suppress(EOFError, ConnectionError):
        answers.send_bytes(b"ready")
        while True:
            order = _ORDERS.decode(texts.recv_bytes())
            answer = _read(order) if order.wanted.functions else _parse(order)
            answers.send_bytes(msgspec.msgpack.encode(answer))


def _parse(order: _Order) -> _Answer:
    text = order.text.decode("utf-8", "surrogatepass")
    began = time.process_time()
    with at_risk(text, HURRIED if order.hurried else 1.0):
        facts, tree = parsed(text, with_tree=order.wanted.with_tree)
        data = encoded(facts)
    seconds = time.process_time() - began
    return _Answer(data, tree, seconds, values_along(order.wanted.along, text, facts) if data else {})


def _read(order: _Order) -> _Answer:
    text = order.text.decode("utf-8", "surrogatepass")
    began = time.process_time()
    with at_risk(text, HURRIED if order.hurried else 1.0):
        values = reading_values(order.wanted.functions, text, cpp=order.wanted.cpp)
    gc.collect(0)  # trees of C++ hold cycles
    return _Answer(b"", b"", time.process_time() - began, values)
