"""Ops that a change of files may affect, found statically in the tree after the change.

An op runs its own module and what that imports; of a package that hands names on, only what the names come from. A file that
is not Python belongs to the ops that run a module which names it: the file, its stem in quotes, or a pattern that it matches;
or names one that names it, as a kernel names a header. If nothing does, it belongs to every op that it could belong to.
"""

from __future__ import annotations

import fnmatch
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from opschema_cli.file_kinds import is_python
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.project import Project
from opschema_cli.source.modules import Modules
from opschema_cli.source.python import Import
from opschema_cli.verify.model import Plan, Target
from opschema_cli.verify.table_plans import module_files

_PROSE = (".md", ".rst")
_NATIVE = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hip", ".inc", ".inl", ".ipp", ".tpp"),
    *(".ptx", ".cubin", ".metal", ".mm", ".s", ".S", ".so", ".cmake", "CMakeLists.txt"),
)
_BUILDERS = ("setup.py", "CMakeLists.txt", "Makefile", "meson.build", "pyproject.toml", ".cmake")
_QUOTED = re.compile(r"""(["'])([^"'\n]*)\1""")
_LISTS = re.compile(r"\b(?:iterdir|listdir|scandir|walk)\(")


def affected(project: Project, plans: Sequence[Plan], touched: Collection[str], schema: Collection[str]) -> list[str]:
    """Return the ops, of these plans, that run a file among ``touched``; those of ``schema`` are declarations, which no op runs."""
    reach = Reach(project)
    runs = {plan.op: reach.of(path) for plan in plans if (path := module_file(project, plan.target))}
    packages = {plan.op: _package(plan.target) for plan in plans if plan.op in runs}
    modules = frozenset[str]().union(*runs.values())
    found: set[str] = set()
    for path in touched:
        if is_python(path):
            found |= {op for op, files in runs.items() if path in files}
        elif path not in schema and not path.endswith(_PROSE):
            candidates = {op for op, package in packages.items() if path.startswith(package)}
            if not candidates and path.endswith(_NATIVE):
                candidates = set(runs)
            namers = _namers(project, path, modules) if candidates else set()
            found |= {op for op, files in runs.items() if not files.isdisjoint(namers)} or candidates
    return [plan.op for plan in plans if plan.op in found]


def module_file(project: Project, target: Target) -> str:
    """The file of a target's module, empty if it is not there."""
    return next((path for path in module_files(target) if path in project.workspace.file_set), "")


def _package(target: Target) -> str:
    """The folder of a target's outermost package."""
    folder = (target.paths or (".",))[0]
    return f"{'' if folder == '.' else folder + '/'}{target.module.partition('.')[0]}/"


class Reach:
    """Modules of a tree that run when one is used."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._modules = Modules(project.workspace.files)

    def of(self, path: str) -> frozenset[str]:
        """The module of that file and all that it imports, in functions too."""
        seen: set[tuple[str, str]] = set()
        todo = [(path, "")]
        while todo:
            step = todo.pop()
            if step not in seen:
                seen.add(step)
                todo += self._next(*step)
        return frozenset(path for path, _ in seen)

    def _next(self, path: str, name: str) -> Iterator[tuple[str, str]]:
        """Yield the modules that one imports, or that it gets ``name`` from; each with the requested name."""
        file = self._project.python(path)
        if file is None:
            return
        imports = [item for scope in file.body.walk() for item in scope.imports]
        if name and any(item.name == name for item in imports):
            imports = [item for item in imports if item.name == name]
        for item in imports:
            module = self._modules.absolute_module(file, item)
            if module is not None:
                yield from self._imported(module, item)

    def _imported(self, module: str, item: Import) -> Iterator[tuple[str, str]]:
        inner = self._modules.module_path(f"{module}.{item.attr}") if item.attr else None
        path = inner or self._modules.module_path(module)
        if path is not None:
            handed_on = not inner and path.endswith("/__init__.py") and item.attr != "*"
            yield path, item.attr if handed_on else ""


def _namers(project: Project, path: str, modules: Collection[str]) -> set[str]:
    """Return the modules run by ops that name a file, or name one that does; all of them if the code that builds the library
    names it.
    """
    found: set[str] = set()
    todo, seen = [path], {path}
    while todo:
        here = todo.pop()
        name = PurePosixPath(here).name
        for source in texts_with(project, [name]):
            if source.path.endswith(_BUILDERS):
                return set(modules)
            if source.path in modules:
                found.add(source.path)
            elif source.path.endswith(_NATIVE) and source.path not in seen:
                seen.add(source.path)
                todo.append(source.path)
        found |= {module for module in modules if _may_load(project, module, here)}
    return found


def _may_load(project: Project, module: str, path: str) -> bool:
    """Whether a module has a file's stem in quotes, or a pattern that it matches, or lists folders."""
    source = project.source(module)
    if source is None:
        return False
    name, stem = PurePosixPath(path).name, PurePosixPath(path).stem
    ends = {match[2].rpartition("/")[2] for match in _QUOTED.finditer(source.text)}
    return (
        stem in ends
        or any("*" in end and fnmatch.fnmatch(name, end) for end in ends)
        or bool(_LISTS.search(source.text))
    )


def changes_code(before: str | None, after: str | None) -> bool:
    """Whether a Python file changes in more than comments, docstrings and layout."""
    codes = [_code(text) if text is not None else None for text in (before, after)]
    return None in codes or codes[0] != codes[1]


def _code(text: str) -> list[str] | None:
    """Return the tokens of a module without comments and docstrings; None if it cannot be tokenized."""
    found: list[str] = []
    line: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.NL):
                continue
            if token.type in (tokenize.INDENT, tokenize.DEDENT):
                found.append(tokenize.tok_name[token.type])
            elif token.type != tokenize.NEWLINE:
                line.append(token.string)
            else:
                found += [] if len(line) == 1 and line[0].endswith(('"', "'")) else [*line, "\n"]
                line = []
    except (tokenize.TokenError, SyntaxError):
        return None
    return found + line
