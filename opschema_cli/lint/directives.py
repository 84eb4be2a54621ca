"""Where directives such as ``# opschema: ignore[CODE]`` are written: in the comments of YAML, Python, C++ and other files.

In C++ a directive is in a comment of its language: ``// opschema: ignore[CODE]`` or ``/* opschema: ignore[CODE] */``.
"""

from __future__ import annotations

import bisect
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import NamedTuple

from opschema_cli.file_kinds import is_cpp, is_python
from opschema_cli.source.text import Source, Span
from opschema_cli.source.yaml import Node

_RULES = r"[ \t]*[A-Za-z]{3}\d{1,3}[ \t]*(?:,[ \t\w,-]*)?"
_OTHER = rf"[A-Za-z][\w-]*(?=[ \t]*[\[:=(]{_RULES}(?:[\]\r\n]|\Z))|(?:noqa|disable|suppress)(?=[ \t]*(?:[\[\r\n]|\Z))"
"""Words of other tools, or misspellings, before codes of rules or alone."""

_BODY = rf"opschema:[ \t]*(?:(ignore-file|ignore)(?![\w-])[ \t]*(?:\[([^\[\]\r\n]*)\])?|({_OTHER}))"
_DIRECTIVE = re.compile(rf"#[ \t]*{_BODY}")
_CONTENT = re.compile(r"(?:\A|(?<=[\r\n]))[^\S\r\n]*[^#\s]")
_NEXT_COMMENT = re.compile(r"[ \t]+#[ \t]")
_NEXT_IN_CPP = re.compile(r"[ \t]+(?://|#[ \t])")


class Directive(NamedTuple):
    """One directive: its span, the word before its brackets and the text inside of them, and in C++ its comment. A word other than
    ``ignore`` and ``ignore-file`` means nothing.
    """

    span: Span
    word: str
    inside: Span
    text: str
    comment: Span | None = None


def directives(source: Source, root_of: Callable[[str], Node | None]) -> Iterator[Directive]:
    """Yield the directives in the comments of a file. ``root_of`` returns a YAML file's tree, to distinguish comments from text."""
    if is_cpp(source.path):
        # Not at the top: few files of C++ have directives.
        from opschema_cli.lint.cpp_directives import cpp_directives

        yield from (_directive(*found) for found in cpp_directives(source, _BODY))
        return
    python = is_python(source.path)
    stretches = sorted(_python_comments(source) if python else _yaml_scalars(source.text, root_of(source.path)))
    for match in _DIRECTIVE.finditer(source.text):
        start = match.start()
        before = bisect.bisect(stretches, (start, len(source.text))) - 1
        inside = before >= 0 and start < stretches[before].end
        first = start == 0 or (python and inside and start == stretches[before].start)
        if inside == python and (first or source.text[start - 1].isspace()):
            yield _directive(match)


def content_lines(source: Source) -> list[int]:
    """Return the starts of the lines that contain more than a comment."""
    if is_cpp(source.path):
        # Not at the top: few files of C++ have directives.
        from opschema_cli.lint.cpp_directives import cpp_content_lines

        return cpp_content_lines(source)
    return [match.start() for match in _CONTENT.finditer(source.text)]


def removal(source: Source, span: Span, comment: Span | None) -> Span | None:
    """Return the span of the directive with its reason and the white space before it, or its line if nothing else is on it. None
    if the rest of the comment may be something else.
    """
    start, end = source.line_span(source.position(span.start).line)
    stop = end
    if comment is not None:
        is_line = source.text.startswith("//", comment.start)
        if comment.end > end or not (is_line or comment.start == span.start):
            return None
        other = _NEXT_IN_CPP.search(source.text, span.end, comment.end)
        if other is not None:
            return Span(span.start, other.end() - len("//")) if is_line and other[0].endswith("//") else None
        stop = comment.end
    else:
        other = _NEXT_COMMENT.search(source.text, span.end, end)
        if other is not None:
            return Span(span.start, other.end() - len("# "))
    behind = span.start
    while behind > start and source.text[behind - 1].isspace():
        behind -= 1
    if source.text[stop:end].strip():
        return Span(span.start, stop)
    if behind > start:
        return Span(behind, end)
    following = source.text[end : end + 2]
    return Span(start, end + (2 if following == "\r\n" else 1 if following else 0))


def _directive(match: re.Match[str], comment: Span | None = None) -> Directive:
    return Directive(Span(*match.span()), match[1] or match[3], Span(*match.span(2)), match[2] or "", comment)


def _python_comments(source: Source) -> Iterator[Span]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text, newline="").readline):
            if token.type == tokenize.COMMENT:
                start = source.line_span(token.start[0]).start + token.start[1]
                yield Span(start, start + len(token.string))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return


def _yaml_scalars(text: str, node: Node | None) -> Iterator[Span]:
    """Yield the spans of a YAML file's scalars; the line that opens a block scalar may end in a comment."""
    if node is None:
        return
    if node.kind == "scalar":
        yield Span(text.find("\n", node.start) if node.style in ("|", ">") else node.start, node.end)
    for item in node.items:
        yield from _yaml_scalars(text, item)
