"""Search for words in files, cached as long as the words stay the same, so that a later run reads only changed files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property, partial

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.text import ascii_words_in

FEW = 20
"""Up to so many files are searched anew by each run."""

MANY = 30
"""More words are not looked for one by one in a text."""


def variant_of(words: Iterable[str]) -> str:
    """The variant of a reading that depends on a set of words."""
    return hashlib.blake2b("\n".join(sorted(words)).encode(), digest_size=16).hexdigest()


def words_in(data: bytes, words: Mapping[bytes, str]) -> list[str]:
    """Return those of some words that a text contains. All non-ASCII characters separate words."""
    near = len(words) > MANY or any(word in data for word in words)
    return sorted(words[word] for word in words.keys() & ascii_words_in(data)) if near else []


class WordSearch(msgspec.Struct, frozen=True, dict=True):
    """A search for ``words`` in files. What is cached is the result for the last words with a ``purpose``."""

    project: Project
    purpose: str
    words: frozenset[str]

    def files(self, paths: Iterable[str]) -> dict[str, frozenset[str]]:
        """The words that each of some files has, if it has one."""
        asked = list(paths)
        read, peek = self._reading.read, self.project.workspace.peek
        # Another search of few files must not replace the results of one of all.
        found = (
            self.project.scan(self._reading, asked) if len(asked) > FEW else ((one, read(peek(one))) for one in asked)
        )
        return {path: frozenset(words) for path, words in found if words}

    def words_of(self, path: str) -> frozenset[str]:
        """The words that a file has."""
        if path not in self._known:
            self._known.update((one, frozenset(words)) for one, words in self.project.scan(self._reading, [path]))
        return self._known[path]

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def _reading(self) -> Reading[bytes, list[str]]:
        read = partial(words_in, words={word.encode(): word for word in self.words if word})
        return Reading(f"words of {self.purpose}", read, list[str], variant=variant_of(self.words))
