"""Values of an entry's roofline formulas on its workload rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from opschema_cli.schema.dtypes import itemsize
from opschema_cli.schema.evaluate import (
    ROOFLINE_VARS_FUNCTIONS,
    BudgetExceeded,
    EvaluateError,
    EvaluationError,
    Value,
    evaluate,
)
from opschema_rules.tileops.bindings import BoundRow
from opschema_rules.tileops.formulas import Formula, formulas
from opschema_rules.tileops.model import OpEntry


class Result(msgspec.Struct, frozen=True):
    """The result of a formula on a row: a value, or the reason why there is none; ``env`` holds the readable values."""

    formula: Formula
    bound: BoundRow
    env: Mapping[str, Value]
    value: Value | EvaluateError


class Count(msgspec.Struct, frozen=True, eq=False):
    """The number that a formula is on a row."""

    formula: Formula
    value: int | float


def results(bound: BoundRow, all_formulas: Sequence[Formula]) -> Iterator[Result]:
    """The formulas that have a value on a row, or an error of their own."""
    env = dict(bound.values)
    size = itemsize(bound.row.dtypes[0]) if bound.row.dtypes else None
    if size is not None:
        env["elem_bytes"] = size
    for formula in all_formulas:
        expression = formula.expression
        if expression is None:
            continue
        try:
            value = evaluate(expression, env, functions=ROOFLINE_VARS_FUNCTIONS)
        except (EvaluationError, BudgetExceeded) as error:
            env.pop(formula.name, None)
            yield Result(formula, bound, env, error)
        except EvaluateError:  # a name without a value, or a form that is ROO103's
            env.pop(formula.name, None)
        else:
            yield Result(formula, bound, env, value)
            if formula.layer == "vars":
                env[formula.name] = value


def counts(entry: OpEntry, bound: BoundRow) -> dict[str, Count]:
    """Return `flops` and `bytes` on a row, if they are numbers."""
    known = [formula for formula in formulas(entry) if formula.expression is not None]
    found = [item for item in results(bound, known) if item.formula.layer == "arithmetic"]
    return {item.formula.name: Count(item.formula, item.value) for item in found if isinstance(item.value, int | float)}
