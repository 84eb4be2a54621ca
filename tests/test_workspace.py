"""Which files belong to a workspace, how they are read, and that a hostile repository makes git run nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.gitignore import glob_spec
from opschema_cli.root import find_root
from opschema_cli.workspace import Asked, ReadError, Workspace, join


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    run = subprocess.run(["git", "-C", folder, *identity, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def write(folder: Path, files: dict[str, str] | Iterable[str]) -> None:
    texts = files if isinstance(files, dict) else dict.fromkeys(files, "")
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def files(root: Path, **options: object) -> list[str]:
    return list(Workspace(root, **options).files)  # type: ignore[arg-type]


# Listing


def test_with_git_tracked_and_untracked_files_are_in_and_ignored_ones_are_out(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "build/\n", "tracked.yaml": "", "untracked.yaml": "", "build/made.yaml": ""})
    git(tmp_path, "init")
    git(tmp_path, "add", "tracked.yaml")
    assert files(tmp_path) == [".gitignore", "tracked.yaml", "untracked.yaml"]


def test_a_file_that_git_tracks_although_it_is_ignored_is_in(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.gen.yaml\n", "kept.gen.yaml": "", "made.gen.yaml": ""})
    git(tmp_path, "init")
    git(tmp_path, "add", "--force", "kept.gen.yaml")
    assert files(tmp_path) == [".gitignore", "kept.gen.yaml"]


def test_an_environment_that_git_does_not_ignore_is_out_and_what_it_tracks_is_in(tmp_path: Path) -> None:
    write(tmp_path, ["own.yaml", ".venv/lib/a.yaml", "sub/node_modules/b.yaml", "node_modules/kept.yaml"])
    git(tmp_path, "init")
    git(tmp_path, "add", "node_modules/kept.yaml")
    assert files(tmp_path) == ["node_modules/kept.yaml", "own.yaml"]


def test_a_file_deleted_but_still_tracked_is_out(tmp_path: Path) -> None:
    write(tmp_path, ["gone.yaml", "here.yaml"])
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    (tmp_path / "gone.yaml").unlink()
    assert files(tmp_path) == ["here.yaml"]


def test_below_the_git_root_paths_start_at_the_workspace(tmp_path: Path) -> None:
    write(
        tmp_path,
        {".gitignore": "*.tmp\n", "outside.yaml": "", "kit/opschema.toml": "", "kit/a.yaml": "", "kit/a.tmp": ""},
    )
    git(tmp_path, "init")
    assert files(tmp_path / "kit") == ["a.yaml", "opschema.toml"]


def test_a_worktree_is_listed_like_a_clone(tmp_path: Path) -> None:
    main = tmp_path / "main"
    write(main, {".gitignore": "*.tmp\n", "a.yaml": ""})
    git(main, "init")
    git(main, "add", ".")
    git(main, "commit", "-m", "first")
    git(main, "worktree", "add", "../tree")
    write(tmp_path / "tree", ["b.tmp", "b.yaml"])
    assert (tmp_path / "tree/.git").is_file()
    assert find_root(tmp_path / "tree") == tmp_path / "tree"
    assert files(tmp_path / "tree") == [".gitignore", "a.yaml", "b.yaml"]


def test_a_submodule_is_a_workspace_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "library", ["op.yaml"])
    git(tmp_path / "library", "init")
    git(tmp_path / "library", "add", ".")
    git(tmp_path / "library", "commit", "-m", "first")
    write(tmp_path / "main", ["a.yaml"])
    git(tmp_path / "main", "init")
    git(tmp_path / "main", "submodule", "add", str(tmp_path / "library"), "third_party/library")
    inner = tmp_path / "main/third_party/library"
    assert find_root(inner / "op.yaml") == inner
    assert files(inner) == ["op.yaml"]
    assert files(tmp_path / "main") == [".gitmodules", "a.yaml"]


def test_a_workspace_that_git_ignores_altogether_is_walked(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "vendor/\n", "vendor/opschema.toml": "", "vendor/a.yaml": ""})
    git(tmp_path, "init")
    assert files(tmp_path / "vendor") == ["a.yaml", "opschema.toml"]


def test_without_git_the_gitignore_files_hold_and_the_nearest_decides(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n/top.yaml\n",
            "a.log": "",
            "top.yaml": "",
            "sub/top.yaml": "",
            "sub/.gitignore": "!kept.log\n*.tmp\n",
            "sub/kept.log": "",
            "sub/other.log": "",
            "sub/a.tmp": "",
            "a.tmp": "",
            "build/made.yaml": "",
            "sub/build/made.yaml": "",
            "node_modules/x.yaml": "",
            "sub/__pycache__/x.yaml": "",
        },
    )
    assert files(tmp_path) == [".gitignore", "a.tmp", "sub/.gitignore", "sub/kept.log", "sub/top.yaml"]


def test_a_gitignore_that_makes_no_sense_leaves_nothing_out_and_stops_nothing(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "!\n[z-a]\n" + "*a" * 40 + "b\n*.tmp\n", "a.tmp": "", "a" * 60: ""})
    assert files(tmp_path) == [".gitignore", "a" * 60]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_gitignore_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    write(tmp_path, ["a.yaml"])
    assert files(tmp_path) == ["a.yaml"]


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "no git"])
def test_names_may_hold_anything(tmp_path: Path, with_git: bool) -> None:
    names = [
        "a b.yaml",
        "новый.yaml",
        "line\nbreak.yaml",
        'quo"te.yaml',
        "back\\slash.yaml",
        "-rf.yaml",
        "\x1b[31m.yaml",
    ]
    write(tmp_path, names)
    if with_git:
        git(tmp_path, "init")
    assert files(tmp_path) == sorted(names)
    assert all(Workspace(tmp_path).data(name) == b"" for name in names)


@pytest.mark.skipif(sys.platform != "linux", reason="names are text here")
@pytest.mark.parametrize("with_git", [True, False], ids=["git", "no git"])
def test_a_name_that_is_not_utf8_is_shown_with_escapes_and_can_be_read(tmp_path: Path, with_git: bool) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.yaml")).write_text("x: 1\n")
    if with_git:
        git(tmp_path, "init")
    workspace = Workspace(tmp_path)
    assert workspace.files == ("caf\\xe9.yaml",)
    assert workspace.source("caf\\xe9.yaml").text == "x: 1\n"
    assert workspace.relative(tmp_path / os.fsdecode(b"caf\xe9.yaml")) == "caf\\xe9.yaml"


def test_exclude_takes_gitignore_patterns(tmp_path: Path) -> None:
    write(tmp_path, ["a.yaml", "third_party/a.yaml", "sub/third_party/a.yaml", "gen/a.yaml", "gen/keep.yaml"])
    assert files(tmp_path, exclude=["third_party/", "/gen/*", "!keep.yaml"]) == ["a.yaml", "gen/keep.yaml"]


def test_a_malformed_exclude_is_named(tmp_path: Path) -> None:
    with pytest.raises(OpschemaError, match=r"exclude: .*!"):
        Workspace(tmp_path, exclude=["!"])


def test_ordinary_patterns_with_stars_are_fine() -> None:
    for pattern in ("*.py[co]", "**/tests/**/test_*.py", "*_*_*.yaml", "a/*/b/*/c/*/d/*/e/*/f"):
        assert not glob_spec([pattern]).ignores("x")


def test_under_gives_what_lies_below_a_folder(tmp_path: Path) -> None:
    write(tmp_path, ["ops/a.py", "ops/deep/b.py", "ops/c.yaml", "ops_extra/d.py", "e.py"])
    workspace = Workspace(tmp_path)
    assert workspace.under("ops", ".py") == ["ops/a.py", "ops/deep/b.py"]
    assert workspace.under("ops/") == ["ops/a.py", "ops/c.yaml", "ops/deep/b.py"]
    assert workspace.under(".", ".py") == ["e.py", "ops/a.py", "ops/deep/b.py", "ops_extra/d.py"]
    assert workspace.folders == {".", "ops", "ops/deep", "ops_extra"}


# git in a hostile repository


def _trap(tmp_path: Path) -> tuple[Path, str]:
    """A file that only a trap writes, and the trap's command."""
    sprung = tmp_path / "sprung"
    script = tmp_path / "trap.sh"
    script.write_text(f'#!/bin/sh\necho "$@" >> "{sprung}"\n')
    script.chmod(0o755)
    return sprung, str(script)


