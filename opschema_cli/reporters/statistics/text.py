"""Counts of findings as tables, and their history as bar charts in text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from opschema_cli.phrases import count
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.statistics import SEVERITIES, Row, Statistics, by_rule, counted, total

_BARS = "▁▂▃▄▅▆▇█"
_SHOWN = 20


def write(statistics: Statistics) -> str:
    """The tables by rule, pack and file, then the history."""
    lines = [_sum(statistics.rows)]
    tables: tuple[tuple[str, Callable[[Row], str]], ...] = (
        ("rule", lambda row: row.rule),
        ("pack", lambda row: row.pack),
        ("file", lambda row: row.path),
    )
    for name, key in tables:
        lines += _table(name, counted(statistics.rows, key))
    if statistics.history:
        lines += ["", *_history(statistics), "", *_rules(statistics)]
    return "".join(f"{line}\n" for line in lines)


def _sum(rows: Sequence[Row]) -> str:
    numbers = ", ".join(count(total(rows, severity), severity.value) for severity in SEVERITIES)
    return f"{count(total(rows), 'finding')}: {numbers}"


def _table(name: str, found: Sequence[tuple[str, int]]) -> Iterator[str]:
    if found:
        yield from ("", f"{'findings':>8}  {name}")
    yield from (f"{number:>8}  {visible(label)}" for label, number in found[:_SHOWN])
    if len(found) > _SHOWN:
        yield f"{sum(number for _, number in found[_SHOWN:]):>8}  in {count(len(found) - _SHOWN, f'other {name}')}"


def _history(statistics: Statistics) -> Iterator[str]:
    """A line for each commit."""
    bars = spark([total(revision.rows) for revision in statistics.history])
    yield f"{'commit':<10}  {'date':<10}  {'errors':>8}  {'warnings':>8}  {'infos':>8}"
    for revision, bar in zip(statistics.history, bars, strict=True):
        numbers = "  ".join(f"{total(revision.rows, severity):>8}" for severity in SEVERITIES)
        yield f"{revision.commit[:10]:<10}  {revision.date}  {numbers}  {bar}"


def _rules(statistics: Statistics) -> Iterator[str]:
    """A line for each rule whose number has changed."""
    changed = [(rule, past, now) for rule, past, now in by_rule(statistics) if {*past} != {now}]
    if not changed:
        yield "No rule has more or fewer findings than in these commits."
        return
    yield f"{'first':>8}  {'now':>8}  rule"
    for rule, past, now in changed:
        yield f"{past[0]:>8}  {now:>8}  {spark([*past, now])}  {visible(rule)}"


def spark(numbers: Sequence[int]) -> str:
    """A bar for each number, the lowest for 0."""
    highest = max([1, *numbers])
    return "".join(_BARS[-(-number * (len(_BARS) - 1) // highest)] for number in numbers)
