"""Plans whose cells are searched for: each operator is imported in a worker and called with what its schema allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.verify.cells import Case, choose
from opschema_cli.verify.kernel_caches import CachesInUse, caches_of_search
from opschema_cli.verify.large.growth import with_large_tensor
from opschema_cli.verify.model import Call, Cell, Limits, Plan
from opschema_cli.verify.results import Version
from opschema_cli.verify.search.derived import derived_calls
from opschema_cli.verify.search.finder import Found, find_calls
from opschema_cli.verify.workers import Workers

_MOST_DEATHS = 3
_PLACE = re.compile(r"\S+:\d+ in ")
_SECONDS = 20.0


def with_cells(
    plans: Sequence[Plan], limits: Limits, device: str, workers: Workers, progress: Callable[[int, int, str], None]
) -> list[Plan]:
    """The plans, with cells for those that have a search."""
    sought = [plan for plan in plans if plan.search is not None and not plan.unplanned]
    if not sought:
        return list(plans)
    found: dict[str, Plan] = {}
    surveyed: set[tuple[str, ...]] = set()
    for place, plan in enumerate(sought):
        found[plan.op] = searched(plan, limits, device, workers)
        loaded = workers.load("search", plan)
        alike = [other for other in sought[place + 1 :] if other.target.imports == plan.target.imports]
        if (loaded.absent or loaded.missing) and alike and plan.target.imports not in surveyed:
            surveyed.add(plan.target.imports)
            workers.survey("search", alike)
        progress(len(found), len(sought), plan.op)
    return [found.get(plan.op, plan) for plan in plans]


@contextmanager
def search_workers(folder: Path, device: str, tree: Version, label: str) -> Iterator[Workers]:
    """The workers of a search in a tree, on ``device``, whose label in results is ``label``. What they compile is kept for the side
    after.
    """
    with (
        closing(CachesInUse(caches_of_search(tree, label))) as caches,
        Workers(folder / "search", device=device, caches=caches.folders) as workers,
    ):
        yield workers


class SearchResult(msgspec.Struct, frozen=True):
    """The calls that were found for an operator. ``schema`` is None if it could not be imported or its schema cannot be read, and
    ``found`` then has the reason; ``text`` is the schema as torch writes it. With ``unimported`` its import failed, though the tree
    has it. ``reference`` describes the one that torch has for it.
    """

    found: Found
    unimported: bool = False
    schema: OperatorSchema | None = None
    text: str = ""
    reference: str = ""


def search(plan: Plan, device: str, workers: Workers) -> SearchResult:
    """Search for calls of the operator of a plan, in a worker. If its recipe has calls, only these are tried, and reported if they
    are refused; tests call operators wrongly on purpose.
    """
    assert plan.search is not None
    loaded = workers.load("search", plan)
    if loaded.status != "ok":
        inner = "; it is not defined at the top level of its module" if loaded.absent and plan.search.is_nested else ""
        return SearchResult(Found((), _on_one_line(loaded.detail) + inner), unimported=not loaded.absent)
    schema = parse_schema(loaded.schema).schema
    if schema is None:
        return SearchResult(Found((), f"its schema `{loaded.schema}` cannot be read"))
    asker = _Asker(plan, device, workers)
    samples = loaded.calls or plan.search.samples
    found = find_calls(schema, samples, asker.refusal, only_samples=bool(loaded.calls))
    if not loaded.calls:
        found = msgspec.structs.replace(found, refused={})
    return SearchResult(found, schema=schema, text=loaded.schema, reference=loaded.reference)


def searched(plan: Plan, limits: Limits, device: str, workers: Workers) -> Plan:
    """A plan with the cells that a search in a worker finds; else with the reason why there are none."""
    result = search(plan, device, workers)
    found = result.found
    if not found.calls:
        return msgspec.structs.replace(plan, unplanned={plan.op: found.reason}, unimported=result.unimported)
    asker = _Asker(plan, device, workers)
    cases = [
        Case(plan.op, item.row, item.dtype, "row", item.call, partial(_derived, item.call, asker, limits))
        for item in found.calls
    ]
    cells, left_out = choose(cases, limits)
    refused = {f"{plan.op}[{label}]": f"refused: {reason}" for label, reason in found.refused.items()}
    planned = msgspec.structs.replace(
        plan,
        cells=tuple(cells),
        unplanned={**plan.unplanned, **refused},
        dtypes=tuple(dict.fromkeys(item.dtype for item in found.calls)),
        left_out=left_out,
    )
    return with_large_tensor(planned, cases, asker.refusal) if limits.large else planned


def _derived(call: Call, asker: _Asker, limits: Limits) -> dict[str, Call]:
    return derived_calls(call, asker.refusal, limits.derived_elements)


class _Asker:
    """Asks the worker of one operator whether it accepts calls."""

    def __init__(self, plan: Plan, device: str, workers: Workers) -> None:
        self._plan, self._device, self._workers = plan, device, workers
        self._deaths = 0

    def refusal(self, call: Call) -> str:
        """The reason why a call is refused; empty if it is accepted. One that ends the process is refused."""
        if self._deaths == _MOST_DEATHS:
            return f"{_MOST_DEATHS} calls ended the process; no more were tried"
        cell = Cell(op=self._plan.op, row="search", dtype="", call=call)
        ran = self._workers.run("search", self._plan, cell, self._device, _SECONDS)
        if ran.status in ("died", "stalled"):
            self._deaths += 1
        return "" if ran.status == "ok" else _on_one_line(ran.detail)


def _on_one_line(detail: str) -> str:
    """An error and the place where it was raised."""
    first, *others = detail.splitlines() or ["refused"]
    return f"{first}, at {others[-1]}" if others and _PLACE.match(others[-1]) else first
