"""Names of ops to verify: which operator one means, and why an operator cannot be verified."""

from __future__ import annotations

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.operators.model import Declaration, Operator
from opschema_cli.verify.op_names import OpNames


def operator(name: str, pack: str, unresolved: str = "") -> Operator:
    return Operator(name, Declaration("declared", unresolved=unresolved), pack)


NAMES = OpNames(
    [
        operator("PlusOp", "planner"),
        operator("DeferredNameOp", "planner", "its schema is computed"),
        operator("kit::plus", "reader"),
        operator("kit::both", "reader"),
        operator("kit::both", "planner"),
    ],
    ["planner"],
)


def test_a_name_needs_neither_its_case_nor_its_namespace() -> None:
    assert NAMES.meant(["plusop", "PLUS", "Old"], ["Old"]) == ["PlusOp", "kit::plus", "Old"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PlsOp", "no operator here is called `PlsOp`; did you mean `PlusOp`?"),
        (
            "plus",
            "`kit::plus` cannot be verified: it is an operator of the pack `reader`, which has no verification plans; "
            "here, only operators of `planner` can be",
        ),
        (
            "DeferredNameOp",
            "`DeferredNameOp` cannot be verified: it is an operator of the pack `planner`, which has no plan for it "
            "(declaration: its schema is computed)",
        ),
        (
            "both",
            "`kit::both` cannot be verified: it is an operator of the pack `reader`, which has no verification plans and "
            "it is an operator of the pack `planner`, which has no plan for it",
        ),
    ],
)
def test_an_operator_without_a_plan_is_refused_with_the_reason(name: str, message: str) -> None:
    with pytest.raises(OpschemaError) as refused:
        NAMES.check_planned([name], ["Old"])
    assert str(refused.value) == message


def test_a_tree_without_plans_names_the_packs_that_found_operators() -> None:
    message = str(OpNames(NAMES.operators[2:3], []).nothing_planned())
    assert message == "found no op to verify among the 1 operator of `reader`: none has a verification plan"
    assert "`opschema init` shows" in str(OpNames([], []).nothing_planned())
