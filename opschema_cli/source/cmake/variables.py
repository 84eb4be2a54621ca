"""CMake commands that set variables: ``set``, ``list``, ``file(GLOB)``, ``cmake_parse_arguments`` and similar ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from opschema_cli.source.cmake.conditions import Origin, joined
from opschema_cli.source.cmake.lists import FILE_PARTS, STRINGS, doubtful, filtered, mapped, without
from opschema_cli.source.cmake.scopes import UNKNOWN, Frame, Scope, Values, keyword_arguments
from opschema_cli.source.cmake.words import NAME, Words, first, in_tree

MAX_WRITES = 10
"""Maximum number of conditional writes of a variable, after which its earlier words are unknown."""


class Assignments:
    """Sets the variables of scopes; ``glob`` returns the files of the tree that match a pattern."""

    def __init__(self, words: Words, glob: Callable[[str], Sequence[str]]) -> None:
        self.words = words
        self.glob = glob

    def set(self, words: Sequence[str], frame: Frame) -> None:
        """Run ``set(NAME words...)``."""
        name = self.words.one(words[0], frame)
        given = list(takewhile(lambda word: word not in ("CACHE", "PARENT_SCOPE"), words[1:]))
        scope = frame.scope.parent if words[-1] == "PARENT_SCOPE" else frame.scope
        if name and scope is not None:
            resets = all(self.words.variable(word, frame) != name for word in given)
            self._write(scope, name, first(self.words.values(given, frame)), resets=resets)

    def _assign(self, name: str, value: str, frame: Frame) -> None:
        if NAME.fullmatch(name):
            self._write(frame.scope, name, {value: self.words.conditions.origin}, resets=True)

    def project(self, name: str, frame: Frame) -> None:
        """Set the variables of ``project(NAME)``."""
        self._assign("PROJECT_NAME", name, frame)
        for variable in ("PROJECT_SOURCE_DIR", f"{name}_SOURCE_DIR"):
            self._assign(variable, f"//{frame.folder}", frame)

    def _write(self, scope: Scope, name: str, values: Values, *, resets: bool) -> None:
        """Set a variable; its earlier values no longer apply where the command runs."""
        before = scope.find(name)
        if before and resets and self._is_sure(scope):
            scope.put(name, values)
        elif before and resets and (scope.writes.get(name, 0) >= MAX_WRITES or not self.words.budget.pays(len(before))):
            scope.put(name, {UNKNOWN: None, **values})
        elif before and resets:
            here, elsewhere = self.words.conditions.replaced()
            kept = {word: joined(origin, elsewhere) for word, origin in before.items()}
            scope.put(name, {**kept, **{word: joined(origin, here) for word, origin in values.items()}})
        else:
            scope.put(name, {**values, **(before or {})})

    def _is_sure(self, scope: Scope) -> bool:
        """Whether a command always runs in a scope."""
        return self.words.conditions.origin == scope.origin

    def _listed(self, name: str, frame: Frame) -> Values:
        """Return a copy of the words of a variable."""
        found = frame.scope.find(name) or {}
        return dict(found) if self.words.budget.pays(len(found)) else {UNKNOWN: None}

    def change_list(self, words: Sequence[str], frame: Frame) -> None:
        """Run ``list(OPERATION NAME words...)``."""
        operation, name = words[0], self.words.one(words[1], frame)
        if operation in ("APPEND", "PREPEND"):
            self._extend(name, self.words.values(words[2:], frame), frame)
        elif operation == "FILTER" and len(words) == 5:
            known, pattern = self._listed(name, frame), self.words.one(words[4], frame)
            includes, surely = words[2] == "INCLUDE", self._is_sure(frame.scope)
            frame.scope.put(name, filtered(known, includes=includes, pattern=pattern, surely=surely))
        elif operation == "REMOVE_ITEM":
            removed = {word for word, _ in self.words.values(words[2:], frame)}
            known = self._listed(name, frame)
            frame.scope.put(name, without(known, removed) if UNKNOWN not in removed else doubtful(known))
        elif operation == "TRANSFORM" and len(words) == 4 and words[2] in ("PREPEND", "APPEND"):
            part = self.words.one(words[3], frame)
            around = (part, "") if words[2] == "PREPEND" else ("", part)
            frame.scope.put(name, mapped(self._listed(name, frame), *around) if part else {UNKNOWN: None})
        elif operation not in ("REMOVE_DUPLICATES", "SORT", "REVERSE"):
            self.doubt(words, frame)

    def _extend(self, name: str, values: Iterable[tuple[str, Origin]], frame: Frame) -> None:
        if name:
            known = frame.scope.variables.get(name)
            if known is None:
                known = self._listed(name, frame)
            for word, origin in values:
                known.setdefault(word, origin)
            frame.scope.put(name, known)

    def find_files(self, words: Sequence[str], frame: Frame) -> None:
        """Run ``file(GLOB)``, with the matching files in place of its patterns."""
        deep = words[0] == "GLOB_RECURSE"
        found: list[tuple[str, Origin]] = []
        for word, origin in self.words.values(words[2:], frame):
            if word == UNKNOWN or "*" in word:
                pattern = in_tree(_deep(word) if deep else word, frame.folder)
                found += [(f"//{path}", origin) for path in self.glob(pattern)] if word else [(word, origin)]
        self._write(frame.scope, self.words.one(words[1], frame), first(found), resets=True)

    def parse_arguments(self, words: Sequence[str], frame: Frame) -> None:
        """Run ``cmake_parse_arguments`` on arguments, or on those of the running function."""
        if words[0] == "PARSE_ARGV" and len(words) > 2 and words[1].isdecimal():
            head, arguments = words[2:6], list(frame.arguments[int(words[1][:3]) :])
        else:
            head, arguments = words[:4], self.words.arguments(words[4:], frame)
        prefix = self.words.one(head[0], frame)
        lists = [[word for word, _ in self.words.values([item], frame)] for item in head[1:]]
        if prefix and len(lists) == 3 and not any(UNKNOWN in item for item in lists):
            known = not any(word == UNKNOWN for item in arguments for word, _ in item)
            for name, values in keyword_arguments(prefix, lists, arguments).items():
                frame.scope.put(name, values, exact=known or bool(values))

    def computes(self, name: str, words: Sequence[str], frame: Frame) -> bool:
        """Whether a command sets a variable to a text that is computed from another one."""
        if name == "string" and words[0] in STRINGS and len(words) == 3:
            value = self.words.one(words[1], frame)
            self._assign(words[2], STRINGS[words[0]](value), frame)
            return True
        if name == "get_filename_component" and len(words) > 2 and words[2] in FILE_PARTS:
            self._assign(words[0], FILE_PARTS[words[2]](self.words.one(words[1], frame)), frame)
            return True
        return False

    def doubt(self, words: Sequence[str], frame: Frame) -> None:
        """Record that a command may set the variables whose names it gets."""
        for word in words:
            if NAME.fullmatch(word) and frame.scope.find(word):
                frame.scope.put(word, doubtful(self._listed(word, frame)))


def _deep(pattern: str) -> str:
    """Return a glob that also matches in subfolders."""
    folder, _, name = pattern.rpartition("/")
    return f"{folder}/**/{name}" if folder else f"**/{name}"
