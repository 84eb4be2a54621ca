"""The modules of a tree for its Python code, those included that it compiles itself: with ``load`` and ``load_inline`` of
``torch.utils.cpp_extension``, and with classes that name the sources of a module.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from opschema_cli.extension_modules import extensions, guards, model, uses
from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.bindings.detection import python_marks
from opschema_rules.bindings.model import Binding, Module

Extensions: TypeAlias = extensions.Extensions[Module]
Guards: TypeAlias = guards.Guards[Module]
ModuleCall: TypeAlias = uses.ModuleCall[Module]
Target: TypeAlias = model.Target[Module]


def bindings_of(target: Target) -> list[Binding]:
    """The bindings that a name means, in all builds."""
    modules = (module for module in target.modules if target.name not in module.names)  # else it may be a class
    return [item for module in modules for item in module.by_name.get(target.name, ())]


class Loaders:
    """The calls that compile or load modules; ``inline`` are those of ``load_inline`` by their places."""

    def __init__(self, project: Project, modules: Iterable[Module], inline: Mapping[tuple[str, int], Module]) -> None:
        self.project = project
        self.modules = list(modules)
        self.inline = inline

    @cached_property
    def extensions(self) -> Extensions:
        """The modules as seen by Python."""
        return Extensions(self.project, self.modules, self._made, list(self._callers()))

    @cached_property
    def builders(self) -> dict[str, tuple[Module, ...] | None]:
        """Return the classes with a method ``sources`` that returns the C++ files of modules, by name; None if these are not
        known.
        """
        found: dict[str, tuple[Module, ...] | None] = {}
        for path, marks in python_marks(self.project):
            file = self.project.python(path) if marks.sources else None
            for cls in file.body.classes if file is not None else ():
                method = cls.body.function("sources")
                if method is None:
                    continue
                named = tuple(self._named(method.peek_body().returns))
                earlier = found.get(cls.name, ())
                found[cls.name] = (*earlier, *named) if named and earlier is not None else None
        return found

    def _callers(self) -> Iterator[str]:
        """The files that may load a module."""
        peek, builders = self.project.workspace.peek, [f"{name}(".encode() for name in self.builders]
        for path, marks in python_marks(self.project) if self.modules else ():
            if marks.extension or (marks.loads and any(word in peek(path) for word in builders)):
                yield path

    def _made(self, body: Body, call: Expr) -> Target | None:
        """The module that a call compiles, or a class builds."""
        last, given, owner = call.items[0].member, call.positional(), call.items[0].owner
        if last == "load_inline":
            made = self.inline.get((body.file.path, call.start))
            return Target((made,)) if made is not None else None
        if last != "load":
            return None
        if owner is not None and owner.kind == "name" and owner.text:
            values = [item.value for item in body.scope.assigns if item.target == owner.text]
            owner = values[0] if len(values) == 1 else owner
        if owner is not None and owner.kind == "call":
            built = self.builders.get(owner.items[0].member)
            return Target(built) if built else None
        sources = call.keyword("sources") or (given[1] if len(given) > 1 else None)
        named = tuple(self._named([sources] if sources is not None else ()))
        return Target(named) if len(named) == 1 else None

    def _named(self, values: Iterable[Expr]) -> Iterator[Module]:
        """The modules whose files some expressions name."""
        parts = (item.value for value in values for item in value.walk() if item.kind == "const")
        texts = [posixpath.normpath(item).lstrip("./") for item in parts if isinstance(item, str) and "." in item]
        yield from (item for item in self.modules if any(f"/{item.path}".endswith(f"/{text}") for text in texts))