@pytest.mark.skipif(sys.platform == "win32", reason="the traps are shell scripts")
def test_listing_runs_no_command_of_the_repositorys_configuration(tmp_path: Path) -> None:
    sprung, script = _trap(tmp_path)
    root = tmp_path / "repo"
    write(root, {".gitattributes": "* filter=trap diff=trap\n", "a.yaml": "1"})
    git(root, "init")
    git(root, "add", ".")
    for key in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.askPass", "core.editor", "core.gitProxy",
        "filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "diff.trap.command", "diff.external",
        "diff.trap.textconv", "pager.ls-files", "credential.helper", "core.alternateRefsCommand",
    ):  # fmt: skip
        git(root, "config", key, script)
    git(root, "config", "alias.ls-files", "!" + script)
    git(root, "config", "core.untrackedCache", "true")
    for hook in ("post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction"):
        (root / ".git/hooks" / hook).write_text(Path(script).read_text())
        (root / ".git/hooks" / hook).chmod(0o755)
    (root / "a.yaml").write_text("2")

    subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True)
    assert sprung.exists(), "the trap works: plain git falls into it"
    sprung.unlink()

    assert files(root) == [".gitattributes", "a.yaml"]
    assert not sprung.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the traps are shell scripts")
def test_listing_a_partial_clone_fetches_nothing(tmp_path: Path) -> None:
    """A sparse index makes `git ls-files` read a tree; a partial clone fetches it, by a command that its config names."""
    sprung, script = _trap(tmp_path)
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    write(origin, {"a/1.yaml": "a", "b/2.yaml": "b"})
    git(origin, "init")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(origin, "add", ".")
    git(origin, "commit", "-m", "first")
    git(tmp_path, "clone", "--filter=tree:0", "--no-checkout", origin.as_uri(), str(clone))
    git(clone, "sparse-checkout", "init", "--cone")
    git(clone, "sparse-checkout", "set", "a")
    git(clone, "checkout")
    git(clone, "sparse-checkout", "reapply", "--sparse-index")
    tree = next(
        (line.split()[1] for line in git(clone, "ls-files", "-s", "--sparse").splitlines() if line[0] == "0"), ""
    )
    if not tree:
        pytest.skip("this git makes no sparse index")
    packs = [pack.rename(tmp_path / pack.name) for pack in (clone / ".git/objects/pack").glob("*.pack")]
    for pack in packs:
        with pack.open("rb") as stream:
            subprocess.run(["git", "-C", clone, "unpack-objects", "-q"], stdin=stream, check=True)
    (clone / ".git/objects" / tree[:2] / tree[2:]).unlink(missing_ok=True)
    git(clone, "config", "remote.origin.uploadpack", script)

    assert "a/1.yaml" in files(clone)
    assert not sprung.exists()

    subprocess.run(["git", "-C", clone, "ls-files"], check=False, capture_output=True)
    assert sprung.exists(), "the trap works: plain git falls into it"


