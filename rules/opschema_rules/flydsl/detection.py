"""Detection of trees with FlyDSL kernels, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.importing_files import IMPORTED
from opschema_cli.lint.pack import Speed
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_rules.shipped import shipped_pack

MARK = "flydsl"
"""The word that every file that uses the package holds, or gets from one that does."""

_USES = re.compile(rb"(?m)^[ \t]*(?:import|from)[ \t]+flydsl\b")


class FlydslOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``version`` is the FlyDSL that the kernels are for (``0.4.2``); empty, the tree says it."""

    version: str = ""


EXTRA = "EXTRA_SOURCE_DIRS"
"""The variable that names folders whose files go into every key, in the environment or in FlyDSL."""

_HOLDS_EXTRA: Reading[bytes, bool] = Reading("flydsl extra folders", lambda data: EXTRA.encode() in data, bool)


_HOLDS_MARK = Reading("flydsl mentions", lambda data: MARK.encode() in data, bool, (_HOLDS_EXTRA, IMPORTED))


def holding(project: Project) -> Iterator[str]:
    """The Python files that hold the word."""
    return _found(project, _HOLDS_MARK)


def naming_folders(project: Project) -> Iterator[str]:
    """The Python files that name folders for the keys of kernels."""
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


def reads(project: Project, options: FlydslOptions) -> Iterator[str]:
    """The Python files that the pack reads in any case."""
    return holding(project)


def claims(project: Project, options: FlydslOptions, path: str) -> bool:
    """Whether a Python file imports the package."""
    return path.endswith(".py") and _imports(project.workspace.peek(path))


LAZY_PACK = shipped_pack(__name__, detect, FlydslOptions, claims, speed=Speed(reads))
