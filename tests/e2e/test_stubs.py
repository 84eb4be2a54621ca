"""`opschema stubs`: what torchgen's own command writes, byte for byte, and nothing that was not asked for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.command import Here, Opschema

ATENKIT = Path(__file__).parents[2] / "fixtures/atenkit"
MADE = ["PrivateUse1NativeFunctions.h", "RegisterAutogradPrivateUse1.cpp", "RegisterPrivateUse1.cpp"]
MISSING = "/no/such/python"


@pytest.fixture
def atenkit(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ATENKIT, tmp_path / "atenkit"))


@pytest.fixture
def stubs(atenkit: Path, tmp_path: Path) -> Opschema:
    return Opschema(atenkit, tmp_path / "cache")


@pytest.fixture(scope="module")
def torchgens(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The files that torchgen's own command writes next to the YAML when run in the fixture's root."""
    pytest.importorskip("torchgen")
    root = Path(shutil.copytree(ATENKIT, tmp_path_factory.mktemp("torchgen") / "atenkit"))
    command = [sys.executable, "-m", "torchgen.gen_backend_stubs"]
    command += ["--source_yaml", "backend/atenkit.yaml", "--output_dir", "backend"]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return {name: (root / "backend" / name).read_bytes() for name in MADE}


@pytest.fixture
def written(atenkit: Path, torchgens: Mapping[str, bytes]) -> Path:
    """The fixture with up-to-date stubs."""
    for name, data in torchgens.items():
        (atenkit / "backend" / name).write_bytes(data)
    return atenkit


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's bytes and time of change."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# What is written


def test_apply_writes_what_torchgens_own_command_writes(
    stubs: Opschema, atenkit: Path, torchgens: Mapping[str, bytes]
) -> None:
    before = tree(atenkit)
    done = stubs("stubs", "--apply")
    assert (done.code, done.err) == (0, "")
    after = tree(atenkit)
    assert {path.rpartition("/")[2]: data for path, (data, _) in after.items() if path not in before} == torchgens
    assert {path: after[path] for path in before} == before
    assert "Wrote 3 of 3 files (torchgen 2." in done.out


def test_without_apply_a_patch_is_printed_and_nothing_written(
    stubs: Opschema, atenkit: Path, torchgens: Mapping[str, bytes]
) -> None:
    before = tree(atenkit)
    done = stubs("stubs", "--dry-run")
    assert (done.code, tree(atenkit)) == (0, before)
    subprocess.run(["git", "apply", "-"], cwd=atenkit, input=done.out.encode(), check=True)
    assert {name: (atenkit / "backend" / name).read_bytes() for name in MADE} == torchgens


def test_only_what_changed_is_written_with_the_line_ends_that_it_has(stubs: Opschema, written: Path) -> None:
    header = written / "backend/PrivateUse1NativeFunctions.h"
    header.write_bytes(header.read_bytes().replace(b"\n", b"\r\n"))
    edit(written / "backend/atenkit.yaml", "  - relu_\n", "")
    before = tree(written)
    done = stubs("stubs", "--apply")
    after = tree(written)
    changed = [path for path in after if after[path] != before.get(path)]
    assert (done.code, sorted(changed)) == (
        0,
        ["backend/PrivateUse1NativeFunctions.h", "backend/RegisterPrivateUse1.cpp"],
    )
    assert "Wrote 2 of 3 files" in done.out
    text = header.read_bytes()
    assert b"relu_" not in text
    assert text.count(b"\r\n") == text.count(b"\n") > 20


def test_what_is_not_made_any_more_goes(stubs: Opschema, written: Path) -> None:
    """The files that torchgen leaves still register kernels."""
    edit(written / "backend/atenkit.yaml", "autograd:\n  - selu\n", "")
    (written / "backend/RegisterXLA.cpp").write_bytes((written / "backend" / MADE[2]).read_bytes())
    before = tree(written)
    done = stubs("stubs", "--apply")
    after = tree(written)
    assert (done.code, before.keys() - after.keys()) == (0, {"backend/RegisterAutogradPrivateUse1.cpp"})
    assert "backend/RegisterAutogradPrivateUse1.cpp removed +0 -" in done.out


def test_a_file_that_a_person_wrote_is_not_overwritten(stubs: Opschema, atenkit: Path) -> None:
    (atenkit / "backend/RegisterPrivateUse1.cpp").write_text("// mine\n")
    before = tree(atenkit)
    done = stubs("stubs", "--apply")
    assert (done.code, done.out, tree(atenkit)) == (2, "", before)
    assert "backend/RegisterPrivateUse1.cpp is there and was not generated" in done.err


