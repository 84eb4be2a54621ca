"""Readings of texts that the workers which parse compute, while this process waits for them.

Only many texts at once are worth it: a worker must import what reads them. A text whose values do not come is read here,
unless the worker died of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opschema_cli.readings import Reading

if TYPE_CHECKING:
    from opschema_cli.source.parse_process import Parsed
    from opschema_cli.source.python_workers import Parsers

ENOUGH = 400_000
"""Characters of texts that are worth workers."""

WINDOW = 4_000_000
"""Characters of texts that are sent before the first values are back."""


def function_name(reading: Reading[Any, Any]) -> str:
    """Return the function of a reading as ``module:name``, by which another process imports it, or an empty text if it cannot be
    imported, like a lambda or a function of a plugin.
    """
    module, name = getattr(reading.read, "__module__", ""), getattr(reading.read, "__qualname__", "")
    home = sys.modules.get(module)
    imported = getattr(home, "__spec__", None) is not None and getattr(home, name, None) is reading.read
    return f"{module}:{name}" if imported else ""


class WorkerReadings:
    """The texts whose values workers compute now, and those that they died of."""

    def __init__(self) -> None:
        self.deadly: set[str] = set()
        """The digests of files that no worker has survived."""
        self._sizes: dict[str, int] = {}
        self._names: Mapping[str, str] = {}

    def compute(
        self,
        parsers: Callable[[], Parsers],
        readings: Sequence[Reading[Any, Any]],
        texts: Iterable[tuple[str, str]],
        collect: Callable[[], None],
        *,
        cpp: bool,
    ) -> None:
        """Let workers compute readings of texts, each given with the digest of its file, unless there are only a few texts.

        ``collect`` waits for workers and passes their answers to :meth:`take`. With ``cpp`` the readings are of the trees.
        """
        self._names = {function_name(reading): reading.name for reading in readings}
        for group in _groups(texts) if "" not in self._names else ():
            if parsers().jobs < 2:
                return
            sent = {f"{'cpp' if cpp else 'text'} {digest}": text for digest, text in group.items()}
            self._sizes.update((key, len(text)) for key, text in sent.items())
            parsers().submit_readings(sent, tuple(self._names), cpp=cpp)
            while sum(self._sizes.values()) > WINDOW:
                collect()
        while self._sizes:
            collect()

    def take(self, parsed: Parsed) -> dict[str, dict[str, bytes]] | None:
        """Return the encoded values that a worker has computed, by the name of the reading and the digest of the file, or None
        if the worker has done something else. Late answers to requests of an aborted run are ignored.
        """
        _, is_reading, digest = parsed.key.partition(" ")
        if not is_reading:
            return None
        waited = self._sizes.pop(parsed.key, None) is not None
        if parsed.died and waited:
            self.deadly.add(digest)
        found = {name: parsed.values.get(function) for function, name in self._names.items()} if waited else {}
        return {name: {digest: value} for name, value in found.items() if value is not None}

    def forget(self) -> None:
        """Wait for nothing: the workers were stopped."""
        self._sizes.clear()


def _groups(texts: Iterable[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """Yield groups of texts that are large enough for workers, or none if all texts together are too small."""
    group: dict[str, str] = {}
    size, none_yet = 0, True
    for digest, text in texts:
        group[digest] = text
        size += len(text)
        if size > ENOUGH:
            yield group
            group, size, none_yet = {}, 0, False
    if group and not none_yet:
        yield group
