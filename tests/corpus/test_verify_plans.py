"""Plans of `opschema verify` for TileOPs: before and after a person dropped its carriers, and at its head."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import msgspec
import pytest

from opschema_cli.project import Project
from opschema_cli.verify.model import Call, Limits, Plan
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.detection import TileopsOptions
from opschema_rules.tileops.pack import PACK

PARENT, FIX, HEAD = "tileops-bfae9be4-parent", "tileops-bfae9be4", "tileops-52dbc086"
OPS = ("AlibiFwdOp", "SinusoidalFwdOp")


@cache
def project(root: Path) -> Project:
    return Project(Workspace(root))


def plans(root: Path, *ops: str) -> dict[str, Plan]:
    return {plan.op: plan for plan in PACK.plans(project(root), TileopsOptions(), ops, Limits())}


def without_dtype(call: Call) -> Call:
    """The call without the param that took the carrier's place: a constructor that names no such param has it too."""
    return msgspec.structs.replace(call, params={name: value for name, value in call.params.items() if name != "dtype"})


@pytest.mark.parametrize("op", OPS)
def test_an_op_has_the_same_cells_before_and_after_its_carrier_is_dropped(corpus: Path, op: str) -> None:
    before, after = (plans(corpus / name, op)[op] for name in (PARENT, FIX))
    assert [cell.id for cell in before.cells] == [cell.id for cell in after.cells]
    assert [without_dtype(cell.call) for cell in before.cells] == [without_dtype(cell.call) for cell in after.cells]
    assert [cell.call.params["dtype"] for cell in after.cells] == [f"torch.{cell.dtype}" for cell in after.cells]
    assert before.unplanned == after.unplanned
    assert before.target.module == after.target.module


def test_the_cells_of_alibi(corpus: Path) -> None:
    found = plans(corpus / FIX, *OPS)["AlibiFwdOp"]
    first = [cell for cell in found.cells if (cell.row, cell.dtype) == ("llama-prefill-2k", "float16")]
    sizes = {cell.shape: (cell.call.params["num_heads"], cell.call.params["seq_len"]) for cell in first}
    assert sizes == {
        "scaled": (32, 128),
        "odd": (7, 67),
        "larger": (67, 67),
        "one-row": (1, 128),
        "tail-1": (32, 33),
        "one-column": (32, 1),
    }
    assert {cell.call.outputs[0].shape for cell in first} == {(heads, size, size) for heads, size in sizes.values()}
    assert list(found.unplanned) == [
        f"AlibiFwdOp[llama-prefill-{size}-{dtype}-row-s0]" for size in ("2k", "4k") for dtype in ("float16", "bfloat16")
    ]


def test_every_op_of_the_head_is_planned_or_named(corpus: Path) -> None:
    plans(corpus / HEAD, "ReluFwdOp")  # parsed
    started = time.process_time()
    found = plans(corpus / HEAD)
    assert time.process_time() - started < 15
    assert len(found) == 178
    assert [plan.op for plan in found.values() if not plan.cells and not plan.unplanned] == []
    assert sum(bool(plan.cells) for plan in found.values()) >= 149
    names = [name for plan in found.values() for name in (*(cell.id for cell in plan.cells), *plan.unplanned)]
    assert len(names) == len(set(names))
