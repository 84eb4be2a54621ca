"""Parses Python texts in worker processes, so that a text that kills or stalls the parser costs only itself.

Parsers recurse on the native stack, and some short texts keep libcst's busy for hours. A worker has a budget of
processor time for each text; when it dies, its text gets no facts and another worker takes its place.

Where no process can be started (WebAssembly), texts are parsed in this one (:class:`_LocalWorker`).
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as ready
from multiprocessing.context import BaseContext
from typing import NamedTuple, cast

from opschema_cli.errors import OpschemaError
from opschema_cli.interrupts import check_interrupted, no_interrupts
from opschema_cli.source import parsing
from opschema_cli.source.parsing import HURRIED, at_risk, budget, encoded, encoded_facts

POOL_THRESHOLD = 400_000
"""Characters of Python above which a second worker pays for its start."""

RETRIED = 50_000
"""Characters of a text up to which running out of time may be chance, so that it is tried once more."""

PATIENCE = 8
"""Texts that are given up with all the time for one; further ones of a run have :data:`HURRIED` of it."""

SLOW = 0.3
"""The share of the time for a text from which on what it took counts towards :data:`parsing.RUN_SECONDS`."""

IN_FLIGHT = 256 * 1024
"""Bytes of texts that a worker is sent before it has answered, so that it need not wait for a program that is busy."""

MAX_PIPE = 1024 * 1024
"""Bytes that a pipe is asked to hold; no system lets everyone have more."""

STARTS_PROCESSES = sys.platform not in ("emscripten", "wasi")
"""Whether the system starts processes."""


def _with_tree(text: str) -> tuple[bytes, bytes]:
    """The encoded facts of a text, and its packed tree; empty where there is none."""
    from opschema_cli.source.packed_tree import pack
    from opschema_cli.source.python_facts import collect_with_tree

    facts, tree = collect_with_tree(text)
    return encoded(facts), pack(*tree) if tree is not None else b""


class Parsed(NamedTuple):
    """The encoded facts of the text ``key``, empty where the parser died of it; its packed tree, if asked for; the seconds that it
    took. ``refused`` if it was not parsed, since the run has no time left for such texts.
    """

    key: str
    facts: bytes
    tree: bytes = b""
    seconds: float = 0.0
    refused: bool = False


class _Task(NamedTuple):
    """A text, its key, whether its tree is asked for, and whether nobody waits for it yet."""

    key: str
    text: str
    with_tree: bool
    ahead: bool = False


class Parsers:
    """Worker processes that turn texts into facts while the program does other things.

    They live until :meth:`close`, so that what they import is imported once in each. No more than ``jobs`` are started; a second
    one only when there is enough to do for two. They are forked where that is sound, which it is not in a ``threaded`` program.
    With ``local``, or where the system starts none, texts are parsed in this process when somebody waits for them.
    """

    def __init__(self, jobs: int, *, threaded: bool = False, local: bool | None = None) -> None:
        self._local = not STARTS_PROCESSES if local is None else local
        self.jobs = 1 if self._local else jobs
        self._threaded = threaded
        self._workers: list[_Worker | _LocalWorker] = []
        self._queue: list[_Task] = []
        self._asked: set[str] = set()
        self._retried: set[str] = set()
        self._given_up = 0
        self._spent = 0.0

    def start(self, count: int) -> None:
        """Start workers, so that they import what they need before there is a text."""
        while len(self._workers) < min(count, self.jobs):
            try:
                self._workers.append(_LocalWorker() if self._local else _Worker(self._context, self._workers))
            except OSError as error:
                raise OpschemaError(
                    f"the process that parses Python does not start: {error.strerror or error}"
                ) from None

    @cached_property
    def _context(self) -> BaseContext:
        return multiprocessing.get_context("fork" if sys.platform == "linux" and not self._threaded else "spawn")

    def begin_run(self) -> None:
        """Count anew how much time slow texts take: for a program that runs on."""
        self._given_up, self._spent = 0, 0.0
        self._retried.clear()

    def submit(self, texts: Mapping[str, str], *, with_trees: bool = False, ahead: bool = False) -> None:
        """Have texts parsed, each under a key of its own; a key that is already being parsed is not parsed twice.

        What is asked for ``ahead`` comes after all else, until it is asked for again.
        """
        fresh = [_Task(key, text, with_trees, ahead) for key, text in texts.items() if key not in self._asked]
        self._asked.update(task.key for task in fresh)
        queue = [*self._queue, *fresh]
        if not ahead:
            queue = [task._replace(ahead=False) if task.key in texts else task for task in queue]
        # The largest first, so that no worker is left alone with it at the end.
        self._queue = sorted(queue, key=lambda task: (not task.ahead, len(task.text)))
        much = sum(len(task.text) for task in self._queue) > POOL_THRESHOLD
        self.start(self.jobs if much else min(1, len(self._queue)))
        self._hand_out()

    def collect(self, *, wait: bool) -> list[Parsed]:
        """The texts that are done; with ``wait`` at least one, unless none is left."""
        found: list[Parsed] = []
        while self._asked:
            check_interrupted()
            found += self._refuse()
            if found:
                break
            self.start(1)  # where the first could not be started, this tells why
            for worker in self._answering(wait=wait):
                found += self._take(worker)
            self._hand_out()
            if found or not wait:
                break
        if not self._asked:  # one is enough for what may still come
            for worker in self._workers[1:]:
                worker.stop()
            del self._workers[1:]
        return found

    def _answering(self, *, wait: bool) -> list[_Worker | _LocalWorker]:
        """The workers that have something to say; with ``wait`` at least one, if any is busy."""
        busy = [worker for worker in self._workers if worker.tasks or worker.starting]
        local = [worker for worker in busy if isinstance(worker, _LocalWorker)]
        if local:
            return [*local] if wait else []
        pipes = {worker.answers: worker for worker in busy if isinstance(worker, _Worker)}
        return [pipes[cast("Connection", pipe)] for pipe in ready(pipes, None if wait else 0)]

    @property
    def _is_spent(self) -> bool:
        """Whether the run has spent its time on slow texts."""
        return self._spent >= parsing.RUN_SECONDS

    def _refuse(self) -> list[Parsed]:
        """The texts that no worker has begun, once the run has spent its time on slow ones."""
        if not self._is_spent:
            return []
        refused = [Parsed(task.key, b"", refused=True) for task in self._queue]
        self._queue.clear()
        self._asked.difference_update(item.key for item in refused)
        return refused

    def _take(self, worker: _Worker | _LocalWorker) -> list[Parsed]:
        if isinstance(worker, _Worker) and worker.starting:
            worker.has_started()
            return []
        task, found = worker.result()
        if found is not None and found.seconds > budget(task.text) * SLOW:
            self._spent += found.seconds
        if found is None:
            self._spent += budget(task.text) * (HURRIED if self._given_up >= PATIENCE else 1.0)
            self._workers.remove(worker)
            self._queue += worker.tasks
            short = len(task.text) <= RETRIED and self._given_up < PATIENCE
            if short and worker.ran_out_of_time and task.key not in self._retried:
                self._retried.add(task.key)
                self._queue.insert(0, task)
                self.start(len(self._workers) + 1)
                return []
            self._given_up += 1
            self.start(len(self._workers) + bool(self._queue))
        self._asked.discard(task.key)
        return [found or Parsed(task.key, b"")]

    def _hand_out(self) -> None:
        if self._is_spent:  # what is left is refused
            return
        taking = [worker for worker in self._workers if worker.takes_texts]
        while self._queue and taking:
            worker = min(taking, key=lambda item: item.in_flight)
            if not worker.give(self._queue[-1], hurried=self._given_up >= PATIENCE):
                break
            self._queue.pop()

    def close(self) -> None:
        """Stop the workers, whatever they are at."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()
        self._queue.clear()
        self._asked.clear()


