"""`opschema show` of an op: both signatures and the tree, as the reviewer of MagiCompiler's pull request 32 asked for them."""

from __future__ import annotations

from opschema_rules.magi.detection import MagiOptions
from opschema_rules.magi.examples import example_files
from opschema_rules.magi.pack import PACK
from tests.tables import Shown, show
from tests.tables import shown as table_shown

OP = """\
@dataclass(frozen=True)
class AttnCfg:
    scale: float
    causal: bool

@magi_register_custom_op("n::attn", infer_output_meta_fn=["q"])
def attn(q: Tensor, cfg: AttnCfg, mode: Literal['a', 'b'] = 'a') -> Tensor: ...
"""

TEXT = """\
original_sig: (q: Tensor, cfg: AttnCfg, mode: Literal['a', 'b'] = 'a') -> Tensor
lowered_sig:  (q: Tensor, cfg__scale: float, cfg__causal: bool, mode: str = 'a') -> Tensor
param_mapping_tree:
[
    ("primitive", "q", "q", None),
    ("dataclass", "cfg", AttnCfg, [
        ("primitive", "scale", "cfg__scale", None),
        ("primitive", "causal", "cfg__causal", None),
    ]),
    ("primitive", "mode", "mode", None),
]"""


def shown(text: str, name: str, magi: str = "") -> Shown:
    return table_shown(PACK, example_files([("python", text)]), name, MagiOptions(magi=magi))  # type: ignore[arg-type]


def test_an_op() -> None:
    found = shown(OP, "n::attn")
    assert found.text == TEXT
    assert found.parts == [
        ("registered", "kit/ops.py:15"),
        ("kernel", "kit/ops.py:15 attn (line 16)"),
        ("lowering", "kit/ops.py:16 dataclass-flatten: fn -> lowered fn -> torch op -> exposed op"),
        ("fake", "kit/ops.py:15 like q"),
        ("contract", "dataclasses (`n::attn` takes a dataclass)"),
    ]
    assert found.rows[:4] == [
        ("q", "q: Tensor", "lowering: q: Tensor", ""),
        ("cfg.scale", "scale: float", "lowering: cfg__scale: float", ""),
        ("cfg.causal", "causal: bool", "lowering: cfg__causal: bool", ""),
        ("mode", "mode: Literal['a', 'b'] = 'a'", "lowering: mode: str = 'a'", "str at run time"),
    ]


def test_before_dataclasses_nothing_is_lowered() -> None:
    text = "@magi_register_custom_op()\ndef f(x: Tensor, /, *, n: int = 1) -> Tensor: ...\n"
    found = shown(text, "f", "plain")
    assert [row[2] for row in found.rows] == ["", "", ""]
    assert found.text == "original_sig: (x: Tensor, /, *, n: int = 1) -> Tensor"


def test_a_refusal_is_reported() -> None:
    found = shown("@magi_register_custom_op()\ndef f(x: Tensor, k: tuple[int, int]) -> Tensor: ...\n", "f")
    assert ("refused", "kit/ops.py:11 parameter `k` of `f()` is a tuple") in found.parts


def test_close_names() -> None:
    assert show(PACK, example_files([("python", OP)]), "n::atn") == ["n::attn"]
