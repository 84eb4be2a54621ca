"""Edits of the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.source.python import Expr
from opschema_cli.source.text import Edit, Span


def with_arguments(text: str, call: Expr, arguments: Sequence[str]) -> Edit | None:
    """Return the edit that adds arguments to a call after the others: each on a line of its own if these end with a comma and a
    line break, as formatters write them. None if a comment precedes the closing bracket.
    """
    last = call.items[-1]
    between = text[last.end : call.end - 1]
    kept = between.rstrip()  # the opening bracket, if there are no arguments; brackets around the last one; a comma
    if "#" in between:
        return None
    at = Span(last.end + len(kept), last.end + len(kept))
    if kept.endswith(",") and "\n" in between[len(kept) :]:
        line_end = "\r\n" if "\r\n" in between else "\n"
        line = text[text.rfind("\n", 0, last.start) + 1 : last.start]
        indent = line[: len(line) - len(line.lstrip())]
        return Edit(at, "".join(f"{line_end}{indent}{item}," for item in arguments))
    before = "" if len(call.items) == 1 else " " if kept.endswith(",") else ", "
    return Edit(at, before + ", ".join(arguments))
