"""Hover, definitions, references and symbols, from the operator table."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from lsprotocol import types

from opschema_cli.operators.model import Operator
from opschema_cli.reporters.operators import show
from opschema_cli.reporters.operators.parts import Sources
from opschema_cli.server.findings import Converter
from opschema_cli.server.positions import range_of
from opschema_cli.server.table import Hit, Spot, Table
from opschema_cli.source.text import Place, Source, Span

WIDTH = 100
"""Width in columns of an operator's text."""

MOST_SYMBOLS = 200
"""Maximum number of symbols that a workspace search returns."""


def hover(hit: Hit, source: Source, converter: Converter) -> types.Hover:
    """Return the output of ``opschema show`` for an operator, or its lines about one argument."""
    texts = [drawn(operator, hit.argument, converter.source_of) for operator in hit.operators]
    value = "\n".join(f"```text\n{text}\n```" for text in dict.fromkeys(texts) if text)
    content = types.MarkupContent(types.MarkupKind.Markdown, value)
    return types.Hover(content, range_of(source, hit.span, converter.encoding))


def drawn(operator: Operator, argument: str, sources: Sources) -> str:
    """An operator, or one of its arguments, in plain text."""
    if argument:
        heading = f"{argument}: argument of {show.heading(operator)}"
        rows = _rows_of(operator, argument, sources)
        declared = [f"  declared     {row[1]}" for row in rows if row[1]]
        taken = [f"  {'implemented' if operator.implementations else 'passed':<11}  {row[2]}" for row in rows if row[2]]
        notes = [f"  note         {row[3]}" for row in rows if row[3]]
        return "\n".join([heading, *declared, *taken, *notes])
    # Not at the top: what only lints does without.
    from rich.console import Console

    stream = StringIO()
    show.write(operator, Console(file=stream, width=WIDTH, color_system=None, force_terminal=False), sources)
    return "\n".join(line.rstrip() for line in stream.getvalue().strip("\n").split("\n"))


def _rows_of(operator: Operator, argument: str, sources: Sources) -> list[tuple[str, str, str, str]]:
    """The lines of the table about one argument: the first has its name, others none."""
    found: list[tuple[str, str, str, str]] = []
    name = ""
    for row in show.cells(operator, sources):
        name = row[0] or name
        if name == argument:
            found.append(row)
    return found


def other_side(table: Table, hit: Hit) -> list[Place]:
    """Return the declaration if the cursor is on an implementation, and the implementations if it is on a declaration."""
    if hit.side == "declaration":
        return table.places(hit, ["implementation"]) or table.places(hit, ["declaration"])
    return table.places(hit, ["declaration"]) or table.places(hit, ["implementation"])


def locations(places: Iterable[Place], converter: Converter) -> list[types.Location]:
    """Return the locations of the places that are in files of the workspace."""
    return [converter.location(place) for place in places if not place.path.startswith("<")]


# Symbols


def document_symbols(table: Table, source: Source, converter: Converter) -> list[types.DocumentSymbol]:
    """The operators that a file declares, with their arguments, and those that it implements."""
    entries = {entry.name: entry.span for entry in table.entries if entry.path == source.path}
    groups: dict[tuple[str, str], list[Spot]] = {}
    for spot in table.in_file(source.path):
        if spot.side != "use":
            groups.setdefault((spot.operator.name, spot.side), []).append(spot)
    found: list[types.DocumentSymbol] = []
    for (name, side), spots in groups.items():
        own = [spot.place.span for spot in spots if not spot.argument and spot.place.span.end > spot.place.span.start]
        if own:
            entry = entries.get(name) if side == "declaration" else None
            found.append(_symbol(name, side, own[0], entry, spots, source, converter))
    return sorted(found, key=lambda item: (item.range.start.line, item.range.start.character))


def _symbol(
    name: str, side: str, key: Span, entry: Span | None, spots: Iterable[Spot], source: Source, converter: Converter
) -> types.DocumentSymbol:
    arguments = {spot.argument: spot.place.span for spot in reversed([*spots]) if spot.argument}
    spans = [key, *arguments.values(), *([entry] if entry is not None else [])]
    around = Span(min(span.start for span in spans), max(span.end for span in spans))
    children = [
        types.DocumentSymbol(argument, types.SymbolKind.Field, found, found)
        for argument, span in sorted(arguments.items(), key=lambda item: item[1])
        for found in [range_of(source, span, converter.encoding)]
    ]
    kind = types.SymbolKind.Interface if side == "declaration" else types.SymbolKind.Function
    whole, selected = (range_of(source, span, converter.encoding) for span in (around, key))
    return types.DocumentSymbol(name, kind, whole, selected, detail=side, children=children or None)


def workspace_symbols(operators: Iterable[Operator], query: str, converter: Converter) -> list[types.WorkspaceSymbol]:
    """The operators whose name has the letters of a query in it, in order, at their declarations."""
    found: list[types.WorkspaceSymbol] = []
    for operator in operators:
        place = next((place for place in operator.places() if not place.path.startswith(("<", "/"))), None)
        names = (operator.name, *operator.aliases)
        if place is not None and any(_matches(query, name) for name in names):
            location = converter.location(place)
            found.append(
                types.WorkspaceSymbol(location, operator.name, types.SymbolKind.Interface, container_name=operator.pack)
            )
            if len(found) == MOST_SYMBOLS:
                break
    return found


def _matches(query: str, name: str) -> bool:
    letters = iter(name.lower())
    return all(letter in letters for letter in query.lower())
