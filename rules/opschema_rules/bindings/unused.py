"""Bindings that nothing in the tree uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_rules.bindings.load import Tree
from opschema_rules.bindings.model import Binding, Module

_WORD = re.compile(rb"[A-Za-z_]\w*")
_READ = re.compile(rb'\battr\(\s*"(\w+)"\s*\)')
_MAX_BYTES = 4_000_000  # longer files are data


def unused_bindings(tree: Tree) -> Iterator[Binding]:
    """The bindings that nothing outside the C++ code mentions, of modules with other functions that Python uses."""
    modules = [item for item in _used(tree) if item.closed]
    names = {name for module in modules for name in module.by_name}
    aliased = {name for module in modules for alias in module.aliases for name in (alias.name, alias.target)}
    mentioned = _mentioned(tree.project, names, aliased) if names else set()
    for module in modules:
        aliases = {alias.target for alias in module.aliases if alias.name in mentioned}
        for binding in module.bindings:
            if binding.exact and binding.name not in mentioned and binding.name not in aliases:
                yield binding


def _used(tree: Tree) -> list[Module]:
    used = {id(module) for call in tree.uses.calls for module in call.use.target.modules}
    return [module for root in tree.modules for module in root.all() if id(module) in used]


def _mentioned(project: Project, names: Set[str], aliased: Set[str]) -> set[str]:
    """The names that files other than C++ have as words, and those that C++ reads from modules otherwise than for aliases."""
    words = {name.encode(): name for name in names}
    found: set[str] = set()
    for path in project.workspace.files:
        data = project.workspace.peek(path)
        if len(data) <= _MAX_BYTES and b"\0" not in data[:1024]:
            own = words.keys() & set((_READ if is_cpp(path) else _WORD).findall(data))
            found |= {words[word] for word in own} - (aliased if is_cpp(path) else set())
    return found