def test_stubs_are_found_where_they_lie(stubs: Opschema, atenkit: Path) -> None:
    assert stubs("stubs", "--apply", "--output-dir", "out/csrc").code == 0
    assert (
        '#include "out/csrc/PrivateUse1NativeFunctions.h"' in (atenkit / "out/csrc/RegisterPrivateUse1.cpp").read_text()
    )
    done = stubs("stubs", "--check", cwd=atenkit / "backend")
    assert done.code == 0
    assert done.out.startswith("3 files up to date with backend/atenkit.yaml (torchgen ")


# What is compared


def test_check_says_which_files_differ(stubs: Opschema, written: Path) -> None:
    edit(written / "backend/RegisterPrivateUse1.cpp", 'm.impl("relu"', 'm.impl("rely"')
    (written / "backend/PrivateUse1NativeFunctions.h").unlink()
    autograd = written / "backend/RegisterAutogradPrivateUse1.cpp"
    autograd.write_bytes(autograd.read_bytes().replace(b"\n", b"\r\n"))
    before = tree(written)
    done = stubs("stubs", "--check")
    assert (done.code, tree(written)) == (1, before)
    header, registrations, *summary = done.out.splitlines()
    assert header == "backend/PrivateUse1NativeFunctions.h added +24 -0"
    assert registrations == "backend/RegisterPrivateUse1.cpp +1 -1"
    assert "2 of 3 files differ from what torchgen" in " ".join(summary)


def test_json(stubs: Opschema, written: Path) -> None:
    (written / "backend/PrivateUse1NativeFunctions.h").unlink()
    done = stubs("stubs", "--json", "--check")
    report = json.loads(done.out)
    assert (done.code, report["version"], report["source"], report["applied"]) == (1, 1, "backend/atenkit.yaml", False)
    assert report["generator"].startswith("torchgen 2.")
    assert [(file["path"].rpartition("/")[2], file["change"]) for file in report["files"]] == [
        (MADE[0], "added"),
        (MADE[1], "unchanged"),
        (MADE[2], "unchanged"),
    ]
    assert report["files"][0]["diff"].startswith("--- /dev/null\n+++ b/backend/PrivateUse1NativeFunctions.h\n")


# What is refused


def test_all_errors_are_shown_before_torchgen_is_asked(stubs: Opschema, atenkit: Path) -> None:
    edit(atenkit / "backend/atenkit.yaml", "  - relu\n", "  - reluu\n  - add.Tensr\n")
    done = stubs("stubs", "--apply", "--python", MISSING)
    assert done.code == 1
    assert ["reluu" in done.out, "add.Tensr" in done.out] == [True, True]
    assert "backend/atenkit.yaml:8:5" in done.out
    assert done.err == "opschema: nothing was generated: see above\n"
    found = json.loads(stubs("stubs", "--json", "--python", MISSING).out)["diagnostics"]
    assert [(item["severity"], item["line"], item["column"]) for item in found] == [("error", 8, 5), ("error", 9, 5)]


def test_yaml_that_does_not_parse_is_shown_with_its_place(stubs: Opschema, atenkit: Path) -> None:
    edit(atenkit / "backend/atenkit.yaml", "supported:", "supported: [")
    done = stubs("stubs", "backend/atenkit.yaml", "--python", MISSING)
    assert done.code == 1
    assert "error YML001 yaml-syntax" in done.out


def test_hostile_yaml_is_no_traceback(stubs: Opschema, atenkit: Path) -> None:
    (atenkit / "backend/atenkit.yaml").write_text("backend: XLA\ncpp_namespace: a\nsupported: " + "[" * 100_000)
    done = stubs("stubs", "backend/atenkit.yaml", "--python", MISSING)
    assert done.code == 1
    assert "error YML001 yaml-syntax" in done.out


def test_what_torchgen_refuses_comes_back_as_a_message(stubs: Opschema, atenkit: Path) -> None:
    (atenkit / "opschema.toml").write_text('ignore = ["ATN"]\n')
    edit(atenkit / "backend/atenkit.yaml", "  - relu\n", "  - reluu\n")
    before = tree(atenkit)
    done = stubs("stubs", "--apply")
    assert (done.code, done.out, tree(atenkit)) == (2, "", before)
    assert done.err.startswith("opschema: torchgen 2.")
    assert done.err.endswith("refuses backend/atenkit.yaml:8:5: Found an invalid operator name: reluu\n")


