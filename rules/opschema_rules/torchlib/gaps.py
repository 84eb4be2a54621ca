"""Gaps of a tree, and the operators that they may be for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_rules.torchlib.gap import Gap
from opschema_rules.torchlib.gap_scopes import Scopes
from opschema_rules.torchlib.model import Operator, Tree

if TYPE_CHECKING:
    from opschema_rules.torchlib.cpp_model import CppOperators

_BLOCK = re.compile(rb"TORCH_LIBRARY\w*\s*\(\s*(\w+)")
_TEMPLATE = re.compile(rb"\{%[-+]?\s*\w+|\{\{-?\s*[\w.]+(?:\s*\|[^{}]*|\([^{}]*\))?\s*-?\}\}")
_STRING = re.compile(r'"([^"\n]*)"')
_HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")

MIN_LETTERS = 4
"""Minimum number of characters outside placeholders for the name in a template to identify an operator."""


class Gaps:
    """The gaps of one tree.

    A template of C++ (Jinja) is not a gap for every operator of its namespace, but for those that it names, as far as it does.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._found: list[Gap] = []
        self._named: list[re.Pattern[str]] = []
        self._targets: Callable[[str], frozenset[str]] = lambda _: frozenset()

    def add(self, gap: Gap) -> None:
        """Add a gap, and record it as a registration that is not understood."""
        self.add_silently(gap)
        if (gap.place, gap.reason) not in self.tree.unresolved:
            self.tree.unresolved.append((gap.place, gap.reason))

    def add_silently(self, gap: Gap) -> None:
        """Add a gap of an operator of which only the name is unknown."""
        self._found.append(gap)

    def add_cpp(self, cpp: CppOperators) -> None:
        """Add the gaps of C++."""
        self._targets = cpp.targets
        for gap in cpp.gaps:
            template = self._add_template(gap.place.path)
            self.add(
                replace(gap, reason=f"{gap.reason}: the file is a template", names=None, registers=False)
                if template
                else gap
            )
        for path in cpp.unread:
            template = self._add_template(path)
            for namespace in namespaces_in(self.tree.project, path):
                self.add_silently(Gap(Place(path, Span(0, 0)), "it is not read", namespace, registers=not template))

    def close(self) -> None:
        """Mark the operators that gaps may be for, and drop the registrations for names that gaps may define."""
        defining = _Names(gap for gap in self._found if gap.defines)
        self.tree.may_be_defined = defining.may_hold
        self.tree.strays[:] = [item for item in self.tree.strays if not defining.may_hold(item.name)]
        registering = [gap for gap in self._found if gap.registers]
        names = _Names(gap for gap in registering if not gap.is_anything)
        anything = [gap.place.path for gap in registering if gap.is_anything]
        scopes = Scopes(self.tree.project, self._targets, anything) if anything else None
        for operator in self.tree.operators:
            if not self._is_complete(operator, names, scopes):
                operator.complete = False

    def _is_complete(self, operator: Operator, names: _Names, scopes: Scopes | None) -> bool:
        if not operator.names:
            return False
        words = {name.partition("::")[2].partition(".")[0] for name in operator.names}
        return not (
            any(map(names.may_hold, operator.names))
            or any(pattern.fullmatch(word) for pattern in self._named for word in words)
            or (scopes is not None and scopes.may_touch(operator.place.path, words))
        )

    def _add_template(self, path: str) -> bool:
        """Return whether a file is a template; if it is, record the names in it."""
        data = self.tree.project.workspace.peek(path)
        if not _TEMPLATE.search(data):
            return False
        self._named += patterns(_STRING.findall(data.decode("utf-8", "replace")))
        return True


class _Names:
    """The names of operators that some gaps may be for: words, and beginnings of words, by namespace."""

    def __init__(self, gaps: Iterable[Gap]) -> None:
        self.words: set[tuple[str | None, str]] = set()
        self.starts: set[tuple[str | None, str]] = set()
        for gap in gaps:
            if gap.names is not None:
                self.words.update((gap.namespace, name) for name in gap.names)
            else:
                self.starts.add((gap.namespace, gap.start))
        self.longest = max((len(start) for _, start in self.starts), default=-1)

    def may_hold(self, name: str) -> bool:
        """Whether a qualified name may be one of them."""
        space, _, own = name.partition("::")
        beginnings = [own[:length] for length in range(min(self.longest, len(own)) + 1)]
        return any(
            (known, own.partition(".")[0]) in self.words or any((known, start) in self.starts for start in beginnings)
            for known in (None, space)
        )


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
