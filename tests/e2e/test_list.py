"""`opschema list` prints the operator table: a line for each operator, or JSON with every field."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.command import Opschema

FIXTURES = Path(__file__).parents[2] / "fixtures"


def table(opschema: Opschema, fixture: str, *args: str) -> list[dict[str, Any]]:
    done = opschema("list", "--output-format", "json", *args, cwd=FIXTURES / fixture)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["version"] == 1
    found: list[dict[str, Any]] = document["operators"]
    return found


@pytest.mark.parametrize(
    ("fixture", "name", "pack"),
    [
        ("tilekit", "RMSNormFwdOp", "tileops"),
        ("tilekit", "tilekit::rms_norm_fwd", "torchlib"),
        ("atenkit", "aten::add.Tensor", "aten"),
        ("orchkit", "attention/kernel_config.py:KERNELS:3", "pypto"),
        ("flykit", "scale_kernel", "flydsl"),
    ],
)
def test_each_pack_fills_the_table(opschema: Opschema, fixture: str, name: str, pack: str) -> None:
    found = [item for item in table(opschema, fixture) if item["name"] == name]
    assert [item["pack"] for item in found] == [pack]
    assert found[0]["declaration"]["place"]["line"] > 0
    assert found[0]["declaration"]["arguments"]


def test_an_entry_has_its_arguments_implementations_and_rows(opschema: Opschema) -> None:
    [found] = [item for item in table(opschema, "tilekit") if item["name"] == "RMSNormFwdOp"]
    assert {"x", "weight"} <= {item["name"] for item in found["declaration"]["arguments"]}
    assert {"class"} <= {item["role"] for item in found["implementations"]}
    assert found["rows"]
    assert found["rows"][0]["place"]["path"] == found["declaration"]["place"]["path"]


def test_a_custom_op_has_its_kernel_its_fake_and_their_registrations(opschema: Opschema) -> None:
    [found] = [item for item in table(opschema, "tilekit") if item["name"] == "tilekit::rms_norm_fwd"]
    assert {"kernel", "fake"} <= {item["role"] for item in found["implementations"]} | {
        item["role"] for item in found["registrations"]
    }


def test_a_table_for_each_pack_and_the_totals(opschema: Opschema) -> None:
    done = opschema("list", cwd=FIXTURES / "tilekit", env={"COLUMNS": None})
    lines = done.out.splitlines()
    assert lines[0].split() == ["tileops", "declared", "implemented", "kernels", "rows"]
    assert any(line.startswith("RMSNormFwdOp ") and "tilekit/ops/norm.py:" in line for line in lines)
    second = lines.index("") + 1
    assert lines[second].split() == ["torchlib", "declared", "implemented", "kernels", "fakes"]
    number = len(table(opschema, "tilekit"))
    assert len(lines) == number + 5
    assert lines[-1].startswith(f"{number} operators (")


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_screen(opschema: Opschema, columns: int) -> None:
    done = opschema("list", cwd=FIXTURES / "tilekit", env={"COLUMNS": str(columns)})
    assert max(map(len, done.out.splitlines()[:-1])) <= columns


def test_paths_and_packs_choose(opschema: Opschema) -> None:
    assert {item["pack"] for item in table(opschema, "tilekit", "--pack", "torchlib")} == {"torchlib"}
    [place] = {
        item["declaration"]["place"]["path"] for item in table(opschema, "tilekit") if item["name"] == "RMSNormFwdOp"
    }
    names = {item["name"] for item in table(opschema, "tilekit", place)}
    assert "RMSNormFwdOp" in names
    assert "tilekit::rms_norm_fwd" not in names


def test_unresolved_parts_are_listed_with_their_reasons(opschema: Opschema, tmp_path: Path) -> None:
    (tmp_path / "opschema.toml").write_text("")
    (tmp_path / "ops.py").write_text(
        "import os\nimport torch\n"
        'lib = torch.library.Library("kit", "DEF")\nlib.define("f(Tensor x) -> Tensor")\n'
        'lib.define("g(" + os.environ["SCHEMA"] + ") -> Tensor")\n'
    )
    done = opschema("list", "--unresolved", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "kit::g" in done.out
    assert "declaration: " in done.out
    assert "kit::f" not in done.out


def test_a_pack_that_finds_nothing_is_a_mistake(opschema: Opschema) -> None:
    done = opschema("list", "--pack", "magi", cwd=FIXTURES / "atenkit")
    assert done.code == 2
    assert "the pack `magi` finds nothing in" in done.err
    assert "; these do: " in done.err


def test_a_pack_that_does_not_exist_is_a_mistake(opschema: Opschema, tmp_path: Path) -> None:
    done = opschema("list", "--pack", "atn", cwd=FIXTURES / "atenkit")
    assert (done.code, "no pack is called `atn`; did you mean `aten`?" in done.err) == (2, True)
    shutil.copytree(FIXTURES / "atenkit", tmp_path / "kit")
    (tmp_path / "kit/opschema.toml").write_text('plugins = ["mine.py"]\n')
    done = opschema("list", "--no-plugins", "--pack", "atn", cwd=tmp_path / "kit")
    assert (done.code, done.err.endswith("; did you mean `aten`?\n")) == (2, True)


def test_a_folder_without_operators_is_a_mistake(opschema: Opschema, tmp_path: Path) -> None:
    (tmp_path / "opschema.toml").write_text("")
    done = opschema("list", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "opschema reads no operator here" in done.err


def test_the_list_is_written_to_a_file(opschema: Opschema, tmp_path: Path) -> None:
    target = tmp_path / "operators.json"
    done = opschema("list", "--output-format", "json", "--output-file", str(target), cwd=FIXTURES / "flykit")
    assert (done.code, done.out) == (0, "")
    assert json.loads(target.read_text())["operators"]


@pytest.mark.parametrize(("wrong", "meant"), [("ateb", "aten"), ("Aten/Backend", "aten/backend"), ("confg", "config")])
def test_a_schema_that_does_not_exist_is_a_mistake(opschema: Opschema, wrong: str, meant: str) -> None:
    done = opschema("schema", wrong, cwd=FIXTURES / "atenkit")
    assert (done.code, done.err) == (2, f"opschema: no schema is called `{wrong}`; did you mean `{meant}`?\n")
