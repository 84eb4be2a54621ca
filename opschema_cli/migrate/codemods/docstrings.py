"""Parameters in docstrings: Google's ``Args:``, NumPy's ``Parameters``, and reST's ``:param x:``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.python_tree import Definition, PythonTree
from opschema_cli.source.text import Span

_GOOGLE = re.compile(
    r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters|Attributes):\s*\Z"
)
_NUMPY = re.compile(r"(Parameters|Other Parameters|Keyword Arguments|Attributes)\s*\Z")
_UNDERLINE = re.compile(r"-{3,}\s*\Z")
_REST = r":(?:param|parameter|arg|argument|key|keyword|type)\s(?:[^:\n]*\s)?(?P<name>\**{name})\s*:"


class _Line(NamedTuple):
    """A line of a docstring: its start and end, its indentation (None if it is blank), its text."""

    start: int
    end: int
    depth: int | None
    text: str


class _Entry(NamedTuple):
    """A parameter's entry: its lines, its name, and the section header's lines if it is the only entry there."""

    lines: Span
    name: Span
    section: Span | None


def drop_docstring_parameter(rewrite: Rewrite, definition: Definition, name: str) -> None:
    """Remove a parameter's entry from a docstring, and the section with its last entry; do nothing if there is none."""
    for entry in _entries(rewrite.tree, definition, name):
        if "," in rewrite.tree.text[entry.name.start : entry.name.end]:
            rewrite.replace(entry.name, _without(rewrite.tree.text[entry.name.start : entry.name.end], name))
        else:
            rewrite.replace(_closed(rewrite.tree, entry.section or entry.lines), "")


def _closed(tree: PythonTree, lines: Span) -> Span:
    """Return the lines to remove. If the closing quotes follow the last line, return the line end before them instead of its
    own.
    """
    start, end = lines
    if not tree.text[start:end].endswith(("\n", "\r")):
        start = len(tree.text[:start].removesuffix("\n").removesuffix("\r"))
    return Span(start, end)


def rename_docstring_parameter(rewrite: Rewrite, definition: Definition, old: str, new: str) -> None:
    """Rename a parameter's entry in a docstring; do nothing if there is none."""
    for entry in _entries(rewrite.tree, definition, old):
        text = rewrite.tree.text[entry.name.start : entry.name.end]
        rewrite.replace(entry.name, re.sub(rf"\b{re.escape(old)}\b", new, text))


def _without(names: str, name: str) -> str:
    return ", ".join(item.strip() for item in names.split(",") if item.strip().lstrip("*") != name)


def _entries(tree: PythonTree, definition: Definition, name: str) -> Iterator[_Entry]:
    docstring = tree.docstring(definition)
    if docstring is not None:
        lines = list(_lines(tree, docstring))
        yield from _sectioned(lines, name)
        yield from _rest(lines, name)


def _lines(tree: PythonTree, docstring: cst.SimpleString) -> Iterator[_Line]:
    """Yield the lines after the first; the last one without the closing quotes."""
    start, end = tree.span(docstring)
    end -= len(docstring.quote)
    at = tree.line_end(start)
    while at < end:
        after = min(tree.line_end(at), end)
        text = tree.text[at:after]
        depth = len(text.expandtabs()) - len(text.expandtabs().lstrip()) if text.strip() else None
        yield _Line(at, after, depth, text)
        at = after


def _sectioned(lines: list[_Line], name: str) -> Iterator[_Entry]:
    for index, line in enumerate(lines):
        stripped = line.text.strip()
        following = lines[index + 1].text.strip() if index + 1 < len(lines) else ""
        if line.depth is None:
            continue
        if _GOOGLE.match(stripped):
            pattern = re.compile(rf"\s*(?P<names>\**{re.escape(name)})\s*(\([^\n]*?\)\s*)?:")
            yield from _in_section(lines, index, index + 1, line.depth + 1, pattern)
        elif _NUMPY.match(stripped) and _UNDERLINE.match(following):
            one = r"\**\w+"
            pattern = re.compile(rf"\s*(?P<names>(?:{one},\s*)*\**{re.escape(name)}(?:\s*,\s*{one})*)\s*(:|\Z)")
            yield from _in_section(lines, index, index + 2, line.depth, pattern)


def _in_section(lines: list[_Line], header: int, first: int, least: int, pattern: re.Pattern[str]) -> Iterator[_Entry]:
    """The entries of a section that match; ``least`` is the smallest depth of its entries."""
    end = _section_end(lines, header, first, least)
    depth = next((line.depth for line in lines[first:end] if line.depth is not None), None)
    starts = [index for index in range(first, end) if lines[index].depth is not None and lines[index].depth == depth]
    for index, after in zip(starts, [*starts[1:], end], strict=True):
        match = pattern.match(lines[index].text)
        if match:
            name = Span(lines[index].start + match.start("names"), lines[index].start + match.end("names"))
            section = _section(lines, header, end) if len(starts) == 1 else None
            last = after if after < end else _without_blanks(lines, index, after)
            yield _Entry(Span(lines[index].start, lines[last - 1].end), name, section)


def _section_end(lines: list[_Line], header: int, first: int, least: int) -> int:
    """Return the index after a section's last line, without trailing blank lines."""
    end = first
    for index in range(first, len(lines)):
        depth = lines[index].depth
        if depth is None:
            continue
        underlined = index + 1 < len(lines) and bool(_UNDERLINE.match(lines[index + 1].text.strip()))
        if depth < least or (depth == lines[header].depth and underlined):
            break
        end = index + 1
    return end


def _without_blanks(lines: list[_Line], first: int, end: int) -> int:
    while end > first + 1 and lines[end - 1].depth is None:
        end -= 1
    return end


def _section(lines: list[_Line], header: int, end: int) -> Span:
    """An entire section with the blank lines before it."""
    while header > 0 and lines[header - 1].depth is None:
        header -= 1
    start, stop = lines[header].start, lines[end - 1].end
    return Span(start, stop)


def _rest(lines: list[_Line], name: str) -> Iterator[_Entry]:
    pattern = re.compile(r"\s*" + _REST.format(name=re.escape(name)))
    for index, line in enumerate(lines):
        match = pattern.match(line.text)
        if match and line.depth is not None:
            after = index + 1
            while after < len(lines) and (lines[after].depth or 0) > line.depth:
                after += 1
            name_span = Span(line.start + match.start("name"), line.start + match.end("name"))
            yield _Entry(Span(line.start, lines[after - 1].end), name_span, None)
