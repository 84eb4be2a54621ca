"""Unknown registrations of a tree, and the operators that they may be for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_rules.torchlib.model import Operator, Tree

if TYPE_CHECKING:
    from opschema_rules.torchlib.cpp_model import CppOperators

_BLOCK = re.compile(rb"TORCH_LIBRARY\w*\s*\(\s*(\w+)")
_TEMPLATE = re.compile(rb"\{%[-+]?\s*\w+|\{\{-?\s*[\w.]+(?:\s*\|[^{}]*|\([^{}]*\))?\s*-?\}\}")
_STRING = re.compile(r'"([^"\n]*)"')
_HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")

MIN_LETTERS = 4
"""Fewest characters outside its holes by which the name in a template is taken to tell an operator."""


class Gaps:
    """The gaps of one tree.

    A template of C++ (Jinja) is not a gap for every operator of its namespace, but for those that it names, as far as it does.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._open: set[str | None] = set()
        self._templates: set[str | None] = set()
        self._words: set[str] = set()
        self._named: list[re.Pattern[str]] = []

    def add(self, start: str, place: Place, reason: str) -> None:
        """Add a registration for an operator whose name is known only by its beginning."""
        space, colons, _ = start.partition("::")
        self._open.add(space if colons else None)
        self._note(place, reason)

    def add_cpp(self, cpp: CppOperators) -> None:
        """Add what C++ leaves unknown."""
        for gap in cpp.gaps:
            is_template = self._add_template(gap.place.path)
            if gap.names is not None and not is_template:
                self._words |= gap.names
            else:
                (self._templates if is_template else self._open).add(gap.namespace)
            self._note(gap.place, f"{gap.reason}: the file is a template" if is_template else gap.reason)
        for path in cpp.unread:
            (self._templates if self._add_template(path) else self._open).update(namespaces_in(self.tree.project, path))

    def close(self) -> None:
        """Tell the tree and its operators what may be missing."""
        known = self._open | self._templates
        self.tree.open_namespaces = frozenset(known)
        self.tree.open_words = frozenset(self._words)
        self.tree.strays[:] = [item for item in self.tree.strays if not self._may_define(known, item.name)]
        for operator in self.tree.operators:
            if not self._is_complete(operator):
                operator.complete = False

    def _may_define(self, known: set[str | None], name: str) -> bool:
        """Whether a place that is not understood may define an operator."""
        space, _, word = name.partition("::")
        return bool(known & {None, space}) or word.partition(".")[0] in self._words

    def _is_complete(self, operator: Operator) -> bool:
        spaces = {name.partition("::")[0] for name in operator.names or ()}
        if not spaces or None in self._open or spaces & self._open:
            return False
        words = [name.partition("::")[2].partition(".")[0] for name in operator.names or ()]
        if self._words.intersection(words):
            return False
        return not any(pattern.fullmatch(word) for pattern in self._named for word in words)

    def _add_template(self, path: str) -> bool:
        """Whether a file is a template; if so, the names in it are noted."""
        data = self.tree.project.workspace.peek(path)
        if not _TEMPLATE.search(data):
            return False
        self._named += patterns(_STRING.findall(data.decode("utf-8", "replace")))
        return True

    def _note(self, place: Place, reason: str) -> None:
        if (place, reason) not in self.tree.unresolved:
            self.tree.unresolved.append((place, reason))


def patterns(strings: Iterable[str]) -> list[re.Pattern[str]]:
    """Patterns of the names at the head of a template's strings, its holes filled."""
    names = {string.partition("(")[0].strip().rpartition("::")[2] for string in map(_marked, strings)}
    told = [name for name in sorted(names) if len(name.replace("\0", "")) >= MIN_LETTERS]
    return [re.compile(re.escape(name).replace(re.escape("\0"), r"\w*")) for name in told]


def _marked(string: str) -> str:
    return _HOLE.sub("\0", string)


def namespaces_in(project: Project, path: str) -> set[str | None]:
    """The namespaces that an unread C++ file seems to register in."""
    found = {name.decode() for name in _BLOCK.findall(project.workspace.peek(path))}
    return {*found} if found and not any(name.isupper() for name in found) else {None}