def test_a_hooks_environment_does_not_turn_listing_to_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hook", "linted"):
        write(tmp_path / name, [f"{name}.yaml"])
        git(tmp_path / name, "init")
        git(tmp_path / name, "add", ".")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "hook/.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "hook/.git/index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "hook"))
    assert files(tmp_path / "linted") == ["linted.yaml"]


def test_without_the_git_command_files_are_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {".gitignore": "*.tmp\n", "a.yaml": "", "a.tmp": ""})
    git(tmp_path, "init")
    monkeypatch.setenv("PATH", "")
    assert files(tmp_path) == [".gitignore", "a.yaml"]


# Submodules

PIN, OTHER = "1a2b3c4d" * 5, "5e6f7a8b" * 5


def pin(repository: Path, path: str, commit: str = PIN) -> None:
    """Make git's index hold a submodule that is not checked out."""
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")


def test_a_submodule_that_is_not_checked_out_is_pinned(tmp_path: Path) -> None:
    write(tmp_path, ["a.yaml", "folder/b.yaml"])
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    pin(tmp_path, "deps/[x] y*")
    workspace = Workspace(tmp_path)
    asked = [
        "deps/[x] y*",
        "deps",
        "deps/[x] y*/inner",
        "deps/*",
        "folder",
        "a.yaml",
        "none",
        "",
        ".",
        "..",
        "a\0b",
        "\ud800",
    ]
    assert {path: workspace.submodule_pin(path) for path in asked} == {**dict.fromkeys(asked), "deps/[x] y*": PIN}
    assert workspace.pins == {**dict.fromkeys(asked), "deps/[x] y*": PIN}


