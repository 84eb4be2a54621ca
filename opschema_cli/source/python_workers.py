"""Parses Python texts in worker processes, so that a text that kills or stalls the parser costs only itself.

libcst's parser recurses on the native stack, and some short texts keep it busy for hours. A worker has a budget of
processor time for each text; when it dies, its text gets no facts and another worker takes its place.
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext

import msgspec

SECONDS, SECONDS_PER_CHARACTER = 1.5, 30e-6
"""The processor time for one text: several times what ordinary code takes."""

MAX_RECURSION = 20_000
"""Calls that a worker may nest, for long chains of operators; a worker that dies of it harms nobody."""


def encoded_facts(text: str) -> bytes:
    """The facts of a text as the cache keeps them; empty where they nest too deeply to be encoded."""
    from opschema_cli.source.python_facts import collect

    try:
        return msgspec.msgpack.encode(collect(text))
    except RecursionError:
        return b""


def parse_in_workers(texts: Sequence[str], jobs: int) -> Iterator[tuple[int, bytes]]:
    """The encoded facts of each text with its number, as they come; empty where the parser died of it."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    # The largest first, so that no worker is left alone with it at the end.
    queue = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    workers: list[_Worker] = []
    retried: set[int] = set()
    try:
        while queue or workers:
            while queue and len(workers) < jobs:
                workers.append(_Worker(context, texts, workers, queue.pop()))
            ready = wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                number, facts = worker.number, worker.result()
                if facts is None and worker.ran_out_of_time and number not in retried:
                    retried.add(number)
                    queue.insert(0, number)
                else:
                    yield number, facts or b""
                if facts is not None and queue:
                    worker.give(queue.pop())
                else:
                    worker.stop()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process and the number of the text that it parses."""

    def __init__(self, context: BaseContext, texts: Sequence[str], others: Sequence[_Worker], number: int) -> None:
        self.pipe, theirs = context.Pipe()
        # A forked process also holds our ends of all pipes, and would not notice that we are gone.
        ours = [self.pipe, *(worker.pipe for worker in others)] if context.get_start_method() == "fork" else []
        self.process = context.Process(target=_serve, args=(theirs, texts, ours), daemon=True)  # type: ignore[attr-defined]
        self.process.start()
        theirs.close()
        self.give(number)

    def give(self, number: int) -> None:
        self.number = number
        with suppress(BrokenPipeError):  # then `result` finds the pipe closed
            self.pipe.send(number)

    def result(self) -> bytes | None:
        """The facts of its text; None if it died."""
        try:
            return self.pipe.recv_bytes()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return None

    @property
    def ran_out_of_time(self) -> bool:
        """Whether it died of its budget; once may be chance, for a virtual machine charges its own pauses to its processes."""
        return bool(sys.platform != "win32" and self.process.exitcode == -signal.SIGPROF)

    def stop(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection, texts: Sequence[str], inherited: Sequence[Connection]) -> None:
    for connection in inherited:
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.disable()  # that a worker dies is not worth a word
    sys.setrecursionlimit(MAX_RECURSION)
    gc.disable()  # trees hold no cycles, and looking for some among half a million nodes costs a tenth of the parse
    with suppress(EOFError):
        while True:
            text = texts[pipe.recv()]
            _limit(SECONDS + len(text) * SECONDS_PER_CHARACTER)
            pipe.send_bytes(encoded_facts(text))


def _limit(seconds: float) -> None:
    """Let this process die after so much more processor time, and leave no core file in anyone's folder."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, seconds)
