"""Divides the runs of rules over subjects between this process and helpers that are forked from it.

A run is one rule over one subject. This process begins alone. Once that has taken :data:`PATIENCE` seconds of processor time,
or as soon as that is plain, it writes the numbers of the runs that are left to a pipe, as ranges, and forks the helpers. All
processes take ranges from the pipe until it is empty, so that none is idle while another has much to do. Findings are put in the
order of the runs, whoever made them.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol, TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Missing, NotUnderstood
from opschema_cli.lint.timing import Timing

PATIENCE = 0.1
"""Seconds of processor time after which helpers are worth starting."""

READ_EVERY = 0.002
"""Seconds between two readings of the processor time, since a reading takes longer than most runs."""

GLANCE, LONG = 0.02, 1.0
"""Seconds after which the total time is estimated, and the estimate above which helpers start immediately."""

RANGES_FOR_EACH = 12
"""Ranges of runs for each process: with many, all end at about the same time; with few, neighbours stay together, which share
what was computed.
"""

_RANGE = struct.Struct("=II")


class Share(msgspec.Struct, array_like=True):
    """The results of a helper: the findings by run number, the timings of the rules, and what the runs added to the project and
    to the pack's data. ``readings`` are new values of the project's shelves, ``spent`` is the work done for suggestions.
    """

    found: dict[int, list[Diagnostic]] = msgspec.field(default_factory=dict)
    timings: dict[str, Timing] = msgspec.field(default_factory=dict)
    missing: list[Missing] = msgspec.field(default_factory=list)
    claimed: set[str] = msgspec.field(default_factory=set)
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)
    readings: dict[str, dict[str, bytes]] = msgspec.field(default_factory=dict)
    spent: int = 0


class LostForkError(Exception):
    """A forked process died, or read a file that has changed since: its work must be repeated."""


class SharedFlag:
    """A flag shared by a process and its forks."""

    def __init__(self) -> None:
        # Not at the top: not every system on which rules run has it, and those do not fork.
        import mmap

        self._memory = mmap.mmap(-1, 1)

    def __bool__(self) -> bool:
        return self._memory[0] == 1

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise it temporarily."""
        self._memory[0] = 1
        try:
            yield
        finally:
            self._memory[0] = 0


class Helpers(Protocol):
    """Processes that can be forked to help."""

    @property
    def count(self) -> int:
        """Return the number of helpers that there are processors for now."""

    def fork(self, work: Callable[[], Share]) -> Callable[[], Share]:
        """Have a helper do some work; calling the result waits for its output, and may raise :class:`LostForkError`.

        Raises:
            OSError: no process can be started.
        """


Run: TypeAlias = "Callable[[int], list[Diagnostic]]"
"""The findings of the run with a number."""


def divided(
    count: int, run: Run, helpers: Helpers | None, in_helper: Callable[[Ranges], Share]
) -> tuple[list[list[Diagnostic]], list[Share]]:
    """Return the findings of each of ``count`` runs, and the results of each helper; ``in_helper`` is a helper's work."""
    if helpers is None:
        return [run(number) for number in range(count)], []
    found: dict[int, list[Diagnostic]] = {}
    began, due = time.process_time(), time.perf_counter()
    numbers = iter(range(count))
    for number in numbers:
        found[number] = run(number)
        now = time.perf_counter()
        if now < due:
            continue
        due = now + READ_EVERY
        if _is_long(time.process_time() - began, number + 1, count) and count - number > 2 and helpers.count:
            break
    left = list(numbers)
    shares = _shared(left, run, helpers, in_helper, found) if left else []
    for share in shares:
        found.update(share.found)
    return [found[number] for number in range(count)], shares


def _is_long(spent: float, done: int, count: int) -> bool:
    """Whether the remaining runs are worth a helper, given the seconds that some of them took."""
    return spent > PATIENCE or (spent > GLANCE and spent / done * count > LONG)


def _shared(
    left: Sequence[int],
    run: Run,
    helpers: Helpers,
    in_helper: Callable[[Ranges], Share],
    found: dict[int, list[Diagnostic]],
) -> list[Share]:
    """Return the helpers' results for the remaining runs; the findings of the other runs are added to ``found``."""
    try:
        ranges = Ranges(left, helpers.count + 1)
    except OSError:  # too many files are open
        found.update((number, run(number)) for number in left)
        return []
    with closing(ranges):
        joins = list(_forked(helpers, len(left) - 1, lambda: in_helper(ranges)))
        found.update(ranges.taken(run))
    return [join() for join in joins]


def _forked(helpers: Helpers, most: int, work: Callable[[], Share]) -> Iterator[Callable[[], Share]]:
    for _ in range(min(helpers.count, most)):
        try:
            yield helpers.fork(work)
        except OSError:  # the system has no room for a process: those that run do all
            return


class Ranges:
    """Ranges of numbers in a pipe; each process takes one after the other."""

    def __init__(self, numbers: Sequence[int], processes: int) -> None:
        size = max(1, len(numbers) // (RANGES_FOR_EACH * processes))
        first, end = numbers[0], numbers[-1] + 1
        # All are written before any is read: a pipe holds 4096 bytes and more.
        size = max(size, -(-len(numbers) // (4096 // _RANGE.size)))
        self._owner = os.getpid()
        self._pipe, writer = os.pipe()
        with open(writer, "wb") as stream:
            stream.writelines(_RANGE.pack(at, min(at + size, end)) for at in range(first, end, size))

    def taken(self, run: Run) -> dict[int, list[Diagnostic]]:
        """Return the findings of the runs that this process takes. A helper stops if its parent process has ended."""
        found: dict[int, list[Diagnostic]] = {}
        while self._owner in (os.getpid(), os.getppid()) and (taken := os.read(self._pipe, _RANGE.size)):
            found.update((number, run(number)) for number in range(*_RANGE.unpack(taken)))
        return found

    def close(self) -> None:
        """Close the pipe here."""
        os.close(self._pipe)