def test_what_lint_only_doubts_is_told_where_torchgen_refuses(stubs: Opschema, atenkit: Path) -> None:
    """Without operators of its own, and without a pin, a tree may be for another torch than the installed one."""
    shutil.rmtree(atenkit / "aten")
    shutil.rmtree(atenkit / "autograd")
    edit(atenkit / "backend/atenkit.yaml", "  - relu\n", "  - gated_silu\n  - symeig\n")
    done = stubs("stubs")
    assert done.code == 2
    assert (
        "refuses backend/atenkit.yaml:8:5: Found an invalid operator name: gated_silu\nsee above; if it is for"
        in done.err
    )
    places = [line for line in done.out.splitlines() if line.startswith("backend/")]
    assert places == [
        "backend/atenkit.yaml:8:5  warning ATN612 unknown-backend-operator",
        "backend/atenkit.yaml:9:5  warning ATN612 unknown-backend-operator",
    ]


def test_kernels_that_are_still_to_be_written_are_asked_for_only_with_the_file_of_kernels(
    stubs: Opschema, atenkit: Path
) -> None:
    edit(atenkit / "backend/kernels.cpp", "AtenkitFunctions::relu(", "AtenkitFunctions::rely(")
    done = stubs("stubs", "--python", MISSING)
    assert (done.out, "no such Python" in done.err) == ("", True)
    done = stubs("stubs", "--impl-path", "backend/kernels.cpp", "--python", MISSING)
    assert done.code == 1
    assert "error ATN701 kernel-missing" in done.out


def test_torchgen_has_to_be_there(stubs: Opschema, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=sys.platform != "win32")
    python = next(path for path in (tmp_path / "bare").glob("*/python*") if path.is_file())
    done = stubs("stubs", "--python", str(python))
    assert (done.code, done.out) == (2, "")
    assert "has no torchgen, which makes the stubs; it comes with torch" in done.err


def test_code_of_the_workspace_is_not_run(stubs: Opschema, atenkit: Path, tmp_path: Path) -> None:
    """Installed for development, a tree is on its interpreter's path."""
    venv.create(tmp_path / "own", with_pip=False, symlinks=sys.platform != "win32")
    python = next(path for path in (tmp_path / "own").glob("*/python*") if path.is_file())
    packages = next((tmp_path / "own").rglob("site-packages"))
    (packages / "own.pth").write_text(f"{atenkit}\n")
    for package in ("torch", "torchgen"):
        (atenkit / package).mkdir()
        (atenkit / package / "__init__.py").write_text("open(__file__ + '.ran', 'w').close()\n")
    done = stubs("stubs", "--python", str(python))
    assert (done.code, done.out) == (2, "")
    assert "would run code of this workspace (torchgen/__init__.py), which is never done" in done.err
    assert list(atenkit.rglob("*.ran")) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--apply", "--check"], "choose one of --check and --apply"),
        (["nowhere.yaml"], "opschema: nowhere.yaml: no such file or folder"),
        (["backend/kernels.cpp"], "backend/kernels.cpp holds nothing to generate stubs from"),
        (["aten/tags.yaml"], "aten/tags.yaml holds nothing to generate stubs from"),
        (["--output-dir", ".."], "is outside the workspace"),
        (["--impl-path", "none.cpp"], "none.cpp: no such file"),
        (["--python", MISSING], f"{MISSING}: no such Python interpreter"),
        (["--python", sys.executable + "/"], "no such Python interpreter"),
    ],
)
def test_wrong_usage(stubs: Opschema, args: list[str], message: str) -> None:
    done = stubs("stubs", *args)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_one_of_several_has_to_be_named(stubs: Opschema, atenkit: Path) -> None:
    shutil.copy(atenkit / "backend/atenkit.yaml", atenkit / "backend/other.yaml")
    done = stubs("stubs")
    assert done.code == 2
    assert "name one of backend/atenkit.yaml, backend/other.yaml" in done.err
    assert "no such Python" in stubs("stubs", "backend/other.yaml", "--python", MISSING).err


def test_there_is_nothing_to_generate_from(stubs: Opschema, atenkit: Path) -> None:
    (atenkit / "backend/atenkit.yaml").unlink()
    done = stubs("stubs")
    assert (done.code, done.err) == (2, "opschema: this workspace holds nothing to generate stubs from\n")


def test_yaml_for_the_generator_of_others_is_told(stubs: Opschema, atenkit: Path) -> None:
    (atenkit / "backend/atenkit.yaml").write_text(
        "all_version: [v2.1]\nofficial:\n  - func: relu(Tensor self) -> Tensor\n"
    )
    done = stubs("stubs")
    assert done.code == 2
    assert "backend/atenkit.yaml is for the generator of op-plugin; torchgen does not read it" in done.err


@pytest.mark.usefixtures("no_cpp")
def test_kernels_that_cannot_be_read_are_reported(
    atenkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Here(atenkit, tmp_path / "cache", monkeypatch, capsys)("stubs", "--impl-path", "backend/kernels.cpp")
    assert "opschema: C++ is not read, as `tree_sitter_cpp` cannot be imported: " in done.err
    assert "ATN701" in done.err
