"""Detection of trees with FlyDSL kernels, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

from opschema_cli.importing_files import IMPORTED, leading_to
from opschema_cli.lint.pack import Speed
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.modules import Modules
from opschema_cli.source.python import Import
from opschema_rules.shipped import shipped_pack

ROOT = "flydsl"
"""The top package."""

MARK = ROOT
"""The word in every file that uses the package, or in the file that it imports the package's names from."""

JIT_ARGUMENT = "flydsl/compiler/jit_argument.py"
"""The file of FlyDSL that makes arguments of tensors; it distinguishes releases."""

NEAR = 10
"""One in this many files must turn out to be needed when files that import from it are parsed in advance."""

_USES = re.compile(rb"(?m)^[ \t]*(?:import|from)[ \t]+flydsl\b")


class FlydslOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``version`` is the FlyDSL that the kernels are for (such as ``0.4.2``); if empty, it is read from the tree."""

    version: str = ""


EXTRA = "EXTRA_SOURCE_DIRS"
"""The variable that lists folders whose files are part of every key, in the environment or in FlyDSL."""

_HOLDS_EXTRA: Reading[bytes, bool] = Reading("flydsl extra folders", lambda data: EXTRA.encode() in data, bool)


_HOLDS_MARK = Reading("flydsl mentions", lambda data: MARK.encode() in data, bool, (_HOLDS_EXTRA, IMPORTED))


def holding(project: Project) -> Iterator[str]:
    """Return the Python files that contain the word."""
    return _found(project, _HOLDS_MARK)


def naming_folders(project: Project) -> Iterator[str]:
    """Return the Python files that list folders for the keys of kernels."""
    return _found(project, _HOLDS_EXTRA)


def _found(project: Project, scan: Reading[bytes, bool]) -> Iterator[str]:
    paths = (path for path in project.workspace.files if path.endswith(".py"))
    return (path for path, found in project.scan(scan, paths) if found)


def detect(project: Project, options: FlydslOptions) -> bool:
    """Whether a file imports the package."""
    return next(_found(project, _IMPORTS), None) is not None


def _imports(data: bytes) -> bool:
    return MARK.encode() in data and _USES.search(data) is not None


_IMPORTS = Reading("flydsl imports", _imports, bool)


def is_of_flydsl(item: Import) -> bool:
    """Whether a name is imported from FlyDSL."""
    return not item.level and item.module.partition(".")[0] == ROOT


def own_sources(project: Project) -> list[str]:
    """Return the paths of FlyDSL's own :data:`JIT_ARGUMENT` in the workspace."""
    return [path for path in project.workspace.files if f"/{path}".endswith(f"/{JIT_ARGUMENT}")]


def installed(project: Project, folder: str) -> list[str]:
    """Return all Python files of FlyDSL's package in a folder, as an installation has them."""
    return [path for path in project.workspace.files if path.startswith(f"{folder}{MARK}/") and path.endswith(".py")]


def reads(project: Project, options: FlydslOptions) -> Iterator[str]:
    """Yield the Python files that the pack always reads: those with the word, and all of FlyDSL if the workspace develops it."""
    used: list[str] = []
    for path in holding(project):
        used.append(path)
        yield path
    own = own_sources(project) if not options.version else []
    package = installed(project, own[0].removesuffix(JIT_ARGUMENT)) if len(own) == 1 else []
    yield from package
    yield from _near(project, set(used).difference(package), {*used, *package})


def _near(project: Project, targets: Collection[str], known: Collection[str]) -> list[str]:
    """Return further files that import from ``targets``, if they are few: most of these get FlyDSL's names from there and are
    needed.
    """
    others = [path for path in project.workspace.files if path.endswith(".py") and path not in known]
    imported = dict(project.scan(IMPORTED, others))
    found = leading_to(Modules(project.workspace.files), imported, others, targets)
    return found if len(found) <= len(targets) // NEAR else []


def claims(project: Project, options: FlydslOptions, path: str) -> bool:
    """Whether a Python file imports the package."""
    return path.endswith(".py") and _imports(project.workspace.peek(path))


_ALONG = ("opschema_rules.flydsl.file_index:FILE_INDEX", "opschema_rules.flydsl.file_index:FREE_NAMES")

LAZY_PACK = shipped_pack(__name__, detect, FlydslOptions, claims, speed=Speed(reads, along=_ALONG))
