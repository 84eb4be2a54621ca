"""``opschema new-pack`` writes a package that passes its own test, and that the command uses once it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.commands.new_pack import package_files
from tests.command import Opschema


@pytest.fixture
def opschema(tmp_path: Path) -> Opschema:
    return Opschema(tmp_path, tmp_path / "cache")


@pytest.fixture
def package(tmp_path: Path, opschema: Opschema) -> Path:
    done = opschema("new-pack", "acme-ops")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("Next: cd acme-ops && pip install -e '.[test]' && pytest\n")
    return tmp_path / "acme-ops"


def install(package: Path, site: Path) -> None:
    """The files that pip installs of the package: its modules and its entry point."""
    info = site / "acme_ops-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-ops\nVersion: 0.1.0\n")
    assert 'acme-ops = "acme_ops.pack:PACK"' in (package / "pyproject.toml").read_text()
    (info / "entry_points.txt").write_text("[opschema.packs]\nacme-ops = acme_ops.pack:PACK\n")
    shutil.copytree(package / "acme_ops", site / "acme_ops")


def test_its_own_test_passes(package: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_it_is_sound_for_ruff_and_mypy(package: Path) -> None:
    for tool in (
        ("ruff", "check", "--select", "E,F,I,B,UP", "--line-length", "132"),
        ("ruff", "format", "--check", "--line-length", "120"),
    ):
        pytest.importorskip("ruff")
        done = subprocess.run([sys.executable, "-m", *tool, "."], cwd=package, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    pytest.importorskip("mypy")
    checked = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "acme_ops"]
    done = subprocess.run(checked, cwd=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_once_installed_it_lints_fixes_migrates_and_is_listed(
    package: Path, tmp_path: Path, opschema: Opschema
) -> None:
    install(package, tmp_path / "site")
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])}
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "ops.yaml").write_text("scale:\n  args: [factor, x]\n  impl: kit.py\n")
    (tree / "kit.py").write_text("def scale(x, factor): ...\n")
    listed = opschema("rules", "ACM", cwd=tree, env=env)
    assert listed.out.split()[:3] == ["ACM101", "acme-ops", "arguments-match"]
    assert "Pack: acme-ops." in opschema("rule", "ACM101", cwd=tree, env=env).out
    found = opschema("lint", "--output-format", "concise", cwd=tree, env=env)
    assert (found.code, "ops.yaml:2:9: error ACM101" in found.out) == (1, True), found
    assert opschema("lint", "--fix", "--unsafe-fixes", cwd=tree, env=env).code == 0
    options = ("-o", "old=impl", "-o", "new=source")
    assert opschema("migrate", "acme-ops-rename-field", *options, "--apply", cwd=tree, env=env).code == 0
    assert (tree / "ops.yaml").read_text() == "scale:\n  args: [x, factor]\n  source: kit.py\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Acme Ops", "`Acme Ops` cannot be the name of a pack: it is lower-case-words, such as `acme-ops`"),
        ("acme_ops", "such as `acme-ops`"),
        ("3d", "such as `d`"),
        ("--", "No such option"),
        ("..", "`..` cannot be the name of a pack: it is lower-case-words\n"),
        ("../out", "such as `out`"),
        ("class", "`class` cannot be the name of a package: Python has that name already"),
        ("json", "`json` cannot be the name of a package"),
        (
            "tileops",
            "`tileops` is the name of an installed pack (opschema_rules.tileops.detection:LAZY_PACK); choose another",
        ),
    ],
)
def test_a_bad_name_is_refused_and_nothing_written(tmp_path: Path, opschema: Opschema, name: str, message: str) -> None:
    done = opschema("new-pack", *([name] if name != "--" else ["--x"]))
    assert done.code == 2
    assert message in done.err
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []


def test_a_folder_that_holds_something_is_left_alone(package: Path, tmp_path: Path, opschema: Opschema) -> None:
    again = opschema("new-pack", "acme-ops")
    assert (again.code, "acme-ops exists and is not an empty folder" in again.err) == (2, True)
    (tmp_path / "file").write_text("")
    assert opschema("new-pack", "acme-ops", "file").code == 2
    assert opschema("new-pack", "acme-ops", "file/below").code == 2
    (tmp_path / "empty").mkdir()
    assert opschema("new-pack", "acme-ops", "empty").code == 0


def test_codes_begin_with_letters_that_no_other_rule_has() -> None:
    assert '@rule("SIG101"' in package_files("signal", ())["signal/rules.py"]
    assert '@rule("SIA101"' in package_files("signal", {"SIG", "SIN"})["signal/rules.py"]
    assert '@rule("AAA101"' in package_files("x", ())["x/rules.py"]
