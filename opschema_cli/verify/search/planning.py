"""Plans whose cells are searched for: each operator is imported in a worker and called with arguments that its schema allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.verify.cells import Case, choose
from opschema_cli.verify.kernel_caches import CachesInUse, caches_of_search
from opschema_cli.verify.large.growth import with_large_tensor
from opschema_cli.verify.model import Call, Cell, Limits, Plan, Search, Side, Weakness
from opschema_cli.verify.results import Version
from opschema_cli.verify.search.argument_names import Names
from opschema_cli.verify.search.candidates import Accepts, FinalRefusal
from opschema_cli.verify.search.derived import derived_calls
from opschema_cli.verify.search.finder import Found, accepted_by_either, find_calls
from opschema_cli.verify.workers import Workers

_ADVICE = "; a recipe can list calls (`opschema verify --init`)"
_COMPUTING_SECONDS = 100.0
"""Seconds that a process may compute beyond the time limit of a call: it may compile in its own process (NVRTC, LLVM)."""

_MOST_DEATHS = 3
_PLACE = re.compile(r"\S+:\d+ in ")
_SECONDS = 20.0
_OF_PYTHON = ("Fatal Python error", "Current thread", "Thread ")
"""Beginnings of lines that faulthandler writes before the stack."""


def with_cells(
    plans: Sequence[Plan],
    earlier: Mapping[str, Plan],
    limits: Limits,
    device: str,
    workers: Workers,
    progress: Callable[[int, int, str], None],
) -> list[Plan]:
    """The plans, with cells for those that have a search; ``earlier`` has the plans of operators that the tree before can run."""
    sought = [plan for plan in plans if plan.search is not None and not plan.unplanned]
    if not sought:
        return list(plans)
    found: dict[str, Plan] = {}
    surveyed: set[tuple[str, ...]] = set()
    for place, plan in enumerate(sought):
        found[plan.op] = searched(plan, earlier.get(plan.op), limits, device, workers)
        loaded = workers.load("search", plan)
        alike = [other for other in sought[place + 1 :] if other.target.imports == plan.target.imports]
        if (loaded.absent or loaded.missing) and alike and plan.target.imports not in surveyed:
            surveyed.add(plan.target.imports)
            workers.survey("search", alike)
        progress(len(found), len(sought), plan.op)
    return [found.get(plan.op, plan) for plan in plans]


@contextmanager
def search_workers(
    folder: Path, device: str, label: str, after: Version, before: Version | None = None
) -> Iterator[Workers]:
    """The workers of a search in one or two trees, on ``device``, whose label in results is ``label``. What they compile is kept
    for the sides.
    """
    with (
        closing(CachesInUse(caches_of_search(before, after, label))) as caches,
        Workers(folder / "search", device=device, caches=caches.folders) as workers,
    ):
        yield workers


class SearchResult(msgspec.Struct, frozen=True):
    """The calls found for an operator. ``schema`` is None if it could not be imported or its schema cannot be read, and
    ``found`` then has the reason; ``text`` is the schema as torch writes it. With ``unimported`` its import failed, although the
    tree has it. ``reference`` describes torch's own reference.
    """

    found: Found
    unimported: bool = False
    schema: OperatorSchema | None = None
    text: str = ""
    reference: str = ""


def search(plan: Plan, device: str, workers: Workers, earlier: Plan | None = None) -> SearchResult:
    """Search for calls of the operator of a plan, in a worker, and in one for its plan in the tree before. If its recipe has calls,
    only these are tried, and reported if they are refused; tests call operators wrongly on purpose.
    """
    assert plan.search is not None
    loaded = workers.load("search", plan)
    if loaded.status != "ok":
        inner = _within(plan.search) if loaded.absent and plan.search.is_nested else ""
        return SearchResult(Found((), _on_one_line(loaded.detail) + inner), unimported=not loaded.absent)
    schema = parse_schema(loaded.schema).schema
    if schema is None:
        return SearchResult(Found((), f"its schema `{loaded.schema}` cannot be read"))
    asker = _Asker(plan, "search", device, workers)
    now, then = asker.refusal, _asker_before(plan, earlier, device, workers)
    samples = loaded.calls or plan.search.samples
    names = Names(schema, plan.search.names)
    found = find_calls(
        names.schema,
        names.forth(samples),
        names.asked(now),
        None if then is None else names.asked(then),
        hints=plan.search.values,
        only_samples=bool(loaded.calls),
        worth=names.asked(asker.weakness),
    )
    found = msgspec.structs.replace(found, calls=tuple(map(names.back, found.calls)))
    if not loaded.calls:
        found = msgspec.structs.replace(found, refused={})
    return SearchResult(found, schema=schema, text=loaded.schema, reference=loaded.reference)


def _within(search: Search) -> str:
    if not search.within:
        return "; it is not defined at the top level of its module"
    return f"; it is defined within `{search.within}`: --import can name a module that calls this"


def searched(plan: Plan, earlier: Plan | None, limits: Limits, device: str, workers: Workers) -> Plan:
    """A plan with the cells that a search in a worker finds; else with the reason why there are none."""
    result = search(plan, device, workers, earlier)
    found = result.found
    if not found.calls:
        advice = _ADVICE if result.schema is not None and not found.refused else ""
        return msgspec.structs.replace(plan, unplanned={plan.op: found.reason + advice}, unimported=result.unimported)
    now, then = _Asker(plan, "search", device, workers).refusal, _asker_before(plan, earlier, device, workers)
    either = accepted_by_either(now, then)
    cases = [
        Case(plan.op, item.row, item.dtype, "row", item.call, partial(_derived, item.call, either, limits), found=True)
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
    return with_large_tensor(planned, cases, now) if limits.large else planned


def _derived(call: Call, accepts: Accepts, limits: Limits) -> dict[str, Call]:
    return derived_calls(call, accepts, limits.derived_elements)


def _asker_before(plan: Plan, earlier: Plan | None, device: str, workers: Workers) -> Accepts | None:
    """Returns whether the operator of the tree before accepts a call; None without such a tree."""
    if earlier is None:
        return None
    target = msgspec.structs.replace(earlier.target, recipe=plan.target.recipe)
    return _Asker(msgspec.structs.replace(plan, target=target), "search-before", device, workers).refusal


class _Asker:
    """Asks the worker of one operator and side whether it accepts calls."""

    def __init__(self, plan: Plan, side: Side, device: str, workers: Workers) -> None:
        self._plan, self._side, self._device, self._workers = plan, side, device, workers
        self._deaths = 0
        self._last_death = ""
        self._weaknesses: dict[bytes, Weakness] = {}

    def weakness(self, call: Call) -> Weakness | None:
        """Why the results of an accepted call test little; None if they do not, or the call was not tried."""
        return self._weaknesses.get(msgspec.msgpack.encode(call))

    def refusal(self, call: Call) -> str:
        """The reason why a call is refused; empty if it is accepted. One that ends the process is refused."""
        if self._deaths == _MOST_DEATHS:
            ended = f"{_MOST_DEATHS} calls ended the process, and no more were tried"
            return FinalRefusal(f"{ended}; the last: {self._last_death}")
        cell = Cell(op=self._plan.op, row="search", dtype="", call=call)
        computing = 0.0 if self._deaths else _COMPUTING_SECONDS
        ran = self._workers.run(self._side, self._plan, cell, self._device, _SECONDS, computing=computing)
        if ran.status in ("died", "stalled"):
            self._deaths += 1
            self._last_death = _of_process(ran.detail)
        if ran.weakness is not None:
            self._weaknesses[msgspec.msgpack.encode(call)] = ran.weakness
        return "" if ran.status == "ok" else _on_one_line(ran.detail)


def _of_process(detail: str) -> str:
    """Return how a process ended, and the last lines of its output."""
    first, *others = detail.splitlines() or ["it ended"]
    said = next((line.strip() for line in others if line.strip() and not line.startswith(_OF_PYTHON)), "")
    return f"{first} ({said})" if said else first


def _on_one_line(detail: str) -> str:
    """An error and the place where it was raised."""
    first, *others = detail.splitlines() or ["refused"]
    return f"{first}, at {others[-1]}" if others and _PLACE.match(others[-1]) else first
