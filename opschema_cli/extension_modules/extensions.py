"""The extension modules of a tree among its Python modules: each one with a known dotted name has a Python stand-in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Generic

from opschema_cli.extension_modules.model import M, Target
from opschema_cli.file_kinds import is_cpp
from opschema_cli.importing_files import importing_files
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.made_modules import extension_module, place_of
from opschema_cli.source.module_names import ModuleNames
from opschema_cli.source.program import Program
from opschema_cli.source.python import Expr, PythonFile


class Extensions(Generic[M]):
    """The modules, and the Python files that use them. ``by_path`` are the modules by the Python files that they stand for.

    ``made`` gives the module that a call compiles or loads; ``callers`` are files with such calls.
    """

    def __init__(
        self,
        project: Project,
        modules: Iterable[M],
        made: Callable[[Body, Expr], Target[M] | None],
        callers: Iterable[str] = (),
    ) -> None:
        self.project = project
        self.modules = list(modules)
        self.callers = callers
        files, is_file = project.workspace.files, project.workspace.is_file
        plain = Program(files, project.python)
        self.by_path: dict[str, list[M]] = {}
        for module in self.modules:
            path = place_of(module.name, plain, is_file, module.path) if module.name else ""
            for one, item in _paths(path, module) if path else ():
                self.by_path.setdefault(one, []).append(item)
        self._stand_ins = {path: _stand_in(path, items) for path, items in self.by_path.items()}
        self.program = Program([*files, *self._stand_ins], self._load)
        project.load_python(self.paths)
        self.bodies = Bodies(self.program, self.paths)
        self.unnamed = tuple(item for item in self.modules if not item.name and is_cpp(item.path))
        at = {path: Target(tuple(items), "", self.unnamed) for path, items in self.by_path.items()}
        self.names = ModuleNames(self.bodies, at, made)

    def _load(self, path: str) -> PythonFile | None:
        return self._stand_ins.get(path) or self.project.python(path)

    @cached_property
    def paths(self) -> list[str]:
        """The Python files that may use one of the modules."""
        words = {item.name.rpartition(".")[2] for item in self.modules if item.name}
        names = {name for module in self.modules for one in module.all() for name in one.known}
        importing = importing_files(self.project, self.program, self.by_path, words, names)
        return [path for path in dict.fromkeys((*importing, *self.callers)) if not path.endswith("setup.py")]

    def stubs(self) -> Iterator[tuple[PythonFile, M]]:
        """The stub (``.pyi``) beside each module, if there is exactly one of both."""
        for path, modules in self.by_path.items():
            plain = f"{path.removesuffix('.py').removesuffix('/__init__')}.pyi"
            found = [item for item in {f"{path}i": None, plain: None} if self.project.workspace.is_file(item)]
            file = self.project.python(found[0]) if len(modules) == len(found) == 1 else None
            if file is not None:
                yield file, modules[0]

    def may_be_another(self, path: str, target: Target[M]) -> bool:
        """Whether a file that names a module may mean another one: the tree has several copies of the module's package, and the
        file is in none of them, or in another one.
        """
        return not any(self._is_surely(path, item) for item in target.modules)

    def _is_surely(self, path: str, module: M) -> bool:
        package, dot, _ = module.name.partition(".")
        roots = self._copies(package) if dot else ()
        own = (root for root in roots if self._places.get(id(module), "").startswith(root))
        return len(roots) < 2 or path.startswith(max(own, key=len, default="\n"))

    def _copies(self, package: str) -> Sequence[str]:
        """The folders, each with a slash behind it, from which a package can be imported."""
        folders = (f"{folder}/" if folder else "" for folder in self.program.roots.get(package, ()))
        return [folder for folder in folders if f"{folder}{package}/__init__.py" in self.program.files]

    @cached_property
    def _places(self) -> dict[int, str]:
        """The Python files that stand for modules, by the ids of these."""
        return {id(item): path for path, items in self.by_path.items() for item in items}

    def meaning(self, body: Body, dotted: str) -> Target[M] | None:
        """The meaning of a dotted name inside a body; None if it is not part of an extension module, or not known."""
        return self.names.meaning(body, dotted)


def _paths(path: str, module: M) -> Iterator[tuple[str, M]]:
    """The Python files that stand for a module and its submodules."""
    yield f"{path}/__init__.py" if module.submodules else f"{path}.py", module
    for name, item in module.submodules.items():
        if name.isidentifier():
            yield from _paths(f"{path}/{name}", item)


def _stand_in(path: str, modules: list[M]) -> PythonFile:
    functions = dict.fromkeys(name for module in modules for name in module.by_name)
    others = dict.fromkeys(name for module in modules for name in module.known - set(module.submodules))
    return extension_module(path, functions, others, is_closed=all(module.closed for module in modules))
