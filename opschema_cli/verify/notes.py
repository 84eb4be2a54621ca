"""Notes to read before trusting a run: differences between the declarations, cells that are not run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from opschema_cli.phrases import count, some
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_cli.verify.declarations import other_recipes, redeclared
from opschema_cli.verify.model import Plan
from opschema_cli.verify.recipes import ops_with_recipes
from opschema_cli.verify.removed_coverage import rows_removed


def notes_on(plans: Sequence[Plan], earlier: Mapping[str, Plan], every: Collection[str] | None) -> Iterator[str]:
    """The notes on a run of plans. ``earlier`` has those of the tree before, ``every`` are all ops, if they are known.

    Raises:
        OpschemaError: the recipes cannot be read.
    """
    paths = dict.fromkeys(plan.target.recipe for plan in plans if plan.target.recipe)
    named = {(path, op): line for path in paths for op, line in ops_with_recipes(Path(path)).items()}
    if every is not None:
        for (path, op), line in named.items():
            if op not in every:
                yield f"{path}:{line}: there is no op `{op}` for this recipe{did_you_mean(near_name(op, every))}"
    pairs = [(plan, earlier[plan.op]) for plan in plans if plan.op in earlier]
    for plan, then in pairs:
        yield from _on_op(plan, then)
    if any(other_recipes(plan, then) for plan, then in pairs[:1]):
        yield "the recipes differ: both sides are called and judged by those of the tree after"
    yield from _on_limits(plans)


def _on_op(plan: Plan, earlier: Plan) -> Iterator[str]:
    for difference in redeclared(plan, earlier):
        yield f"{plan.op}: the declaration differs: {difference}"
    rows = rows_removed(plan, earlier)
    if rows:
        yield f"{plan.op}: {count(rows, 'row')} of the tree before, each in a dtype, are in no row of this one by their shapes"


def _on_limits(plans: Sequence[Plan]) -> Iterator[str]:
    for plan in plans:
        absent = [dtype for dtype in plan.dtypes if all(cell.dtype != dtype for cell in plan.cells)]
        if absent:
            yield f"{plan.op}: nothing is run in {', '.join(absent)}; raise --cells to test more"
    short = [plan for plan in plans if plan.left_out]
    if short:
        pairs = count(sum(plan.left_out for plan in short), "row/dtype pair")
        ops = some([plan.op for plan in short], 4)
        yield f"{pairs} only partly tested ({ops}); raise --cells to test more"
