"""The FlyDSL code of a workspace: as one tree, and file by file, each with the code of other files that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

import msgspec

from opschema_cli.code_values import CodeValues, Group, kept_value
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef, Program
from opschema_cli.source.python import PythonFile
from opschema_cli.source.text import Span
from opschema_rules.flydsl.answers import PACKAGE, Answers
from opschema_rules.flydsl.contract import find_contract
from opschema_rules.flydsl.detection import FlydslOptions, holding
from opschema_rules.flydsl.file_index import FILE_INDEX, FileIndex
from opschema_rules.flydsl.model import CONTRACT, FlyTree, Traced
from opschema_rules.flydsl.names import Names
from opschema_rules.flydsl.own_package import OwnPackage
from opschema_rules.flydsl.reader import Reader
from opschema_rules.flydsl.reexports import importing
from opschema_rules.flydsl.words import Words

T = TypeVar("T")

MAX_UNPACKED = 1_200_000
"""Maximum number of characters in files whose functions stay unpacked; unpacked functions take about 25 times the space."""


class Listed(msgspec.Struct, array_like=True):
    """A function that a file traces, or a function of another file that it traces."""

    path: str
    key: Span
    span: Span
    title: str
    kernel: bool


class FlyCode:
    """All code of the workspace that uses FlyDSL."""

    name = "the FlyDSL code"

    def __init__(self, project: Project, options: FlydslOptions) -> None:
        self.project = project
        self.contract = find_contract(project, options.version)
        self._files: dict[str, PythonFile | None] = {}
        self.program = Program(project.workspace.files, self._load)
        self.package = OwnPackage(project, self.program, self.contract)
        indexes = self._indexes()
        self.program.package_files = [path for path, index in indexes.items() if self._may_patch(index)]
        self.words = Words(indexes, self.package.paths, self._settings())
        self.answers = Answers(project, self.package, lambda name: self.values.group(name))
        self._trees: dict[str, FlyTree] = {}
        self._shared: Bodies | None = None
        self._unpacked = 0

    def _load(self, path: str) -> PythonFile | None:
        """Load a file; its functions are unpacked for this pack alone, so they can be dropped again."""
        if path not in self._files:
            file = self.project.python(path)
            self._files[path] = file.with_own_bodies() if file is not None else None
        return self._files[path]

    def _indexes(self) -> dict[str, FileIndex]:
        """The index of each file with FlyDSL code, in workspace order."""
        found = self.project.python_readings(FILE_INDEX, holding(self.project))
        more = importing(self.project, found, self.package.paths)
        if not more:
            return found
        found |= self.project.python_readings(FILE_INDEX, more)
        return {path: found[path] for path in self.project.workspace.files if path in found}

    def _settings(self) -> Iterable[FileIndex]:
        """Yield the indexes of test configuration files, which may replace functions by name alone."""
        files = (path for path in self.project.workspace.files if path.rpartition("/")[2] == "conftest.py")
        return self.project.python_readings(FILE_INDEX, files).values()

    def _may_patch(self, index: FileIndex) -> bool:
        """Whether a file may write to classes of the workspace from outside."""
        return any(all(package in self.program.roots for package in write.split()) for write in index.patching)

    @cached_property
    def files(self) -> list[FlyFile]:
        """Its files, one by one."""
        return [FlyFile(self, path) for path in self.words.indexes]

    @cached_property
    def tree(self) -> FlyTree:
        """Its code as one tree."""
        return self._tree(self.program, list(self.words.indexes), lambda name: None)

    @cached_property
    def values(self) -> CodeValues[bytes]:
        """The cached values that depend on the code of each file."""
        return CodeValues(self.project, self.program, "flydsl files", bytes, self._state)

    def _state(self, name: str) -> str:
        """Return the state of a dependency that is not a file."""
        if name == CONTRACT:
            return repr(self.contract)
        if name == PACKAGE:
            return self.package.state
        return self.answers.state(name) if Answers.is_question(name) else self.words.state(name)

    def tree_of(self, path: str) -> FlyTree:
        """Return the tree of one file and the code of others that it needs. The latest trees are kept, up to
        :data:`MAX_UNPACKED`.
        """
        if path not in self._trees:
            file = self.program.load(path)
            self._unpacked += len(file.source.text) if file is not None else 0
            if self._unpacked > MAX_UNPACKED:
                self._forget()
            group = self.values.group(path)
            group.reads_value(CONTRACT)
            tree = self._trees[path] = self._tree(group.program, [path], group.reads_value)
            _listed(group, lambda: tree)  # while it is there: it is asked for at the end of a run
        return self._trees[path]

    def _forget(self) -> None:
        """Drop all trees and their unpacked functions. They form reference cycles, and no collector runs during `opschema lint`."""
        self._unpacked = 0
        for tree in self._trees.values():
            for kept in (vars(tree), tree.failing):
                kept.clear()
            del tree.finder
        self._trees.clear()
        if self._shared is not None:
            self._shared.forget()
            self._shared = None
        for file in filter(None, self._files.values()):
            file.forget_bodies()

    def _tree(self, program: Program, paths: list[str], note: Callable[[str], None]) -> FlyTree:
        words, answers = self.words.noting(note), self.answers.noting(note)

        def callers(target: Body) -> list[str]:
            name = target.function.name if target.function is not None else ""
            return words.in_order(words.calling(name, target.file.path))

        def heirs(ref: ClassRef) -> list[str]:
            return words.inheriting(ref.cls.name)

        bodies = Bodies(program, self.words.indexes, lambda file: words.indexes[file.path].words, callers, heirs)
        if program is not self.program:
            self._shared = self._shared or bodies
            bodies.share_calls(self._shared)
        names = Names(bodies, answers)
        tree = FlyTree(self.project, bodies, names, self.contract, self.package, answers, words, paths)
        tree.finder = Reader(tree)
        return tree


class FlyFile:
    """One file of FlyDSL code. Its results are kept while the file and its dependencies stay the same."""

    def __init__(self, code: FlyCode, path: str) -> None:
        self.code = code
        self.path = path

    @property
    def name(self) -> str:
        """Its path."""
        return self.path

    @property
    def kept(self) -> Group[bytes]:
        """Results of earlier runs for this file."""
        return self.code.values.group(self.path)

    @property
    def tree(self) -> FlyTree:
        """Its code."""
        return self.code.tree_of(self.path)

    @property
    def listed(self) -> list[Listed]:
        """The functions that it traces."""
        return _listed(self.kept, lambda: self.tree)

    def value(self, key: str, kind: type[T], find: Callable[[FlyTree], T]) -> T:
        """Return a value that depends on its code and that msgspec can encode."""
        return kept_value(self.kept, key, kind, lambda: find(self.tree))


def _listed(group: Group[bytes], tree: Callable[[], FlyTree]) -> list[Listed]:
    return kept_value(group, "traced", list[Listed], lambda: [_in_list(item) for item in tree().traced])


def _in_list(item: Traced) -> Listed:
    return Listed(item.body.file.path, item.function.span, item.function.outer, item.title, item.kind == "kernel")


def read_tree(project: Project, options: FlydslOptions) -> FlyTree:
    """Read the FlyDSL code of a workspace as one tree."""
    return FlyCode(project, options).tree
