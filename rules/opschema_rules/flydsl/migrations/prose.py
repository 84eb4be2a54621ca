"""Removes mentions of a name from comments and docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.mentions import occurrences
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Edit, Span

_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'*(])")
_RULE = re.compile(r"\s*#+\s*([-=~*#_+])\1{2,}#*\s*\Z")
_COMMENT = re.compile(r"[ \t]*#[#:!]*[ \t]?")


def trimmed(tree: PythonTree, path: str, name: str) -> tuple[list[Edit], list[Place]]:
    """Return the edits that remove mentions of ``name`` from a file's comments and docstrings, and their places."""
    edits: list[Edit] = []
    for span in _comments(tree, name):
        edits += _comment(tree, span, name)
    for node in _docstrings(tree):
        span = tree.span(node)
        text = tree.text[span.start : span.end]
        quote = len(node.prefix) + len(node.quote)
        inside = text[quote : len(text) - len(node.quote)]
        left = without(inside, name)
        if left is not None and left.strip():
            edits.append(Edit(Span(span.start + quote, span.end - len(node.quote)), left))
    edits.sort()
    places = [Place(path, Span(edit.span.start, edit.span.start)) for edit in edits]
    return edits, places


def without(text: str, name: str) -> str | None:
    """Return a text without its mentions of ``name``: the last item of an enumeration, a remark in parentheses, or otherwise the
    sentence. None if there are none.
    """
    if not any(occurrences(text, name)):
        return None
    quoted = rf"`{{0,2}}[\w.]*(?<!\w){name}(?!\w)(?:\([^()\n]*\))?`{{0,2}}"
    for pattern in (
        rf",?\s+and\s+(?:the\s+)?{quoted}(?:\s+(?:API|method|call))?(?=[.,;:)]|\s*\Z)",
        rf"\s*\([^()]*{quoted}[^()]*\)",
    ):
        text = re.sub(pattern, "", text)
    while (span := _sentence(text, name)) is not None:
        text = text[: span.start] + text[span.end :]
    return text


def _sentence(text: str, name: str) -> Span | None:
    """Return the sentence that mentions a name, with the white space before it; for the first one in a paragraph, with that
    after it.
    """
    found = next(occurrences(text, name), None)
    if found is None:
        return None
    start, end = _paragraph(text, found.start)
    cuts = [match.span() for match in _END.finditer(text, start, end)]
    before = max((cut for cut in cuts if cut[1] <= found.start), default=None)
    behind = min((cut for cut in cuts if cut[0] >= found.end), default=None)
    if before is not None:
        return Span(before[0], behind[0] if behind is not None else end)
    if behind is not None:
        return Span(start, behind[1])
    return _whole(text, start, end)


def _paragraph(text: str, at: int) -> Span:
    """Return the span of the paragraph around a place, without the white space around it."""
    start, end = 0, len(text)
    for match in re.finditer(r"\n[ \t]*(?=\r?\n)|\n[ \t]*\Z", text):
        if match.start() < at:
            start = match.end()
        else:
            end = match.start()
            break
    body = text[start:end]
    return Span(start + len(body) - len(body.lstrip()), end - (len(body) - len(body.rstrip())))


def _whole(text: str, start: int, end: int) -> Span:
    """Return the span of a paragraph with the blank lines before it; for the first paragraph, with those after it."""
    before = len(text[:start].rstrip())
    return Span(before, end) if before else Span(start, end + len(text[end:]) - len(text[end:].lstrip()))


def _comments(tree: PythonTree, name: str) -> Iterator[Span]:
    """Yield the comments on lines of their own that mention a name; adjoining lines are one comment."""
    seen = -1
    for found in occurrences(tree.text, name):
        line = tree.line_start(found.start)
        if line < seen or not tree.text[line : found.start].lstrip().startswith("#") or _in_string(tree, found.start):
            continue
        start = tree.comments_above(line)
        end = tree.line_end(line)
        while end < len(tree.text) and tree.text[end : tree.line_end(end)].lstrip().startswith("#"):
            end = tree.line_end(end)
        seen = end
        yield Span(start, end)


def _in_string(tree: PythonTree, at: int) -> bool:
    return any(tree.span(node).start <= at < tree.span(node).end for node in tree.literals)


def _comment(tree: PythonTree, span: Span, name: str) -> Iterator[Edit]:
    """Yield the edit of a comment's lines. If nothing remains, all lines are removed, with the blank lines after a section
    title.
    """
    lines = tree.text[span.start : span.end].splitlines(keepends=True)
    said = [line for line in lines if not _RULE.match(line)]
    heads = [match.group() if (match := _COMMENT.match(line)) else "" for line in said]
    left = without("".join(line[len(head) :] for line, head in zip(said, heads, strict=True)), name) or ""
    ruled = len(said) < len(lines)
    if not left.strip():
        end = span.end
        while ruled and end < len(tree.text) and not tree.text[end : tree.line_end(end)].strip():
            end = tree.line_end(end)
        yield Edit(Span(span.start, end), "")
    elif not ruled:
        newline = lines[-1][len(lines[-1].rstrip("\r\n")) :]
        text = (newline or "\n").join(f"{heads[0]}{line}".rstrip() for line in left.strip().splitlines())
        yield Edit(span, f"{text}{newline}")


def _docstrings(tree: PythonTree) -> Iterator[cst.SimpleString]:
    """Yield the docstrings of the module, its classes and its functions."""
    owners = [node for node in tree.nodes if isinstance(node, cst.Module | cst.FunctionDef | cst.ClassDef)]
    for owner in owners:
        found = tree.docstring(owner)
        if found is not None:
            yield found
