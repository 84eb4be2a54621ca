"""Unified diffs of whole files, as ``opschema lint --diff`` prints them; without colour, ``patch`` accepts them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from opschema_cli.reporters.escape import visible
from opschema_cli.source.text import Source

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def unified_diff(path: str, before: str, after: str) -> list[str]:
    """The lines of one file's diff, each without its line end."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    found: list[str] = []
    for line in lines:
        found.append(line.rstrip("\r\n"))
        if not line.endswith(("\n", "\r")):
            found.append("\\ No newline at end of file")
    return found


def print_diff(console: Console, changes: Iterable[tuple[str, Source | None, str]]) -> None:
    """Print the diff of each (path, old source, new text)."""
    from rich.text import Text

    for path, source, after in changes:
        for line in unified_diff(path, source.text if source is not None else "", after):
            style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
            # A terminal must not obey what a file says; a pipe gets the bytes that `patch` needs.
            text = visible(line) if console.is_terminal else line
            console.print(Text(text, style=style), soft_wrap=True)
