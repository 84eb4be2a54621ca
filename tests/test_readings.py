"""A value for a content is computed only once, also across runs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

import opschema_rules
from opschema_cli import readings
from opschema_cli.cache import Cache
from opschema_cli.project import Project
from opschema_cli.readings import Reading, Readings, Shelf
from opschema_cli.workspace import Workspace

T = TypeVar("T")


def length(text: str) -> int | None:
    return len(text) or None


def value(shelf: Shelf[T], text: str, read: Callable[[str], T | None] = length) -> T | None:  # type: ignore[assignment]
    """The value on a shelf of a text that is its own digest."""
    found = shelf.get(text)
    if found is None and (found := read(text)) is not None:
        shelf.put(text, found)
    return found


def test_a_shelf_keeps_what_was_not_asked_for_but_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Shelf(int, None)
    assert [value(first, text) for text in ("a", "bb", "ccc", "")] == [1, 2, 3, None]
    second = Shelf(int, first.content(None))
    assert value(second, "ccc", lambda text: pytest.fail(text)) == 3
    assert value(second, "") is None
    assert not second.fresh, "nothing is new"
    assert value(second, "dddd") == 4
    third = Shelf(int, second.content(None))
    assert [value(third, text, lambda text: -1) for text in ("a", "bb", "ccc", "dddd")] == [1, 2, 3, 4]
    monkeypatch.setattr(readings, "SPARE", 11)
    fourth = Shelf(int, third.content(None))
    value(fourth, "eeeee")
    fifth = Shelf(int, fourth.content(None))
    told = {text: value(fifth, text, lambda text: -1) for text in ("a", "bb", "ccc", "dddd", "eeeee")}
    assert told == {"a": -1, "bb": -1, "ccc": 3, "dddd": 4, "eeeee": 5}, "the latest are kept"


def test_values_of_another_variant_are_not_known() -> None:
    first = Shelf(int, None, "x")
    value(first, "a")
    stored = first.content(None)
    assert Shelf(int, stored, "x").get("a") == 1
    assert Shelf(int, stored, "y").get("a") is Shelf(int, stored).get("a") is None
    second = Shelf(int, stored, "y")
    value(second, "bb")
    third = Shelf(int, second.content(stored), "y")
    assert (third.get("a"), third.get("bb")) == (None, 2)
    plain = Shelf(int, None)
    value(plain, "a")
    assert Shelf(int, plain.content(None), "x").get("a") is None


def test_a_run_takes_values_of_another_process_only_of_the_same_variant() -> None:
    mine, other = Readings(Cache(None), "s"), Readings(Cache(None), "s")
    value(other.shelf("r", int, "x"), "a")
    for variant, expected in (("y", None), ("x", 1)):
        mine.shelf("r", int, variant)
        mine.take(other.fresh())
        assert mine.shelf("r", int, variant).get("a") == expected
    assert mine.shelf("r", int, "y").get("a") is None, "one variant replaces the other"
    later = Readings(Cache(None), "s")
    later.take(other.fresh())  # before anybody asks for it
    assert later.shelf("r", int, "x").get("a") == 1


def test_what_another_process_stored_meanwhile_is_kept() -> None:
    mine, other = Shelf(int, None), Shelf(int, None)
    value(mine, "a")
    value(other, "bb")
    both = Shelf(int, mine.content(other.content(None)))
    assert [value(both, text, lambda text: -1) for text in ("a", "bb")] == [1, 2]


def test_a_value_of_another_type_is_told_anew() -> None:
    shelf = Shelf(str, _stored({"a": 1}))
    assert value(shelf, "a", lambda text: text * 2) == "aa"


def _stored(values: dict[str, int]) -> bytes:
    shelf = Shelf(int, None)
    for digest, value in values.items():
        shelf.put(digest, value)
    return shelf.content(None)


def test_a_scan_sees_the_bytes_and_nothing_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\0")
    scan = Reading("sizes", len, int)
    project = Project(Workspace(tmp_path))
    assert list(project.scan(scan, ["a.bin", "missing"])) == [("a.bin", 3), ("missing", 0)]
    assert not project.inputs, "a scan does not make a file one that is linted"
    assert set(project.workspace.reads) == {"a.bin", "missing"}, "the run depends on it"


def test_other_code_asks_anew_and_without_a_stamp_nothing_is_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    reading = Reading("length", length, int)
    for stamp, known in (("1", None), ("1", 3), ("2", None), ("", None), ("", None)):
        kept = Readings(cache, stamp)
        assert kept.shelf(reading.name, reading.kind).get("abc") == known
        assert value(kept.shelf(reading.name, reading.kind), "abc") == 3
        kept.save()


def test_the_values_of_every_reading_of_the_packs_can_be_read_back() -> None:
    names = [info.name for info in pkgutil.walk_packages(opschema_rules.__path__, "opschema_rules.") if not info.ispkg]
    values = [item for name in names for item in vars(importlib.import_module(name)).values()]
    found = {item.name: item.kind for item in values if isinstance(item, Reading)}
    assert len(found) > 10
    for kind in found.values():
        msgspec.msgpack.Decoder(kind)  # a type that is not a type is an error here


def test_what_is_asked_for_later_is_computed_while_the_content_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    read: list[str] = []

    def noting(name: str) -> Callable[[bytes], int]:
        return lambda data: read.append(name) or len(data)  # type: ignore[func-returns-value]

    later = Reading("test later", noting("later"), int)
    first = Reading("test first", noting("first"), int, (later,))
    workspace = Workspace(tmp_path)
    project = Project(workspace)
    assert dict(project.scan(first, ["a.py"])) == {"a.py": 6}
    assert sorted(read) == ["first", "later"]
    workspace.peek = pytest.fail  # type: ignore[assignment, method-assign]
    assert dict(project.scan(later, ["a.py"])) == {"a.py": 6}
    assert dict(project.scan(first, ["a.py"])) == {"a.py": 6}
    assert sorted(read) == ["first", "later"]
