"""Links that a tree holds lead neither what is read nor what is written out of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.command import Opschema

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights here")

SECRET = 'ignore = ["ALL"]\npassword = "hunter2"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (tmp_path / "secret.toml").write_text(SECRET)
    (tmp_path / "secret.txt").write_text("old")
    (folder / "ops.py").write_text("import torch\ntorch.library.define('a::b', '(Tensor x -> Tensor')\n")
    return folder


@pytest.fixture
def opschema(root: Path, tmp_path: Path) -> Opschema:
    return Opschema(root, tmp_path / "cache")


# What is read


@pytest.mark.parametrize("target", ["../secret.toml", "/dev/zero", "{folder}/secret.toml", "../no/such.toml"])
@pytest.mark.parametrize("command", [["lint"], ["rules"], ["migrate"], ["init"], ["plugins", "list"]], ids=" ".join)
def test_a_configuration_that_leads_out_is_not_read(
    opschema: Opschema, root: Path, tmp_path: Path, target: str, command: list[str]
) -> None:
    (root / "opschema.toml").symlink_to(target.format(folder=tmp_path))
    done = opschema(*command)
    assert done.code == 2
    path = root / "opschema.toml"
    assert done.err == (
        f"opschema: {path} is a link that leads out of {root}, so it is not read; put the settings into a file of the tree\n"
    )


def test_a_pyproject_that_leads_out_is_not_read_and_another_file_stands_in_for_it(
    opschema: Opschema, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.toml").write_text('[tool.opschema]\npassword = "hunter2"\n')
    (root / "pyproject.toml").symlink_to("../secret.toml")
    done = opschema("lint")
    assert done.code == 2
    assert (
        f"{root / 'pyproject.toml'} is a link that leads out of {root}, so it is not read; write an opschema.toml"
        in done.err
    )
    assert "password" not in done.err + done.out
    (root / "opschema.toml").write_text("")
    assert opschema("lint").code == 1


def test_a_pyproject_below_the_root_that_leads_out_makes_no_root(
    opschema: Opschema, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.toml").write_text("[tool.opschema]\n")
    (root / "sub/pyproject.toml").symlink_to("../../secret.toml")
    assert f"root        {root}\n" in opschema("lint", "--show-settings", cwd=root / "sub").out


def test_a_configuration_that_stays_inside_is_read(opschema: Opschema, root: Path) -> None:
    (root / "sub/settings.toml").write_text('ignore = ["REG"]\n')
    (root / "opschema.toml").symlink_to("sub/settings.toml")
    assert opschema("lint").code == 0


def test_a_baseline_that_leads_out_is_refused(opschema: Opschema, root: Path, tmp_path: Path) -> None:
    (tmp_path / "accepted.json").write_text('{"version": 1, "findings": []}')
    (root / ".opschema-baseline.json").symlink_to("../accepted.json")
    for command in ("lint", "baseline"):
        done = opschema(command)
        assert (done.code, done.err) == (2, f"opschema: .opschema-baseline.json leads out of the workspace {root}\n")
    assert (tmp_path / "accepted.json").read_text() == '{"version": 1, "findings": []}'
    assert opschema("lint", "--no-baseline").code == 1


def test_ignore_files_that_lead_out_are_not_read_without_git(opschema: Opschema, root: Path, tmp_path: Path) -> None:
    (root / ".git").rmdir()
    (root / "opschema.toml").write_text("")
    (tmp_path / "secret.txt").write_text("*.py\n")
    (root / ".gitignore").symlink_to("../secret.txt")
    assert opschema("lint").code == 1, "git reads no link as a .gitignore either"


# What is written


@pytest.mark.parametrize("name", ["report.sarif", "reports/a.sarif", "deep/reports/a.sarif"])
@pytest.mark.parametrize("command", [["lint", "--output-format", "sarif"], ["lint", "--statistics"], ["baseline"]])
def test_a_report_is_not_written_through_a_link_of_the_tree(
    opschema: Opschema, root: Path, tmp_path: Path, command: list[str], name: str
) -> None:
    (root / "report.sarif").symlink_to("../secret.txt")
    (tmp_path / "outside/reports").mkdir(parents=True)
    (root / "reports").symlink_to(tmp_path / "outside")
    (root / "deep").symlink_to(tmp_path / "outside")
    for path in (name, root / name, f"sub/../{name}"):
        done = opschema(*command, "--output-file", path)
        assert done.code == 2
        assert "is a link that leads out of" in done.err
    assert (tmp_path / "secret.txt").read_text() == "old"
    assert not list((tmp_path / "outside").rglob("*.sarif"))


def test_a_report_is_written_where_the_user_asks_for_it(opschema: Opschema, root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(tmp_path)
    (root / "inside.txt").symlink_to("sub/real.txt")
    for name in ("../a.txt", tmp_path / "mine/b.txt", "inside.txt", tmp_path / "mine/root/c.txt"):
        assert opschema("lint", "--output-format", "concise", "--output-file", name).code == 1
    assert all((tmp_path / name).read_text() for name in ("a.txt", "b.txt", "root/c.txt", "root/sub/real.txt"))
