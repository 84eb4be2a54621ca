"""Which version of torch a tree is for: the newest one that its requirements admit."""

from __future__ import annotations

import re

from opschema_cli.project import Project
from opschema_rules.torchlib.type_table import NEWEST, Version

_FILES = re.compile(r"(?:pyproject\.toml|setup\.py|setup\.cfg|requirements[\w.-]*\.(?:txt|in))\Z")
_PIN = re.compile(
    r"""(?m)(?:^|["'\s])torch\s*(?:\[[^\]]*\])?\s*((?:(?:[<>=~!]=|===|[<>])\s*[\d.]+[^,;"'\s]*\s*,?\s*)+)"""
)
_CLAUSE = re.compile(r"(~=|===?|<=|<)\s*(\d+)\.(\d+)(\.[1-9])?")


def read_version(text: str) -> Version | None:
    """A version as an option gives it (``2.6``); None when it is none."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def find_version(project: Project) -> Version:
    """The newest version that a file of requirements in the root admits; the newest known without one."""
    found = [pin for path in project.workspace.files if _FILES.match(path) for pin in _pins(project, path)]
    return min(max(found), NEWEST) if found else NEWEST


def _pins(project: Project, path: str) -> list[Version]:
    text = project.workspace.peek(path).decode("utf-8", "replace")
    return [newest(match[1]) for match in _PIN.finditer(text)]


def newest(clauses: str) -> Version:
    """The newest version that clauses as ``>=2.4,<2.7`` admit, as far as minor versions go."""
    admitted = [NEWEST]
    for operator, major, minor, patch in _CLAUSE.findall(clauses):
        below = operator == "<" and not patch
        admitted.append((int(major), max(int(minor) - below, 0)))
    return min(admitted)
