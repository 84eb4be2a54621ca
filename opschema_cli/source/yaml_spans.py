"""Places in the file of the characters of a YAML scalar's *value*, through quotes, escapes and folded lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.source.text import Span, blanked
from opschema_cli.source.yaml import Node, YamlFile

_BREAK = re.compile(r"[ \t]*(?:\r\n|\r|\n)\s*")
_ESCAPE = re.compile(r"\\(?:\r\n|[\r\n])[ \t]*|\\x[\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\U[\da-fA-F]{8}|\\.", re.DOTALL)
_TAB_OR_COMMENT = re.compile(r"(?:\A|(?<=\s))#[^\r\n]*|\t")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")


def value_span(text: str, node: Node, span: Span) -> Span:
    """Return the span in ``text`` of a part of a scalar's value; the entire node if the places are not known."""
    quote = 1 if node.style in ("'", '"') else 0
    first = node.end - quote - len(node.value)
    if text[first : node.end - quote] == node.value and (node.style in ("", "'") or "\\" not in node.value):
        start = first + min(span.start, len(node.value))
        return Span(start, max(start, first + min(span.end, len(node.value))))
    starts = _starts(text, node)
    if starts is None:
        return node.span
    start = starts[min(span.start, len(node.value))]
    end = starts[min(span.end - 1, len(node.value))] + 1 if span.end > span.start else start
    return Span(start, max(start, end))


def _starts(text: str, node: Node) -> list[int] | None:
    """Return the start of each character of the value, and the end; None if the text cannot be followed."""
    if node.style == "|":
        return _literal(text, node)
    if node.style == ">" or node.kind != "scalar":
        return None
    quoted = node.style in ("'", '"')
    at = text.find(node.style, node.start, node.end) + 1 if quoted else _after_properties(text, node)
    end = node.end - quoted
    starts: list[int] = []
    while at < end and len(starts) <= len(node.value):
        length, characters = _piece(text, at, node.style)
        starts += [at] * characters
        at += length
    return [*starts, end] if len(starts) == len(node.value) else None


def _piece(text: str, at: int, style: str) -> tuple[int, int]:
    """Return the length of the next piece of a flow scalar, and the number of characters of the value that it produces."""
    fold = _BREAK.match(text, at)
    if fold is not None:
        lines = len(re.findall(r"\r\n|\r|\n", fold.group()))
        return len(fold.group()), max(1, lines - 1)
    if style == '"' and text[at] == "\\":
        escape = _ESCAPE.match(text, at)
        if escape is not None:
            return len(escape.group()), 0 if escape.group()[1] in "\r\n" else 1
    return (2, 1) if style == "'" and text.startswith("''", at) else (1, 1)


def _after_properties(text: str, node: Node) -> int:
    """Return the start of a plain scalar's text, after its tag and anchor."""
    match = re.compile(r"(?:[!&]\S*\s+)*").match(text, node.start)
    return match.end() if match is not None else node.start


def _literal(text: str, node: Node) -> list[int] | None:
    """Return the places in a ``|`` scalar; all its lines have the indentation of the first one that is not empty."""
    head = text.find("\n", node.start)
    lines = list(_LINE.finditer(text, head + 1, max(node.end, head + 1)))
    indent = next((len(line[0]) - len(line[0].lstrip(" ")) for line in lines if line[0].strip()), 0)
    starts: list[int] = []
    for line in lines:
        begin = min(line.start() + indent, line.end())
        starts += range(begin, line.end())
    starts = starts[: len(node.value)]
    spelt = "".join(text[at] for at in starts)
    if "\r" in spelt or not node.value.startswith(spelt):
        return None
    return [*starts, *[node.end] * (len(node.value) - len(starts) + 1)]


def refused_tabs(file: YamlFile, node: Node) -> Iterator[Span]:
    """Yield the tabs in a collection, outside of comments and of quoted and block scalars, that PyYAML rejects and libyaml
    accepts.
    """
    code = file.source.text[node.start : node.end]
    if "\t" not in code or file.root is None:
        return
    # A merged mapping lacks the values that it overrides, so look for all that are written.
    written = (one for one in file.root.walk() if node.start <= one.start and one.end <= node.end)
    scalars = ((one.start - node.start, one.end - node.start) for one in written if one.kind == "scalar" and one.style)
    for match in _TAB_OR_COMMENT.finditer(blanked(code, scalars)):
        if match[0] == "\t":
            yield Span(node.start + match.start(), node.start + match.end())
