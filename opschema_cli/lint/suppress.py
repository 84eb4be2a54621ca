"""Inline suppressions: ``# opschema: ignore[CODE] why`` and ``# opschema: ignore-file[CODE] why``; in C++ after ``//``.

On a line it covers what starts there; on its own line, the next line that is not a comment; on the line of an op's
key, the entire entry, and what is found elsewhere of that op; ``ignore-file`` must stand before the first line that is
not a comment.
"""

from __future__ import annotations

import bisect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

import msgspec

from opschema_cli.lint.builtin import UNKNOWN, UNUSED
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place
from opschema_cli.lint.directives import content_lines, directives, removal
from opschema_cli.lint.loaded import Entry
from opschema_cli.lint.registry import Registry
from opschema_cli.source.text import Edit, Source, Span
from opschema_cli.source.yaml import Node

MARK = "opschema:"
WHOLE_FILE = Span(0, sys.maxsize)


class Suppression(msgspec.Struct):
    """One directive: where it is written, the stretch of text it covers (None: it stands where it means nothing),
    the span between its brackets, and the words and codes in there. ``op`` is the op whose entry it covers, ``comment`` the
    comment that it is in, in C++. ``wrong`` is the word that should be ``ignore``.
    """

    path: str
    span: Span
    covers: Span | None
    inside: Span
    words: Sequence[str]
    codes: frozenset[str] = frozenset()
    op: str = ""
    comment: Span | None = None
    wrong: str = ""
    used: set[str] = msgspec.field(default_factory=set)


def apply_suppressions(
    diagnostics: Iterable[Diagnostic],
    suppressions: Sequence[Suppression],
) -> tuple[list[Diagnostic], int]:
    """The diagnostics that no suppression covers, and how many were; of several that do, the narrowest is used.

    A finding that stands outside its ops' entries goes when all of them are covered; else it stays, for the others.
    """
    by_path: dict[str, list[Suppression]] = {}
    by_op: dict[tuple[str, str], Suppression] = {}
    for item in suppressions:
        by_path.setdefault(item.path, []).append(item)
        by_op.update({(item.op, code): item for code in item.codes if item.op})
    covers = {path: _Cover(items) for path, items in by_path.items()}
    kept: list[Diagnostic] = []
    hidden = 0
    for diagnostic in diagnostics:
        place, code = diagnostic.place, diagnostic.code
        cover = covers.get(place.path)
        here = cover.find(place.span.start, code) if cover is not None else None
        hiders = [here] if here is not None else [by_op[op, code] for op in diagnostic.ops if (op, code) in by_op]
        for hider in hiders:
            hider.used.add(code)
        left = tuple(op for op in diagnostic.ops if (op, code) not in by_op)
        if here is not None or (hiders and not left):
            hidden += 1
        else:
            kept.append(msgspec.structs.replace(diagnostic, ops=left) if hiders else diagnostic)
    return kept, hidden


class _Cover:
    """The suppressions of one file, indexed by the text that they cover; a file may have very many."""

    def __init__(self, items: Iterable[Suppression]) -> None:
        found: dict[Span, dict[str, Suppression]] = {}
        for item in items:
            if item.covers is not None:
                here = found.setdefault(item.covers, {})
                here.update({code: item for code in item.codes if code not in here})
        self.whole = found.pop(WHOLE_FILE, {})
        self.spans = sorted(found)
        self.by_code = [found[span] for span in self.spans]
        self.reach = [*accumulate((span.end for span in self.spans), max)]

    def find(self, offset: int, code: str) -> Suppression | None:
        """Return the narrowest one that covers ``offset``."""
        number = bisect.bisect(self.spans, (offset, sys.maxsize))
        while number and self.reach[number - 1] >= offset:
            number -= 1
            if self.spans[number].end >= offset and code in self.by_code[number]:
                return self.by_code[number][code]
        return self.whole.get(code)


