"""Lists of operators without schemas, as torch_musa and torch_mlu have them."""

from __future__ import annotations

import pytest

from opschema_cli.source.text import Source
from opschema_cli.source.yaml import YamlFile
from opschema_cli.source.yaml_compose import compose
from opschema_cli.testing import fix_files, lint_files
from opschema_rules.aten.kinds import kind_of, may_be
from opschema_rules.aten.pack import PACK
from tests.rules.aten.test_backend import read

MUSA = """\
- func: relu
- func: add.Tensor
- func: add.out
  dispatch:
    PrivateUse1: AddOut
- func: _fused_swiglu_forward
  dispatch:
    PrivateUse1, QuantizedPrivateUse1: FusedSwiGLU
"""
MLU = """\
aten:
  - func: floor
    structured_delegate: floor.out
  - func: floor.out
    structured: True
  - func: relu
vision:
  - func: nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
custom:
  - func: dump(Tensor input) -> bool
    derived_type: bang
"""
ALONE = {"opschema.toml": "[aten]\ninstalled-torch = false\n"}


def findings(text: str, files: dict[str, str] | None = None) -> list[tuple[str, str, str, str]]:
    """Code, severity, place and message of every finding, where no torch is known."""
    linted = lint_files([PACK], {"functions.yaml": text, **ALONE, **(files or {})})
    return [(item.code, item.severity.value, linted.text(item.place), item.message) for item in linted.diagnostics]


NAMED = MUSA.replace("- func: relu\n", "- func: relu\n  dispatch: {PrivateUse1: Relu}\n").replace("func:", "name:")


@pytest.mark.parametrize("text", [MUSA, MLU, NAMED])
def test_the_lists_are_recognised_and_sound(text: str) -> None:
    file = YamlFile(Source("x.yaml", text, "utf-8", ""), compose(text))
    assert (may_be(text.encode()), kind_of(file), read(text).dialect) == (True, "backend", "operator-list")
    assert findings(text) == []


def test_the_operators_of_aten_are_read() -> None:
    assert [(item.section, item.name) for item in read(MUSA).items][:2] == [("func", "relu"), ("func", "add.Tensor")]
    assert [item.name for item in read(MLU).items] == ["floor", "floor.out", "relu"]


@pytest.mark.parametrize(
    "text",
    [
        "- func: main\n  dispatch:\n    GET: handler\n- func: other\n",
        "- func: main\n- func: other\n",
        "aten: true\nsteps:\n  - func: relu\n",
        "aten:\n  - relu\n",
    ],
)
def test_other_lists_are_none(text: str) -> None:
    assert kind_of(YamlFile(Source("x.yaml", text, "utf-8", ""), compose(text))) == ""


def test_an_operator_that_is_listed_twice() -> None:
    assert findings(MUSA + "- func: relu\n") == [("ATN613", "error", "relu", "`relu` is listed twice; remove one")]
    twice = MLU.replace("  - func: relu\n", "  - func: relu\n  - func: relu\n")
    assert [item[0] for item in findings(twice)] == ["ATN613"]
    assert fix_files([PACK], {"functions.yaml": twice, **ALONE}, ["ATN613"])[0] == {"functions.yaml": MLU}


def test_operators_that_no_torch_has() -> None:
    text = MUSA + "".join(f"- func: {name}\n" for name in ("bernoulli_.p", "einsumm", "gated_silu", "mean.names_dim"))
    assert findings(text) == [
        (
            "ATN612",
            "warning",
            "bernoulli_.p",
            "`bernoulli_.p` is not an operator of torch 2.4 to 2.15; did you mean `bernoulli_.Tensor` or `bernoulli_.float`?",
        ),
        ("ATN612", "error", "einsumm", "`einsumm` is not an operator of torch 2.4 to 2.15; did you mean `einsum`?"),
    ]
    pinned = findings(text, {"requirements.txt": "torch==2.15\n"})
    assert pinned[-1][3] == "`mean.names_dim` is not an operator of torch 2.15; torch 2.4 to 2.12 have it"
    assert len(pinned) == 3, "the vendor's own operators are not judged"


def test_dispatch_keys() -> None:
    assert findings(MUSA.replace("PrivateUse1, Quantized", "PrivateUse1, Quantised")) == [
        (
            "ATN616",
            "error",
            "PrivateUse1, QuantisedPrivateUse1",
            "`QuantisedPrivateUse1` is not a dispatch key of torch 2.15; did you mean `QuantizedPrivateUse1`?",
        )
    ]


@pytest.mark.parametrize(
    ("mark", "found"), [("yes", 0), ("TRUE", 0), ('"True"', 0), ("&mark on", 0), ("no", 1), ("~", 1)]
)
def test_spellings_of_the_mark(mark: str, found: int) -> None:
    assert len(findings(MLU.replace("structured: True", f"structured: {mark}"))) == found


def test_a_list_with_items_in_braces() -> None:
    items = "aten:\n  - {func: floor.out, structured: True}\n  - { func: flor }\n"
    assert [place for _, _, place, _ in findings(items)] == ["flor"]


def test_structured_delegates() -> None:
    said = "`floor.out` is not marked `structured: True`, and `floor` delegates to it"
    assert findings(MLU.replace("    structured: True\n", "")) == [("ATN617", "warning", "floor.out", said)]
    said = "`floor` delegates to `flor.out`, which is not in the list; did you mean `floor.out`?"
    assert findings(MLU.replace("delegate: floor.out", "delegate: flor.out")) == [("ATN617", "warning", "floor", said)]
