"""A description's name for the enum of directions; the enum is imported where it is missing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import libcst as cst

from opschema_cli.migrate.codemods.new_imports import extend_import
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.migrate.draft import Draft
from opschema_cli.source.python import Import, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Edit, Span
from opschema_rules.pypto.dict_edits import enum_of
from opschema_rules.pypto.model import Program

_MODULE, _ENUM = "simpler.task_interface", "ArgDirection"


class EnumNames:
    """The name of the enum in each file; for files without it, the name that most other files use."""

    def __init__(self, draft: Draft, programs: Sequence[Program]) -> None:
        self._draft = draft
        self._programs = programs
        self._known: dict[str, str] = {}
        self._needed: dict[str, list[Edit]] = {}

    def of(self, program: Program) -> str:
        """Return the enum's name in a program's file.

        Raises:
            Refused: the file does not import it, and the names that it could have are taken.
            TreeError: the file does not parse.
        """
        path = program.file.path
        if path not in self._known:
            own = [item for item in self._programs if item.file.path == path]
            spelled = next((name for item in (program, *own) if (name := enum_of(item))), "")
            self._known[path] = spelled or _imported(program.file) or self._new(program)
        return self._known[path]

    def use(self, program: Program) -> None:
        """Record the import that a file needs for the name returned by :meth:`of`."""
        self._draft.edit(program.file.path, self._needed.pop(program.file.path, []))

    def _new(self, program: Program) -> str:
        imports = [item for other in self._programs for item in _imports(other.file)]
        module = _commonest((item.module for item in imports), _MODULE)
        alias = _commonest((item.name for item in imports), "D")
        tree = PythonTree.parse(self._draft.text(program.file.path))
        name = next((item for item in (alias, "D", "_D", _ENUM) if not tree.names(item)), None)
        if name is None:
            raise Refused([Problem(0, f"`{alias}` is used here already")])
        self._needed[program.file.path] = _import_edits(tree, module, name, program.span.start)
        return name


def _imports(file: PythonFile) -> list[Import]:
    """Return the imports of the enum that apply to an entire module."""
    return [item for item in file.facts.body.imports if item.attr == _ENUM and not item.level]


def _imported(file: PythonFile) -> str:
    return next((item.name for item in file.facts.body.imports if item.attr == _ENUM), "")


def _commonest(names: Iterable[str], default: str) -> str:
    counted = Counter(names).most_common(1)
    return counted[0][0] if counted else default


def _import_edits(tree: PythonTree, module: str, name: str, before: int) -> list[Edit]:
    """Return the edits that import the enum above an offset: in an existing import from its module, otherwise on a new line."""
    rewrite = Rewrite(tree)
    written = _ENUM if name == _ENUM else f"{_ENUM} as {name}"
    lines = [item for item in tree.module.body if isinstance(item, cst.SimpleStatementLine)]
    imports = [line for line in lines if _module(line) and tree.span(line).end <= before]
    for line in imports:
        small = line.body[0]
        if (
            isinstance(small, cst.ImportFrom)
            and _module(line) == module
            and not isinstance(small.names, cst.ImportStar)
        ):
            extend_import(rewrite, small, written)
            return rewrite.edits()
    newline = tree.module.default_newline
    at = _place(tree, imports, module)
    gap = (newline if at else "", newline) if not imports else ("", "")
    rewrite.replace(Span(at, at), f"{gap[0]}from {module} import {written}{newline}{gap[1]}")
    return rewrite.edits()


def _place(tree: PythonTree, imports: Sequence[cst.SimpleStatementLine], module: str) -> int:
    """Return the place of a new import: in order in the first block of imports that are not from the standard library."""
    foreign = [line for line in imports if _module(line).partition(".")[0] not in sys.stdlib_module_names]
    if not foreign:
        return tree.line_end(tree.span(imports[-1]).end) if imports else _behind_docstring(tree)
    end = foreign[0]
    for line in foreign:
        between = tree.text[tree.line_end(tree.span(end).end) : tree.line_start(tree.span(line).start)]
        if line is not end and between.strip(" \t"):
            break
        if isinstance(line.body[0], cst.ImportFrom) and _module(line) > module:
            return tree.top(line.body[0])
        end = line
    return tree.line_end(tree.span(end).end)


def _module(line: cst.SimpleStatementLine) -> str:
    """Return the module in an import line; empty for a relative import, and for any other line."""
    small = line.body[0]
    if isinstance(small, cst.ImportFrom):
        return "" if small.relative else dotted(small.module)
    return dotted(small.names[0].name) if isinstance(small, cst.Import) else ""


def _behind_docstring(tree: PythonTree) -> int:
    first = tree.module.body[0] if tree.module.body else None
    small = first.body[0] if isinstance(first, cst.SimpleStatementLine) else None
    documents = first is not None and isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)
    return tree.line_end(tree.span(first).end) if first is not None and documents else 0
