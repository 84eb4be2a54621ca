"""Declared workloads that the new side removes, and those that its code newly rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from opschema_cli.diff.entries import Entry, Workload
from opschema_cli.diff.model import Audience, Change
from opschema_cli.operators.answers import RowAnswer
from opschema_cli.phrases import listed

_SHOWN = 120
"""Maximum number of characters of a workload without a label to show."""

Answers = Callable[[Mapping[str, Sequence[Workload]]], Mapping[str, Sequence[RowAnswer]]]
"""The answers of one side's code to workloads, by operator and in their order."""


def workload_changes(old: Entry, new: Entry) -> Iterator[Change]:
    """The dtypes that no workload has any more, the workloads that were removed, and the dtypes that single ones lost."""
    hits: tuple[Audience, ...] = ("semantics",)
    left = {dtype for item in new.workloads for dtype in item.dtypes}
    lost = {dtype for item in old.workloads for dtype in item.dtypes} - left
    if lost and new.workloads:
        message = f"no workload has {listed(sorted(lost), 'or')} any more"
        yield Change("workload", old.name, message, old.workloads[0].place, new.workloads[0].place, hits)
    labels = {item.label: item for item in new.workloads if item.label}
    contents = {_content(item): item for item in new.workloads if item.values}
    for item in old.workloads:
        other = labels.get(item.label) or contents.get(_content(item))
        if other is None and (item.label or item.values):
            yield Change("workload", old.name, f"the workload {title_of(item)} was removed", item.place, None, hits)
        elif other is not None:
            dtypes = [dtype for dtype in item.dtypes if dtype not in other.dtypes and dtype not in lost]
            if dtypes and not any(
                set(dtypes) <= set(one.dtypes) and _content(one) == _content(item) for one in new.workloads
            ):
                message = f"the workload {title_of(item)} does not have {listed(dtypes, 'or')} any more"
                yield Change("workload", old.name, message, item.place, other.place, hits)


def refusal_changes(old: Iterable[Entry], new: Iterable[Entry], before: Answers, now: Answers) -> Iterator[Change]:
    """Yield the workloads of the old side that its own code accepts and the new side's code rejects."""
    after = {(item.pack, item.name): item for item in new if not item.planned}
    kept = {item.name: item for item in old if item.workloads and not item.planned and (item.pack, item.name) in after}
    refused = {
        name: [(row, answer) for row, answer in zip(kept[name].workloads, answers, strict=True) if answer.refused]
        for name, answers in now({name: item.workloads for name, item in kept.items()}).items()
    }
    asked = {name: [row for row, _ in found] for name, found in refused.items() if found}
    earlier = before(asked) if asked else {}
    for name, answers in earlier.items():
        found = [pair for pair, answer in zip(refused[name], answers, strict=True) if answer.accepted]
        yield from _refusals(kept[name], found)


def _refusals(entry: Entry, found: Sequence[tuple[Workload, RowAnswer]]) -> Iterator[Change]:
    """Yield one change for each place that rejects workloads."""
    by_place: dict[object, list[tuple[Workload, RowAnswer]]] = {}
    for row, answer in found:
        by_place.setdefault(answer.place, []).append((row, answer))
    for (row, answer), *others in by_place.values():
        more = f" and {len(others)} more" if others else ""
        message = f"it now refuses the workload {title_of(row)}{more} with {answer.refused}"
        yield Change("refusal", entry.name, message, row.place, answer.place, ("callers",), entry.pack)


def title_of(item: Workload) -> str:
    """Return the label of a workload, otherwise its values."""
    text = ", ".join(f"{key}: {value}" for key, value in item.values.items())
    return f"`{item.label or (text if len(text) <= _SHOWN else text[:_SHOWN] + '…')}`"


def _content(item: Workload) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, "".join(value.split())) for key, value in item.values.items()))
