"""One operator for people: its parts with their places, and its arguments, declared and implemented side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.operators.comparison import Taken, argument_rows, declared_text
from opschema_cli.operators.model import Argument, Operator
from opschema_cli.phrases import unbroken
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.operators.parts import MOST_USES, Sources, parts_of, where
from opschema_cli.source.text import Place

if TYPE_CHECKING:
    from rich.console import Console

_WIDEST_PLACE = 48
"""Maximum width of a place in the place column; wider places are not aligned."""


def heading(operator: Operator) -> str:
    """Return the title: the operator's schema or name, and the state that its declaration gives."""
    declaration = operator.declaration
    status = f" ({declaration.status})" if declaration.status else ""
    return f"{operator.title or operator.name}{declaration.schema}{status}"


def part_lines(operator: Operator, sources: Sources) -> Iterator[tuple[str, str]]:
    """The parts as labels and lines."""
    parts = list(dict.fromkeys(parts_of(operator, sources)))
    places = [where(part.place, sources) if part.place is not None else "" for part in parts]
    width = max((len(place) for place in places if len(place) <= _WIDEST_PLACE), default=0)
    for part, place in zip(parts, places, strict=True):
        text = unbroken(part.text)
        yield part.label, f"{place:<{width}}  {text}".rstrip() if place and text else place or text


def cells(operator: Operator, sources: Sources) -> Iterator[tuple[str, str, str, str]]:
    """Yield the table of arguments: name, declaration, implementation or use, note. An argument may take several lines."""
    spot = _Spots(operator, sources)
    for row in argument_rows(operator):
        declared = row.declared
        text = declared_text(declared) if declared is not None else "-"
        if operator.uses and isinstance(declared, Argument) and not declared.text and declared.place is not None:
            text = f"{text:<5}  {spot(declared.place)}"
        name, note = row.name, declared.note if isinstance(declared, Argument) else ""
        for taken in row.taken[:MOST_USES] or (None,):
            line = _side(taken, spot) if taken is not None else ""
            yield (
                name,
                unbroken(text),
                unbroken(line),
                ", ".join(filter(None, (note, taken.note if taken is not None else ""))),
            )
            name = text = note = ""


def _side(taken: Taken, spot: _Spots) -> str:
    if taken.by:
        return f"{taken.by}: {taken.text}"
    return f"{taken.text:<5}  {spot(taken.place)}" if taken.place is not None else taken.text


class _Spots:
    """Places inside the table: line and column alone where a part above names the file."""

    def __init__(self, operator: Operator, sources: Sources) -> None:
        self.sources = sources
        own = operator.declaration.place
        used = {item.place.path for item in operator.uses if item.place is not None}
        self.named = {own.path} if own is not None else set()
        self.named |= used if len(used) == 1 else set()

    def __call__(self, place: Place) -> str:
        source = self.sources(place.path)
        if source is None or place.path not in self.named:
            return where(place, self.sources)
        line, column = source.position(place.span.start)
        return f"{line}:{column}"


def write(operator: Operator, console: Console, sources: Sources) -> None:
    """Print an operator."""
    from rich.text import Text

    console.print(Text(visible(heading(operator)), style="bold"), soft_wrap=True)
    lines = list(part_lines(operator, sources))
    width = max((len(label) for label, _ in lines), default=0)
    for label, line in lines:
        text = Text.assemble((f"  {visible(label):<{width}}  ", "dim"), visible(line))
        console.print(text, soft_wrap=True)
    rows = list(cells(operator, sources))
    if any(row[2] for row in rows) or not (operator.declaration.schema or operator.text):
        _table(rows, "implemented" if any(item.signatures for item in operator.implementations) else "passed", console)
    if operator.text:
        console.print(Text("\n".join(map(visible, operator.text.split("\n")))), soft_wrap=True)


def _table(rows: Sequence[tuple[str, str, str, str]], heading: str, console: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("argument", "declared", heading, ""):
        table.add_column(title, overflow="fold")
    for row in rows:
        odd = row[2].endswith(("absent", "unresolved")) or row[1] == "-" or bool(row[3])
        table.add_row(*(Text(visible(cell), style="yellow" if odd else "") for cell in row))
    with console.capture() as shown:
        console.print(table)
    for line in shown.get().splitlines() if rows else ():
        text = Text.from_ansi(line)
        text.rstrip()  # a table fills its lines with spaces
        console.print(text, soft_wrap=True)
