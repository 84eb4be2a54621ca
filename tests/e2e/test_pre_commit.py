"""A real pre-commit on repositories made here, with the published hooks, with those of `init`, and installed from Git."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest
import yaml

from opschema_cli.commands.pre_commit import explanation, hook_entry, installed_origins, origin_of
from tests.command import EXECUTABLE, TILEKIT, TOYPACK, Opschema

PROJECT = Path(__file__).parents[2]


def local_hooks() -> str:
    """A configuration with the hooks that this project publishes; they run the command that is installed here."""
    published = yaml.safe_load((PROJECT / ".pre-commit-hooks.yaml").read_text())
    here = {"language": "system"}
    hooks = [{**hook, **here, "entry": hook["entry"].replace("opschema", str(EXECUTABLE))} for hook in published]
    hooks[1]["stages"] = ["manual"]
    return yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]})


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(TOYPACK, folder / "toypack.py")
    (folder / "opschema.toml").write_text('plugins = ["toypack.py"]\npacks = ["toy"]\n')
    (folder / "a.toy.yaml").write_text("add: {doc: x, dtype: f8}\n")
    (folder / ".pre-commit-config.yaml").write_text(local_hooks())
    git(folder, "init")
    git(folder, "add", ".")
    return folder


def pre_commit(repository: Path, *args: str | Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    home = repository.parent
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home / "pre-commit"), "OPSCHEMA_CACHE_DIR": str(home / "cache")}
    environment["PATH"] = f"{EXECUTABLE.parent}{os.pathsep}{environment['PATH']}"
    environment["PIP_NO_COMPILE"] = "1"  # what it installs runs once
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *args],
        cwd=repository, env=environment, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


def test_the_hook_fails_on_findings_and_passes_without(repository: Path) -> None:
    run = pre_commit(repository, "run", "--all-files")
    assert run.returncode == 1
    assert "a.toy.yaml:1:22" in run.stdout
    assert "TOY103" in run.stdout
    (repository / "a.toy.yaml").write_text("add: {doc: x, dtype: f16}\n")
    git(repository, "add", ".")
    run = pre_commit(repository, "run")
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert "Passed" in run.stdout


def test_the_fixing_hook_changes_the_file_so_that_the_commit_stops(repository: Path) -> None:
    (repository / "a.toy.yaml").write_text("add: {doc: LOUD, dtype: f16}\n")
    git(repository, "add", ".")
    run = pre_commit(repository, "run", "--all-files", "--hook-stage", "manual", "opschema-fix")
    assert run.returncode == 1
    assert "files were modified by this hook" in run.stdout
    assert (repository / "a.toy.yaml").read_text() == "add: {doc: loud, dtype: f16}\n"


def commit(repository: Path) -> subprocess.CompletedProcess[str]:
    """The result of `git commit` after the hooks are installed."""
    pre_commit(repository, "install")
    home = repository.parent
    return subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-m", "one"],
        cwd=repository, capture_output=True, text=True,
        env={
            **os.environ,
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
            "OPSCHEMA_CACHE_DIR": str(home / "cache"),
            "PATH": f"{EXECUTABLE.parent}{os.pathsep}{os.environ['PATH']}",
        },
    )  # fmt: skip


def test_a_commit_is_stopped(repository: Path) -> None:
    run = commit(repository)
    assert run.returncode == 1
    assert "TOY103" in run.stdout + run.stderr


def test_a_commit_that_changes_the_configuration_alone_is_stopped(repository: Path) -> None:
    (repository / "opschema.toml").write_text('plugins = ["toypack.py"]\npacks = ["toy"]\nignore = ["TOY103"]\n')
    git(repository, "add", ".")
    assert commit(repository).returncode == 0
    (repository / "opschema.toml").write_text('plugins = ["toypack.py"]\npacks = ["toy"]\n')
    git(repository, "add", ".")
    run = commit(repository)
    assert run.returncode == 1
    assert "TOY103" in run.stdout + run.stderr


@pytest.mark.parametrize("by_init", [False, True], ids=["published", "init"])
def test_a_commit_that_removes_a_file_which_the_manifest_names_is_stopped(
    tmp_path: Path, opschema: Opschema, by_init: bool
) -> None:
    folder = tmp_path / "tilekit"
    shutil.copytree(TILEKIT, folder)
    git(folder, "init")
    if by_init:
        (folder / "opschema.toml").unlink()
        assert opschema("init", cwd=folder).code == 0
        assert "repo: local" in (folder / ".pre-commit-config.yaml").read_text()  # the tests run a checkout
    else:
        (folder / ".pre-commit-config.yaml").write_text(local_hooks())
    assert opschema("baseline", cwd=folder).code == 0
    git(folder, "add", ".")
    first = commit(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    git(folder, "rm", "tilekit/kernels/norm.py")
    run = commit(folder)
    assert run.returncode == 1
    assert "SRC101" in run.stdout + run.stderr


# The entry that `init` writes


def installed(folder: Path, name: str, direct_url: object = None) -> Distribution:
    """A distribution as pip leaves it, with what PEP 610 has it record."""
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    return Distribution.at(info)


def from_git(url: str) -> dict[str, object]:
    return {"url": url, "vcs_info": {"vcs": "git", "commit_id": "4f1c", "requested_revision": "main"}}


def test_a_release_is_named_by_its_tag(tmp_path: Path) -> None:
    origins = [origin_of(installed(tmp_path, "opschema-cli"))]
    assert hook_entry(origins) == (
        "  - repo: https://github.com/opschema/opschema\n    rev: v1.2\n    hooks:\n      - id: opschema\n"
    )
    assert explanation(origins) == "it installs opschema-cli==1.2"


def test_what_was_installed_from_a_repository_is_named_by_its_commit(tmp_path: Path) -> None:
    """A branch would move, and a tag of the version need not be there yet."""
    origins = [origin_of(installed(tmp_path, "opschema-cli", from_git("https://example.org/fork.git")))]
    assert hook_entry(origins) == (
        "  - repo: https://example.org/fork.git\n    rev: 4f1c\n    hooks:\n      - id: opschema\n"
    )
    assert explanation(origins) == "it installs opschema-cli @ git+https://example.org/fork.git@4f1c"


def test_packs_of_other_distributions_are_installed_beside_it(tmp_path: Path) -> None:
    ours = origin_of(installed(tmp_path, "opschema-cli"))
    released = origin_of(installed(tmp_path, "acme-pack"))
    cloned = origin_of(installed(tmp_path, "other-pack", from_git("ssh://git@example.org/pack")))
    entry = yaml.safe_load(hook_entry([ours, released, cloned]))
    needs = ["acme-pack==1.2", "other-pack @ git+ssh://git@example.org/pack@4f1c"]
    assert entry[0]["hooks"] == [{"id": "opschema", "additional_dependencies": needs}]
    assert explanation([ours, released, cloned]) == f"it installs opschema-cli==1.2 with {needs[0]} and {needs[1]}"


@pytest.mark.parametrize(
    "direct_url",
    [
        {"url": "file:///home/a/opschema", "dir_info": {"editable": True}},
        {"url": "https://example.org/opschema_cli-1.2-py3-none-any.whl", "archive_info": {}},
        from_git("file:///home/a/opschema"),
        {**from_git("https://example.org/all.git"), "subdirectory": "lint"},
        ["not what PEP 610 says"],
    ],
    ids=["checkout", "wheel", "clone", "subdirectory", "broken"],
)
@pytest.mark.parametrize("name", ["opschema-cli", "acme-pack"])
def test_what_others_cannot_install_is_run_as_it_is_installed(tmp_path: Path, name: str, direct_url: object) -> None:
    """A path of this machine in a committed file would fail for everybody else."""
    others = [origin_of(installed(tmp_path, name, direct_url))]
    origins = others if name == "opschema-cli" else [origin_of(installed(tmp_path, "opschema-cli")), *others]
    (entry,) = yaml.safe_load(hook_entry(origins))
    (hook,) = entry["hooks"]
    assert (entry["repo"], hook["entry"], hook["language"]) == ("local", "opschema lint", "system")
    assert (hook["always_run"], hook["pass_filenames"]) == (True, False)
    assert f"since {name} was not installed from a release" in explanation(origins)


def test_the_packs_of_this_project_need_nothing_beside_it() -> None:
    assert [origin.name for origin in installed_origins(["tileops", "aten", "toy"])] == ["opschema-cli"]


# As others install it


def _can_install(folder: Path) -> bool:
    """Whether pip finds what the hook needs: it installs this project with its dependencies, and their build tools."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "-d", folder]
    return subprocess.run([*pip, "hatchling", "msgspec"], capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="pre-commit installs from a git repository")
def test_the_hooks_of_this_project_install_and_run(repository: Path, tmp_path: Path) -> None:
    if not _can_install(tmp_path / "probe"):
        pytest.skip("pip reaches no package registry here, so pre-commit cannot install the hook")
    clone = tmp_path / "opschema"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", PROJECT, clone], check=True)
    run = pre_commit(repository, "try-repo", clone, "opschema", "--all-files", "--verbose", timeout=300)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "TOY103" in run.stdout
