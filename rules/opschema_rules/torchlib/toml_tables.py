"""Tables of TOML files, if they have the expected form."""

from __future__ import annotations

import sys

from opschema_cli.project import Project


def text_of(project: Project, path: str) -> str:
    """Return the text of a file, with a replacement character for bytes that cannot be decoded."""
    return project.workspace.peek(path).decode("utf-8", "replace")


def read_toml(project: Project, path: str) -> dict[str, object]:
    """The root table of a file; empty where it does not parse."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found: dict[str, object] = tomllib.loads(text_of(project, path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return found


def table(value: object, *keys: str) -> dict[str, object]:
    """Return the table under some keys; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return the items of an array; empty for any other value."""
    return value if isinstance(value, list) else []
