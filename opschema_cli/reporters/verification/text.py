"""Verification results as text: a table of ops and verdicts, then the failures, cell by cell, and the unchecked ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opschema_cli.phrases import count, some
from opschema_cli.reporters.escape import visible
from opschema_cli.verify.model import CellResult, Figures, Verdict
from opschema_cli.verify.results import FAILED, VERDICTS, Results, finding_lines

HEADINGS: dict[Verdict, str] = {
    "unchanged": "un-\nchanged",
    "within-tolerance": "within\ntol.",
    "regression": "regres-\nsion",
    "wrong-already": "wrong\nalready",
    "crashed": "\ncrashed",
    "not-checked": "not\nchecked",
}

STYLES: dict[Verdict, str] = {
    "unchanged": "green",
    "within-tolerance": "cyan",
    "regression": "bold red",
    "wrong-already": "yellow",
    "crashed": "bold red",
    "not-checked": "yellow",
}

_Key = TypeVar("_Key", bound=Hashable)

_ALWAYS = frozenset({"unchanged", "regression"})

_SHOWN_REASONS = 3
_SHOWN_MESSAGES = 6


def write(results: Results, console: Console, seconds: float) -> None:
    """Print the table, the failures, outputs with other bits than before, what was not checked, notes, and a summary."""
    console.print(_table(results))
    for verdict in ("regression", "crashed", "wrong-already"):
        _write_cells([cell for cell in results.cells.values() if cell.verdict == verdict], verdict, console)
    if results.header.before is not None:
        _write_tolerated([cell for cell in results.cells.values() if cell.verdict == "within-tolerance"], console)
    _write_unchecked([cell for cell in results.cells.values() if cell.verdict == "not-checked"], console)
    for note in results.header.notes:
        console.print(Text.assemble(("note", STYLES["not-checked"]), f"  {visible(note)}"), soft_wrap=True)
    console.print(Text(summary(results, seconds), style="bold"))


def _table(results: Results) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    total = results.counts()
    shown = [verdict for verdict in VERDICTS if total[verdict] or verdict in _ALWAYS]
    table.add_column("op", footer="all", overflow="fold", min_width=16)
    table.add_column("device", no_wrap=True)
    for verdict in shown:
        table.add_column(HEADINGS[verdict], footer=_number(total, verdict), justify="right", no_wrap=True)
    table.add_column("% of\ntol.", justify="right", no_wrap=True)
    for op, cells in results.by_op().items():
        counts = Counter(cell.verdict for cell in cells)
        device = ", ".join(dict.fromkeys(cell.device for cell in cells))
        numbers = [_number(counts, verdict) for verdict in shown]
        table.add_row(Text(visible(results.header.called(op))), Text(visible(device)), *numbers, _worst(cells))
    return table


def _number(counts: Counter[Verdict], verdict: Verdict) -> Text:
    number = counts[verdict]
    return Text(str(number), style=STYLES[verdict]) if number else Text("-", style="dim")


def _worst(cells: Iterable[CellResult]) -> Text:
    """The largest part of the tolerance that an output takes, in per cent."""
    shares = [figure.share for cell in cells for figure in cell.figures if figure.side == "after"]
    return Text(f"{100 * max(shares):.3g}") if shares else Text("-", style="dim")


def _write_cells(cells: Sequence[CellResult], verdict: Verdict, console: Console) -> None:
    """Some cells of each op: of those for which the same is said, the first."""
    for op, mine in _grouped(cells, lambda cell: cell.op).items():
        alike = _grouped(mine, lambda cell: (cell.reason, cell.findings))
        for found in list(alike.values())[:_SHOWN_REASONS]:
            name = (visible(found[0].id), "bold")
            more = f" and {count(len(found) - 1, 'more cell')}" if len(found) > 1 else ""
            head = Text.assemble((verdict, STYLES[verdict]), "  ", name, f"{more}  {visible(found[0].device)}")
            console.print(head, soft_wrap=True)
            for line in _told(found[0]):
                console.print(Text(f"    {line}"), soft_wrap=True)
        rest = sum(map(len, list(alike.values())[_SHOWN_REASONS:]))
        if rest:
            console.print(Text(f"... and {count(rest, 'more cell')} of {visible(op)}: {verdict}"))


def _grouped(cells: Sequence[CellResult], key: Callable[[CellResult], _Key]) -> dict[_Key, list[CellResult]]:
    found: dict[_Key, list[CellResult]] = {}
    for cell in cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def _write_tolerated(cells: Sequence[CellResult], console: Console) -> None:
    """Ops whose bits differ from before, and how far they are from the reference."""
    for (op, reason), found in _grouped(cells, lambda cell: (cell.op, cell.reason.partition(":")[0])).items():
        figures = [figure for cell in found for figure in cell.figures if figure.side == "after"]
        worst = max(figures, key=lambda figure: figure.share, default=Figures(side="after", output=""))
        far = f"at most {worst.ulps:.3g} ulp, {100 * worst.share:.3g} % of the tolerance"
        head = Text.assemble(("within tolerance", STYLES["within-tolerance"]), f"  {count(len(found), 'cell')} of ")
        console.print(head + Text(f"{visible(op)}: {visible(reason)}; {far}"), soft_wrap=True)


def _told(cell: CellResult) -> Iterator[str]:
    for lines in (cell.reason.splitlines(), finding_lines(cell)):
        yield from map(visible, lines[:_SHOWN_MESSAGES])
        if len(lines) > _SHOWN_MESSAGES:
            yield f"... and {len(lines) - _SHOWN_MESSAGES} more"


def _write_unchecked(cells: Sequence[CellResult], console: Console) -> None:
    """Cells without a verdict by their reason: of each, which ops and how many cells."""
    reasons = _grouped(cells, lambda cell: cell.reason)
    for reason, found in sorted(reasons.items(), key=lambda item: -len(item[1])):
        ops = some([visible(op) for op in dict.fromkeys(cell.op for cell in found)], 4)
        head = Text.assemble(("not checked", STYLES["not-checked"]), f"  {count(len(found), 'cell')} of {ops}: ")
        console.print(head + Text(visible("; ".join(reason.splitlines()))), soft_wrap=True)


def summary(results: Results, seconds: float) -> str:
    """The result of all cells, and the device, in one sentence."""
    counts, header = results.counts(), results.header
    parts = [f"{counts[verdict]} {verdict.replace('-', ' ')}" for verdict in VERDICTS if counts[verdict]]
    if results.missing:
        parts.append(f"{len(results.missing)} without a result")
    whole = f"{count(len(header.cells), 'cell')} of {count(len(results.by_op()), 'op')} on {visible(header.device)}"
    if results.unimported:
        parts.append(f"{count(len(results.unimported), 'op')} not imported")
    return f"{outcome(results)}: {whole}: {', '.join(parts) or 'none'} ({seconds:.1f} s)"


def outcome(results: Results) -> str:
    """The verdict on the run: ``Passed``, ``Failed``, ``Incomplete`` or ``Nothing was checked``."""
    counts = results.counts()
    if results.missing or any(counts[verdict] for verdict in FAILED):
        return "Failed"
    if results.lacks:
        return "Incomplete"
    if not _checked(counts):
        return "Nothing was checked"
    return "Failed" if results.unimported else "Passed"


def _checked(counts: Counter[Verdict]) -> int:
    return sum(number for verdict, number in counts.items() if verdict != "not-checked")
