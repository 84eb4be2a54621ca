"""`opschema show` finds an operator of each pack by a name that is wrong in case or lacks its namespace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from opschema_rules.magi.examples import example_files
from tests.command import Opschema

FIXTURES = Path(__file__).parents[2] / "fixtures"
MAGI = '@magi_register_custom_op("kit::rotate", infer_output_meta_fn=["q"])\ndef rotate(q: Tensor) -> Tensor: ...\n'


@pytest.mark.parametrize(
    ("fixture", "name", "title"),
    [
        ("tilekit", "rmsnormfwdop", "RMSNormFwdOp (implemented)"),
        ("tilekit", "TileKit::RMS_norm_fwd", "tilekit::rms_norm_fwd("),
        ("tilekit", "rms_norm_fwd", "tilekit::rms_norm_fwd("),
        ("atenkit", "aten::ADD.tensor", "aten::add.Tensor("),
        ("orchkit", "RESCALE", "rescale"),
        ("flykit", "SCALE_Kernel", "scale_kernel"),
    ],
)
def test_case_and_namespace_need_not_be_right(opschema: Opschema, fixture: str, name: str, title: str) -> None:
    done = opschema("show", name, cwd=FIXTURES / fixture)
    assert done.code == 0, done.err
    assert title in done.out.splitlines()[0]


def test_a_magi_op_is_found_as_well(opschema: Opschema, tmp_path: Path) -> None:
    folder = tmp_path / "magi"
    for path, text in example_files([("python", MAGI)]).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert opschema("show", "KIT::Rotate", cwd=folder).out.startswith("kit::rotate")


def test_no_line_ends_in_spaces(opschema: Opschema) -> None:
    for fixture, name in (("tilekit", "RMSNormFwdOp"), ("orchkit", "rescale"), ("flykit", "scale_kernel")):
        lines = opschema("show", name, cwd=FIXTURES / fixture).out.splitlines()
        assert len(lines) > 5
        assert [line for line in lines if line != line.rstrip()] == []


def test_the_sample_in_the_documentation_is_what_is_printed(opschema: Opschema) -> None:
    page = (FIXTURES.parent / "docs/pytorch-schemas.md").read_text()
    assert f"```\n{opschema('show', 'aten::add.Tensor', cwd=FIXTURES / 'atenkit').out}```\n" in page


def test_a_call_over_several_lines_is_shown_on_one(opschema: Opschema, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "bindkit", tmp_path / "bindkit"))
    call = "_C.norm_backward(\r\n        grad,  x,\r\n\r\n        rstd\r\n    )"
    (folder / "use.py").write_bytes(
        f"from bindkit import _C\r\n\r\n\r\ndef back(grad, x, rstd):\r\n    return {call}\r\n".encode()
    )
    shown = opschema("show", "norm_backward", cwd=folder).out.splitlines()
    assert [line.partition("_C.")[2] for line in shown if "use.py:5 " in line] == ["norm_backward(grad,  x, rstd)"]
    listed = json.loads(opschema("list", "--output-format", "json", cwd=folder).out)["operators"]
    texts = [use["text"] for item in listed if item["name"].endswith("norm_backward") for use in item["uses"]]
    assert "_C.norm_backward(grad,  x, rstd)" in texts


def test_names_that_differ_in_case_alone_are_told_apart(opschema: Opschema, root: Path) -> None:
    (root / "a.toy.yaml").write_text("add: {doc: small}\nADD: {doc: large}\n")
    assert "large" in opschema("show", "ADD").out
    done = opschema("show", "Add")
    assert (done.code, done.out) == (2, "")
    assert "no operator here is called `Add`; did you mean `ADD` or `add`" in done.err


def test_names_of_all_packs_are_suggested(opschema: Opschema, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "tilekit", tmp_path / "tilekit"))
    assert "did you mean `RMSNormFwdOp` or `tilekit::rms_norm_fwd`?" in opschema("show", "RMSNorm", cwd=folder).err
