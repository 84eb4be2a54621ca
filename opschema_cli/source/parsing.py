"""Parsing of a Python text in the current process: encoded facts, or the end of the process."""

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
"""The processor time for one text: several times what ordinary code takes."""

HURRIED = 0.3
"""The share of it that a text has left in a run that has given up many others."""

RUN_SECONDS = 60.0
"""The processor time that a run spends on texts that use up theirs or come near to it; also the most for one text."""

MAX_RECURSION = 20_000
"""Calls that may be nested for one text, for long chains of operators."""


def encoded_facts(text: str) -> bytes:
    """The facts of a text as the cache keeps them; empty where they nest too deeply to be encoded."""
    from opschema_cli.source.python_facts import collect

    return encoded(collect(text))


def parsed(text: str, *, with_tree: bool) -> tuple[ModuleFacts, bytes]:
    """The facts of a text and, if asked for, its packed tree; empty where there is none."""
    from opschema_cli.source.python_facts import collect, collect_with_tree

    if not with_tree:
        return collect(text), b""
    # Not above: it imports libcst.
    from opschema_cli.source.packed_tree import pack

    facts, tree = collect_with_tree(text)
    return facts, pack(*tree) if tree is not None else b""


_reading = lru_cache(resolve_name)


def values_along(names: Iterable[str], text: str, facts: ModuleFacts) -> dict[str, bytes]:
    """The encoded values of readings (:class:`opschema_cli.readings.Reading`, each named ``module:attribute``) for a text whose
    facts have just been collected, so that nothing need be unpacked for them. Left out is what is not found here, or fails: that
    is computed again where it is asked for.
    """
    found: dict[str, bytes] = {}
    file = PythonFile(Source("", text), facts)
    for name in names if not facts.error else ():
        with suppress(Exception):  # foreign code
            reading = _reading(name)
            found[reading.name] = msgspec.msgpack.encode(reading.read(file))
    return found


def reading_values(functions: Iterable[str], text: str, *, cpp: bool) -> dict[str, bytes]:
    """The encoded results of functions, each named ``module:name``, for a text, with ``cpp`` for its tree; empty where one of
    them fails, or the text is not read as C++: that is done again where it is asked for, and reported there.
    """
    # Not at the top: most runs read no C++.
    from opschema_cli.source.cpp import parse_cpp

    with suppress(Exception):  # foreign code
        content = parse_cpp(text) if cpp else text
        return {name: msgspec.msgpack.encode(resolve_name(name)(content)) for name in functions}
    return {}


def plain_facts(text: str) -> bytes:
    """The same, of a text that the Python which runs parses; empty for any other, which takes longer."""
    from opschema_cli.source.python_facts import collect_plain

    with at_risk(text):
        facts = collect_plain(text)
        return encoded(facts) if facts is not None else b""


def encoded(facts: ModuleFacts) -> bytes:
    """Facts as the cache keeps them; empty where they nest too deeply."""
    try:
        return msgspec.msgpack.encode(facts)
    except RecursionError:
        return b""


def budget(text: str) -> float:
    """Seconds of processor time for one text."""
    return min(SECONDS + len(text) * SECONDS_PER_CHARACTER, RUN_SECONDS)


@contextmanager
def at_risk(text: str, share: float = 1.0) -> Iterator[None]:
    """While a text is parsed: a process that has spent its processor time for it, or that nests too deeply for the native
    stack, dies; so this is for processes that others can do without. ``share`` is how much of the time for a text it has.
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
    """Let this process die after so much more processor time (0: never), and leave no core file in anyone's folder."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, seconds)
