"""Comments and documents about carriers in the files that had them, and those left for a person to reword."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.migration import Note
from opschema_cli.project import Project
from opschema_cli.source.text import Source, Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.tileops.migrations.drop_carrier.comments import Paragraph, named_in, paragraphs, without
from opschema_rules.tileops.migrations.words import is_history
from opschema_rules.tileops.model import entries_node


class Removed(msgspec.Struct):
    """Things that a migration removed.

    ``ops`` are the entries without their carriers, ``kept`` those that still have some, with these, ``names`` what carriers,
    helpers and flags were called, ``kinds`` the words for such ops, ``registering`` the modules that register fewer ops,
    ``called`` the methods that fewer calls call.
    """

    ops: set[str] = msgspec.field(default_factory=set)
    kept: set[str] = msgspec.field(default_factory=set)
    names: set[str] = msgspec.field(default_factory=set)
    kinds: set[str] = msgspec.field(default_factory=set)
    registering: set[str] = msgspec.field(default_factory=set)
    called: set[str] = msgspec.field(default_factory=set)

    def forget_used(self, project: Project, package: Iterable[str], inputs: Collection[str]) -> None:
        """Leave out the names that the package's code, or an input, still has."""
        used = set(inputs)
        for path in package:
            source = project.source(path)
            words = [name for name in self.names if source is not None and name in source.text]
            file = project.python(path) if words else None
            used |= file.body.names() if file is not None else set()
        self.names -= used


def drop_narrative(draft: Draft, removed: Removed) -> None:
    """Remove the comments of changed files that are only about removed things."""
    for change in draft.changes:
        source = draft.project.source(change.path)
        if source is None or not any(name in source.text for name in (*removed.names, *removed.ops)):
            continue
        if change.path.endswith((".yaml", ".yml")):
            file = draft.project.yaml(change.path)
            found = [item for item in paragraphs(source) if file is not None and _is_over(file, item, removed)]
        elif change.path.endswith(".py"):
            found = [item for item in paragraphs(source, _comment_lines(source)) if _is_told(item, removed)]
        else:
            found = []
        draft.edit(change.path, without(source, found))


def _comment_lines(source: Source) -> list[int]:
    """The lines of a Python file that are comments, and not part of a string."""
    if "#" not in source.text:
        return []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source.text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [token.start[0] for token in tokens if token.type == tokenize.COMMENT]


def _is_told(item: Paragraph, removed: Removed) -> bool:
    return item.sentences == 1 and _tells(item, removed)


def _tells(item: Paragraph, removed: Removed) -> bool:
    """Whether a paragraph is about removed carriers, and about none that is left."""
    left = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", item.text) for name in removed.kept)
    return named_in(item.text, removed.names) and not left


def _is_over(file: YamlFile, item: Paragraph, removed: Removed) -> bool:
    """Whether a manifest's paragraph is about carriers: one sentence, or in the file's preamble any number."""
    entries = entries_node(file)
    head = entries is not None and file.source.line_span(item.last).end < entries.start
    if not head:
        return _is_told(item, removed)
    if _tells(item, removed):
        return True
    pairs = entries.pairs() if entries is not None else ()
    return item.tells_of_no_tensor and all(key.value in removed.ops or _has_no_input(value) for key, value in pairs)


def _has_no_input(entry: Node) -> bool:
    signature = entry.get("signature")
    inputs = signature.get("inputs") if signature is not None else None
    return inputs is not None and inputs.is_mapping and not inputs.items


# What is left to a person


def remarks(draft: Draft, removed: Removed) -> Iterator[Note]:
    """Yield notes on texts that mention removed things."""
    project = draft.project
    for found in mentions(project, removed.names):
        source = project.source(found.place.path)
        if source is None or is_history(found.place.path):
            continue
        line = source.line_text(source.position(found.place.span.start).line)
        if named_in(line, {found.name}):
            yield Note(found.place, f"still mentions the removed `{found.name}`")
    yield from _kinds(draft, removed)
    yield from _counts(draft, removed)


def _kinds(draft: Draft, removed: Removed) -> Iterator[Note]:
    """Places that still describe an op as of the kind that needed a carrier."""
    if not removed.kinds:
        return
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(removed.kinds))})[- ]ops?\b", re.IGNORECASE)
    for path in _near(draft, removed):
        source = draft.project.source(path)
        for match in pattern.finditer(source.text) if source is not None else ():
            message = f"`{match.group()}`: this kind of op no longer exists; describe what the op does"
            yield Note(Place(path, Span(*match.span())), message)


def _near(draft: Draft, removed: Removed) -> list[str]:
    """The changed files."""
    return [change.path for change in draft.changes if change.after is not None]


_NUMBERS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_COUNT = re.compile(rf"\b(?:\d+|{_NUMBERS})\b[^.\n]{{0,30}}\bops?\b", re.IGNORECASE)


def _counts(draft: Draft, removed: Removed) -> Iterator[Note]:
    """Comments that head more than one statement, and count ops, in modules that register fewer now."""
    for path in sorted(removed.registering):
        source = draft.project.source(path)
        if source is None:
            continue
        for item in paragraphs(source, _comment_lines(source)):
            below = source.line_text(item.block[1] + 1)
            match = _COUNT.search(item.text)
            if match is not None and not below.strip():
                start, end = source.line_span(item.first).start, source.line_span(item.last).end
                message = f"`{match.group()}`: fewer are registered here now; correct the number"
                yield Note(Place(path, Span(start, end)), message)


# Words for such ops

_KIND = re.compile(r"\b([a-z]+)[- ]ops?\b", re.IGNORECASE)
_NO_KIND = frozenset(
    {
        "a",
        "all",
        "an",
        "any",
        "compile",
        "concrete",
        "custom",
        "each",
        "every",
        "fake",
        "library",
        "new",
        "no",
        "of",
        "other",
    }
    | {"one", "our", "per", "some", "such", "that", "the", "these", "this", "those", "torch", "two", "which"}
)


def kinds_in(texts: Iterable[str]) -> set[str]:
    """The words by which texts call a kind of op."""
    return {match[1].lower() for text in texts for match in _KIND.finditer(text)} - _NO_KIND
