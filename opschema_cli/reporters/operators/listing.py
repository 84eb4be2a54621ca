"""The operator table for people: a table for each pack with a line for each operator, in columns that fit the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from opschema_cli.operators.model import Gap, Operator
from opschema_cli.phrases import count
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.operators.parts import Sources, where
from opschema_cli.reporters.screen import Screen, cells

_GAP = "  "
_PLACES = ("declared", "implemented")
_ENOUGH = {"declared": 24, "implemented": 20, "name": 32}
"""Cells that a column keeps while another one has more."""
_LEAST = 13
"""Cells that every name and place keeps."""
_CODE = ("class", "kernel", "lowering", "decomposition", "backend")

Columns: TypeAlias = dict[str, list[str]]
"""Cells by the titles of their columns; the first column has the names of the operators, titled with their pack."""


def write(operators: Sequence[Operator], sources: Sources, screen: Screen, *, fit: bool, reasons: bool = False) -> str:
    """Write a table for each pack, and the totals below, truncated to the screen width with ``fit``. With ``reasons``, list the
    unresolved parts of an operator below it.
    """
    if not operators:
        return "No operators found.\n"
    lines: list[str] = []
    for pack in dict.fromkeys(item.pack for item in operators):
        own = [item for item in operators if item.pack == pack]
        lines += [*_table(pack, own, sources, screen, fit=fit, reasons=reasons), ""]
    return "".join(f"{line}\n" for line in [*lines, totals(operators)])


def _table(
    pack: str, operators: Sequence[Operator], sources: Sources, screen: Screen, *, fit: bool, reasons: bool
) -> Iterator[str]:
    """The lines of one pack."""
    columns = _columns(pack, operators, sources)
    widths = {name: max(cells(name), *map(cells, values)) for name, values in columns.items()}
    if fit:
        _shrink(widths, columns, screen.width)
    yield screen.paint(_line([(name, name) for name in columns], widths, screen), "dim")
    for number, operator in enumerate(operators):
        yield _line([(name, values[number]) for name, values in columns.items()], widths, screen)
        if reasons:
            yield from (_reason(gap, sources) for gap in operator.gaps())


def totals(operators: Sequence[Operator]) -> str:
    """``12 operators (9 tileops, 3 torchlib), 2 with gaps (--unresolved lists them)``."""
    packs = Counter(item.pack for item in operators)
    shares = f" ({', '.join(f'{number} {name}' for name, number in packs.items())})" if len(packs) > 1 else ""
    unresolved = sum(any(item.gaps()) for item in operators)
    rest = f", {unresolved} with gaps (--unresolved lists them)" if unresolved else ""
    return f"{count(len(operators), 'operator')}{shares}{rest}"


def _columns(pack: str, operators: Sequence[Operator], sources: Sources) -> Columns:
    """The columns of a table; without those that say nothing of any operator."""
    rows = [dict(_cells(pack, item, sources)) for item in operators]
    found = {name: [visible(row[name]) for row in rows] for name in rows[0]}
    return {name: values for name, values in found.items() if any(values)}


def _cells(pack: str, operator: Operator, sources: Sources) -> Iterator[tuple[str, str]]:
    declared = operator.declaration.place
    yield pack, operator.name
    yield "declared", where(declared, sources) if declared is not None else ""
    yield "implemented", _implemented(operator, sources)
    roles = Counter(item.role for item in operator.implementations)
    numbers = {
        "kernels": roles["kernel"],
        "fakes": roles["fake"],
        "rows": len(operator.rows),
        "gaps": sum(1 for _ in operator.gaps()),
    }
    yield from ((name, str(number or "")) for name, number in numbers.items())


def _implemented(operator: Operator, sources: Sources) -> str:
    """The place of an operator's first class, kernel or backend; in the file of its declaration the line alone."""
    known = [(item.role, item.place) for item in operator.implementations]
    known += [(item.role, item.place) for item in operator.registrations]
    places = [place for role in _CODE for other, place in known if role == other and place is not None]
    if not places:
        return ""
    declared, found = operator.declaration.place, where(places[0], sources)
    return f"line {found.rpartition(':')[2]}" if declared is not None and declared.path == places[0].path else found


def _shrink(widths: dict[str, int], columns: Columns, room: int) -> None:
    """Truncate names and places to the screen width: first leading folders, then the middle of names."""
    first = next(iter(widths))
    files = {name: max(map(cells, map(_file, columns[name]))) for name in reversed(_PLACES) if name in widths}
    steps = [*((name, min(_ENOUGH[name], width)) for name, width in files.items()), (first, _ENOUGH["name"])]
    for name, least in [*steps, *((name, _LEAST) for name in files), (first, _LEAST)]:
        over = sum(widths.values()) + len(_GAP) * (len(widths) - 1) - room
        if over > 0:
            widths[name] = max(min(widths[name], max(least, cells(name))), widths[name] - over)


def _line(values: Sequence[tuple[str, str]], widths: dict[str, int], screen: Screen) -> str:
    shown = []
    for place, (name, value) in enumerate(values):
        text = _cut(value, widths[name], screen.glyphs.cut, head=0 if place else 2)
        blank = " " * (widths[name] - cells(text))
        shown.append(text + blank if not place or name in _PLACES else blank + text)
    return _GAP.join(shown).rstrip()


def _cut(text: str, width: int, mark: str, *, head: int) -> str:
    """The text in ``width`` cells: without its first folders, else without its middle, or without its beginning if ``head`` is 0,
    which is the share that stays in thirds.
    """
    if cells(text) <= width:
        return text
    folders = [mark + text[place:] for place, character in enumerate(text) if character == "/"]
    fitting = [shorter for shorter in (*folders, _file(text)) if cells(shorter) <= width]
    if fitting:
        return fitting[0]
    text = _file(text)
    first = (width - len(mark)) * head // 3
    before, after = text[:first], text[first:]
    while after and cells(before + mark + after) > width:
        after = after[1:]
    return before + mark + after


def _file(text: str) -> str:
    """A path without its folders."""
    return text.rpartition("/")[2]


def _reason(gap: Gap, sources: Sources) -> str:
    place = f" ({where(gap.place, sources)})" if gap.place is not None else ""
    return visible(f"    {gap.part}: {gap.reason}{place}" if gap.part else f"    {gap.reason}{place}")
