"""Unified diffs of whole files, as ``opschema lint --diff`` prints them; without colour, ``patch`` accepts them."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from opschema_cli.reporters.escape import visible

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def unified_diff(path: str, before: str | None, after: str | None) -> list[str]:
    """The lines of one file's diff, each without its line feed; a carriage return before that is the line's own.

    None is a text of no file.
    """
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    lines = difflib.unified_diff(_lines(before or ""), _lines(after or ""), *names)
    found: list[str] = []
    for line in lines:
        found.append(line.removesuffix("\n"))
        if not line.endswith("\n"):
            found.append("\\ No newline at end of file")
    return found


def _lines(text: str) -> list[str]:
    """Lines as `patch` counts them: it knows no line end but the line feed."""
    return list(io.StringIO(text, newline="\n"))


def print_diff(console: Console, lines: Iterable[str]) -> None:
    """Print a diff on a terminal, which must not obey what a file says."""
    from rich.text import Text

    for line in lines:
        style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
        console.print(Text(visible(line.removesuffix("\r")), style=style), soft_wrap=True)
