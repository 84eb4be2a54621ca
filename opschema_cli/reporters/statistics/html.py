"""Counts of findings as a page that needs no other file: a plot of the history, and tables by rule, pack and file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.phrases import count
from opschema_cli.reporters.html import THEMES, page
from opschema_cli.reporters.html.elements import text
from opschema_cli.reporters.statistics import SEVERITIES, Revision, Row, Statistics, by_rule, counted, total

_BAR, _GAP, _HEIGHT, _LEFT, _FOOT = 22, 4, 160, 44, 18
_LEAST = 220
"""Width at which two dates fit below the bars."""

_SPARK_STEP, _SPARK_HEIGHT, _MARGIN = 8, 20, 3


def write(statistics: Statistics) -> str:
    """The page."""
    title = f"opschema stats: {statistics.name}" if statistics.name else "opschema stats"
    top = f'<header class="top"><h1>{text(title)}</h1>{THEMES}</header>\n'
    return page.render(title, f"{top}<main>\n{''.join(_body(statistics))}</main>", "stats")


def _body(statistics: Statistics) -> Iterator[str]:
    rows, history = statistics.rows, statistics.history
    numbers = ", ".join(count(total(rows, severity), severity.value) for severity in SEVERITIES)
    yield f'<p class="sum"><strong>{count(total(rows), "finding")}</strong>: {numbers}</p>\n'
    if history:
        yield f"<h2>History</h2>\n{_plot(history)}{_commits(history)}"
    yield f"<h2>By rule</h2>\n{_rules(statistics)}"
    yield f"<h2>By pack</h2>\n{_table('pack', counted(rows, lambda row: row.pack))}"
    yield f"<h2>By file</h2>\n{_table('file', counted(rows, lambda row: row.path))}"


def _plot(history: Sequence[Revision]) -> str:
    """The commits as bars, errors at the bottom."""
    highest = max([1, *(total(revision.rows) for revision in history)])
    width, height = max(_LEAST, _LEFT + len(history) * (_BAR + _GAP)), _HEIGHT + _FOOT
    bars = "".join(bar for at, revision in enumerate(history) for bar in _bars(at, revision, highest))
    first, last = history[0], history[-1]
    ends = f"{total(first.rows)} findings at {first.commit[:10]}, {total(last.rows)} at {last.commit[:10]}"
    dates = (
        f'<text x="{_LEFT}" y="{height - 4}">{first.date}</text>'
        f'<text x="{width}" y="{height - 4}" class="end">{last.date}</text>'
    )
    axis = f'<text x="{_LEFT - 6}" y="10" class="end">{highest}</text><text x="{_LEFT - 6}" y="{_HEIGHT}" class="end">0</text>'
    keys = " ".join(f'<span class="key {item.value}"></span> {item.value}' for item in SEVERITIES)
    return (
        f'<figure><div class="wide" tabindex="0" role="region" aria-label="Plot">'
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{ends}">{axis}{bars}{dates}</svg></div>'
        f"<figcaption>{keys}: findings by commit, the oldest first</figcaption></figure>\n"
    )


def _bars(at: int, revision: Revision, highest: int) -> Iterator[str]:
    bottom = float(_HEIGHT)
    for severity in SEVERITIES:
        number = total(revision.rows, severity)
        size = _HEIGHT * number / highest
        bottom -= size
        title = f"{revision.commit[:10]}, {revision.date}: {count(number, severity.value)}"
        if number:
            yield (
                f'<rect class="{severity.value}" x="{_LEFT + at * (_BAR + _GAP)}" y="{bottom:.1f}" width="{_BAR}" '
                f'height="{size:.1f}"><title>{text(title)}</title></rect>'
            )


def _commits(history: Sequence[Revision]) -> str:
    """Return the same numbers as a table."""
    names = "".join(f'<th scope="col" class="number">{severity.value}s</th>' for severity in SEVERITIES)
    head = f'<tr><th scope="col">commit</th><th scope="col">date</th>{names}</tr>'
    rows = "".join(
        f'<tr><th scope="row"><code>{text(item.commit[:10])}</code></th><td>{item.date}</td>{_numbers(item.rows)}</tr>\n'
        for item in history
    )
    return f"<details><summary>{count(len(history), 'commit')}</summary><table>{head}\n{rows}</table></details>\n"


def _numbers(rows: Sequence[Row]) -> str:
    return "".join(f'<td class="number">{total(rows, severity)}</td>' for severity in SEVERITIES)


def _rules(statistics: Statistics) -> str:
    """The rules, with the trend of each where there is a history."""
    if not statistics.history:
        return _table("rule", counted(statistics.rows, lambda row: row.rule))
    head = (
        '<tr><th scope="col">rule</th><th scope="col" class="number">first</th><th scope="col" class="number">now</th>'
        '<th scope="col">trend</th></tr>'
    )
    rows = "".join(
        f'<tr><th scope="row">{text(rule)}</th><td class="number">{past[0]}</td><td class="number">{now}</td>'
        f"<td>{_spark([*past, now])}</td></tr>\n"
        for rule, past, now in by_rule(statistics)
    )
    return f"<table>{head}\n{rows}</table>\n"


def _spark(numbers: Sequence[int]) -> str:
    """A line through the numbers, the last one a dot."""
    highest, room = max([1, *numbers]), _SPARK_HEIGHT - 2 * _MARGIN
    points = [
        (_MARGIN + at * _SPARK_STEP, round(_MARGIN + room * (1 - number / highest), 1))
        for at, number in enumerate(numbers)
    ]
    width = 2 * _MARGIN + (len(numbers) - 1) * _SPARK_STEP
    joined = " ".join(f"{x},{y}" for x, y in points)
    x, y = points[-1]
    return (
        f'<svg viewBox="0 0 {width} {_SPARK_HEIGHT}" width="{width}" role="img" aria-label="{numbers[0]} to {numbers[-1]}">'
        f'<polyline points="{joined}"/><circle cx="{x}" cy="{y}" r="2.5"/></svg>'
    )


def _table(name: str, found: Sequence[tuple[str, int]]) -> str:
    head = f'<tr><th scope="col">{name}</th><th scope="col" class="number">findings</th></tr>'
    rows = "".join(
        f'<tr><th scope="row">{text(label)}</th><td class="number">{number}</td></tr>\n' for label, number in found
    )
    return f"<table>{head}\n{rows}</table>\n"
