"""Inline suppressions: ``# opschema: ignore[CODE] why`` and ``# opschema: ignore-file[CODE] why``.

On a line it covers what starts there; on its own line, the next line that is not a comment; on the line of an op's
key, the whole entry; ``ignore-file`` must stand before the first line that is not a comment.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opschema_cli.lint.builtin import UNKNOWN, UNUSED
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place
from opschema_cli.lint.pack import Entry
from opschema_cli.lint.registry import Registry
from opschema_cli.source.text import Edit, Source, Span
from opschema_cli.source.yaml import Node

MARK = "opschema:"
_DIRECTIVE = re.compile(r"#\s*opschema:\s*(ignore-file|ignore)\b\s*(?:\[([^\]\n]*)\])?")


@dataclass
class Suppression:
    """One directive: the codes it hides, where it is written, and the stretch of text it covers."""

    path: str
    span: Span
    covers: Span
    words: Sequence[str]
    codes: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)


def apply_suppressions(
    diagnostics: Iterable[Diagnostic],
    suppressions: Sequence[Suppression],
) -> tuple[list[Diagnostic], int]:
    """The diagnostics that no suppression covers, and how many were."""
    by_path: dict[str, list[Suppression]] = {}
    for item in suppressions:
        by_path.setdefault(item.path, []).append(item)
    kept: list[Diagnostic] = []
    hidden = 0
    for diagnostic in diagnostics:
        start = diagnostic.place.span.start
        covering = [
            item
            for item in by_path.get(diagnostic.place.path, ())
            if diagnostic.code in item.codes and item.covers.start <= start <= item.covers.end
        ]
        for item in covering:
            item.used.add(diagnostic.code)
        hidden += bool(covering)
        if not covering:
            kept.append(diagnostic)
    return kept, hidden


def find_suppressions(
    sources: Iterable[Source], registry: Registry, entries: Sequence[Entry], root_of: Callable[[str], Node | None]
) -> list[Suppression]:
    """All directives of these files. ``root_of`` gives a YAML file's tree, to tell comments from text."""
    by_path: dict[str, list[Entry]] = {}
    for entry in entries:
        by_path.setdefault(entry.path, []).append(entry)
    found: list[Suppression] = []
    for source in sources:
        if MARK in source.text:
            comments = (
                _python_comments(source) if source.path.endswith((".py", ".pyi")) else _yaml_comments(source, root_of)
            )
            for start in comments:
                item = _parse(source, start, by_path.get(source.path, ()))
                if item is not None:
                    item.codes = frozenset(rule.code for word in item.words for rule in registry.find(word))
                    found.append(item)
    return found


def _python_comments(source: Source) -> list[int]:
    starts: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text, newline="").readline):
            if token.type == tokenize.COMMENT and MARK in token.string:
                starts.append(source.line_span(token.start[0]).start + token.start[1])
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass
    return starts


def _yaml_comments(source: Source, root_of: Callable[[str], Node | None]) -> list[int]:
    root = root_of(source.path)
    scalars = sorted((node.start, node.end) for node in _scalars(root)) if root is not None else []
    return [
        match.start()
        for match in _DIRECTIVE.finditer(source.text)
        if not any(start <= match.start() < end for start, end in scalars)
    ]


def _scalars(node: Node) -> Iterable[Node]:
    if node.kind == "scalar":
        yield node
    for item in node.items:
        yield from _scalars(item)


def _parse(source: Source, start: int, entries: Iterable[Entry]) -> Suppression | None:
    match = _DIRECTIVE.match(source.text, start)
    if match is None:
        return None
    words = [word.strip() for word in (match.group(2) or "").split(",") if word.strip()]
    line = source.position(start).line
    if match.group(1) == "ignore-file":
        covers = Span(0, len(source.text)) if _in_head(source, line) else Span(-1, -1)
    else:
        covers = _covered(source, line, entries)
    return Suppression(source.path, Span(*match.span()), covers, words)


def _in_head(source: Source, line: int) -> bool:
    return all(not text or text.startswith("#") for text in (source.line_text(n).strip() for n in range(1, line)))


def _covered(source: Source, line: int, entries: Iterable[Entry]) -> Span:
    if source.line_text(line).lstrip().startswith("#"):
        line += 1
        while line < source.line_count and source.line_text(line).lstrip()[:1] in ("", "#"):
            line += 1
    covered = source.line_span(line)
    for entry in entries:
        if covered.start <= entry.key.start <= covered.end:
            return Span(covered.start, max(covered.end, entry.span.end))
    return covered


def suppression_findings(
    suppressions: Sequence[Suppression], registry: Registry, ran: frozenset[str], sources: Mapping[str, Source]
) -> list[Diagnostic]:
    """Unknown codes in suppressions, and suppressions that hid nothing although all their rules ran."""
    found: list[Diagnostic] = []
    for item in suppressions:
        place = Place(item.path, item.span)
        unknown = [word for word in item.words if not registry.find(word)]
        for word in unknown:
            message = f"`{word}` is no rule that opschema knows{registry.hint(word)}"
            found.append(Diagnostic(message, place, code=UNKNOWN.code))
        if not item.words:
            message = "this suppression names no rule; write `# opschema: ignore[CODE] why`"
            found.append(Diagnostic(message, place, code=UNKNOWN.code))
        elif not unknown and not item.used and item.codes <= ran:
            message = f"nothing here breaks {', '.join(item.words)}; the suppression can go"
            fix = _removal(sources[item.path], item)
            found.append(Diagnostic(message, place, (), fix, code=UNUSED.code))
    return found


def _removal(source: Source, item: Suppression) -> Fix:
    line = source.position(item.span.start).line
    start, end = source.line_span(line)
    head = source.text[start : item.span.start]
    if not head.strip():
        following = source.text[end : end + 2]
        end += 2 if following == "\r\n" else 1 if following else 0
    else:
        start += len(head.rstrip())
    return Fix("delete the suppression", (FileEdit(item.path, Edit(Span(start, end), "")),))
