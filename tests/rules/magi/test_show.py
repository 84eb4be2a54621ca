"""`opschema show` of an op: both signatures and the tree, as the reviewer of MagiCompiler's pull request 32 asked for them."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.lint.pack import Shown
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.magi.examples import example_files
from opschema_rules.magi.pack import PACK, MagiOptions

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


def shown(tmp_path: Path, text: str, name: str, magi: str = "") -> object:
    project = Project(Workspace(tmp_path, example_files([("python", text)])))
    return PACK.show(project, MagiOptions(magi=magi), name)  # type: ignore[arg-type]


def test_an_op(tmp_path: Path) -> None:
    found = shown(tmp_path, OP, "n::attn")
    assert isinstance(found, Shown)
    assert found.text == TEXT
    assert dict(found.places) == {
        "registered": "kit/ops.py:15",
        "function": "kit/ops.py:16",
        "contract": "dataclasses (`n::attn` takes a dataclass)",
        "meta": "like q",
        "path": "dataclass-flatten: fn -> lowered fn -> torch op -> exposed op",
    }
    assert [(row.slot, row.declared, row.implemented, row.note) for row in found.rows] == [
        ("q", "q: Tensor", "q: Tensor", ""),
        ("cfg.scale", "scale: float", "cfg__scale: float", ""),
        ("cfg.causal", "causal: bool", "cfg__causal: bool", ""),
        ("mode", "mode: Literal['a', 'b'] = 'a'", "mode: str = 'a'", "str at run time"),
    ]


def test_before_dataclasses_nothing_is_lowered(tmp_path: Path) -> None:
    found = shown(
        tmp_path, "@magi_register_custom_op()\ndef f(x: Tensor, /, *, n: int = 1) -> Tensor: ...\n", "f", "plain"
    )
    assert isinstance(found, Shown)
    assert (found.rows, found.text) == ([], "original_sig: (x: Tensor, /, *, n: int = 1) -> Tensor")


def test_a_refusal_is_told(tmp_path: Path) -> None:
    found = shown(tmp_path, "@magi_register_custom_op()\ndef f(x: Tensor, k: tuple[int, int]) -> Tensor: ...\n", "f")
    assert isinstance(found, Shown)
    assert dict(found.places)["refused"] == "kit/ops.py:11: parameter `k` of `f()` is a tuple"


def test_close_names(tmp_path: Path) -> None:
    assert shown(tmp_path, OP, "n::atn") == ["n::attn"]
