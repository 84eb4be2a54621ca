"""Custom ops that op classes call, by every way of registering them and of putting them on a class."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.custom_ops import CustomOps

HEAD = """\
import torch
from torch.library import custom_op, custom_op as op


class Op:
    _wrapped = None

    def forward(self, x):
        return type(self)._wrapped(x)


class ReluOp(Op):
    _op_name = "relu"


class GeluOp(Op):
    _op_name = "gelu"


"""

FUNCTION = """\
@custom_op("kit::relu", mutates_args=("x",))
def relu(x: torch.Tensor) -> None:
    x.relu_()

ReluOp._wrapped = relu
"""

WAYS = {
    "decorator": FUNCTION,
    "renamed decorator": FUNCTION.replace("@custom_op", "@op"),
    "static method": FUNCTION.replace("= relu", "= staticmethod(relu)"),
    "setattr": FUNCTION.replace("ReluOp._wrapped = relu", 'setattr(ReluOp, "_wrapped", relu)'),
    "call": """\
def relu(x: torch.Tensor) -> None:
    x.relu_()

ReluOp._wrapped = custom_op("kit::relu", relu, mutates_args=["x"])
""",
    "schema": FUNCTION.replace('mutates_args=("x",)', 'mutates_args=("x",), schema="(Tensor(a!) x) -> ()"'),
    "library": """\
lib = torch.library.Library("kit", "DEF")
lib.define("relu(Tensor(a!) x) -> ()")

@torch.library.impl(lib, "relu", "CUDA")
def relu(x):
    x.relu_()

ReluOp._wrapped = torch.ops.kit.relu
""",
    "helper": """\
def register(op_cls):
    @custom_op(f"kit::{op_cls._op_name}", mutates_args=("x",))
    def _wrapped(x: torch.Tensor) -> None:
        x.relu_()

    op_cls._wrapped = _wrapped

register(ReluOp)
""",
    "helper in a loop": """\
def register(op_cls, name):
    @custom_op(name, mutates_args=("x",))
    def _wrapped(x: torch.Tensor) -> None:
        x.relu_()

    op_cls._wrapped = _wrapped

for _cls, _name in ((ReluOp, "kit::relu"), (GeluOp, "kit::gelu")):
    register(_cls, _name)
""",
    "class decorator": """\
def registered(op_cls):
    @custom_op("kit::relu", mutates_args=("x",))
    def _wrapped(x: torch.Tensor) -> None:
        x.relu_()

    op_cls._wrapped = _wrapped
    return op_cls

@registered
class ReluOp(Op):
    pass
""",
}


def called(text: str, cls: str) -> list[tuple[list[str] | None, list[str]]]:
    """Names and mutated arguments of the custom ops that ``forward`` calls, for an object of one class."""
    project = Project(Workspace(Path("/nowhere"), {"ops.py": HEAD + text}))
    bodies = Bodies(Program(["ops.py"], project.python, ["ops.py"]), ["ops.py"])
    owner = next(ref for ref in reversed(bodies.classes) if ref.cls.name == cls)
    forward = next(body for body in bodies.of(owner.file) if body.function and body.function.name == "forward")
    found = [
        item
        for call in forward.scope.calls
        for item in CustomOps(project, bodies).called(forward, call.items[0], owner)
    ]
    return [(sorted(item.names) if item.names is not None else None, sorted(item.mutated)) for item in found]


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
def test_however_a_custom_op_is_registered(text: str) -> None:
    ((names, mutated),) = called(text, "ReluOp")
    assert "kit::relu" in (names or ())
    assert mutated == ["x"]


def test_a_class_without_an_operator_of_its_own_calls_none() -> None:
    assert called(FUNCTION, "GeluOp") == []


@pytest.mark.parametrize(
    "more",
    [
        "\n@relu.register_autograd\ndef _(ctx, grad):\n    return grad\n",
        "\nReluOp._wrapped = print\n",
    ],
    ids=["autograd", "something else on the class"],
)
def test_nothing_is_said_of_an_operator_that_may_do_more(more: str) -> None:
    assert called(FUNCTION + more, "ReluOp") == []
