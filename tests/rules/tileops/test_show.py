"""`opschema show`: an entry beside its class, argument by argument."""

from __future__ import annotations

from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK
from tests.tables import shown

OP = """\
class ExampleFwdOp(Op):
    def __init__(self, N: int, eps: float = 0.25, *, kernel_map=None): ...

    def forward(self, x): ...
"""


def test_declarations_stand_beside_the_code() -> None:
    texts = example_files([("yaml", 'signature:\n  static_dims: {N: "x.shape[-1]"}\n'), ("python", OP)])
    assert shown(PACK, texts, "ExampleFwdOp").rows == [
        ("x", "input float16 | float32", "forward: x", ""),
        ("N", "static dim x.shape[-1]", "__init__: N: int", ""),
        ("eps", "param float = 0.5", "__init__: eps: float = 0.25", ""),
        ("kernel_map", "-", "__init__: *, kernel_map=None", ""),
        ("y", "output same_as(x)", "", ""),
    ]


def test_an_input_of_another_name_or_place_is_noted() -> None:
    code = OP.replace("def forward(self, x)", "def forward(self, input)")
    rows = shown(PACK, example_files([("python", code)]), "ExampleFwdOp").rows
    assert rows[0] == ("x", "input float16 | float32", "forward: input", "named `input`")


RENAMING = """\
import inspect


class Binary(Op):
    def __init_subclass__(cls):
        signature = inspect.signature(cls.forward)
        forward = lambda self, *args: None
        forward.__signature__ = signature.replace(
            parameters=[p.replace(name=cls.other) if p.name == "other" else p for p in signature.parameters.values()]
        )
        cls.forward = forward

    def forward(self, x, other: int = 1): ...


class ExampleFwdOp(Binary):
    other = "end"
"""


def test_a_forward_that_a_hook_makes_has_the_names_that_it_gives() -> None:
    rows = shown(PACK, example_files([("python", RENAMING)]), "ExampleFwdOp").rows
    assert [row[2] for row in rows if row[2].startswith("forward")] == ["forward: x", "forward: end: int = 1"]


def test_a_constructor_that_is_not_known_may_take_a_parameter() -> None:
    code = "@with_constructor\n" + OP
    rows = shown(PACK, example_files([("python", code)]), "ExampleFwdOp").rows
    assert ("eps", "param float = 0.5", "__init__: unresolved", "") in rows
    rows = shown(PACK, example_files([("python", OP.replace("eps", "epsilon"))]), "ExampleFwdOp").rows
    assert ("eps", "param float = 0.5", "forward: absent", "") in rows
