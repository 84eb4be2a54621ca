"""Loads the extension modules of a workspace, their bindings, and the uses in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import NotUnderstood
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_rules.bindings.calls import Uses, read_uses
from opschema_rules.bindings.definitions import lost_functions
from opschema_rules.bindings.detection import BindingsOptions
from opschema_rules.bindings.functions import find_functions
from opschema_rules.bindings.imports import Extensions, Loaders
from opschema_rules.bindings.inline import Inline
from opschema_rules.bindings.model import Binding, Module
from opschema_rules.bindings.modules import read_modules
from opschema_rules.bindings.stubs import read_stubs

_NEXT = re.compile(rb"\b(?:reference_cast_error|next_overload|PYBIND11_TRY_NEXT_OVERLOAD|NB_NEXT_OVERLOAD)\b")
_OF_LIBRARY = re.compile(r"\binclude/(?:pybind11|nanobind)/")


def _passes_on(data: bytes) -> bool:
    return _NEXT.search(data) is not None


_PASSES_ON = Reading("bindings next overload", _passes_on, bool)


class Tree(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The modules of a workspace, whose bindings know their functions."""

    project: Project
    modules: list[Module]
    inline: Inline

    @property
    def bindings(self) -> Iterator[Binding]:
        """All bindings."""
        return (item for module in self.modules for one in module.all() for item in one.bindings)

    @cached_property
    def passes_on(self) -> bool:
        """Whether a function may pass a call on to the next overload, other than those of pybind11 and nanobind."""
        paths = {*filter(is_cpp, self.project.workspace.files), *(item.path for item in self.modules)}
        own = sorted(path for path in paths if not _OF_LIBRARY.search(path))
        return any(found for _, found in self.project.scan(_PASSES_ON, own))

    @cached_property
    def extensions(self) -> Extensions:
        """The modules as seen by Python."""
        return Loaders(self.project, self.modules, self.inline.modules).extensions

    @cached_property
    def uses(self) -> Uses:
        """The uses of the modules in Python."""
        return read_uses(self.extensions)


def load(project: Project, options: BindingsOptions) -> Loaded:
    """Load all modules, and the code that they are compared with."""
    tree = read_tree(project, options)
    loaded = Loaded(files=list(dict.fromkeys(item.path for item in tree.modules)), subjects=[tree])
    for module in tree.modules:
        for one in module.all():
            loaded.subjects += [one, *one.bindings, *one.aliases]
            loaded.entries += [
                Entry(item.path, item.step.span, item.step.span, item.qualified) for item in one.bindings
            ]
    bindings = list(tree.bindings)
    loaded.ops = len({item.qualified for item in bindings})
    loaded.partly = len({item.qualified for item in bindings if item.parameters is None})
    loaded.unresolved = [NotUnderstood(item.function_place, item.unresolved) for item in bindings if item.unresolved]
    loaded.unresolved += [
        NotUnderstood(module.place, f"nothing that `{module.shown}` binds could be followed")
        for module in tree.modules
        if not module.closed and not any(one.bindings or one.aliases or one.names for one in module.all())
    ]
    loaded.late.append(lambda: [*lost_functions(project, bindings), *tree.inline.lost])
    loaded.late.append(lambda: [*tree.uses.calls, *tree.uses.missing])
    loaded.late.append(lambda: read_stubs(tree.extensions))
    return loaded


@lru_cache(maxsize=2)
def read_tree(project: Project, options: BindingsOptions) -> Tree:
    """The modules of a workspace, read once."""
    tree = Tree(project, read_modules(project, options), Inline(project))
    tree.modules.extend(tree.inline.written)
    find_functions(project, tree.bindings)
    tree.modules.extend(item for item in tree.inline.modules.values() if item not in tree.inline.written)
    return tree
