"""Verification as a page: the table, the errors of each op against the reference as histograms, and its worst cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from opschema_cli.errors import OpschemaError
from opschema_cli.reporters.verification.text import describe, summary
from opschema_cli.verify.model import CellResult, Figures
from opschema_cli.verify.results import VERDICTS, Results

FIRST_DECADE = -12
"""The decade of absolute errors that the first bar but one of a histogram counts; the first counts what is below."""

_WORST = 8
_BAR_WIDTH, _HEIGHT = 22, 90


class Bar(msgspec.Struct, frozen=True):
    """One bar of a histogram, in pixels of its picture; ``label`` is the decade's exponent."""

    x: float
    y: float
    width: float
    height: float
    count: int
    label: str


class Plot(msgspec.Struct, frozen=True):
    """A histogram of log10 of absolute errors of one side."""

    side: str
    bars: Sequence[Bar]
    width: int
    height: int = _HEIGHT


class OpPage(msgspec.Struct, frozen=True):
    """The part of the page about one op."""

    name: str
    device: str
    counts: Counter[str]
    plots: Sequence[Plot]
    worst: Sequence[tuple[CellResult, Figures]]
    told: Sequence[CellResult]


def write_pages(results: Results, folder: Path, seconds: float) -> Path:
    """Write ``index.html`` into ``folder``; it needs no other file.

    Raises:
        OpschemaError: it cannot be written.
    """
    page = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page.write_text(render(results, seconds), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OpschemaError(f"{page} cannot be written: {error.strerror or error}") from None
    return page


def render(results: Results, seconds: float) -> str:
    """The page."""
    environment = Environment(
        loader=PackageLoader("opschema_cli.reporters.verification"), autoescape=True, undefined=StrictUndefined
    )
    template = environment.get_template("page.html")
    ops = [_op(name, cells) for name, cells in results.by_op().items()]
    return template.render(
        header=results.header, ops=ops, verdicts=VERDICTS, summary=summary(results, seconds), describe=describe
    )


def _op(name: str, cells: Sequence[CellResult]) -> OpPage:
    figures = [(cell, figure) for cell in cells for figure in cell.figures]
    worst = sorted((pair for pair in figures if pair[1].side == "after"), key=lambda pair: -pair[1].kappa)[:_WORST]
    sides = dict.fromkeys(figure.side for _, figure in figures)
    plots = [_plot(side, [figure for _, figure in figures if figure.side == side]) for side in sides]
    devices = ", ".join(dict.fromkeys(cell.device for cell in cells))
    told = [cell for cell in cells if cell.verdict not in ("unchanged", "within-tolerance")]
    return OpPage(name, devices, Counter(cell.verdict for cell in cells), plots, worst, told)


def _plot(side: str, figures: Sequence[Figures]) -> Plot:
    """The errors of all cells of one side together."""
    length = max((len(figure.histogram) for figure in figures), default=0)
    counts = [sum(figure.histogram[at] for figure in figures if at < len(figure.histogram)) for at in range(length)]
    highest = max(counts, default=0) or 1
    bars = []
    for at, number in enumerate(counts):
        height = (_HEIGHT - 30) * number / highest
        label = "<" if at == 0 else str(FIRST_DECADE + at - 1)
        bars.append(Bar(at * _BAR_WIDTH, _HEIGHT - 15 - height, _BAR_WIDTH - 3, height, number, label))
    return Plot(side, bars, max(1, length) * _BAR_WIDTH)
