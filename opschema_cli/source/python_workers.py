"""Parses Python texts in worker processes, so that a text that kills or stalls the parser costs only itself. They compute readings
of other texts as well.

Parsers recurse on the native stack, and some short texts keep libcst's busy for hours. A worker has a budget of
processor time for each text; when it dies, its text gets no facts and another worker takes its place.

Where no process can be started (WebAssembly), texts are parsed in this one (:class:`LocalWorker`).
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as ready
from multiprocessing.context import BaseContext
from typing import cast

from opschema_cli.errors import OpschemaError
from opschema_cli.interrupts import check_interrupted
from opschema_cli.source import parsing
from opschema_cli.source.parse_process import LocalWorker, Parsed, Task, Wanted, Worker
from opschema_cli.source.parsing import HURRIED, budget

POOL_THRESHOLD = 400_000
"""Number of characters of Python above which a second worker is worth starting."""

RETRIED = 50_000
"""Number of characters of a text up to which running out of time may be chance, so that it is tried once more."""

PATIENCE = 8
"""Number of texts that get the full time before they are given up; further ones of a run get :data:`HURRIED` of it."""

SLOW = 0.3
"""The share of the time for a text above which its time counts towards :data:`parsing.RUN_SECONDS`."""

STARTS_PROCESSES = sys.platform not in ("emscripten", "wasi")
"""Whether the system can start processes."""


class Parsers:
    """Worker processes that turn texts into facts while the program does other work.

    They live until :meth:`close`, so that what they import is imported once in each. No more than ``jobs`` are started; a second
    one only when there is enough to do for two. They are forked where that is sound, which it is not in a ``threaded`` program.
    With ``local``, or where the system starts none, texts are parsed in this process when somebody waits for them.
    """

    def __init__(self, jobs: int, *, threaded: bool = False, local: bool | None = None) -> None:
        self._local = not STARTS_PROCESSES if local is None else local
        self.jobs = 1 if self._local else jobs
        self._threaded = threaded
        self._workers: list[Worker | LocalWorker] = []
        self._queue: list[Task] = []
        self._asked: set[str] = set()
        self._done: list[Parsed] = []
        """Finished results that are not returned yet, even if an exception ends :meth:`collect`."""
        self._retried: set[str] = set()
        self._given_up = 0
        self._spent = 0.0

    def start(self, count: int) -> None:
        """Start workers, so that they import their modules before there is a text."""
        while len(self._workers) < min(count, self.jobs):
            try:
                self._workers.append(LocalWorker() if self._local else Worker(self._context, self._workers))
            except OSError as error:
                raise OpschemaError(
                    f"the process that parses Python does not start: {error.strerror or error}"
                ) from None

    @cached_property
    def _context(self) -> BaseContext:
        return multiprocessing.get_context("fork" if sys.platform == "linux" and not self._threaded else "spawn")

    def begin_run(self) -> None:
        """Reset the time spent on slow texts, for a program that continues to run."""
        self._given_up, self._spent = 0, 0.0
        self._retried.clear()

    def submit(
        self, texts: Mapping[str, str], *, with_trees: bool = False, ahead: bool = False, along: tuple[str, ...] = ()
    ) -> None:
        """Have texts parsed, each under a key of its own; a key that is already being parsed is not parsed twice.

        What is asked for ``ahead`` comes after all else, until it is asked for again. ``along`` are readings for
        :func:`opschema_cli.source.parsing.values_along`, which workers import if there are two, or there is enough to do for two.
        """
        unasked = {key: text for key, text in texts.items() if key not in self._asked}
        much = self._is_much(unasked.values())
        wanted = Wanted(with_trees, along if much or len(self._workers) > 1 else ())
        if not ahead:
            self._queue = [task._replace(ahead=False) if task.key in texts else task for task in self._queue]
        self._add([Task(key, text, wanted, ahead) for key, text in unasked.items()], much=much)

    def submit_readings(self, texts: Mapping[str, str], functions: tuple[str, ...], *, cpp: bool) -> None:
        """Have functions computed for texts or, with ``cpp``, for their trees, before anything else is parsed; see
        :func:`opschema_cli.source.parsing.reading_values`. The keys differ from those of texts that are parsed.
        """
        wanted = Wanted(functions=functions, cpp=cpp)
        self._add([Task(key, text, wanted) for key, text in texts.items()], much=self._is_much(texts.values()))

    def _is_much(self, texts: Iterable[str]) -> bool:
        """Whether further texts, together with those that wait, are enough for two workers."""
        return sum(map(len, chain(texts, (task.text for task in self._queue)))) > POOL_THRESHOLD

    def _add(self, tasks: Sequence[Task], *, much: bool) -> None:
        self._asked.update(task.key for task in tasks)
        # The largest first, so that no worker is left alone with it at the end.
        self._queue = sorted(
            [*self._queue, *tasks], key=lambda task: (not task.ahead, bool(task.wanted.functions), len(task.text))
        )
        self.start(self.jobs if much else min(1, len(self._queue)))
        self._hand_out()

    def collect(self, *, wait: bool) -> list[Parsed]:
        """Return the finished texts; with ``wait`` at least one, unless none is left."""
        while self._asked and not self._done:
            check_interrupted()
            self._refuse()
            if self._done:
                break
            self.start(1)  # this raises the reason if the first worker could not be started
            answering = self._answering(wait=wait)
            while answering:  # a worker may have answered several times
                for worker in answering:
                    self._take(worker)
                self._hand_out()
                answering = self._answering(wait=False)
            if not wait:
                break
        found, self._done = self._done, []
        if not self._asked:  # one is enough for what may still come
            for worker in self._workers[1:]:
                worker.stop()
            del self._workers[1:]
        return found

    def _answering(self, *, wait: bool) -> list[Worker | LocalWorker]:
        """Return the workers with an answer; with ``wait`` at least one, if any is busy."""
        busy = [worker for worker in self._workers if worker.tasks or worker.starting]
        local = [worker for worker in busy if isinstance(worker, LocalWorker)]
        if local:
            return [*local] if wait else []
        pipes = {worker.answers: worker for worker in busy if isinstance(worker, Worker)}
        return [pipes[cast("Connection", pipe)] for pipe in ready(pipes, None if wait else 0)]

    @property
    def _is_spent(self) -> bool:
        """Whether the run has used up its time for slow texts."""
        return self._spent >= parsing.RUN_SECONDS

    def _refuse(self) -> None:
        """Refuse the texts that no worker has started, once the run has used up its time for slow ones."""
        if self._is_spent:
            refused = [Parsed(task.key, b"", refused=True) for task in self._queue]
            self._queue.clear()
            self._asked.difference_update(item.key for item in refused)
            self._done += refused

    def _take(self, worker: Worker | LocalWorker) -> None:
        """Receive an answer of a worker, or the sign that it has started."""
        if isinstance(worker, Worker) and worker.starting:
            worker.has_started()
            return
        task, found = worker.result()
        if found is not None and found.seconds > budget(task.text) * SLOW:
            self._spent += found.seconds
        if found is None:
            self._spent += budget(task.text) * (HURRIED if self._given_up >= PATIENCE else 1.0)
            self._workers.remove(worker)
            self._queue += worker.tasks[::-1]  # the last of the queue is the next
            short = len(task.text) <= RETRIED and self._given_up < PATIENCE
            if short and worker.ran_out_of_time and task.key not in self._retried:
                self._retried.add(task.key)
                self._queue.append(task)
                self.start(len(self._workers) + 1)
                return
            self._given_up += 1
        self._asked.discard(task.key)
        self._done.append(found or Parsed(task.key, b"", died=True))
        if found is None:
            self.start(len(self._workers) + bool(self._queue))

    def _hand_out(self) -> None:
        if self._is_spent:  # what is left is refused
            return
        taking = [worker for worker in self._workers if worker.takes_texts]
        while self._queue and taking:
            worker = min(taking, key=lambda item: item.in_flight)
            if (
                len(worker.tasks) > len(self._queue) // (2 * len(self._workers)) + 1
            ):  # so that all end at about the same time
                break
            if not worker.give(self._queue[-1], hurried=self._given_up >= PATIENCE):
                break
            self._queue.pop()

    def close(self) -> None:
        """Stop the workers, whatever they are doing."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()
        self._queue.clear()
        self._asked.clear()
        self._done.clear()
