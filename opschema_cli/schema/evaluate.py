"""Safe evaluation of expressions, with a whitelist and a budget.

An expression is compiled once into nested closures, one per node; nothing is handed to Python's own
``eval``. Text that is outside the whitelist is refused as a whole, wherever in the expression it stands.

Work is paid for where it can repeat: a straight expression is bounded by its length, so steps are charged
per round of a comprehension and per item that a function or an operator reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from opschema_cli.schema import comprehensions  # noqa: F401 - registers compilers
from opschema_cli.schema.budget import Budget, Run
from opschema_cli.schema.compiler import Code, Compiler
from opschema_cli.schema.expression import Expression
from opschema_cli.schema.shape_functions import (
    ROOFLINE_ARITHMETIC_FUNCTIONS,
    ROOFLINE_VARS_FUNCTIONS,
    SHAPE_FUNCTIONS,
    Functions,
)
from opschema_cli.schema.values import (
    FAILURES,
    BudgetExceeded,
    EvaluateError,
    EvaluationError,
    Tensor,
    Unbound,
    Unsupported,
    Value,
    located,
)

__all__ = [
    "ROOFLINE_ARITHMETIC_FUNCTIONS",
    "ROOFLINE_VARS_FUNCTIONS",
    "SHAPE_FUNCTIONS",
    "Budget",
    "BudgetExceeded",
    "EvaluateError",
    "EvaluationError",
    "Functions",
    "Tensor",
    "Unbound",
    "Unsupported",
    "Value",
    "evaluate",
]


class _Program(msgspec.Struct, frozen=True):
    code: Code
    slots: int
    cost: int
    start: int


@lru_cache(maxsize=4096)
def _program(expression: Expression, functions: Functions) -> _Program:
    compiler = Compiler(expression, functions)
    code = compiler.compile(expression.tree)
    return _Program(code, compiler.slots, compiler.nodes, compiler.offset(expression.tree))


def evaluate(
    expression: Expression,
    env: Mapping[str, Value],
    *,
    functions: Functions = SHAPE_FUNCTIONS,
    budget: Budget = Budget(),  # noqa: B008 - immutable
) -> Value:
    """The value of ``expression``, as Python would compute it with the names in ``env``.

    A name in ``env`` hides the function or type of that name. The clock starts after some hundred steps,
    so an ordinary rule gives the same answer however busy the machine is. A value that would cost more to read than the budget
    allows, counting shared parts each time, is refused.

    Raises:
        Unbound: it reads a name that ``env`` lacks, or the shape of a tensor whose shape is not known.
        Unsupported: it holds something outside the whitelist, reached or not.
        BudgetExceeded: it needs more than ``budget``.
        EvaluationError: Python would raise.
    """
    program = _program(expression, functions)
    run = Run(env, budget, program.slots)
    try:
        run.charge(program.cost)
        value: Value = program.code(run)
        run.weigh(value)
    except FAILURES as error:
        raise located(error, program.start) from None
    return value
