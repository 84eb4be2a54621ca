"""Files that import FlyDSL's names, or functions made with them, from another module of the workspace, so that they may not contain
the word ``flydsl``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from opschema_cli.importing_files import IMPORTED
from opschema_cli.project import Project
from opschema_cli.source.program import FunctionRef, ModuleRef, Program, Resolution
from opschema_cli.source.python import Import, PythonFile, Scope
from opschema_rules.flydsl.answers import meaning_of
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.file_index import FileIndex


def importing(project: Project, indexes: dict[str, FileIndex], package: Iterable[str]) -> list[str]:
    """Return the files that import FlyDSL's names, functions that it decorates, or functions around these. They import them from
    indexed files or from one another; files of the package itself are left out.
    """
    own = set(package)
    named = {path: {*index.exported, *index.making} for path, index in indexes.items() if path not in own}
    exporting = {path: names for path, names in named.items() if names}
    if not exporting:
        return []
    making = {path: set(index.making) for path, index in indexes.items()}
    program = Program(project.workspace.files, project.python)
    others = (
        path for path in project.workspace.files if path.endswith(".py") and path not in indexes and path not in own
    )
    waiting = dict(project.scan(IMPORTED, others))
    added: list[str] = []
    while exporting:
        words = {_word(path) for path in exporting}
        near = ((path, [item for item in names if _is_near(*item, words)]) for path, names in waiting.items())
        candidates = [path for path, names in near if any(_may_lead(program, path, exporting, *item) for item in names)]
        project.load_python(candidates)
        found = {path: set(names) for path in candidates if (names := _names(program, path, making))}
        added += found
        for path in found:
            del waiting[path]
        exporting = found
    return added


def _word(path: str) -> str:
    """The last word of a module's name."""
    return path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]


def _is_near(module: str, name: str, words: Set[str]) -> bool:
    """Whether an import may load a module with one of these last words, or a name from one; the package of the file itself (``from
    . import x``) has no name here.
    """
    last = module.rpartition(".")[2]
    return not last or last in words or name in words


def _may_lead(program: Program, path: str, exporting: Mapping[str, Set[str]], module: str, name: str) -> bool:
    """Whether an import loads a module that has FlyDSL's names, or imports one of these names."""
    plain = module.lstrip(".")
    full = program.absolute_name(path, len(module) - len(plain), plain)
    target = program.module_path(full) if full else None
    names = exporting.get(target) if target is not None else None
    if names is not None and (name in ("", "*") or name in names or "*" in names):
        return True
    return bool(full and name) and program.module_path(f"{full}.{name}") in exporting


_Making = Mapping[str, Set[str]]
"""The functions that FlyDSL decorates and the functions around these, by file."""


def _names(program: Program, path: str, making: _Making) -> list[str]:
    """Return the names that a file imports from other modules and that refer to FlyDSL, a part of it, a function of ``making``, or
    a module that has one.
    """
    file = program.load(path)
    if file is None:
        return []
    scopes = list(file.body.walk())
    uses = {use.name for scope in scopes for use in scope.uses}
    uses |= {item.target for scope in scopes for item in scope.assigns if "." in item.target}
    imports = [(scope, item) for scope in scopes for item in scope.imports]
    return sorted({name for scope, item in imports for name in _led(program, file, scope, item, uses, making)})


def _led(
    program: Program, file: PythonFile, scope: Scope, item: Import, uses: set[str], making: _Making
) -> Iterator[str]:
    around = () if scope is file.body else (scope,)
    if item.attr == "*":
        names = {name.partition(".")[0] for name in uses}
        yield from (name for name in names if _is_of_package(program, program.resolve(file, name), making))
        return
    found = program.resolve(file, item.name, around)
    used = {name for name in uses if name.startswith(f"{item.name}.")}
    below = used | {".".join(name.split(".")[:2]) for name in used}
    inner = (program.resolve(file, name, around) for name in below) if isinstance(found, ModuleRef) else ()
    if _is_of_package(program, found, making) or any(_is_of_package(program, item, making) for item in inner):
        yield item.name


def _is_of_package(program: Program, found: Resolution, making: _Making) -> bool:
    if isinstance(found, FunctionRef):
        return found.owner is None and found.function.name in making.get(found.file.path, ())
    return meaning_of(program, found).name.partition(".")[0] == ROOT
