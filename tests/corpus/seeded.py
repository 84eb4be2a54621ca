"""Changes that are made to a real tree, one at a time, and whether a pack reports anything new for them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from opschema_cli.cache import Cache
from opschema_cli.config import load_config
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace

Texts = Mapping[str, str]


class Change(msgspec.Struct, frozen=True):
    """A file with another text."""

    path: str
    text: str
    line: int


Finding = tuple[str, str, str]
"""A rule, a file and a message."""

Make = Callable[[Texts], Iterator[Change]]


def by_name(*kinds: Make) -> dict[str, Make]:
    """Kinds of changes by the names of their functions."""
    return {make.__name__: make for make in kinds}


def replaced(path: str, text: str, start: int, end: int, new: str) -> Change:
    """A change of a range of characters."""
    return Change(path, text[:start] + new + text[end:], text.count("\n", 0, start) + 1)


def chosen(make: Make, texts: Texts, count: int) -> list[Change]:
    """Some of the changes of a kind, each in a file of its own, in an order that depends on their names alone."""
    found: dict[str, Change] = {}
    for change in make(texts):
        found.setdefault(change.path, change)
    order = sorted(found.values(), key=lambda item: hashlib.sha256(f"{make.__name__} {item.path}".encode()).digest())
    return order[:count]


class Tree:
    """A checkout, and what a pack reports of it."""

    def __init__(self, root: Path, pack: Pack, suffixes: Sequence[str]) -> None:
        self._workspace = Workspace(root)
        registry = Registry((pack,))
        self._job = Job(registry, resolve_settings(load_config(root)[0], registry))
        self._cache = Cache.for_workspace(root)
        self.texts: Texts = {
            path: self._workspace.peek(path).decode("utf-8", "replace")
            for path in self._workspace.files
            if path.endswith(tuple(suffixes))
        }
        self._before = self._findings(self._workspace)

    def _findings(self, workspace: Workspace) -> Counter[Finding]:
        """The findings by rule, file and message; numbers of lines may shift."""
        found = run(self._job, Project(workspace, self._cache)).diagnostics
        return Counter((item.code, item.place.path, re.sub(r":\d+", "", item.message)) for item in found)

    def new(self, changes: Sequence[Change]) -> list[Finding]:
        """The findings that are new after some changes."""
        after = self._findings(Workspace(self._workspace.root, {item.path: item.text for item in changes}))
        return sorted((after - self._before).elements())


def outcomes(tree: Tree, changes: Sequence[Change], group: Callable[[str], str]) -> dict[Change, list[Finding]]:
    """What is new after each change. Changes of different groups of files are made together; if something is new in a group that
    is not changed, those without a finding are then made alone.
    """
    found: dict[Change, list[Finding]] = {}
    waiting = list(changes)
    while waiting:
        batch = {group(item.path): item for item in reversed(waiting)}
        new = tree.new(list(batch.values()))
        elsewhere = any(group(path) not in batch for _, path, _ in new)
        for key, item in batch.items():
            waiting.remove(item)
            own = [finding for finding in new if group(finding[1]) == key]
            found[item] = own or (tree.new([item]) if elsewhere else [])
    return found
