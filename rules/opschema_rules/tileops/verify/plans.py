"""Plans of ops: everything that can be run, and for the rest the reason why not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from opschema_cli.verify.cells import Case, choose
from opschema_cli.verify.large.growth import with_large_tensor
from opschema_cli.verify.model import Call, Limits, Plan, Target
from opschema_rules.tileops.carriers import carrier_names
from opschema_rules.tileops.dtypes import knows_all_tensors
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import Manifest, OpEntry, OpImplementation
from opschema_rules.tileops.verify.calls import Passed, make_call, passed_inputs
from opschema_rules.tileops.verify.derived_shapes import Shapes
from opschema_rules.tileops.verify.dtypes import Assignment, assignments
from opschema_rules.tileops.verify.targets import class_of, no_target, reference, target

_STRANGE = re.compile(r"[^\w.+:]+")


def make_plans(manifests: Sequence[Manifest], ops: Sequence[str], limits: Limits) -> Iterator[Plan]:
    """Yield the plans of the ops with these names that the manifests have; without names, of all.

    Without names, an entry that is not implemented is named in its plan and not run; with names, it is if it has a class.
    """
    entries: dict[str, list[OpEntry]] = {}
    for entry in (entry for manifest in manifests for entry in manifest.entries):
        entries.setdefault(entry.name, []).append(entry)
    for name in dict.fromkeys(ops) if ops else entries:
        if name in entries:
            yield _plan(entries[name], limits, asked=bool(ops))


def _plan(entries: Sequence[OpEntry], limits: Limits, *, asked: bool) -> Plan:
    """The plan of an op, by the entries that have its name."""
    entry = entries[0]
    found = class_of(entry)
    where = found if isinstance(found, str) else target(OpImplementation(entry, found))
    reason = _hopeless(entries, asked=asked)
    if reason or isinstance(found, str) or isinstance(where, str):
        place = where if isinstance(where, Target) else no_target(entry)
        unplanned = {entry.name: reason or str(where)}
        return Plan(op=entry.name, target=place, cells=(), unplanned=unplanned, implemented=entry.implemented)
    planner = _Planner(OpImplementation(entry, found), limits)
    cells, left_out = choose(planner.cases, limits)
    plan = Plan(
        op=entry.name,
        target=where,
        cells=tuple(cells),
        reference=reference(entry),
        unplanned=planner.unplanned,
        dtypes=tuple(dict.fromkeys(case.dtype for case in planner.cases)),
        left_out=left_out,
        implemented=entry.implemented,
    )
    return with_large_tensor(plan, planner.cases) if limits.large else plan


def _hopeless(entries: Sequence[OpEntry], *, asked: bool) -> str:
    """Return why nothing of an op can be planned, as far as its entry shows; empty if something can."""
    entry = entries[0]
    if len(entries) > 1:
        return f"{len(entries)} entries have this name"
    if not entry.implemented and not asked:
        return f"its status is `{entry.status}`, not `implemented`"
    if not knows_all_tensors(entry) or entry.param_slots is None:
        return "its signature cannot be read in full; see `opschema lint`"
    return "" if entry.rows else "it has no workload rows"


class _Planner:
    """The cases of one op, and of the rest why they are none."""

    def __init__(self, op: OpImplementation, limits: Limits) -> None:
        self.entry, self.limits = op.entry, limits
        self.carriers = carrier_names(op)
        self.cases: list[Case] = []
        self.unplanned: dict[str, str] = {}
        self._names = Counter[tuple[str, str]]()
        for row in self.entry.rows:
            self._row(row)

    def _row(self, row: Row) -> None:
        label = row.data.get("label")
        name = _STRANGE.sub("-", label).strip("-") if isinstance(label, str) else ""
        name = name or f"row{row.index}"
        if not row.dtypes:
            self.unplanned[f"{self.entry.name}[{self._unique(name, '')}]"] = "the row lists no dtypes"
            return
        passed = passed_inputs(self.entry, row, self.carriers)
        shapes = Shapes(self.entry, passed, self.carriers, self.limits) if isinstance(passed, Passed) else None
        for dtype in dict.fromkeys(row.dtypes):
            found = assignments(self.entry, dtype, passed.shapes) if isinstance(passed, Passed) else passed
            if isinstance(found, str) or shapes is None:
                self._give_up(name, dtype, str(found))
            else:
                for assignment in found:
                    self._case(name, dtype, shapes, assignment)

    def _case(self, name: str, dtype: str, shapes: Shapes, assignment: Assignment) -> None:
        row = self._unique(f"{name}+{assignment.variant}" if assignment.variant else name, dtype)
        call = make_call(self.entry, shapes.base, assignment, dtype)
        if isinstance(call, str):
            self._give_up_cell(row, dtype, call)
            return
        shape = "row"
        if not shapes.whole:
            size, tensor = shapes.base.elements(self.entry)
            reason = f"`{tensor}` has {size:,} elements; more than {self.limits.row_elements:,} are not run"
            self._give_up_cell(row, dtype, reason)
            shape, passed = next(iter(shapes.derived.items()), ("", None))
            call = make_call(self.entry, passed, assignment, dtype) if passed is not None else ""
        if not isinstance(call, str):
            derived = partial(_calls, self.entry, shapes, assignment, dtype)
            self.cases.append(Case(self.entry.name, row, dtype, shape, call, derived))

    def _give_up(self, row: str, dtype: str, reason: str) -> None:
        self._give_up_cell(self._unique(row, dtype), dtype, reason)

    def _give_up_cell(self, row: str, dtype: str, reason: str) -> None:
        self.unplanned[f"{self.entry.name}[{row}-{dtype}-row-s0]"] = reason

    def _unique(self, row: str, dtype: str) -> str:
        """Return a row's name, followed by a number if another row of the dtype has the same name."""
        self._names[row, dtype] += 1
        count = self._names[row, dtype]
        return row if count == 1 else f"{row}.{count}"


def _calls(entry: OpEntry, shapes: Shapes, assignment: Assignment, dtype: str) -> dict[str, Call]:
    """The calls in the shapes that are derived from a row, by their names."""
    calls = {shape: make_call(entry, passed, assignment, dtype) for shape, passed in shapes.derived.items()}
    return {shape: call for shape, call in calls.items() if isinstance(call, Call)}
