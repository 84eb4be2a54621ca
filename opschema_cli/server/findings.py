"""Findings as diagnostics of the protocol, and errors in the configuration as diagnostics at their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from lsprotocol import types

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.builtin import UNUSED
from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.server.positions import Encoding, range_of
from opschema_cli.source.text import Edit, Place, Source, Span

SOURCE = "opschema"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


class Converter:
    """Converts findings. ``source_of`` returns the text of a file, ``uri_of`` its URI, and ``pages`` maps rule codes to their
    pages.
    """

    def __init__(
        self,
        source_of: Callable[[str], Source | None],
        uri_of: Callable[[str], str],
        encoding: Encoding,
        pages: Mapping[str, str],
    ) -> None:
        self.source_of, self.uri_of, self.encoding, self._pages = source_of, uri_of, encoding, pages

    def location(self, place: Place) -> types.Location:
        """Return the location of a place, or the start of the file if it cannot be read."""
        source = self.source_of(place.path)
        start = types.Position(0, 0)
        found = range_of(source, place.span, self.encoding) if source is not None else types.Range(start, start)
        return types.Location(self.uri_of(place.path), found)

    def edit(self, source: Source, edit: Edit) -> types.TextEdit:
        """An edit of a text."""
        return types.TextEdit(range_of(source, edit.span, self.encoding), edit.replacement)

    def diagnostic(self, item: Diagnostic) -> types.Diagnostic:
        """A finding, with its other sides."""
        page = self._pages.get(item.code)
        return types.Diagnostic(
            range=self.location(item.place).range,
            message=item.message,
            severity=_SEVERITIES[item.severity],
            code=item.code,
            code_description=types.CodeDescription(page) if page else None,
            source=SOURCE,
            tags=[types.DiagnosticTag.Unnecessary] if item.code == UNUSED.code else None,
            related_information=[
                types.DiagnosticRelatedInformation(self.location(other.place), other.message) for other in item.related
            ]
            or None,
            data={"name": item.name, "ops": list(item.ops)},
        )

    def by_file(self, found: Iterable[Diagnostic]) -> dict[str, list[types.Diagnostic]]:
        """Findings by the paths of their files."""
        files: dict[str, list[types.Diagnostic]] = {}
        for item in found:
            if item.place.path:
                files.setdefault(item.place.path, []).append(self.diagnostic(item))
        return files


_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)")
_QUOTED = re.compile(r"`([^`]+)`|'([^']+)'")


def config_error(error: OpschemaError, source: Source, encoding: Encoding) -> types.Diagnostic:
    """A diagnostic for a configuration that is refused, at the position or the word that the message names."""
    message = str(error)
    place = _POSITION.search(message)
    span = Span(0, source.line_span(1).end)
    if place is not None:
        span = source.line_span(min(int(place[1]), source.line_count))
    else:
        words = [first or second for first, second in _QUOTED.findall(message)]
        found = (re.search(rf"(?<![\w-]){re.escape(word.rpartition('.')[2])}(?![\w-])", source.text) for word in words)
        span = next((Span(*match.span()) for match in found if match is not None), span)
    return types.Diagnostic(
        range=range_of(source, span, encoding),
        message=message,
        severity=types.DiagnosticSeverity.Error,
        code="configuration",
        source=SOURCE,
    )
