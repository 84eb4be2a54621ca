"""Readings of Python files that are computed where the files are parsed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source import python_workers
from opschema_cli.source.parsing import values_along
from opschema_cli.source.python import Function, ModuleFacts, PythonFile, Scope, Statement
from opschema_cli.source.python_facts import collect
from opschema_cli.workspace import Workspace

HERE = f"{__name__}:"

CALLS: Reading[PythonFile, list[str]] = Reading(
    "test calls", lambda file: [call.callee for scope in file.body.walk() for call in scope.calls], list[str]
)
NAMES: Reading[PythonFile, list[str]] = Reading("test names", lambda file: list(file.functions), list[str])


def _raise(file: PythonFile) -> list[str]:
    raise RuntimeError(file.path)


FAILING: Reading[PythonFile, list[str]] = Reading("test failing", _raise, list[str])

TEXT = """\
def outer(x: int = one()):
    '''Say.'''
    @mark()
    def inner(y):
        global z
        with two(y) as z:
            return three(z)
    return [inner(item) for item in x if four(item)]

class Holder:
    def method(self):
        match self.five():
            case [a, *_]:
                return lambda: six(a)
"""


def test_each_value_is_that_of_the_file() -> None:
    found = values_along([f"{HERE}CALLS", f"{HERE}NAMES"], TEXT, collect(TEXT))
    assert {name: msgspec.msgpack.decode(data) for name, data in found.items()} == {
        "test calls": ["one", "mark", "inner", "four", "two", "three", "self.five", "six"],
        "test names": ["outer"],
    }


def test_what_cannot_be_computed_is_left_out() -> None:
    names = [f"{HERE}FAILING", f"{HERE}MISSING", "no.such.module:READING", "json:dumps", f"{HERE}NAMES"]
    assert list(values_along(names, TEXT, collect(TEXT))) == ["test names"]


def test_there_is_none_of_a_text_that_does_not_parse() -> None:
    assert values_along([f"{HERE}NAMES"], "def (\n", collect("def (\n")) == {}


def _functions(scope: Scope) -> Iterator[Function]:
    for function in scope.functions:
        yield function
        yield from _functions(function.body)
    for cls in scope.classes:
        yield from _functions(cls.body)


def test_what_is_unpacked_already_is_what_is_packed() -> None:
    facts = collect(TEXT)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=ModuleFacts)
    pairs = list(zip(_functions(facts.body), _functions(again.body), strict=True))
    assert [one.name for one, _ in pairs] == ["outer", "inner", "method"]
    for one, other in pairs:
        assert vars(one).keys() >= {"body", "statements"}
        assert one.body == msgspec.msgpack.decode(one.packed_body, type=Scope) == other.body
        assert one.statements == msgspec.msgpack.decode(one.packed_statements, type=tuple[Statement, ...])


@pytest.mark.parametrize(("much", "read_here"), [(True, 0), (False, 3)])
def test_a_project_takes_the_values_that_come_with_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, much: bool, read_here: int
) -> None:
    monkeypatch.setattr(python_workers, "POOL_THRESHOLD", 0 if much else 1_000_000)
    paths = ["a.py", "b.py", "c.py", "broken.py"]
    for path in paths:
        (tmp_path / path).write_text(f"def {path[0]}(): ...\n" if path != "broken.py" else "def (\n")
    read: list[str] = []

    def count(file: PythonFile) -> list[str]:
        read.append(file.path)
        return NAMES.read(file)

    here = Reading(NAMES.name, count, NAMES.kind)
    parsers = python_workers.Parsers(2)
    try:
        mine = Project(Workspace(tmp_path), parsers=lambda: parsers)
        mine.load_python(paths, ahead=True, along=(f"{HERE}NAMES",))
        assert mine.python_readings(here, paths) == {path: [path[0]] for path in paths[:3]}
        assert len(read) == read_here
        assert [item.code for item in mine.problems.values()] == ["OPS102"]
    finally:
        parsers.close()
