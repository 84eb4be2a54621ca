"""Shapes and dtypes that ops return with the fakes of their operators, however these are registered."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

CLASS = """\
class ExampleFwdOp(Op):
    _wrapped = None

    def __init__(self, eps: float = 0.5, *, kernel_map=None):
        self.eps = eps
        self.dispatch_kernel(kernel_map)

    def _infer_output_shapes(self, x_shape):
        return {"y": x_shape}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return FORWARD


OPS = {}


def op_of(key):
    return OPS[key]


"""
FACTORY = """\
import re

NAMED = re.compile(r"^same_as\\(\\s*(\\w+)\\s*\\)$")


def register(cls, name, expression="same_as(x)", dtype=None):
    @torch.library.custom_op(name, mutates_args=())
    def wrapped(x: torch.Tensor, key: str) -> torch.Tensor:
        return op_of(key).eager(x)

    @wrapped.register_fake
    def _(x, key):
        chosen = dtype if NAMED.match(expression) is None else x.dtype
        return x.new_empty(op_of(key)._infer_output_shapes(tuple(x.shape))["y"]CHANGED, dtype=chosen)

    cls._wrapped = wrapped


for cls, name in ((ExampleFwdOp, "kit::example"),):
    register(cls, nameARGUMENTS)
"""
BY_NAME = """\
@torch.library.custom_op("kit::example", mutates_args=())
def example(x: torch.Tensor, key: str) -> torch.Tensor:
    return op_of(key).eager(x)


@torch.library.register_fake("kit::example")
def _(x, key):
    return torch.empty_like(x)CHANGED
"""
THROUGH_CLASS = "type(self)._wrapped(x, self._instance_key)"
LISTED = '    compile_op_names = ("kit::example",)\n    _wrapped = None'


def lint(forward: str, registering: str) -> Linted:
    code = CLASS.replace("FORWARD", forward).replace("    _wrapped = None", LISTED) + registering
    return lint_files([PACK], example_files([("python", code)]), ["SHP115"])


def made(changed: str = "", arguments: str = "") -> str:
    return FACTORY.replace("CHANGED", changed).replace("ARGUMENTS", arguments)


WRONG = [
    (THROUGH_CLASS, made(changed="[::-1]"), "the shape (8, 4) for `y`; the manifest declares the shape (4, 8)"),
    (THROUGH_CLASS, made(arguments=', "int", torch.int32'), "the dtype `int32` for `y`; the manifest declares the dtype `float16`"),
    ("example(x, self._instance_key)", BY_NAME.replace("CHANGED", ".T"), "the shape (8, 4)"),
    ("torch.ops.kit.example(x, self._instance_key)", BY_NAME.replace("CHANGED", ".bool()"), "the dtype `bool`"),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "registering", "message"), WRONG)
def test_a_fake_that_differs(forward: str, registering: str, message: str) -> None:
    (found,) = lint(forward, registering).diagnostics
    assert message in found.message
    assert [item.message for item in found.related] == ["declared here", "the workload row"]


RIGHT = [
    (THROUGH_CLASS, made()),
    (THROUGH_CLASS, made(arguments=', "int"')),  # `new_empty(..., dtype=None)`
    (THROUGH_CLASS, made(arguments=', "int", torch.get_default_dtype()')),  # not known
    ("example(x.T, self._instance_key).T", BY_NAME.replace("CHANGED", "")),
    ("example(x, self._instance_key) if self.eps else x.T", BY_NAME.replace("CHANGED", "")),
    ("other(x, self._instance_key)", BY_NAME.replace("CHANGED", ".T")),  # calls no operator
]


@pytest.mark.parametrize(("forward", "registering"), RIGHT)
def test_no_difference_that_is_certain(forward: str, registering: str) -> None:
    assert lint(forward, registering).diagnostics == []


def test_the_reason_why_nothing_is_known_is_shown() -> None:
    outcome = lint(THROUGH_CLASS, made(changed="[: torch.cuda.device_count()]")).outcome
    assert ["`forward()` of ExampleFwdOp" in item.reason for item in outcome.unresolved] == [True]
