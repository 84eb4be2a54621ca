"""Files that get FlyDSL's names from another module of the workspace, and so may not hold the word ``flydsl``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.import_text import import_statements
from opschema_cli.source.program import ModuleRef, Program, Resolution
from opschema_cli.source.python import Import, PythonFile, Scope
from opschema_rules.flydsl.answers import meaning_of
from opschema_rules.flydsl.file_index import FileIndex
from opschema_rules.flydsl.names import ROOT

_NAME = re.compile(r"([\w.]+|\*)(?:\s+as\s+\w+)?")


def _imported(data: bytes) -> list[tuple[str, str]]:
    """The modules that a text imports, and the names from modules, these with leading dots."""
    found: set[tuple[str, str]] = set()
    for module, names in import_statements(data.decode("utf-8", "replace")):
        words = (item[1] for item in _NAME.finditer(names))
        found.update((module, word) if module else (word, "") for word in words)
    return sorted(found)


_IMPORTED = Reading("flydsl imported names", _imported, list[tuple[str, str]])


def importing(project: Project, indexes: dict[str, FileIndex], package: Iterable[str]) -> list[str]:
    """The files that import FlyDSL's names from files with an index, or from one another; not those of the package itself."""
    own = set(package)
    program = Program(project.workspace.files, project.python)
    exporting = {path: set(index.exported) for path, index in indexes.items() if index.exported and path not in own}
    waiting = [
        path for path in project.workspace.files if path.endswith(".py") and path not in indexes and path not in own
    ]
    added: list[str] = []
    while exporting:
        wanted = [(_word(path).encode(), [name.encode() for name in names]) for path, names in exporting.items()]
        near = [path for path in waiting if _is_near(project.workspace.peek(path), wanted)]
        scanned = project.scan(_IMPORTED, near)
        candidates = [
            path for path, names in scanned if any(_may_lead(program, path, exporting, *item) for item in names)
        ]
        project.load_python(candidates)
        found = {path: set(names) for path in candidates if (names := _names(program, path))}
        added += found
        waiting = [path for path in waiting if path not in found]
        exporting = found
    return added


def _word(path: str) -> str:
    """The last word of a module's name."""
    return path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]


def _is_near(data: bytes, wanted: Iterable[tuple[bytes, list[bytes]]]) -> bool:
    """Whether a text holds the word of a module and one of the names that it has of FlyDSL."""
    return b"import" in data and any(
        word in data and (b"*" in names or any(name in data for name in names)) for word, names in wanted
    )


def _may_lead(program: Program, path: str, exporting: Mapping[str, Set[str]], module: str, name: str) -> bool:
    """Whether an import takes a module that has names of FlyDSL, or one of these names."""
    plain = module.lstrip(".")
    full = program.absolute_name(path, len(module) - len(plain), plain)
    target = program.module_path(full) if full else None
    names = exporting.get(target) if target is not None else None
    if names is not None and (name in ("", "*") or name in names or "*" in names):
        return True
    return bool(full and name) and program.module_path(f"{full}.{name}") in exporting


def _names(program: Program, path: str) -> list[str]:
    """The names that a file imports from other modules and that stand for FlyDSL, a part of it, or a module that has such."""
    file = program.load(path)
    if file is None:
        return []
    scopes = list(file.body.walk())
    uses = {use.name for scope in scopes for use in scope.uses}
    imports = [(scope, item) for scope in scopes for item in scope.imports]
    return sorted({name for scope, item in imports for name in _led(program, file, scope, item, uses)})


def _led(program: Program, file: PythonFile, scope: Scope, item: Import, uses: set[str]) -> Iterator[str]:
    around = () if scope is file.body else (scope,)
    if item.attr == "*":
        names = {name.partition(".")[0] for name in uses}
        yield from (name for name in names if _is_of_package(program, program.resolve(file, name)))
        return
    found = program.resolve(file, item.name, around)
    below = {".".join(name.split(".")[:2]) for name in uses if name.startswith(f"{item.name}.")}
    inner = (program.resolve(file, name, around) for name in below) if isinstance(found, ModuleRef) else ()
    if _is_of_package(program, found) or any(_is_of_package(program, item) for item in inner):
        yield item.name


def _is_of_package(program: Program, found: Resolution) -> bool:
    return meaning_of(program, found).name.partition(".")[0] == ROOT