def test_the_index_tells_the_pin_and_not_what_is_checked_out_or_committed(tmp_path: Path) -> None:
    git(tmp_path, "init")
    pin(tmp_path, "inner")
    git(tmp_path, "commit", "-m", "first")
    git(tmp_path, "init", "inner")
    git(tmp_path / "inner", "commit", "--allow-empty", "-m", "another one")
    assert Workspace(tmp_path).submodule_pin("inner") == PIN
    pin(tmp_path, "inner", OTHER)
    assert Workspace(tmp_path).submodule_pin("inner") == OTHER


def test_of_a_submodule_that_two_branches_moved_no_pin_is_known(tmp_path: Path) -> None:
    git(tmp_path, "init")
    sides = "".join(f"160000 {commit} {side}\tinner\n" for side, commit in ((1, PIN), (2, OTHER), (3, PIN)))
    command = ["git", "-C", tmp_path, "update-index", "--index-info"]
    subprocess.run(command, input=sides.encode(), check=True)
    assert Workspace(tmp_path).submodule_pin("inner") is None


def test_without_git_there_are_no_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {".gitmodules": '[submodule "inner"]\npath = inner\nurl = x\n'})
    assert Workspace(tmp_path).submodule_pin("inner") is None
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert Workspace(tmp_path).submodule_pin("inner") is None
    (tmp_path / ".git").unlink()
    git(tmp_path, "init")
    pin(tmp_path, "inner")
    assert Workspace(tmp_path).submodule_pin("inner") == PIN
    monkeypatch.setenv("PATH", "")
    assert Workspace(tmp_path).submodule_pin("inner") is None


def test_an_archive_unpacked_in_a_repository_has_not_the_pins_of_that(tmp_path: Path) -> None:
    git(tmp_path, "init")
    pin(tmp_path, "inner")
    write(tmp_path / "unpacked", ["pyproject.toml"])
    assert Workspace(tmp_path / "unpacked").submodule_pin("inner") is None


def test_below_the_git_root_and_in_worktrees_pins_are_those_of_their_index(tmp_path: Path) -> None:
    write(tmp_path / "main", ["kit/a.yaml"])
    git(tmp_path / "main", "init")
    git(tmp_path / "main", "add", ".")
    pin(tmp_path / "main", "kit/inner")
    git(tmp_path / "main", "commit", "-m", "first")
    git(tmp_path / "main", "worktree", "add", "nested/tree")
    pin(tmp_path / "main/nested/tree", "kit/inner", OTHER)
    assert Workspace(tmp_path / "main/kit").submodule_pin("inner") == PIN
    assert Workspace(tmp_path / "main/nested/tree").submodule_pin("kit/inner") == OTHER
    assert Workspace(tmp_path / "main/nested/tree/kit").submodule_pin("inner") == OTHER


