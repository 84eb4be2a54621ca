"""FlyDSL's own files, where its package lies in the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from opschema_cli.project import Project
from opschema_cli.source.program import FunctionRef, Program
from opschema_cli.source.python import PythonFile
from opschema_cli.source.text import Place, Span
from opschema_rules.flydsl.api_reading import Package
from opschema_rules.flydsl.contract import Contract
from opschema_rules.flydsl.detection import JIT_ARGUMENT, ROOT, installed


class OwnPackage:
    """The package ``flydsl`` of a workspace; it has no files where the workspace only uses it."""

    def __init__(self, project: Project, program: Program, contract: Contract) -> None:
        self._project = project
        self._program = program
        self._folder = contract.source.removesuffix(JIT_ARGUMENT)
        self._own = contract.own
        self._definitions: dict[str, FunctionRef | None] = {}

    @cached_property
    def paths(self) -> list[str]:
        """The paths of its files; a module that a package of the same name hides is left out."""
        program = self._program
        hidden = {path.removesuffix("/__init__.py") + ".py" for path in program.files if path.endswith("/__init__.py")}
        paths = [path for path in sorted(program.files) if f"/{ROOT}/" in f"/{path}" and path not in hidden]
        return [path for path in paths if program.module_name(path).partition(".")[0] == ROOT]

    @property
    def files(self) -> Iterator[PythonFile]:
        """Yield those of its files that can be parsed."""
        return filter(None, map(self._program.load, self.paths))

    def definition(self, name: str) -> FunctionRef | None:
        """Return the only function of that name at the top level of a module."""
        if name not in self._definitions:
            mark, peek = f"def {name}(".encode(), self._project.workspace.peek
            paths = [path for path in self.paths if mark in peek(path)]  # the others are not decoded
            files = filter(None, map(self._program.load, paths))
            found = [(file, file.body.function(name)) for file in files]
            functions = [FunctionRef(file, function) for file, function in found if function is not None]
            self._definitions[name] = functions[0] if len(functions) == 1 else None
        return self._definitions[name]

    @cached_property
    def _installed(self) -> list[str]:
        return installed(self._project, self._folder)

    @cached_property
    def api(self) -> Package:
        """Return the names of its modules."""
        paths = self._installed
        self._project.load_python(paths)
        return Package([path.removeprefix(self._folder) for path in paths], self._load)

    def _load(self, path: str) -> PythonFile | None:
        return self._project.python(f"{self._folder}{path}")

    def place(self, module: str) -> Place:
        """Return the place of the start of a module, or of the module of an enumeration."""
        while module not in self.api.paths:
            module = module.rpartition(".")[0]
        return Place(f"{self._folder}{self.api.paths[module]}", Span(0, 0))

    def compiler_file(self, name: str) -> str:
        """Return the path of a file in its compiler folder."""
        return f"{self._folder}{JIT_ARGUMENT.rpartition('/')[0]}/{name}"

    @cached_property
    def state(self) -> str:
        """A digest of the paths and contents of its files."""
        paths = sorted({*self.paths, *(self._installed if self._own else ())})
        return " ".join(f"{path} {self._project.workspace.digest(path)}" for path in paths)
