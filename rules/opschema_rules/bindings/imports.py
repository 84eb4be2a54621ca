"""Extension modules as Python sees them: the files that use them, and the meanings of names there.

Each module whose dotted name is known stands among the modules of the tree. Others are reached through
:func:`torch.utils.cpp_extension.load`, and through classes that build them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.importing_files import importing_files
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.made_modules import extension_module, place_of
from opschema_cli.source.module_names import ModuleNames
from opschema_cli.source.program import Program
from opschema_cli.source.python import Expr, PythonFile
from opschema_rules.bindings.detection import python_marks
from opschema_rules.bindings.model import Binding, Module


class Target(msgspec.Struct, frozen=True):
    """The meaning of a dotted name: modules (builds of the same one) and a ``name`` in them, empty for the modules themselves.

    ``others`` are modules whose names are not known: any of them may be the one that is meant.
    """

    modules: tuple[Module, ...]
    name: str = ""
    others: tuple[Module, ...] = ()

    @property
    def bindings(self) -> list[Binding]:
        """The bindings of the name, in all builds."""
        return [item for module in self.modules for item in module.by_name.get(self.name, ())]

    def member(self, name: str) -> Target | None:
        """The meaning of a name in the modules; None in a function."""
        if self.name:
            return None
        inner, others = (
            tuple(module.submodules[name] for module in modules if name in module.submodules)
            for modules in (self.modules, self.others)
        )
        return Target(inner, "", others) if inner else Target(self.modules, name, self.others)

    @property
    def is_elsewhere(self) -> bool:
        """Whether one of the others has the name, too."""
        return any(self.name in item.known for item in self.others)

    @property
    def is_absent(self) -> bool:
        """Whether surely no module has the name."""
        modules = (*self.modules, *self.others)
        return all(item.closed for item in modules) and not any(self.name in item.known for item in modules)


class Extensions:
    """The extension modules of a tree, and the Python files that use them."""

    def __init__(self, project: Project, modules: Iterable[Module], inline: Mapping[tuple[str, int], Module]) -> None:
        self.project = project
        self.modules = list(modules)
        self.inline = inline
        files, is_file = project.workspace.files, project.workspace.is_file
        plain = Program(files, project.python)
        self.by_path: dict[str, list[Module]] = {}
        for module in self.modules:
            path = place_of(module.name, plain, is_file, module.path) if module.name else ""
            for one, item in _paths(path, module) if path else ():
                self.by_path.setdefault(one, []).append(item)
        self._made = {path: _stand_in(path, items) for path, items in self.by_path.items()}
        self.program = Program([*files, *self._made], self._load)
        self.bodies = Bodies(self.program, self.paths)
        self.unnamed = tuple(item for item in self.modules if not item.name and is_cpp(item.path))
        at = {path: Target(tuple(items), "", self.unnamed) for path, items in self.by_path.items()}
        self.names = ModuleNames(self.bodies, at, self._built)

    def _load(self, path: str) -> PythonFile | None:
        return self._made.get(path) or self.project.python(path)

    @cached_property
    def paths(self) -> list[str]:
        """The Python files that may use one of the modules."""
        words = {item.name.rpartition(".")[2] for item in self.modules if item.name}
        names = {name for module in self.modules for one in module.all() for name in one.known}
        found = dict.fromkeys(importing_files(self.project, self.program, self.by_path, words, names))
        builders = [f"{name}(".encode() for name in self.builders]
        for path, marks in python_marks(self.project) if self.modules else ():
            loads = marks.loads and builders
            if marks.extension or (loads and any(word in self.project.workspace.peek(path) for word in builders)):
                found[path] = None
        return [path for path in found if not path.endswith("setup.py")]

    @cached_property
    def builders(self) -> dict[str, tuple[Module, ...] | None]:
        """Classes with a method ``sources`` that returns the C++ files of modules, by name; None where those are not known."""
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

    def meaning(self, body: Body, dotted: str) -> Target | None:
        """What a dotted name means inside a body; None if that is no part of an extension module, or not known."""
        return self.names.meaning(body, dotted)

    def _built(self, body: Body, call: Expr) -> Target | None:
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


def _paths(path: str, module: Module) -> Iterator[tuple[str, Module]]:
    """The Python files that stand for a module and its submodules."""
    yield f"{path}/__init__.py" if module.submodules else f"{path}.py", module
    for name, item in module.submodules.items():
        if name.isidentifier():
            yield from _paths(f"{path}/{name}", item)


def _stand_in(path: str, modules: list[Module]) -> PythonFile:
    functions = dict.fromkeys(name for module in modules for name in module.by_name)
    others = dict.fromkeys(name for module in modules for name in module.known - set(module.submodules))
    return extension_module(path, functions, others, is_closed=all(module.closed for module in modules))
