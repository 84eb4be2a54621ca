"""Parses a Python text in the current process: the result is the encoded facts, or the end of the process."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pkgutil import resolve_name

import msgspec

from opschema_cli.source.python import ModuleFacts, PythonFile
from opschema_cli.source.text import Source

SECONDS, SECONDS_PER_CHARACTER = 1.5, 20e-6
"""The processor time limit for one text: several times what ordinary code takes."""

HURRIED = 0.3
"""The share of it that a text gets in a run that has given up many others."""

RUN_SECONDS = 60.0
"""The processor time limit of a run for texts that use up theirs or nearly do; also the maximum for one text."""

MAX_RECURSION = 20_000
"""Maximum depth of calls for one text, for long chains of operators."""


def encoded_facts(text: str) -> bytes:
    """Return the facts of a text as the cache stores them; empty if they are nested too deeply to be encoded."""
    from opschema_cli.source.python_facts import collect

    return encoded(collect(text))


def parsed(text: str, *, with_tree: bool) -> tuple[ModuleFacts, bytes]:
    """Return the facts of a text and, if requested, its packed tree; empty if there is none."""
    from opschema_cli.source.python_facts import collect, collect_with_tree

    if not with_tree:
        return collect(text), b""
    # Not above: it imports libcst.
    from opschema_cli.source.packed_tree import pack

    facts, tree = collect_with_tree(text)
    return facts, pack(*tree) if tree is not None else b""


_reading = lru_cache(resolve_name)


def values_along(names: Iterable[str], text: str, facts: ModuleFacts) -> dict[str, bytes]:
    """Return the encoded values of readings (:class:`opschema_cli.readings.Reading`, each named ``module:attribute``) for a text
    whose facts have just been collected, so that they need not be unpacked. Readings that are not found or fail are left out,
    and computed again where they are requested.
    """
    found: dict[str, bytes] = {}
    file = PythonFile(Source("", text), facts)
    for name in names if not facts.error else ():
        with suppress(Exception):  # foreign code
            reading = _reading(name)
            found[reading.name] = msgspec.msgpack.encode(reading.read(file))
    return found


def reading_values(functions: Iterable[str], text: str, *, cpp: bool) -> dict[str, bytes]:
    """Return the encoded results of functions, each named ``module:name``, for a text or, with ``cpp``, for its tree; empty if
    one fails, or if the text is not read as C++. The failure is repeated and reported where the results are requested.
    """
    # Not at the top: most runs read no C++.
    from opschema_cli.source.cpp import parse_cpp

    with suppress(Exception):  # foreign code
        content = parse_cpp(text) if cpp else text
        return {name: msgspec.msgpack.encode(resolve_name(name)(content)) for name in functions}
    return {}


def plain_facts(text: str) -> bytes:
    """Return the encoded facts of a text that the running Python can parse; empty for any other, which takes longer."""
    from opschema_cli.source.python_facts import collect_plain

    with at_risk(text):
        facts = collect_plain(text)
        return encoded(facts) if facts is not None else b""


def encoded(facts: ModuleFacts) -> bytes:
    """Return facts as the cache stores them; empty if they are nested too deeply."""
    try:
        return msgspec.msgpack.encode(facts)
    except RecursionError:
        return b""


def budget(text: str) -> float:
    """Return the seconds of processor time for one text."""
    return min(SECONDS + len(text) * SECONDS_PER_CHARACTER, RUN_SECONDS)


@contextmanager
def at_risk(text: str, share: float = 1.0) -> Iterator[None]:
    """Guard the parsing of a text: a process that uses up its processor time, or overflows the native stack, is killed. So this
    is only for processes that others can do without. ``share`` is the fraction of the time for a text that it gets.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, MAX_RECURSION))
    _end_after(budget(text) * share)
    try:
        yield
    finally:
        _end_after(0)
        sys.setrecursionlimit(before)


def _end_after(seconds: float) -> None:
    """Kill this process after that much more processor time (0: never), without a core file."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, seconds)