def find_suppressions(
    sources: Iterable[Source], registry: Registry, entries: Sequence[Entry], root_of: Callable[[str], Node | None]
) -> list[Suppression]:
    """Return all directives of these files. ``root_of`` returns a YAML file's tree, to distinguish comments from text."""
    by_path: dict[str, list[Entry]] = {}
    for entry in entries:
        by_path.setdefault(entry.path, []).append(entry)
    names = Counter(entry.name for entry in entries)
    found: list[Suppression] = []
    for source in sources:
        if MARK in source.text:
            for item in _parse(source, registry, by_path.get(source.path, ()), root_of):
                # Of two entries with one name, it is not known which one a finding is of.
                item.op = item.op if names[item.op] == 1 else ""
                found.append(item)
    return found


def _parse(
    source: Source, registry: Registry, entries: Sequence[Entry], root_of: Callable[[str], Node | None]
) -> Iterator[Suppression]:
    contents = content_lines(source)
    entries = sorted(entries, key=_key_start)
    for found in directives(source, root_of):
        covers: Span | None = None
        op = ""
        if found.word == "ignore":
            covers, op = _covered(source, found.span.start, contents, entries)
        elif found.word == "ignore-file" and (not contents or found.span.start < contents[0]):
            covers = WHOLE_FILE
        words = [word.strip() for word in found.text.split(",") if word.strip()]
        codes = frozenset(rule.code for word in words for rule in registry.find(word))
        wrong = found.word if found.word not in ("ignore", "ignore-file") else ""
        yield Suppression(source.path, found.span, covers, found.inside, words, codes, op, found.comment, wrong)


def _covered(source: Source, start: int, contents: Sequence[int], entries: Sequence[Entry]) -> tuple[Span, str]:
    """The directive's line; the next line with content if it has none itself; the entire entry, with the op's name, if
    its key is there. ``entries`` are sorted by their keys.
    """
    line = source.position(start).line
    following = bisect.bisect(contents, start)
    if not following or contents[following - 1] < source.line_span(line).start:
        line = source.position(contents[following] if following < len(contents) else len(source.text)).line
    covered = source.line_span(line)
    first = bisect.bisect_left(entries, covered.start, key=_key_start)
    if first < len(entries) and entries[first].key.start <= covered.end:
        entry = entries[first]
        return Span(covered.start, max(covered.end, entry.span.end)), entry.name
    return covered, ""


def _key_start(entry: Entry) -> int:
    return entry.key.start


def suppression_findings(
    suppressions: Sequence[Suppression], registry: Registry, ran: frozenset[str], sources: Mapping[str, Source]
) -> Iterator[Diagnostic]:
    """Yield findings on unknown codes in suppressions, and on codes that hid nothing although their rules ran."""
    for item in suppressions:
        place = Place(item.path, item.span)
        if not item.words:
            mark = "#" if item.comment is None else "//"
            problem = f"`{item.wrong}` suppresses nothing" if item.wrong else "this suppression names no rule"
            message = f"{problem}; write `{mark} opschema: ignore[CODE] why`"
            yield Diagnostic(message, place, code=UNKNOWN.code)
        idle: list[str] = []
        for word in item.words:
            codes = {rule.code for rule in registry.find(word)}
            if not codes:
                message = f"`{word}` is not a rule that opschema knows{registry.hint(word)}"
                yield Diagnostic(message, place, code=UNKNOWN.code)
            elif codes <= ran and not codes & item.used:
                idle.append(word)
        if idle and item.covers is None:
            message = "`ignore-file` counts only above the file's first line that is not a comment; move it there"
            yield Diagnostic(message, place, code=UNUSED.code)
        elif idle:
            message = f"nothing here breaks {', '.join(idle)}; the suppression can go"
            yield Diagnostic(message, place, (), _removal(sources[item.path], item, idle), code=UNUSED.code)


def _removal(source: Source, item: Suppression, idle: Sequence[str]) -> Fix | None:
    removed = set(idle)
    kept = [word for word in item.words if word not in removed]
    if kept:
        edit = Edit(item.inside, ", ".join(kept))
        return Fix(f"delete {', '.join(idle)} from the suppression", (FileEdit(item.path, edit),))
    span = removal(source, item.span, item.comment)
    return Fix("delete the suppression", (FileEdit(item.path, Edit(span, "")),)) if span is not None else None
