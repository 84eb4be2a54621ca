"""Sample calls of operators from a repository's own tests, which are interpreted and not run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from opschema_cli.commands.plugins import open_workspace
from opschema_cli.verify.model import Call, Input, Plan, Ran, Search, Target
from opschema_cli.verify.op_names import op_names
from opschema_cli.verify.protocol import Loaded
from opschema_cli.verify.recipe_calls import call_text
from opschema_cli.verify.search.from_tests import samples_from_tests
from opschema_cli.verify.search.planning import search

OPS = """
from torch import Tensor
from torch.library import Library, custom_op


@custom_op("kit::muladd", mutates_args=())
def muladd(a: Tensor, b: Tensor, c: float) -> Tensor:
    return a * b + c


lib = Library("kit", "FRAGMENT")
lib.define("gather(Tensor x, Tensor index, *, Tensor? scale=None, ScalarType? dtype=None) -> Tensor")
lib.define("join(Tensor[] xs, int dim=0) -> Tensor")
"""

TESTS = """
import numpy
import pytest
import torch
from torch.library import opcheck
from torch.testing import make_tensor
from kit.ops import muladd

DTYPES = [torch.float16, torch.bfloat16]


class TestMulAdd:
    def sample_inputs(self, device, requires_grad=False):
        def make(*size):
            return torch.randn(size, device=device, requires_grad=requires_grad)

        return [[make(3), make(3), 1], [make(20, 2), make(20, 2), 3.14]]

    def test_opcheck(self, device):
        for args in self.sample_inputs(device, requires_grad=True):
            opcheck(torch.ops.kit.muladd.default, args)

    def test_correct(self):
        muladd(make_tensor(4, 8, dtype=torch.float64, device="cpu"), torch.rand(4, 8).double(), c=2.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(2, 8), (3, 9), pytest.param(4, 16)])
def test_gather(rows, columns, dtype):
    x = torch.empty(rows, columns, dtype=dtype, device="cuda")
    index = torch.randint(0, columns, (5,), device="cuda")
    out = torch.ops.kit.gather(x, index, dtype=torch.float32)
    assert out.shape == (rows, 5)


def test_join():
    opcheck(torch.ops.kit.join, ([torch.zeros(2), torch.zeros(3)],), {"dim": 0})


def test_what_is_not_known(rows, request):
    torch.ops.kit.join([torch.zeros(rows), torch.zeros(3)])
    torch.ops.kit.join([torch.from_numpy(numpy.zeros(3))])
    torch.ops.kit.join([torch.zeros(3)], dim=request.param)
    torch.ops.kit.join([torch.zeros(1 << 13, 1 << 13)])
    torch.ops.kit.join([torch.zeros(3)], axis=0)
"""


def test_samples_of_calls_and_of_opcheck(tmp_path: Path) -> None:
    files = {"kit/__init__.py": "", "kit/ops.py": OPS, "tests/test_kit.py": TESTS, "opschema.toml": ""}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    with closing(open_workspace(tmp_path, no_plugins=True, cache=False)) as session:
        found = samples_from_tests(session.project(), op_names(session).unplanned())
    assert {op: [f"{label}: {call_text(call)}" for label, call in calls.items()] for op, calls in found.items()} == {
        "kit::muladd": [
            'test_opcheck-1: {"a": tensor(3), "b": tensor(3), "c": 1}',
            'test_opcheck-2: {"a": tensor(20, 2), "b": tensor(20, 2), "c": 3.14}',
            'test_correct-3: {"a": tensor(4, 8, dtype="float64"), "b": tensor(4, 8, dtype="float64"), "c": 2.0}',
        ],
        "kit::gather": [
            'test_gather-1: {"x": tensor(2, 8, dtype="float16"), '
            '"index": tensor(5, dtype="int64", low=0, high=8), "dtype": "torch.float32"}',
            'test_gather-2: {"x": tensor(4, 16, dtype="bfloat16"), '
            '"index": tensor(5, dtype="int64", low=0, high=16), "dtype": "torch.float32"}',
        ],
        "kit::join": ['test_join-1: {"xs": [tensor(2), tensor(3)], "dim": 0}'],
    }


class Worker:
    """Stands for the worker of an operator that accepts rows of 8 elements."""

    def __init__(self, calls: dict[str, Call]) -> None:
        self.loaded = Loaded(schema="kit::op(Tensor x) -> Tensor", calls=calls)

    def load(self, side: str, plan: Plan) -> Loaded:
        return self.loaded

    def run(self, side: str, plan: Plan, cell: object, *_: object, computing: float = 0.0) -> Ran:
        accepted = cell.call.inputs[0].shape[-1:] == (8,)  # type: ignore[attr-defined]
        return Ran(cell="", status="ok" if accepted else "raised", detail="ValueError: rows of 8\nkit.py:3 in op")


def test_recipes_come_before_tests_and_only_their_refused_calls_are_reported() -> None:
    rows = {size: Call(inputs=(Input(name="x", shape=(2, size), dtype="float32"),)) for size in (8, 9)}
    samples = {"test_op-1": rows[9], "test_op-2": rows[8]}
    plan = Plan(op="kit::op", target=Target(root="", module="", name=""), cells=(), search=Search(samples=samples))
    by_tests = search(plan, "cpu", Worker({})).found  # type: ignore[arg-type]
    assert ({item.row for item in by_tests.calls}, by_tests.refused) == ({"test_op-2"}, {})
    by_recipe = search(plan, "cpu", Worker({"good": rows[8], "bad": rows[9]})).found  # type: ignore[arg-type]
    assert {item.row for item in by_recipe.calls} == {"good"}
    refused = search(plan, "cpu", Worker({"bad": rows[9]})).found  # type: ignore[arg-type]
    assert (refused.calls, refused.reason) == ((), "`bad` is refused: ValueError: rows of 8, at kit.py:3 in op")
    broken = Worker({})
    broken.loaded = Loaded(status="raised", detail="importing `kit`: SyntaxError: invalid syntax\nkit.py:3 in <module>")
    failed = search(plan, "cpu", broken)  # type: ignore[arg-type]
    assert (failed.unimported, failed.found.reason) == (
        True,
        "importing `kit`: SyntaxError: invalid syntax, at kit.py:3 in <module>",
    )
    assert by_recipe.refused == {"bad": "ValueError: rows of 8, at kit.py:3 in op"}
