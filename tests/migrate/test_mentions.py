"""Names that are still mentioned."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.migrate.mentions import mentions, occurrences, texts_with
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace


@pytest.mark.parametrize(
    ("text", "starts"),
    [("x", [0]), ("x_shape xs _x x1", []), ("x.x(x)", [0, 2, 4]), ("ä xä x", [5]), ("", [])],
)
def test_a_name_is_a_word_of_its_own(text: str, starts: list[int]) -> None:
    assert [span.start for span in occurrences(text, "x")] == starts


@pytest.mark.parametrize("name", ["OldOp", "ÖldOp"])
def test_files_are_looked_into_in_their_own_encoding(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text(f"{name} and {name}Twin\n", encoding="utf-16")
    (tmp_path / "b.py").write_bytes(f"# -*- coding: latin-1 -*-\n# {name}\n".encode("latin-1"))
    (tmp_path / "c.bin").write_bytes(f"{name}\0\xff".encode("latin-1"))
    (tmp_path / "d.txt").write_text("nothing\n")
    project = Project(Workspace(tmp_path))
    found = [(item.place.path, item.place.span.start) for item in mentions(project, [name])]
    assert found == [("a.txt", 0), ("b.py", 28)]


def test_of_names_that_begin_alike_the_whole_one_is_meant(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old-op\n")
    project = Project(Workspace(tmp_path))
    assert [item.name for item in mentions(project, ["old", "old-op"])] == ["old-op"]
    assert list(mentions(project, [])) == []
    assert [source.path for source in texts_with(project, ["ld-o"])] == ["a.txt"]
