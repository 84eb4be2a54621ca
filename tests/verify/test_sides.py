"""Trees to compare: folders, revisions, drafts."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.results import Version
from opschema_cli.verify.sides import draft_of, tree_of, version_of
from opschema_cli.workspace import Workspace
from tests.test_git import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "ops"
    (root / "sub").mkdir(parents=True)
    git(tmp_path, "init", "-q", str(root))
    (root / "op.py").write_text("before\n")
    (root / "sub/other.py").write_text("other\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "op.py").write_text("after\n")
    git(root, "commit", "-qam", "second")
    return root


def content(tree: Path) -> dict[str, str]:
    return {path.relative_to(tree).as_posix(): path.read_text() for path in tree.rglob("*") if path.is_file()}


def test_submodules_are_exported_at_their_pins(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    git(tmp_path, "init", "-q", str(library))
    for text in ("pinned\n", "later\n"):
        (library / "lib.py").write_text(text)
        git(library, "add", ".")
        git(library, "commit", "-qm", "change")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(library), "sub/lib")
    git(repository / "sub/lib", "checkout", "-q", "HEAD~1")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "pin it")
    git(repository / "sub/lib", "checkout", "-q", "-")
    with tree_of(repository, "HEAD") as (tree, _):
        assert content(tree)["sub/lib/lib.py"] == "pinned\n"
    with tree_of(repository / "sub", "HEAD") as (tree, _):
        assert content(tree) == {"other.py": "other\n", "lib/lib.py": "pinned\n"}
    shutil.rmtree(repository / "sub/lib")
    with tree_of(repository, "HEAD") as (tree, _):
        assert not (tree / "sub/lib/lib.py").exists()


def test_a_folder_is_taken_as_it_is(repository: Path, tmp_path: Path) -> None:
    with tree_of(repository, str(tmp_path / "ops/sub")) as (tree, _):
        assert tree == tmp_path / "ops/sub"
    assert tree.is_dir()


def test_a_revision_is_exported_and_taken_away(repository: Path) -> None:
    with tree_of(repository, "HEAD~1") as (tree, _):
        assert content(tree) == {"op.py": "before\n", "sub/other.py": "other\n"}
    assert not tree.exists()
    assert (repository / "op.py").read_text() == "after\n"


def test_a_workspace_below_the_top_is_exported_alone(repository: Path) -> None:
    with tree_of(repository / "sub", "HEAD") as (tree, _):
        assert content(tree) == {"other.py": "other\n"}


@pytest.mark.parametrize("what", ["nowhere", "--output=x", "HEAD:op.py", ""])
def test_what_is_neither_is_refused(repository: Path, what: str) -> None:
    said = f"is neither a folder nor a revision that git can export: `{what}` is not a commit in "
    with pytest.raises(OpschemaError, match=re.escape(said)), tree_of(repository, what):
        pass


def test_a_shallow_clone_lacks_revisions(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), "shallow")
    with pytest.raises(OpschemaError, match="this clone is shallow"), tree_of(tmp_path / "shallow", "HEAD~1"):
        pass


def test_outside_of_git_there_are_only_folders(tmp_path: Path) -> None:
    with pytest.raises(OpschemaError, match="is in no git repository"), tree_of(tmp_path, "HEAD"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_links_out_of_the_tree_are_left_out(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (repository / "absolute").symlink_to(tmp_path / "secret")
    (repository / "relative").symlink_to("../secret")
    (repository / "sound").symlink_to("sub/other.py")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "links")
    with tree_of(repository, "HEAD") as (tree, _):
        assert sorted(content(tree)) == ["op.py", "sound", "sub/other.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="the trap is a shell command")
def test_nothing_that_the_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitattributes").write_text("* filter=trap\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "attributes")
    git(repository, "config", "filter.trap.smudge", f"touch {tmp_path}/trapped; cat")
    git(repository, "config", "filter.trap.required", "true")
    with tree_of(repository, "HEAD") as (tree, _):
        assert content(tree)["op.py"] == "after\n"
    assert not (tmp_path / "trapped").exists()


def test_a_draft_is_a_copy_with_its_texts(repository: Path) -> None:
    (repository / ".gitignore").write_text("*.so\n")
    (repository / "built.so").write_text("native")
    draft = Workspace(repository, {"op.py": "draft\n", "new/op.py": "# coding: latin-1\né\n", "sub/other.py": None})
    with draft_of(draft) as tree:
        assert (tree / "op.py").read_text() == "draft\n"
        assert (tree / "new/op.py").read_bytes() == b"# coding: latin-1\n\xe9\n"
        assert (tree / "built.so").exists()
        assert not (tree / "sub/other.py").exists()
        assert not (tree / ".git").exists()
    assert not tree.exists()
    assert (repository / "op.py").read_text() == "after\n"


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_draft_never_writes_through_a_link_out_of_it(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (repository / "out").symlink_to(tmp_path / "outside")
    draft = Workspace(repository, {"out/op.py": "draft\n"})
    with pytest.raises(OpschemaError, match="leads out"), draft_of(draft):
        pass
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_draft_of_a_linked_file_leaves_the_original(repository: Path) -> None:
    (repository / "linked.py").symlink_to(repository / "sub/other.py")
    with draft_of(Workspace(repository, {"linked.py": "draft\n"})) as tree:
        assert (tree / "linked.py").read_text() == "draft\n"
    assert (repository / "sub/other.py").read_text() == "other\n"


# What identifies a tree


def head(root: Path, revision: str = "HEAD") -> str:
    done = subprocess.run(["git", "-C", str(root), "rev-parse", revision], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def export(repository: Path, folder: Path) -> Path:
    """A copy without git."""
    return Path(shutil.copytree(repository, folder, ignore=shutil.ignore_patterns(".git")))


def test_a_revision_is_its_commit_however_it_is_called(repository: Path) -> None:
    commit = head(repository, "HEAD~1")
    for name in ("HEAD~1", commit, commit[:10]):
        with tree_of(repository, name) as (_, version):
            assert (version.name, version.commit, version.content) == (name, commit, "")


def test_a_work_tree_is_its_commit_while_it_has_that_files(repository: Path) -> None:
    assert version_of(repository, ".") == Version(name=".", commit=head(repository))
    assert version_of(repository / "sub", ".").commit == head(repository)
    (repository / ".gitignore").write_text("*.so\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "third")
    for path in ("built.so", "shard-1.jsonl", "slurm-7.out", "sub/__pycache__/other.pyc"):
        (repository / path).parent.mkdir(exist_ok=True)
        (repository / path).write_text("1")
    assert version_of(repository, ".").commit == head(repository)


@pytest.mark.parametrize("change", ["op.py", "new.py", "sub/new.cu"])
def test_a_work_tree_with_changes_is_its_content(repository: Path, tmp_path: Path, change: str) -> None:
    (repository / change).write_text("changed\n")
    one = version_of(repository, ".")
    assert one.commit == ""
    assert one.content == version_of(export(repository, tmp_path / "copy"), "copy").content
    (repository / change).write_text("otherwise\n")
    assert version_of(repository, ".").key != one.key
    (repository / change).write_text("changed\n")
    (repository / "shard-1.jsonl").write_text("1")
    assert version_of(repository, ".") == one


def test_a_folder_that_git_ignores_is_not_the_commit_around_it(repository: Path) -> None:
    (repository / ".gitignore").write_text("old/\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "third")
    for name in ("one", "two"):
        (repository / "old" / name).mkdir(parents=True)
        (repository / "old" / name / "op.py").write_text(name)
    one, two = version_of(repository / "old/one", "1"), version_of(repository / "old/two", "2")
    assert one.commit == two.commit == ""
    assert one.content != two.content


def test_a_work_tree_whose_repository_is_gone_is_its_content(repository: Path, tmp_path: Path) -> None:
    copy = export(repository, tmp_path / "copy")
    content = version_of(copy, ".").content
    (copy / ".git").write_text("gitdir: nowhere\n")
    assert version_of(copy, ".").content == content != ""


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_links_out_of_a_folder_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to(tmp_path / "secret")
    one = version_of(tmp_path / "tree", ".")
    (tmp_path / "secret").write_text("other")
    assert version_of(tmp_path / "tree", ".") == one