def test_a_submodule_pins_its_own_submodules(tmp_path: Path) -> None:
    git(tmp_path, "init", "outer")
    root = tmp_path / "outer"
    git(root, "init", "deps/library")
    pin(root, "deps/library")
    pin(root / "deps/library", "deps/inner", OTHER)
    workspace = Workspace(root)
    assert workspace.submodule_pin("deps/library") == PIN
    assert workspace.submodule_pin("deps/library/deps/inner") == OTHER
    git(tmp_path, "init", "elsewhere")
    pin(tmp_path / "elsewhere", "inner")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    assert workspace.submodule_pin("link/inner") is None


@pytest.mark.skipif(sys.platform == "win32", reason="the traps are shell scripts")
def test_asking_for_a_pin_runs_no_command_of_the_repositories(tmp_path: Path) -> None:
    sprung, script = _trap(tmp_path)
    root = tmp_path / "repo"
    git(tmp_path, "init", "repo")
    git(root, "init", "library")
    pin(root, "library")
    pin(root / "library", "inner", OTHER)
    for repository in (root, root / "library"):
        write(repository, {".gitattributes": "* filter=trap\n"})
        for key in ("core.fsmonitor", "core.pager", "filter.trap.clean", "filter.trap.process", "pager.ls-files"):
            git(repository, "config", key, script)
        git(repository, "config", "alias.ls-files", "!" + script)
        (repository / ".git/hooks/post-index-change").write_text(Path(script).read_text())
        (repository / ".git/hooks/post-index-change").chmod(0o755)
    for repository in (root, root / "library"):
        subprocess.run(["git", "-C", repository, "ls-files"], check=True, capture_output=True)
    assert sprung.exists(), "the trap works: plain git falls into it"
    sprung.unlink()

    workspace = Workspace(root)
    assert [workspace.submodule_pin(path) for path in ("library", "library/inner")] == [PIN, OTHER]
    assert not sprung.exists()


# Reading


def reason(workspace: Workspace, path: str) -> str:
    with pytest.raises(ReadError) as caught:
        workspace.source(path)
    assert caught.value.path == path
    return caught.value.reason


def test_what_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, ["a.yaml"])
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.yaml").write_bytes(b"a: \0\1")
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9\n")
    (tmp_path / "cookie.py").write_bytes(b"# -*- coding: klingon -*-\n")
    (tmp_path / "big.yaml").write_bytes(b"#" * 2000)
    workspace = Workspace(tmp_path)
    assert reason(workspace, "missing.yaml") == "it does not exist"
    assert reason(workspace, "folder") == "it is not a regular file"
    assert reason(workspace, "binary.yaml") == "it holds NUL bytes, the first on line 1, so it is binary"
    assert reason(workspace, "latin.yaml") == "byte 0xe9 on line 1 is not utf-8"
    assert reason(workspace, "cookie.py") == (
        "line 1 declares the encoding 'klingon', which opschema does not read; save it as UTF-8"
    )
    assert reason(workspace, "a\0b.yaml") == "it leads out of the workspace"
    monkeypatch.setattr("opschema_cli.workspace.MAX_FILE_BYTES", 1000)
    assert reason(workspace, "big.yaml") == "it has 2,000 bytes; opschema reads up to 1,000"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    workspace = Workspace(tmp_path)
    assert workspace.files == ()
    assert reason(workspace, "pipe.yaml") == "it is not a regular file"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights here")
def test_links_are_followed_inside_the_root_only(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path, {"secret.yaml": "key", "root/a.yaml": "inside"})
    (root / "inner.yaml").symlink_to("a.yaml")
    (root / "outer.yaml").symlink_to("../secret.yaml")
    (root / "absolute.yaml").symlink_to(tmp_path / "secret.yaml")
    (root / "folder").symlink_to("..")
    (root / "loop.yaml").symlink_to("loop.yaml")
    workspace = Workspace(root)
    assert workspace.source("inner.yaml").text == "inside"
    for path in ("outer.yaml", "absolute.yaml", "folder/secret.yaml", "../secret.yaml", str(tmp_path / "secret.yaml")):
        assert reason(workspace, path) == "it leads out of the workspace"
        assert not workspace.is_file(path) or path in workspace.files
    assert "folder/secret.yaml" not in workspace.files
    assert "loop.yaml" not in workspace.files
    assert not workspace.is_file("loop.yaml")
    with pytest.raises(OpschemaError, match="leads out"):
        workspace.locate("outer.yaml")


