"""Unified diffs of entire files, as ``opschema lint --diff`` prints them; without colour, ``patch`` accepts them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.line_diff import LineMatcher

if TYPE_CHECKING:
    from rich.console import Console

_CONTEXT = 3
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def unified_diff(path: str, before: str | None, after: str | None) -> list[str]:
    """The lines of one file's diff, each without its line feed; a carriage return before that is the line's own.

    None is a text of no file.
    """
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    old, new = _lines(before or ""), _lines(after or "")
    found: list[str] = []
    for group in LineMatcher(old, new).get_grouped_opcodes(_CONTEXT):
        found += [] if found else [f"--- {names[0]}", f"+++ {names[1]}"]
        first, last = group[0], group[-1]
        found.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@")
        for kind, i, i2, j, j2 in group:
            changed = [(" ", old[i:i2])] if kind == "equal" else [("-", old[i:i2]), ("+", new[j:j2])]
            found += (text for sign, lines in changed for line in lines for text in _marked(sign, line))
    return found


def _range(start: int, stop: int) -> str:
    """Lines as a hunk's head names them."""
    length = stop - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"


def _marked(sign: str, line: str) -> Iterator[str]:
    yield sign + line.removesuffix("\n")
    if not line.endswith("\n"):
        yield "\\ No newline at end of file"


def _lines(text: str) -> list[str]:
    """Lines as `patch` counts them: it knows no line end but the line feed."""
    return list(io.StringIO(text, newline="\n"))


def print_diff(console: Console, lines: Iterable[str]) -> None:
    """Print a diff, and escape the control characters of its files for a terminal."""
    from rich.text import Text

    for line in lines:
        style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
        console.print(Text(visible(line.removesuffix("\r")), style=style), soft_wrap=True)
