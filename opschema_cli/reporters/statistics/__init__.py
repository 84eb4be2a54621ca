"""Counts of findings, of a tree and of its history: the model that the text, the JSON and the page read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from importlib import import_module
from typing import TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Severity

SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)
FORMATS = ("text", "json", "html")


class Row(msgspec.Struct, frozen=True, array_like=True):
    """The number of findings of one rule and severity in one file."""

    path: str
    code: str
    name: str
    pack: str
    severity: Severity
    count: int

    @property
    def rule(self) -> str:
        """The rule as people call it."""
        return f"{self.code} {self.name}"


class Revision(msgspec.Struct, frozen=True):
    """The findings of a commit; ``time`` is its time, in seconds since 1970."""

    commit: str
    time: int
    rows: Sequence[Row]

    @property
    def date(self) -> str:
        """The day of the commit, in UTC."""
        return datetime.fromtimestamp(self.time, timezone.utc).date().isoformat()


class Statistics(msgspec.Struct, frozen=True):
    """The findings of the tree called ``name``, and of commits of its history, the oldest first."""

    name: str
    rows: Sequence[Row]
    history: Sequence[Revision] = ()


Writer: TypeAlias = Callable[[Statistics], str]


def rows_of(diagnostics: Iterable[Diagnostic], owners: Mapping[str, str]) -> list[Row]:
    """The findings counted; ``owners`` has the packs of rules by code."""
    found = Counter((item.place.path, item.code, item.name, item.severity) for item in diagnostics)
    return [
        Row(path, code, name, owners.get(code, ""), severity, count)
        for (path, code, name, severity), count in sorted(found.items(), key=lambda item: item[0][:3])
    ]


def total(rows: Iterable[Row], severity: Severity | None = None) -> int:
    """The number of findings, of all severities or of one."""
    return sum(row.count for row in rows if severity in (None, row.severity))


def counted(rows: Iterable[Row], key: Callable[[Row], str]) -> list[tuple[str, int]]:
    """The number of findings by a key, the most frequent first."""
    found: Counter[str] = Counter()
    for row in rows:
        found[key(row)] += row.count
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def by_rule(statistics: Statistics) -> list[tuple[str, list[int], int]]:
    """Each rule with its numbers in the commits and in the tree, the most frequent first; rules that only the history has come
    last.
    """
    now = dict(counted(statistics.rows, lambda row: row.rule))
    past = [dict(counted(revision.rows, lambda row: row.rule)) for revision in statistics.history]
    rules = {*now, *(rule for numbers in past for rule in numbers)}
    found = [(rule, [numbers.get(rule, 0) for numbers in past], now.get(rule, 0)) for rule in rules]
    return sorted(found, key=lambda item: (-item[2], item[0]))


def load_writer(name: str) -> Writer:
    """The writer of one of ``FORMATS``."""
    writer: Writer = import_module(f"{__name__}.{name}").write
    return writer