def test_is_file_answers_for_ignored_files_too_and_for_any_text(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "gen/\n", "gen/made.py": ""})
    workspace = Workspace(tmp_path)
    assert "gen/made.py" not in workspace.files
    assert workspace.is_file("gen/made.py")
    for text in ("", ".", "gen", "no", "a\0b", "x" * 5000, "x/" * 3000, "\ud800"):
        assert not workspace.is_file(text)


def test_the_bytes_of_a_name_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "one"})
    workspace = Workspace(tmp_path)
    first = workspace.data("a.yaml")
    write(tmp_path, {"a.yaml": "two"})
    assert workspace.data("a.yaml") == first == b"one"
    assert list(workspace.reads) == ["a.yaml"]


def test_what_was_asked_for_is_on_record_whether_it_was_there_or_not(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "one"})
    workspace = Workspace(tmp_path)
    workspace.data("a.yaml")
    reason(workspace, "b.yaml")
    workspace.is_file("c.yaml")
    assert workspace.reads["b.yaml"] == ""
    assert len(workspace.reads["a.yaml"]) == 32
    assert workspace.probes == {"c.yaml": False}


# Overlay


def test_an_overlay_replaces_and_adds_texts_and_leaves_the_disk_alone(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "disk", "b.yaml": "disk"})
    plain = Workspace(tmp_path)
    drafted = plain.with_overlay({"a.yaml": "draft", "new/c.yaml": "draft"})
    assert drafted.files == ("a.yaml", "b.yaml", "new/c.yaml")
    assert [drafted.source(path).text for path in drafted.files] == ["draft", "disk", "draft"]
    assert drafted.is_file("new/c.yaml")
    assert plain.source("a.yaml").text == (tmp_path / "a.yaml").read_text() == "disk"
    again = drafted.with_overlay({"b.yaml": "second"})
    assert [again.source(path).text for path in again.files] == ["draft", "second", "draft"]


def test_an_overlay_removes_files_for_every_reader(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "a", "sub/b.yaml": "b"})
    drafted = Workspace(tmp_path).with_overlay({"sub/b.yaml": None, "new.yaml": "n"})
    assert drafted.files == ("a.yaml", "new.yaml")
    assert not drafted.is_file("sub/b.yaml")
    assert drafted.folders == {"."}
    with pytest.raises(ReadError, match="it does not exist"):
        drafted.source("sub/b.yaml")
    assert drafted.with_overlay({"sub/b.yaml": "again"}).source("sub/b.yaml").text == "again"
    assert (tmp_path / "sub/b.yaml").read_text() == "b"


# The root


def test_the_root_is_the_nearest_folder_with_configuration_or_git(tmp_path: Path) -> None:
    write(
        tmp_path, {"pyproject.toml": "[project]\n", "repo/.git/HEAD": "", "repo/kit/pyproject.toml": "[tool.other]\n"}
    )
    write(tmp_path, {"repo/kit/ops/a.py": "", "repo/own/opschema.toml": "", "repo/own/deep/a.py": ""})
    write(tmp_path, {"repo/tool/pyproject.toml": "[tool.opschema.severity]\nx = 'info'\n", "repo/tool/a.py": ""})
    write(tmp_path, {"repo/alike/pyproject.toml": "[tool.opschema-extra]\n", "plain/a.py": ""})
    assert find_root(tmp_path / "repo/kit/ops/a.py") == tmp_path / "repo"
    assert find_root(tmp_path / "repo/own/deep") == tmp_path / "repo/own"
    assert find_root(tmp_path / "repo/tool/a.py") == tmp_path / "repo/tool"
    assert find_root(tmp_path / "repo/alike") == tmp_path / "repo"
    assert find_root(tmp_path / "plain") == tmp_path