class _LocalWorker:
    """The stand-in for a worker where no process can be started: it parses a text when its result is asked for.

    There are no timers in WebAssembly, and nothing survives a parser that dies. The limits on the length, the nesting and the
    chains of a text bound what one text costs; once texts have taken :data:`parsing.RUN_SECONDS`, the rest of the run is refused.
    A program that must answer is to run this where it can be ended from outside, as a page does in a web worker.
    """

    starting = False
    ran_out_of_time = False

    def __init__(self) -> None:
        self.tasks: list[_Task] = []

    @property
    def in_flight(self) -> int:
        """Texts that wait here, none of them begun."""
        return len(self.tasks)

    @property
    def takes_texts(self) -> bool:
        """Whether it waits for a text. The next one stays with the caller, who may refuse it."""
        return not self.tasks

    def give(self, task: _Task, *, hurried: bool = False) -> bool:
        """Take a text; False if it has one. There is no time that it could be ``hurried`` by."""
        if self.tasks:
            return False
        self.tasks.append(task)
        return True

    def result(self) -> tuple[_Task, Parsed]:
        """The text that it was given, parsed now."""
        task = self.tasks.pop()
        began = time.process_time()
        from opschema_cli.source.chains import refused

        if facts := refused(task.text):
            return task, Parsed(task.key, facts)
        facts, tree = _with_tree(task.text) if task.with_tree else (encoded_facts(task.text), b"")
        return task, Parsed(task.key, facts, tree, time.process_time() - began)

    def stop(self) -> None:
        """Forget the text that has not been parsed."""
        self.tasks.clear()


