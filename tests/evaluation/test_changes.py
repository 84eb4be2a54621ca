"""Containers that a file changes, however the change is written."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from opschema_cli.evaluation.changes import Changes, changes_in
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace


def changes(text: str) -> Changes:
    file = Project(Workspace(Path("/nowhere"), {"a.py": text})).python("a.py")
    assert file is not None
    return changes_in(file)


@pytest.mark.parametrize(
    "code",
    [
        "S.append(1)",
        "S . append(1)",
        "S\\\n    .append(1)",
        "(S\n    .append(1))",
        "del S[0]",
        "del S [0]",
    ],
)
def test_methods(code: str) -> None:
    found = changes(f"S = {{}}\n{code}\n")
    assert found.by_methods == {"S"}
    assert not found.by_items


@pytest.mark.parametrize(
    "code",
    [
        "S[0] = 1",
        "S [0] = 1",
        "S[0] += 1",
        "S[0] \\\n    = 1",
        "S[0:2] = []",
        "S[I[0]] = 1",
        'S[f(x)["a"][J[0]]] = 1',
        'S[\n    "a"\n] = 1',
        f'S["{"long " * 100}"] = 1',
    ],
)
def test_items(code: str) -> None:
    assert changes(f"S = {{}}\n{code}\n").by_items == {"S": 1}


@pytest.mark.parametrize(
    "code",
    [
        "x = S[0] == 1",
        "f(S[0], x=1)",
        "S[0](x=1)",
        "x = S.index(1)",
        "x = [S[0] for S in x if S[0] <= 1]",
        "x.S[0] = 1",
    ],
)
def test_what_reads_changes_nothing(code: str) -> None:
    found = changes(f"S = {{}}\n{code}\n")
    assert "S" not in found.by_methods
    assert "S" not in found.by_items


@pytest.mark.parametrize("code", ["self.S[0] = 1", "cls . S[I[0]] = 1", "self.S.append(1)", "type(self).S[0][1] += 1"])
def test_attributes(code: str) -> None:
    assert changes(f"def f(self, cls):\n    {code}\n").attributes == {"S"}


def test_a_sentence_before_a_line_is_not_its_object() -> None:
    assert changes("S = {}\n# All of them.\nS[0] = 1\n").by_items == {"S": 1}


def test_keys_that_are_taken_out() -> None:
    assert changes('S.pop("a")\nT.clear()\ndel U["b"]\n').removed == {"S": {"a"}, "T": {""}, "U": {"b"}}


@pytest.mark.parametrize("line", ["S[0] = 1\n", "S[0][1].append(\n1)\n", "x = [\nS\n]\n"])
def test_long_files_take_linear_time(line: str) -> None:
    start = time.perf_counter()
    changes("S = 1\n" + line * 10_000)
    assert time.perf_counter() - start < 10
