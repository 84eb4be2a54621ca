"""Plots of a verification as numbers for SVG: histograms of errors, and the trend of an op over runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from opschema_cli.verify.model import CellResult, Figures
from opschema_cli.verify.results import Results

FIRST_DECADE = -12
"""The decade of absolute errors of a histogram's second bar. The first bar counts smaller errors."""

SIDES = ("before", "after")

_BAR_WIDTH, _BAR_HEIGHT, _FOOT = 26, 90, 18
_STEP, _TREND_HEIGHT, _MARGIN = 28, 60, 8


class Bar(msgspec.Struct, frozen=True):
    """One bar of a histogram; ``count`` elements of a side have an error of that decade."""

    side: str
    x: float
    y: float
    width: float
    height: float
    title: str


class Histogram(msgspec.Struct, frozen=True):
    """The errors of all sides over each other; ``labels`` are the exponents below the bars, each with its place."""

    bars: Sequence[Bar]
    labels: Sequence[tuple[float, str]]
    sides: Sequence[str]
    width: int
    height: int = _BAR_HEIGHT + _FOOT


class Point(msgspec.Struct, frozen=True):
    """One run of a trend."""

    x: float
    y: float
    title: str


class Trend(msgspec.Struct, frozen=True):
    """The worst share of the tolerance of one op, run by run, by its logarithm; ``limit`` is the height of 100 %, ``lines`` join
    runs that follow each other.
    """

    points: Sequence[Point]
    lines: Sequence[tuple[Point, Point]]
    limit: float
    first: str
    last: str
    width: int
    height: int = _TREND_HEIGHT


def histogram(cells: Sequence[CellResult]) -> Histogram | None:
    """The errors of all outputs of some cells; None if none was measured."""
    sides = [(side, _counts(cells, side)) for side in SIDES]
    sides = [(side, counts) for side, counts in sides if any(counts)]
    if not sides:
        return None
    length = max(len(counts) for _, counts in sides)
    highest = max(max(counts) for _, counts in sides)
    bars = [
        _bar(side, at, number, highest)
        for side, counts in reversed(sides)
        for at, number in enumerate(counts)
        if number
    ]
    labels = [((at + 0.5) * _BAR_WIDTH, _label(at)) for at in range(length)]
    return Histogram(bars, labels, [side for side, _ in sides], length * _BAR_WIDTH)


def _counts(cells: Iterable[CellResult], side: str) -> list[int]:
    found = [figure.histogram for cell in cells for figure in cell.figures if figure.side == side]
    length = max(map(len, found), default=0)
    return [sum(counts[at] for counts in found if at < len(counts)) for at in range(length)]


def _bar(side: str, at: int, number: int, highest: int) -> Bar:
    """A bar whose height is the logarithm of its number, so that one element beside millions is seen."""
    height = _BAR_HEIGHT * math.log2(1 + number) / math.log2(1 + highest)
    title = (
        f"{side}: {number:,} with an error of 1e{_label(at)}" if at else f"{side}: {number:,} below 1e{FIRST_DECADE}"
    )
    return Bar(side, at * _BAR_WIDTH + 2, round(_BAR_HEIGHT - height, 1), _BAR_WIDTH - 4, round(height, 1), title)


def _label(at: int) -> str:
    return f"<{FIRST_DECADE}" if at == 0 else str(FIRST_DECADE + at - 1)


def worst_share(cells: Iterable[CellResult]) -> float | None:
    """The largest part of the tolerance that an output of the tree after takes; None if none was measured."""
    shares = [figure.share for cell in cells for figure in cell.figures if figure.side == "after"]
    return max(shares, key=_order) if shares else None


def _order(share: float) -> float:
    return math.inf if math.isnan(share) else share


def worst(cells: Iterable[CellResult], number: int) -> list[tuple[CellResult, Figures]]:
    """The outputs of the tree after that take most of the tolerance."""
    pairs = [(cell, figure) for cell in cells for figure in cell.figures if figure.side == "after"]
    return sorted(pairs, key=lambda pair: (-_order(pair[1].share), -_order(pair[1].kappa)))[:number]


def trend(op: str, runs: Sequence[Results]) -> Trend | None:
    """Return the trend of an op over runs, or None unless at least two of them measured it. The last run names it."""
    old = runs[-1].header.renamed.get(op, op)
    shares = [worst_share(found.by_op().get(op) or found.by_op().get(old) or ()) for found in runs]
    known = [(at, share) for at, share in enumerate(shares) if share is not None]
    if len(known) < 2:
        return None
    finite = [share for _, share in known if math.isfinite(share)]
    highest = max([1.0, *finite])
    room = _TREND_HEIGHT - 2 * _MARGIN

    def height(share: float) -> float:
        part = math.log2(1 + min(_order(share), highest)) / math.log2(1 + highest)
        return round(_MARGIN + room * (1 - part), 1)

    points = [
        Point(_MARGIN + at * _STEP, height(share), f"{_run(runs[at])}: {percent(share)} %") for at, share in known
    ]
    width = 2 * _MARGIN + (len(runs) - 1) * _STEP
    lines = list(pairwise(points))
    return Trend(points, lines, height(1.0), percent(known[0][1]), percent(known[-1][1]), width)


def _run(found: Results) -> str:
    after = found.header.after
    return f"{after.name} ({after.key[:12]})" if after.key else after.name


def percent(share: float) -> str:
    """A share of the tolerance in per cent, to three digits below 1000."""
    number = 100 * share
    return f"{number:.3g}" if number < 1000 or not math.isfinite(number) else f"{number:,.0f}"
