"""Which of some words files have, from the cache while the words stay the same."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.project import Project
from opschema_cli.word_search import FEW, MANY, WordSearch
from opschema_cli.workspace import Workspace

FILES = {f"f{number}.cpp": f"int one{number}(int two);" for number in range(FEW + 1)}
MANY_MORE = {f"other{number}" for number in range(MANY + 1)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def found(root: Path, words: Collection[str], read: list[str] | None = None) -> dict[str, frozenset[str]]:
    """The words in all files, in a run of its own; ``read`` becomes the files whose bytes were read."""
    project = Project(Workspace(root), Cache(root.parent / "c.sqlite"), stamp="s")
    peek, asked = project.workspace.peek, [] if read is None else read

    def noted(path: str) -> bytes:
        asked.append(path)
        return peek(path)

    project.workspace.peek = noted  # type: ignore[method-assign]
    result = WordSearch(project, "test", frozenset(words)).files(FILES)
    project.save_readings()
    return result


def test_words_are_found_between_other_characters(tmp_path: Path) -> None:
    for name, text in {"a": "x.one(two)", "b": "one_two", "c": "éoneé", "d": "1one", "e": ""}.items():
        (tmp_path / name).write_text(text)
    for more in (set(), MANY_MORE):
        search = WordSearch(Project(Workspace(tmp_path)), "test", frozenset({"one", "two", "", *more}))
        assert search.files("abcdefg") == {"a": {"one", "two"}, "c": {"one"}}
        assert search.words_of("a") == {"one", "two"}
        assert search.words_of("missing") == frozenset()


def test_a_later_run_reads_only_files_that_changed(root: Path) -> None:
    words, read = {"two", "one3"}, list[str]()
    first = found(root, words, read)
    assert first == {name: {"two", *(["one3"] if name == "f3.cpp" else [])} for name in FILES}
    assert read == [*FILES]
    read.clear()
    assert found(root, words, read) == first
    assert not read
    (root / "f5.cpp").write_text("int one3;")
    assert found(root, words, read) == {**first, "f5.cpp": {"one3"}}
    assert read == ["f5.cpp"]


def test_with_other_words_all_files_are_read_again(root: Path) -> None:
    read: list[str] = []
    found(root, {"two"})
    assert found(root, {"one4"}, read) == {"f4.cpp": {"one4"}}
    assert read == [*FILES]
    read.clear()
    assert len(found(root, {"two"}, read)) == len(FILES)
    assert read == [*FILES], "what is kept is the result for the last words"


def test_a_search_of_few_files_leaves_what_is_kept(root: Path) -> None:
    read: list[str] = []
    expected = found(root, {"two"})
    project = Project(Workspace(root), Cache(root.parent / "c.sqlite"), stamp="s")
    assert WordSearch(project, "test", frozenset({"one1"})).files(["f1.cpp", "f2.cpp"]) == {"f1.cpp": {"one1"}}
    project.save_readings()
    assert found(root, {"two"}, read) == expected
    assert not read
