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
