"""SIG304 for operators however they are registered, put on a class, and called."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK
from opschema_rules.torchlib.pack import PACK as TORCHLIB
from tests.rules.tileops.test_custom_ops import WAYS

MARKED = "mutated: true, "
WRITES = "an operator of the op writes `x`, which the manifest does not mark `mutated: true`"
NEVER = "the manifest marks `x` as mutated, but no operator of the op writes it"

OP = """\
class Inplace(Op):
    _wrapped = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        type(self)._wrapped(x)
        return x


class ExampleFwdOp(Inplace):
    _op_name = "relu"


class OtherFwdOp(Inplace):
    _op_name = "gelu"


"""


def found(code: str, mark: str = "", codes: tuple[str, ...] = ("SIG304",)) -> list[str]:
    """Messages of the rules for an op with the input ``x``."""
    signature = f"signature:\n  inputs:\n    x: {{{mark}dtype: float16}}\n"
    head = "import torch\nfrom torch.library import custom_op, custom_op as op\n\n\n"
    linted = lint_files([PACK, TORCHLIB], example_files([("yaml", signature), ("python", head + code)]), [*codes])
    return [item.message for item in linted.diagnostics]


def registered(text: str) -> str:
    return text.replace("ReluOp", "ExampleFwdOp").replace("GeluOp", "OtherFwdOp").replace("(Op)", "(Inplace)")


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
def test_an_operator_that_forward_calls_however_it_is_registered(text: str) -> None:
    own = OP.index("class ExampleFwdOp") if "class ReluOp" in text else len(OP)
    code = OP[:own] + registered(text)
    assert found(code) == [WRITES]
    assert found(code, MARKED) == []


FORWARDS = {
    "by its name": "relu(x)",
    "through torch.ops": "torch.ops.kit.relu(x)",
    "in a variable": "op = type(self)._wrapped\n        op(x)",
    "unpacked": "relu(*(x,))",
    "by keyword": "self._wrapped(x=x)",
    "in another method": "self._run(x)\n\n    def _run(self, tensor):\n        relu(tensor)",
}

NAMED = """\
@custom_op("kit::relu", mutates_args=("x",))
def relu(x: torch.Tensor) -> None:
    x.relu_()


class ExampleFwdOp(Op):
    _wrapped = relu

    def forward(self, x: torch.Tensor):
        {call}
"""


@pytest.mark.parametrize("call", FORWARDS.values(), ids=FORWARDS)
def test_an_operator_however_it_is_called(call: str) -> None:
    assert found(NAMED.format(call=call)) == [WRITES]


@pytest.mark.parametrize(
    "call",
    ["relu(x.clone())", "x = x.contiguous()\n        relu(x)", "relu(*x)", "other(x)"],
    ids=["a copy", "rebound", "unpacked", "something else"],
)
def test_what_is_not_known_to_be_the_input_is_not_reported(call: str) -> None:
    assert found(NAMED.format(call=call)) == []


def test_a_class_is_not_judged_by_the_operators_of_others() -> None:
    helper = registered(WAYS["helper"]).replace("register(ExampleFwdOp)", "register(OtherFwdOp)")
    assert found(OP + helper) == []


LISTED = """\
def register(op_cls, name):
    @custom_op(name, mutates_args={mutates})
    def _wrapped(x: torch.Tensor) -> torch.Tensor:
        {body}

    op_cls._wrapped = _wrapped
    op_cls.compile_op_names = (name,)


for _cls, _name in ((ExampleFwdOp, "kit::relu"), (OtherFwdOp, "kit::gelu")):
    register(_cls, _name)
"""


def test_a_marked_input_that_no_operator_of_a_helper_writes() -> None:
    code = OP + LISTED.format(mutates="()", body="return x + 1")
    assert found(code, MARKED) == [NEVER]
    assert found(code) == []


UNNAMED = """\


def register_as(name):
    @custom_op(name, mutates_args=())
    def _other(y: torch.Tensor) -> torch.Tensor:
        return y + 1


register_as(f"kit::{other_name()}")
"""


def test_an_operator_whose_name_is_not_known_is_another_one() -> None:
    code = OP + LISTED.format(mutates="()", body="return x + 1") + UNNAMED
    assert found(code, MARKED) == [NEVER]
    assert found(code) == []
    assert (
        found(OP + LISTED.format(mutates='("x",)', body="x.relu_()\n        return x.clone()") + UNNAMED, MARKED) == []
    )


def test_a_wrong_declaration_of_an_operator_is_one_finding() -> None:
    code = OP + LISTED.format(mutates="()", body="x.relu_()\n        return x.clone()")
    (message,) = found(code, MARKED, ("SIG304", "REG403", "REG404"))
    assert message.startswith("`x` is written here, and the schema of")


BUFFER = """\
class ExampleFwdOp(Op):
    compile_op_names = ("kit::count",)

    def __init__(self, eps: float = 0.5, *, kernel_map=None):
        self.seen = {seen}
        self.dispatch_kernel(kernel_map)

    def forward(self, x: torch.Tensor):
        {call}


@custom_op("kit::count", mutates_args=("seen",))
def count(x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    seen.add_(1)
    return x + 1
"""


@pytest.mark.parametrize(
    ("seen", "call", "messages"),
    [
        (
            "torch.zeros(8)",
            "return count(x, self.seen)",
            ["an operator of the op writes `self.seen`, which no input of the manifest declares"],
        ),
        ("torch.zeros(8)", "return count(x, torch.empty(8))", []),
        ("torch.zeros(8)", "seen = self.seen.clone()\n        return count(x, seen)", []),
    ],
    ids=["an attribute", "a new tensor", "a copy"],
)
def test_a_buffer_that_no_input_declares(seen: str, call: str, messages: list[str]) -> None:
    assert found(BUFFER.format(seen=seen, call=call)) == messages


KERNEL = """\
@custom_op("kit::step", mutates_args=("x",))
def step(n: int, x: torch.Tensor) -> None:
    x.add_(n)


class StepKernel:
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        return step(1, x)


class ExampleFwdOp(Op):
    @property
    def default_kernel_map(self):
        return {{"step": {kernels}}}

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        {call}
"""


def test_an_operator_of_the_only_kernel() -> None:
    call = "kernel = self.get_kernel()\n        y = y.contiguous()\n        return kernel(x, y)"
    assert found(KERNEL.format(kernels="StepKernel", call=call)) == [WRITES]


@pytest.mark.parametrize(
    ("kernels", "call"),
    [
        ("StepKernel", "kernel = self.get_kernel()\n        return kernel(x.clone(), y)"),
        ("StepKernel", "kernel = self.get_kernel()\n        x = x.clone()\n        return kernel(x, y)"),
        ("StepKernel", "kernel = self.get_kernel()\n        return kernel(y, x)"),
        ('StepKernel, "other": OtherKernel', "kernel = self.get_kernel()\n        return kernel(x, y)"),
    ],
    ids=["a copy", "rebound", "in another order", "one of two kernels"],
)
def test_a_kernel_that_may_not_get_the_input(kernels: str, call: str) -> None:
    assert found(KERNEL.format(kernels=kernels, call=call)) == []
