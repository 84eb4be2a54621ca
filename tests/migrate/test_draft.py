"""The draft: an overlay in which edits, new files, removals and moves are one step, and everything still parses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.loaded import Loaded
from opschema_cli.migrate.draft import Change, Draft, DraftError
from opschema_cli.migrate.mentions import mentions
from opschema_cli.project import Project
from opschema_cli.source.python_workers import Parsers
from opschema_cli.source.text import Edit, EditConflictError, Span, apply_edits
from opschema_cli.workspace import Workspace

FILES = {"a.py": "x = 1\n", "b.yaml": "a: 1\n", "sub/c.txt": "text\n"}


def draft_of(root: Path, files: dict[str, str]) -> Draft:
    return Draft(Project(Workspace(root, files)), lambda project: Loaded(files=list(project.workspace.files)))


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return Draft(Project(Workspace(tmp_path)), lambda project: Loaded(files=list(project.workspace.files)))


def replace(start: int, end: int, text: str) -> list[Edit]:
    return [Edit(Span(start, end), text)]


def test_nothing_is_changed_before_it_settles(draft: Draft) -> None:
    draft.edit("a.py", replace(4, 5, "2"))
    draft.delete("b.yaml")
    assert (draft.text("a.py"), draft.changes, draft.loaded.files) == ("x = 1\n", [], list(FILES))
    draft.settle()
    assert draft.changes == [Change("a.py", "x = 1\n", "x = 2\n"), Change("b.yaml", "a: 1\n", None)]
    assert draft.loaded.files == ["a.py", "sub/c.txt"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\r\nb\r\n", "a\r\nx\r\ny\r\nb\r\n"),
        ("a\nb\r\n", "a\nx\ny\r\nb\r\n"),
        ("a\nb\n", "a\nx\ny\r\nb\n"),
    ],
)
def test_new_lines_end_as_those_of_the_file(tmp_path: Path, before: str, after: str) -> None:
    draft = draft_of(tmp_path, {"a.txt": before})
    at = before.index("b")
    draft.edit("a.txt", replace(at, at, "x\ny\r\n"))
    draft.settle()
    assert draft.text("a.txt") == after


def test_the_disk_is_not_touched(draft: Draft) -> None:
    draft.edit("a.py", replace(4, 5, "2"))
    draft.move("b.yaml", "new/b.yaml")
    draft.delete("sub/c.txt")
    draft.create("d.md", "")
    draft.settle()
    root = draft.project.workspace.root
    assert {path: (root / path).read_text() for path in FILES} == FILES
    assert not (root / "new").exists()


def test_steps_build_on_each_other(draft: Draft) -> None:
    draft.edit("a.py", replace(0, 1, "long_name"))
    draft.settle()
    draft.edit("a.py", replace(12, 13, "2"))
    draft.settle()
    assert draft.changes == [Change("a.py", "x = 1\n", "long_name = 2\n")]


def test_equal_edits_count_once(draft: Draft) -> None:
    draft.edit("a.py", replace(4, 5, "2"))
    draft.edit("a.py", replace(4, 5, "2"))
    draft.settle()
    assert draft.text("a.py") == "x = 2\n"


def test_what_ends_as_it_began_is_no_change(draft: Draft) -> None:
    draft.edit("a.py", replace(4, 5, "2"))
    draft.move("b.yaml", "c.yaml")
    draft.delete("sub/c.txt")
    draft.settle()
    draft.edit("a.py", replace(4, 5, "1"))
    draft.move("c.yaml", "b.yaml")
    draft.create("sub/c.txt", "text\n")
    draft.settle()
    assert draft.changes == []


def test_an_edit_of_a_file_that_moves_goes_with_it(draft: Draft) -> None:
    draft.move("a.py", "pkg/a.py")
    draft.edit("a.py", replace(4, 5, "2"))
    project = draft.settle()
    assert draft.changes == [Change("a.py", "x = 1\n", None), Change("pkg/a.py", None, "x = 2\n")]
    assert (draft.origins, draft.forward(Place("a.py", Span(4, 5)))) == (
        {"pkg/a.py": "a.py"},
        Place("pkg/a.py", Span(4, 5)),
    )
    assert project.python("pkg/a.py") is not None


def test_a_file_that_moves_twice_comes_from_where_it_was_first(draft: Draft) -> None:
    draft.move("a.py", "b.py")
    draft.settle()
    draft.move("b.py", "c.py")
    draft.settle()
    assert draft.origins == {"c.py": "a.py"}
    assert [change.path for change in draft.changes] == ["a.py", "c.py"]


def test_two_files_may_swap_their_paths(draft: Draft) -> None:
    draft.move("a.py", "tmp.py")
    draft.create("a.py", "y = 2\n")
    draft.settle()
    assert draft.text("a.py") == "y = 2\n"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda draft: draft.text("no.py"), "no.py: it does not exist"),
        (lambda draft: draft.edit("no.py", []), "no.py: it does not exist"),
        (lambda draft: draft.delete("no.py"), "no.py: it does not exist"),
        (lambda draft: draft.move("no.py", "new.py"), "no.py: it does not exist"),
        (lambda draft: draft.move("a.py", "b.yaml"), "b.yaml: it is there already"),
        (lambda draft: draft.create("a.py", ""), "a.py: it is there already"),
        (lambda draft: draft.edit("a.py", replace(3, 7, "")), "a.py: an edit of Span"),
        (lambda draft: draft.edit("a.py", replace(-1, 2, "")), "a.py: an edit of Span"),
        (lambda draft: draft.edit("a.py", replace(3, 2, "")), "a.py: an edit of Span"),
    ],
)
def test_what_cannot_be_is_refused_at_once(draft: Draft, act: object, message: str) -> None:
    with pytest.raises(DraftError) as caught:
        act(draft)  # type: ignore[operator]
    assert str(caught.value).startswith(message)


def test_a_created_file_cannot_be_created_again(draft: Draft) -> None:
    draft.create("new.py", "")
    with pytest.raises(DraftError, match=r"new\.py: it is there already"):
        draft.move("a.py", "new.py")


@pytest.mark.parametrize(
    ("path", "edits", "message"),
    [
        ("a.py", replace(0, 5, "("), "a.py:1: the draft does not parse: this is not Python: "),
        ("b.yaml", replace(3, 4, "["), "b.yaml:2: the draft does not parse: this is not YAML: "),
        ("a.py", [*replace(0, 3, "y"), *replace(2, 4, "z")], "a.py:1: edits of "),
    ],
)
def test_a_draft_that_does_not_hold_is_refused_with_its_place(
    draft: Draft, path: str, edits: list[Edit], message: str
) -> None:
    draft.edit(path, edits)
    with pytest.raises(DraftError) as caught:
        draft.settle()
    assert str(caught.value).startswith(message)
    assert draft.changes == []


def test_a_new_file_must_parse(draft: Draft) -> None:
    draft.create("new.yaml", "a: [1\n")
    with pytest.raises(DraftError, match=r"new\.yaml:\d: the draft does not parse"):
        draft.settle()


def test_a_file_that_did_not_parse_before_may_stay_so(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, {"a.py": "x = (\n"})
    draft.edit("a.py", replace(0, 1, "y"))
    draft.move("a.py", "b.py")
    draft.settle()
    assert draft.text("b.py") == "y = (\n"


def test_a_removed_file_is_gone_for_every_reader(draft: Draft) -> None:
    draft.delete("sub/c.txt")
    workspace = draft.settle().workspace
    assert not workspace.is_file("sub/c.txt")
    assert "sub" not in workspace.folders
    assert workspace.under("sub") == []


def test_encodings_follow_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"# coding: latin-1\nx = 'caf\xe9'\n")
    (tmp_path / "b.yaml").write_bytes("é: 1\n".encode("utf-16"))
    draft = Draft(Project(Workspace(tmp_path)), lambda project: Loaded())
    for path in ("a.py", "b.yaml"):
        draft.edit(path, replace(len(draft.text(path)), len(draft.text(path)), "# ü\n"))
    draft.settle()
    draft.edit("a.py", replace(0, 0, ""))
    draft.settle()
    assert (draft.text("a.py"), draft.text("b.yaml")) == ("# coding: latin-1\nx = 'café'\n# ü\n", "é: 1\n# ü\n")


# Properties

SPANS = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: Span(*sorted(pair)))
EDITS = st.lists(st.builds(Edit, SPANS, st.text("xyz\n", max_size=4)), max_size=6)
TEXT = "0123456789" * 3


@given(EDITS)
def test_a_draft_applies_edits_or_refuses_them_as_the_text_does(edits: list[Edit]) -> None:
    draft = draft_of(Path("/nowhere"), {"f.txt": TEXT})
    draft.edit("f.txt", edits)
    try:
        expected = apply_edits(TEXT, edits)
    except EditConflictError:
        with pytest.raises(DraftError):
            draft.settle()
        assert draft.text("f.txt") == TEXT
    else:
        draft.settle()
        assert draft.text("f.txt") == expected
        assert draft.changes == ([] if expected == TEXT else [Change("f.txt", TEXT, expected)])


@given(st.lists(EDITS, max_size=4), st.integers(0, 29))
def test_a_character_that_no_edit_replaces_is_followed(rounds: list[list[Edit]], at: int) -> None:
    text = TEXT[:at] + "♥" + TEXT[at:]
    draft = draft_of(Path("/nowhere"), {"f.txt": text})
    place = Place("f.txt", Span(at, at + 1))
    for edits in rounds:
        heart = draft.text("f.txt").index("♥")
        kept = [edit for edit in edits if not edit.span.start <= heart < edit.span.end]
        try:
            draft.edit("f.txt", kept)
            draft.settle()
        except DraftError:
            continue
        start, end = draft.forward(place).span
        assert draft.text("f.txt")[start:end].startswith("♥")


# Mentions


def test_mentions_are_whole_words_anywhere_in_a_text(tmp_path: Path) -> None:
    files = {
        "a.py": "def helper():\n    '''Calls `helper`.'''  # my_helper, helper2\n",
        "doc.md": "See helper, and Carrier-like things.\n",
        "m.yaml": "op: {carrier: Carrier}\n",
        "other.md": "nothing\n",
    }
    project = Project(Workspace(tmp_path, files))
    found = [(item.name, item.place.path, item.place.span.start) for item in mentions(project, {"helper", "Carrier"})]
    assert found == [("helper", "a.py", 4), ("helper", "a.py", 28), ("helper", "doc.md", 4), ("Carrier", "doc.md", 16),
                     ("Carrier", "m.yaml", 14)]  # fmt: skip
    assert [item.place.path for item in mentions(project, ["helper"], ["doc.md", "gone.md"])] == ["doc.md"]


def test_mentions_in_every_encoding_and_none_in_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_bytes("helper".encode("utf-16"))
    (tmp_path / "binary").write_bytes(b"\0helper\0")
    (tmp_path / "plain.txt").write_text("größe")
    project = Project(Workspace(tmp_path))
    assert [item.place.path for item in mentions(project, ["helper", "größe"])] == ["plain.txt", "wide.txt"]
    assert [*mentions(project, [])] == []


def test_of_names_that_begin_alike_the_whole_one_is_mentioned(tmp_path: Path) -> None:
    project = Project(Workspace(tmp_path, {"a.md": "a.b a"}))
    assert [item.name for item in mentions(project, ["a", "a.b"])] == ["a.b", "a"]


def test_a_file_that_workers_parse_has_to_parse_too(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    parsers = Parsers(1)
    draft = Draft(Project(Workspace(tmp_path), parsers=lambda: parsers), lambda project: Loaded())
    draft.edit("a.py", replace(0, 5, "("))
    with pytest.raises(DraftError, match=r"a\.py:1: the draft does not parse"):
        draft.settle()
    parsers.close()


@pytest.mark.parametrize(
    ("expected", "written"),
    [("y = 2\n", "y = 2\n"), ("y = 2\n", "z = 3\n"), ("y = (\n", "y = 2\n"), ("y = 2\n", "x = 1\n")],
)
def test_what_is_expected_is_parsed_early_and_decides_nothing(tmp_path: Path, expected: str, written: str) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    parsers = Parsers(1)
    asked: list[str] = []
    submit = parsers.submit

    def counted(texts: Mapping[str, str], **options: Any) -> None:
        asked.extend(texts.values())
        submit(texts, **options)

    parsers.submit = counted  # type: ignore[method-assign]
    draft = Draft(Project(Workspace(tmp_path), parsers=lambda: parsers), lambda project: Loaded())
    draft.expect("a.py", replace(0, 6, expected))
    draft.edit("a.py", replace(0, 6, written))
    file = draft.settle().python("a.py")
    parsers.close()
    assert file is not None
    assert list(file.assigns) == [written[0]]
    assert asked == list(dict.fromkeys([expected, written]))


def test_an_expected_text_that_does_not_parse_is_refused_once_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    parsers = Parsers(1)
    draft = Draft(Project(Workspace(tmp_path), parsers=lambda: parsers), lambda project: Loaded())
    draft.expect("a.py", replace(4, 5, "("))
    draft.edit("a.py", replace(4, 5, "("))
    with pytest.raises(DraftError, match=r"a\.py:1: the draft does not parse"):
        draft.settle()
    parsers.close()