def test_with_nothing_at_all_the_root_is_the_folder_itself(tmp_path: Path) -> None:
    write(tmp_path, ["deep/a.yaml"])
    assert find_root(tmp_path / "deep/a.yaml") == tmp_path / "deep"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pyproject_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    assert find_root(tmp_path) == tmp_path


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    write(tmp_path, ["a.yaml"])
    (tmp_path / "a.yaml").chmod(stat.S_IWUSR)
    assert reason(Workspace(tmp_path), "a.yaml") == "Permission denied"


@pytest.mark.parametrize(
    ("folder", "relative", "joined"),
    [(".", "a/b", "a/b"), ("a/b", "../c", "a/c"), ("a", "../../x", "../x"), ("a", "./.", "a"), ("a", "..", ".")],
)
def test_join(folder: str, relative: str, joined: str) -> None:
    assert join(folder, relative) == joined


def test_a_file_outside_the_root_is_read_only_once_it_is_admitted(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    outside = tmp_path / "outside.yaml"
    outside.write_text("text")
    workspace = Workspace(tmp_path / "root")
    assert not workspace.is_file(outside.as_posix())
    name = workspace.admit(outside)
    assert (name, workspace.data(name)) == (outside.as_posix(), b"text")
    assert name not in workspace.files
    assert workspace.with_overlay({"a": "b"}).data(name) == b"text"
    with pytest.raises(ReadError):
        workspace.data(f"{tmp_path.as_posix()}/./other.yaml")


def test_a_file_that_comes_in_pieces_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n" * 100)
    read = os.read
    monkeypatch.setattr("opschema_cli.regular_files.os.read", lambda descriptor, size: read(descriptor, min(size, 7)))
    assert Workspace(tmp_path).data("a.py") == b"x = 1\n" * 100


# Bytes that are not kept


def test_released_bytes_are_read_again(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"})
    workspace = Workspace(tmp_path, {"b.yaml": "b: 2\n"})
    before = {path: workspace.peek(path) for path in ("a.yaml", "b.yaml", "missing.yaml")}
    asked = workspace.asked
    workspace.release()
    assert {path: workspace.peek(path) for path in before} == before
    assert workspace.asked == asked
    assert [error.path for error in workspace.unread] == []
    with pytest.raises(ReadError):
        workspace.data("missing.yaml")


def test_a_file_that_changed_after_its_bytes_were_released_is_noted(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"})
    workspace = Workspace(tmp_path)
    workspace.release()
    digest = workspace.digest("a.yaml")
    workspace.peek("b.yaml")
    write(tmp_path, {"a.yaml": "a: 22\n", "b.yaml": "b: 1\n"})
    assert (workspace.peek("a.yaml"), workspace.peek("b.yaml")) == (b"a: 22\n", b"b: 1\n")
    assert workspace.digest("a.yaml") != digest, "what is read of it now is cached under its new content"
    assert workspace.reads["a.yaml"] == "", "a run that read both is not replayed"
    assert workspace.reads["b.yaml"]


# What is as it was


TICK = 0.05
"""Seconds after which the clock of a file system has gone on."""


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file written a tick ago is old enough for another change to be detected."""
    monkeypatch.setattr("opschema_cli.workspace.SETTLED", 0)


def asked_of(root: Path, *paths: str) -> Asked:
    time.sleep(TICK)
    workspace = Workspace(root)
    for path in paths:
        workspace.peek(path)
    return workspace.asked


posix = pytest.mark.skipif(os.name != "posix", reason="the time of a change can be set back here")


@posix
@pytest.mark.usefixtures("settled")
def test_a_file_whose_state_is_as_it_was_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"})
    (tmp_path / "link.yaml").symlink_to("b.yaml")
    asked = asked_of(tmp_path, "a.yaml", "link.yaml", "missing.yaml")
    assert asked.states.keys() == {"a.yaml", "link.yaml"}
    read: list[object] = []
    monkeypatch.setattr(Workspace, "_read", lambda self, path: read.append(path) or pytest.fail(path))
    again = Workspace(tmp_path)
    assert again.ask_again(msgspec.structs.replace(asked, reads={"a.yaml": asked.reads["a.yaml"]})) == []
    assert again.asked.reads == {"a.yaml": asked.reads["a.yaml"]}
    assert again.asked.states == {"a.yaml": asked.states["a.yaml"]}, "the next run knows it, too"
    assert not read


@posix
@pytest.mark.usefixtures("settled")
def test_a_file_whose_state_is_another_one_is_read(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(("same.yaml", "edited.yaml", "touched.yaml", "replaced.yaml", "gone.yaml"), "a: 1\n"))
    (tmp_path / "link.yaml").symlink_to("same.yaml")
    paths = sorted([path.name for path in tmp_path.iterdir()])
    asked = asked_of(tmp_path, *paths)
    before = (tmp_path / "edited.yaml").stat()
    (tmp_path / "edited.yaml").write_text("a: 2\n")
    os.utime(tmp_path / "edited.yaml", ns=(before.st_atime_ns, before.st_mtime_ns))
    (tmp_path / "touched.yaml").touch()
    write(tmp_path, {"new": "a: 3\n"})
    (tmp_path / "new").rename(tmp_path / "replaced.yaml")
    (tmp_path / "gone.yaml").unlink()
    (tmp_path / "link.yaml").unlink()
    (tmp_path / "link.yaml").symlink_to("edited.yaml")
    changed = Workspace(tmp_path).ask_again(asked)
    assert changed is not None
    assert sorted(changed) == ["edited.yaml", "gone.yaml", "link.yaml", "replaced.yaml"]


def test_a_file_that_was_just_written_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "a: 1\n"})
    assert asked_of(tmp_path, "a.yaml").states == {}, "a change in the same tick of the clock would not show"


@posix
@pytest.mark.usefixtures("settled")
def test_a_file_that_changes_after_it_was_taken_for_what_it_was_counts_as_changed(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "a: 1\n"})
    asked = asked_of(tmp_path, "a.yaml")
    workspace = Workspace(tmp_path)
    assert workspace.ask_again(asked) == []
    write(tmp_path, {"a.yaml": "a: 2\n"})
    assert workspace.source("a.yaml").text == "a: 2\n"
    assert workspace.source("a.yaml").digest == workspace.digest("a.yaml") != asked.reads["a.yaml"]
    assert workspace.asked.reads == {"a.yaml": ""}
    assert Workspace(tmp_path).ask_again(workspace.asked) == ["a.yaml"], "the next run begins anew"


@posix
@pytest.mark.usefixtures("settled")
def test_an_overlay_counts_whatever_the_file_below_it_is(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"})
    asked = asked_of(tmp_path, "a.yaml", "b.yaml")
    assert Workspace(tmp_path, {"a.yaml": "a: 2\n"}).ask_again(asked) == ["a.yaml"]
    believing = Workspace(tmp_path)
    assert believing.ask_again(asked) == []
    drafted = believing.with_overlay({"a.yaml": "a: 2\n"})
    assert drafted.source("a.yaml").text == "a: 2\n"
    assert drafted.digest("a.yaml") != asked.reads["a.yaml"]
    assert drafted.digest("b.yaml") == asked.reads["b.yaml"]
    assert drafted.asked.reads.keys() == {"b.yaml"}


def test_a_file_that_changes_while_it_is_read_has_the_digest_of_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"before")
    first = Workspace(tmp_path)
    first.data("a.txt")
    first._opened += 10**10  # as if it had been there for long
    asked = first.asked
    assert asked.states
    second = Workspace(tmp_path)
    assert second.ask_again(asked) == []
    read = os.read

    def late(descriptor: int, size: int) -> bytes:
        file.write_bytes(b"after!")
        monkeypatch.setattr(os, "read", read)
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", late)
    assert second.data("a.txt") == b"after!"
    assert second.digest("a.txt") == Workspace(tmp_path).digest("a.txt") != asked.reads["a.txt"]
    assert second.reads == {"a.txt": ""}, "what was told by the other digest is not kept"
