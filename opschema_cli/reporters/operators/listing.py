"""The operator table for people: a line for each operator, in columns that fit the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opschema_cli.operators.model import Gap, Operator
from opschema_cli.phrases import count
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.operators.parts import Sources, where
from opschema_cli.reporters.screen import Screen, cells

_GAP = "  "
_PLACES = ("declared", "implemented")
_LEAST = {"implemented": 14, "declared": 14, "operator": 20}
"""Cells that a column keeps on a narrow screen; the first one gives way first."""
_CODE = ("class", "kernel", "lowering", "decomposition", "backend")


def write(operators: Sequence[Operator], sources: Sources, screen: Screen, *, fit: bool, reasons: bool = False) -> str:
    """The lines, a heading above them and the totals below; cut to the screen if they are to ``fit``. With ``reasons`` what is
    unresolved about an operator follows it.
    """
    if not operators:
        return "No operator matches.\n"
    columns = _columns(operators, sources)
    widths = {name: max(cells(name), *map(cells, values)) for name, values in columns.items()}
    if fit:
        _shrink(widths, screen.width)
    lines = [screen.paint(_line({name: name for name in columns}, widths, screen), "dim")]
    for number, operator in enumerate(operators):
        lines.append(_line({name: values[number] for name, values in columns.items()}, widths, screen))
        lines += [_reason(gap, sources) for gap in operator.gaps()] if reasons else []
    return "".join(f"{line}\n" for line in [*lines, "", totals(operators)])


def totals(operators: Sequence[Operator]) -> str:
    """``12 operators (9 tileops, 3 torchlib), 2 with something unresolved``."""
    packs = Counter(item.pack for item in operators)
    shares = f" ({', '.join(f'{number} {name}' for name, number in packs.items())})" if len(packs) > 1 else ""
    unresolved = sum(any(item.gaps()) for item in operators)
    rest = f", {unresolved} with something unresolved" if unresolved else ""
    return f"{count(len(operators), 'operator')}{shares}{rest}"


def _columns(operators: Sequence[Operator], sources: Sources) -> dict[str, list[str]]:
    """The cells of each column; without those that say nothing of any operator."""
    rows = [dict(_cells(item, sources)) for item in operators]
    found = {name: [visible(row[name]) for row in rows] for name in rows[0]}
    return {name: values for name, values in found.items() if any(values)}


def _cells(operator: Operator, sources: Sources) -> Iterator[tuple[str, str]]:
    declared = operator.declaration.place
    yield "operator", operator.name
    yield "pack", operator.pack
    yield "declared", where(declared, sources) if declared is not None else ""
    yield "implemented", _implemented(operator, sources)
    yield "parts", _parts(operator)


def _implemented(operator: Operator, sources: Sources) -> str:
    """The place of an operator's first class, kernel or backend; in the file of its declaration the line alone."""
    known = [(item.role, item.place) for item in operator.implementations]
    known += [(item.role, item.place) for item in operator.registrations]
    places = [place for role in _CODE for other, place in known if role == other and place is not None]
    if not places:
        return ""
    declared, found = operator.declaration.place, where(places[0], sources)
    return f"line {found.rpartition(':')[2]}" if declared is not None and declared.path == places[0].path else found


def _parts(operator: Operator) -> str:
    roles = Counter(item.role for item in operator.implementations)
    words = [
        count(roles["kernel"], "kernel") if roles["kernel"] else "",
        count(roles["fake"], "fake") if roles["fake"] else "",
        count(len(operator.rows), "row") if operator.rows else "",
        f"{unresolved} unresolved" if (unresolved := sum(1 for _ in operator.gaps())) else "",
    ]
    return ", ".join(filter(None, words))


def _shrink(widths: dict[str, int], room: int) -> None:
    """Take from the wide columns what is too much for the screen."""
    for name, least in _LEAST.items():
        over = sum(widths.values()) + len(_GAP) * (len(widths) - 1) - room
        if over > 0 and name in widths:
            widths[name] = max(min(widths[name], least), widths[name] - over)


def _line(values: dict[str, str], widths: dict[str, int], screen: Screen) -> str:
    shown = []
    for name, value in values.items():
        text = _cut(value, widths[name], screen.glyphs.cut, head=0 if name in _PLACES else 2)
        shown.append(text + " " * (widths[name] - cells(text)))
    return _GAP.join(shown).rstrip()


def _cut(text: str, width: int, mark: str, *, head: int) -> str:
    """The text in ``width`` cells: without its middle, or without its beginning if ``head`` is 0, which is the share that stays in
    thirds.
    """
    if cells(text) <= width:
        return text
    first = (width - len(mark)) * head // 3
    before, after = text[:first], text[first:]
    while after and cells(before + mark + after) > width:
        after = after[1:]
    return before + mark + after


def _reason(gap: Gap, sources: Sources) -> str:
    place = f" ({where(gap.place, sources)})" if gap.place is not None else ""
    return visible(f"    {gap.part}: {gap.reason}{place}" if gap.part else f"    {gap.reason}{place}")