class _Worker:
    """A process and the texts that it was sent, in the order of its answers."""

    def __init__(self, context: BaseContext, others: Sequence[_Worker | _LocalWorker]) -> None:
        self.tasks: list[_Task] = []
        self.in_flight = 0
        self._sizes: list[int] = []
        self.starting = True
        texts, self._texts = context.Pipe(duplex=False)
        self.answers, answers = context.Pipe(duplex=False)
        self._room = min(_widened(self._texts), _widened(answers)) // 4
        # A forked process also holds our ends of all pipes, and would not notice that we are gone.
        forked = [self, *others] if context.get_start_method() == "fork" else []
        workers = [worker for worker in forked if isinstance(worker, _Worker)]
        ours = [pipe for worker in workers for pipe in (worker._texts, worker.answers)]
        self.process = context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(texts, answers, ours), daemon=True
        )
        with no_interrupts(), nullcontext() if forked else _among_pythons_own():
            self.process.start()
        texts.close()
        answers.close()

    def has_started(self) -> None:
        """Take the sign that it is ready.

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
        """Whether a text can be sent without waiting for its start."""
        return not self.starting or self._room > 0

    def give(self, task: _Task, *, hurried: bool = False) -> bool:
        """Send it a text, ``hurried`` with less time, unless it has enough to do, or the pipe might not take it before others are
        read, or before it has started.
        """
        content = b"%d%d" % (task.with_tree, hurried) + task.text.encode("utf-8", "surrogatepass")
        if (self.tasks or self.starting) and self.in_flight + len(content) > min(IN_FLIGHT, self._room):
            return False
        self.tasks.append(task)
        self._sizes.append(len(content))
        self.in_flight += len(content)
        with suppress(BrokenPipeError, ConnectionResetError):  # then `result` finds the pipe closed
            self._texts.send_bytes(content)
        return True

    def result(self) -> tuple[_Task, Parsed | None]:
        """The first text that it was sent, and what became of it; None if it died."""
        task = self.tasks.pop(0)
        self.in_flight -= self._sizes.pop(0)
        try:
            (seconds,), facts = _SECONDS.unpack(self.answers.recv_bytes()), self.answers.recv_bytes()
            return task, Parsed(task.key, facts, self.answers.recv_bytes() if task.with_tree else b"", seconds)
        except (EOFError, ConnectionResetError):
            self.process.join()
            self._close()
            return task, None

    def _close(self) -> None:
        self._texts.close()
        self.answers.close()

    @property
    def ran_out_of_time(self) -> bool:
        """Whether it died of its budget; once may be chance, for a virtual machine charges its own pauses to its processes."""
        return bool(sys.platform != "win32" and self.process.exitcode == -signal.SIGPROF)

    def stop(self) -> None:
        self._close()
        self.process.kill()
        self.process.join()


@contextmanager
def _among_pythons_own() -> Iterator[None]:
    """Start a process in the folder of the standard library: a new Python (``-c``) imports first from where it starts, which
    must not be the linted tree. It changes to the current folder once it has its own path of modules.
    """
    here = os.getcwd()
    os.chdir(os.path.dirname(os.__file__))
    try:
        yield
    finally:
        os.chdir(here)


def _widened(pipe: Connection) -> int:
    """The capacity of a pipe in bytes, after it is enlarged as far as possible; 0 where that is not known."""
    if sys.platform != "linux":
        return 0
    import fcntl

    with suppress(OSError):
        return fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, MAX_PIPE)
    return 0


_SECONDS = struct.Struct("d")


def _serve(texts: Connection, answers: Connection, inherited: Sequence[Connection]) -> None:
    for connection in inherited:
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a command may have made an interrupt of it, with a traceback here
    faulthandler.disable()  # that a worker dies is not worth a word
    gc.disable()  # trees hold no cycles, and looking for some among half a million nodes costs a tenth of the parse
    from opschema_cli.source import python_facts  # noqa: F401 - before the first text comes

    with suppress(EOFError, ConnectionError):
        answers.send_bytes(b"ready")
        while True:
            task = texts.recv_bytes().decode("utf-8", "surrogatepass")
            with_tree, share, text = task[0] == "1", HURRIED if task[1] == "1" else 1.0, task[2:]
            began = time.process_time()
            with at_risk(text, share):
                found = _with_tree(text) if with_tree else (encoded_facts(text),)
            for answer in (_SECONDS.pack(time.process_time() - began), *found):
                answers.send_bytes(answer)
