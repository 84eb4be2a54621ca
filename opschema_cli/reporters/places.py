"""Places as people and machines count them, and fingerprints that outlive a moved line."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.reporters import Report
from opschema_cli.source.text import Source, Span


class Region(msgspec.Struct, frozen=True):
    """A span as lines and columns, all 1-based and in characters. The end column is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


def region(source: Source | None, span: Span) -> Region:
    """The region of a span; the head of the file where its text is not known."""
    if source is None:
        return Region(1, 1, 1, 1)
    return Region(*source.position(span.start), *source.position(max(span)))


def locate(report: Report, place: Place) -> Region:
    """The region of a place in a report's files."""
    return region(report.sources(place.path), place.span)


def where(report: Report, place: Place) -> str:
    """A place as ``path:line:column``; empty for a finding without a file."""
    found = locate(report, place)
    return f"{place.path}:{found.line}:{found.column}" if place.path else ""


def fingerprints(report: Report) -> Iterator[str]:
    """One fingerprint for each diagnostic, in order: 32 hexadecimal digits, unique in the report.

    It hashes code, path, message and the text of the line, not the line's number; equal ones are told
    apart by their order.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for diagnostic in report.diagnostics:
        key = _identity(report, diagnostic)
        seen[key] += 1
        text = "\0".join((*key, str(seen[key])))
        yield hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _identity(report: Report, diagnostic: Diagnostic) -> tuple[str, ...]:
    path, span = diagnostic.place.path, diagnostic.place.span
    source = report.sources(path)
    line = "" if source is None else _line_at(source, span.start)
    return diagnostic.code, path, line, diagnostic.message


def _line_at(source: Source, offset: int) -> str:
    """The text of a line, without white space around it; of a long one its ends."""
    start, end = source.line_span(source.position(offset).line)
    if end - start > 2 * _LONG:
        return source.text[start : start + _LONG] + source.text[end - _LONG : end]
    return source.text[start:end].strip()


_LONG = 2_000
"""Number of characters at either end of a long line that identify it."""


def paths_in_checkout(report: Report, variable: str) -> Callable[[str], str]:
    """Return a function that converts a file's path into one relative to the checkout folder, which an environment variable of
    the CI system names and from which the system resolves paths. Paths are unchanged if the root is not inside the checkout.
    """
    checkout, root = os.environ.get(variable, ""), report.root.resolve()
    inside = bool(checkout) and root.is_relative_to(Path(checkout).resolve())
    folder = root.relative_to(Path(checkout).resolve()) if inside else Path()
    return lambda path: path if folder == Path() or Path(path).is_absolute() else (folder / path).as_posix()
