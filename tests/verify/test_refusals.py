"""Calls that an op should refuse: what before refused, after must refuse."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest
import torch

from opschema_cli.verify.judge import Traits, judge
from opschema_cli.verify.loading import deliberate
from opschema_cli.verify.model import Call, Cell, Finding, Input, Output, Ran
from opschema_cli.verify.refusals import wrong_calls

OK = Ran(cell="c", status="ok")
RAISED = Ran(cell="c", status="raised", detail="ValueError: no\na.py:3", error="ValueError: no", deliberate=True)
FAILED = Ran(cell="c", status="raised", detail="IndexError: dim 1", error="IndexError: dim 1")
OTHER = Ran(cell="c", status="raised", detail="TypeError: not so", error="TypeError: not so")
DIED = Ran(cell="c", status="died", detail="signal 11")
UNBOUND = Ran(cell="c", status="refused", detail="no argument `n`")
BITS = Finding(check="bits", side="after", about="y", message="1 of 2 elements differ")


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        (RAISED, OTHER, "unchanged", "a wrong call is refused (TypeError: not so)"),
        (RAISED, OK, "regression", "before refused this wrong call (ValueError: no), after computes it"),
        (RAISED, DIED, "regression", "before refused this wrong call (ValueError: no), after died: signal 11"),
        (FAILED, OK, "not-checked", "a wrong call: after computes it, before failed (IndexError: dim 1)"),
        (FAILED, OTHER, "unchanged", "a wrong call is refused (TypeError: not so)"),
        (OK, DIED, "regression", "a wrong call: after died: signal 11; before ran"),
        (OK, RAISED, "not-checked", "a wrong call is refused (ValueError: no); before computed it"),
        (OK, OK, "unchanged", "a wrong call that neither side refuses"),
        (DIED, DIED, "not-checked", "a wrong call: before died, after died: signal 11"),
        (None, RAISED, "within-tolerance", "a wrong call is refused (ValueError: no); no before to compare with"),
        (None, OK, "not-checked", "a wrong call, and no before to compare with: after computes it"),
        (UNBOUND, RAISED, "not-checked", "a wrong call: no argument `n`"),
    ],
)
def test_the_side_before_decides(before: Ran | None, after: Ran, verdict: str, reason: str) -> None:
    assert judge(before, after, traits=Traits(wrong=True))[:2] == (verdict, reason)


def test_other_results_of_a_wrong_call_are_no_regression() -> None:
    assert judge(OK, OK, traits=Traits(wrong=True), differences=[BITS]).verdict == "not-checked"


def test_a_call_is_made_wrong_in_one_respect_and_never_smaller() -> None:
    x, weight = Input(name="x", shape=(4, 6), dtype="float16"), Input(name="weight", shape=(6,), dtype="float32")
    call = Call(inputs=(weight, x), outputs=(Output(name="y", shape=(4, 6), dtype="float16"),))
    found = {
        name: {item.name: (item.shape, item.dtype) for item in wrong.inputs}
        for name, wrong in wrong_calls(call).items()
    }
    right = {"x": ((4, 6), "float16"), "weight": ((6,), "float32")}
    assert found == {
        "wrong-dtype": {**right, "x": ((4, 6), "int64")},
        "wrong-rank": {**right, "x": ((1, 4, 6), "float16")},
        "wrong-size": {**right, "weight": ((7,), "float32")},
        "wrong-device": right,
    }
    assert all(output.shape is None for wrong in wrong_calls(call).values() for output in wrong.outputs)
    assert wrong_calls(Call(inputs=())) == {}
    assert Cell(op="Op", row="r", dtype="float16", shape="wrong-rank", call=call).wrong


REFUSALS = """
import torch


def refuse(x):
    raise ValueError("no")


class Refusal(Exception):
    def __init__(self, size):
        super().__init__(f"size {size[0]}")
"""


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("raise ValueError('no')", True),
        ("if x.dim() != 2: raise ValueError('no')", True),
        ("if x.dim() != 2: raise ValueError(\n    'no'\n)", True),
        ("x.relu(); assert x.dim() == 2, 'two axes'", True),
        ("refuse(x)", True),
        ("torch._check(x.dim() == 2, lambda: 'two axes')", True),
        ("torch._check_value(x.dim() == 2)", True),
        ("if x.shape[4] != 2: raise ValueError('no')", False),
        ("assert x.shape[4] == 2", False),
        ("raise Refusal(())", False),
        ("x.t()", False),
        ("import json; json.loads('{')", False),
    ],
)
def test_errors_that_the_tree_means_to_raise(tmp_path: Path, statement: str, meant: bool) -> None:
    lines = "".join(f"    {line}\n" for line in statement.split("\n"))
    path = tmp_path / "op.py"
    path.write_text(f"{REFUSALS}\n\ndef op(x):\n{lines}")
    names = run_path(str(path))
    with pytest.raises(Exception) as raised:  # noqa: PT011
        names["op"](torch.ones(2, 3, 4))
    assert deliberate(raised.value, str(tmp_path)) is meant
