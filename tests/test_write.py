"""Writing many files as one step: bytes, modes and links are kept, and what goes wrong changes nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.workspace import Workspace
from opschema_cli.write import write_all


def snapshot(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_texts_replace_the_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.yaml").write_text("old\n")
    (tmp_path / "sub/b.py").write_text("old\n")
    workspace = Workspace(tmp_path)
    write_all(workspace, {"a.yaml": "new\n", "sub/b.py": "new too\n"})
    assert snapshot(tmp_path) == {"a.yaml": b"new\n", "sub/b.py": b"new too\n"}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("crlf.yaml", b"a: 1\r\nb: 1\r\n", b"a: 2\r\nb: 2\r\n"),
        ("cr.yaml", b"a: 1\rb: 1\r", b"a: 2\rb: 2\r"),
        ("mixed.yaml", b"a: 1\r\nb: 1\n\r", b"a: 2\r\nb: 2\n\r"),
        ("bom.yaml", b"\xef\xbb\xbfa: 1\n", b"\xef\xbb\xbfa: 2\n"),
        (
            "latin.py",
            b"# coding: latin-1\nx = 'caf\xe9 1'\n",
            b"# coding: latin-1\nx = 'caf\xe9 2'\n".replace(b"-2", b"-1"),
        ),
        ("wide.yaml", "a: 1 é\n".encode("utf-16"), "a: 2 é\n".encode("utf-16")),
        ("no-newline.yaml", b"a: 1", b"a: 2"),
    ],
)
def test_encoding_and_line_ends_are_kept(tmp_path: Path, name: str, before: bytes, after: bytes) -> None:
    (tmp_path / name).write_bytes(before)
    workspace = Workspace(tmp_path)
    text = workspace.source(name).text.replace(" 1", " 2").replace("latin-2", "latin-1")
    write_all(workspace, {name: text})
    assert (tmp_path / name).read_bytes() == after


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little here")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_modes_are_kept(tmp_path: Path, mode: int) -> None:
    (tmp_path / "a.yaml").write_text("old")
    (tmp_path / "a.yaml").chmod(mode)
    write_all(Workspace(tmp_path), {"a.yaml": "new"})
    assert (tmp_path / "a.yaml").read_text() == "new"
    assert (tmp_path / "a.yaml").stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root may give files away")
def test_owners_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("old")
    os.chown(tmp_path / "a.yaml", 1234, 2345)
    write_all(Workspace(tmp_path), {"a.yaml": "new"})
    status = (tmp_path / "a.yaml").stat()
    assert (status.st_uid, status.st_gid) == (1234, 2345)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights here")
def test_a_link_inside_the_root_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("old")
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    write_all(Workspace(tmp_path), {"link.yaml": "new"})
    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "a.yaml").read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights here")
def test_a_link_turned_out_of_the_root_since_it_was_read_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "theirs.yaml").write_text("old")
    (root / "a.yaml").write_text("old")
    workspace = Workspace(root)
    workspace.source("a.yaml")
    (root / "a.yaml").unlink()
    (root / "a.yaml").symlink_to("../theirs.yaml")
    with pytest.raises(OpschemaError, match=r"a\.yaml leads out of the workspace"):
        write_all(workspace, {"a.yaml": "new"})
    assert (tmp_path / "theirs.yaml").read_text() == "old"


def refused(tmp_path: Path, workspace: Workspace, message: str, texts: dict[str, str]) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(OpschemaError, match=message):
        write_all(workspace, texts)
    assert snapshot(tmp_path) == before, "nothing was written, and nothing was left lying about"


def test_a_file_changed_on_disk_since_it_was_read_aborts_everything(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml", "c.yaml"):
        (tmp_path / name).write_text("old")
    workspace = Workspace(tmp_path)
    for name in workspace.files:
        workspace.source(name)
    (tmp_path / "b.yaml").write_text("edited meanwhile")
    texts = dict.fromkeys(workspace.files, "new")
    refused(tmp_path, workspace, r"nothing was written: b\.yaml changed on disk since it was read", texts)


def test_a_file_gone_since_it_was_read_aborts_everything(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("old")
    workspace = Workspace(tmp_path)
    workspace.source("a.yaml"), workspace.source("b.yaml")
    (tmp_path / "b.yaml").unlink()
    refused(tmp_path, workspace, "nothing was written: .*b.yaml", {"a.yaml": "new", "b.yaml": "new"})


def test_text_that_the_files_encoding_lacks_aborts_everything(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("old")
    (tmp_path / "b.py").write_bytes(b"# coding: latin-1\n")
    workspace = Workspace(tmp_path)
    message = "nothing was written: b.py is latin-1, which has no '→'"
    refused(tmp_path, workspace, message, {"a.yaml": "new", "b.py": "# coding: latin-1\n# →\n"})


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failure_on_the_way_is_told_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (tmp_path / "a.yaml").write_text("old")
    workspace = Workspace(tmp_path)
    workspace.source("a.yaml")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"opschema_cli.write.os.{step}", full)
    refused(tmp_path, workspace, "nothing was written: .*No space left on device", {"a.yaml": "new"})


def test_writing_nothing_is_fine(tmp_path: Path) -> None:
    write_all(Workspace(tmp_path), {})
