"""Containers that a file changes, however the change is written."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from opschema_cli.evaluation.changes import Changes, changes_in
from opschema_cli.evaluation.values import Plain
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from tests.evaluation.evaluating import values_of


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
        "S.__setitem__(0, 1)",
        "S.appendleft(1)",
        "add = S.append",
        "del S[0]",
        "del S [0]",
        "del (S[0])",
        "del T, [(S[0]), T]",
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
        "(S[0]) = 1",
        "x = S[0] = 1",
        "S[0], x = 1, 2",
        "[x, (y, *S[0])] = z",
        "S[0]: int = 1",
        "for S[0] in x: pass",
        "for x, (S[0], y) in z: pass",
        "with f() as S[0]: pass",
        "with f() as (x, S[0]), g(): pass",
        "x = [1 for S[0] in y]",
        "x = {1: 2 for z in y for x, S[0] in z}",
        "x = lambda: (1 for S[0] in y)",
        "(S if x else 1)[0] = 1",
        "(None or S)[0] = 1",
        "S[0][0], S[1] = x",
    ],
)
def test_items(code: str) -> None:
    assert changes(f"S = {{}}\n{code}\n").by_items == {"S": 1}


@pytest.mark.parametrize("code", ["for S[0] in x: pass", "with x as S[0]: pass"])
def test_items_of_coroutines(code: str) -> None:
    assert changes(f"S = {{}}\nasync def f(x):\n    async {code}\n").by_items == {"S": 1}


@pytest.mark.parametrize(
    "code",
    [
        "x = S[0] == 1",
        "f(S[0], x=1)",
        "S[0](x=1)",
        "x = S.index(1)",
        "x = [S[0] for S in x if S[0] <= 1]",
        "S[0]: int",
        "for x in S[0]: pass",
        "with S[0] as x: pass",
        "assert S[0], S[1]",
        'print("S[0] = 1")',
        "# S[0] = 1",
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


@pytest.mark.parametrize(
    "code", ["S[0][1] = 2", "S[0].x = 1", "S.get(1)[0], x = y", "del S[0].x", "S.get(1).append(2)"]
)
def test_containers_in_containers(code: str) -> None:
    assert changes(f"S = {{}}\n{code}\n").inner == {"S"}


_TARGETS = (
    "{0} = 2",
    "x = {0} = 2",
    "{0}, x = 2, 3",
    "{0} += 1",
    "{0}: int = 2",
    "for {0} in x: pass",
    "with x as {0}: pass",
    "x = [0 for {0} in y]",
    "del x, ({0})",
)


@pytest.mark.parametrize(("made", "key"), [("[1, 3]", "0"), ("{'a': 1}", "'a'")])
@pytest.mark.parametrize("code", _TARGETS)
def test_no_item_keeps_a_value_that_code_changes(made: str, key: str, code: str) -> None:
    item = f"S[{key}]"
    assert Plain(1) not in values_of(f"S = {made}\n{code.format(item)}\nfound = {item}\n")


@pytest.mark.parametrize(
    "code", ["S.update(a=2)", "S[k] = 2", "def f():\n    S['a'] = 2", "for k in x:\n    S[k] += 1"]
)
def test_any_key_may_have_another_value_after_a_change_that_is_not_followed(code: str) -> None:
    assert Plain(1) not in values_of(f"S = {{'a': 1}}\n{code}\nfound = S['a']\n")


@pytest.mark.parametrize(("made", "key"), [("[1, 3]", "0"), ("{'a': 1}", "'a'")])
@pytest.mark.parametrize("code", _TARGETS)
def test_nor_does_that_of_an_attribute(made: str, key: str, code: str) -> None:
    change = code.format(f"self.S[{key}]")
    of_class = f"class C:\n    S = {made}\n    def f(self, x, y):\n        {change}\nfound = C.S[{key}]\n"
    of_object = f"class C:\n    def __init__(self):\n        self.S = {made}\n        {change}\nfound = C().S[{key}]\n"
    assert Plain(1) not in values_of(of_class)
    assert Plain(1) not in values_of(of_object)


def test_attributes_that_nothing_changes_are_known() -> None:
    text = "class C:\n    S = [1]\n    T = {'a': 1}\n    def f(self):\n        self.U[0] = S[0] = T['a'] = 2\n"
    assert values_of(f"{text}found = C.S[0]\n") == (Plain(1),)
    assert values_of(f"{text}found = C.T['a']\n") == (Plain(1),)


def test_a_sentence_before_a_line_is_not_its_object() -> None:
    assert changes("S = {}\n# All of them.\nS[0] = 1\n").by_items == {"S": 1}


def test_keys_that_are_taken_out() -> None:
    assert changes('S.pop("a")\nT.clear()\ndel U["b"]\n').removed == {"S": {"a"}, "T": {""}, "U": {"b"}}


@pytest.mark.parametrize(
    "line", ["S[0] = 1\n", "x, S[0][1] = y\n", f"S{'.add(1)' * 10}\n", "S[0][1].append(\n1)\n", "x = [\nS\n]\n"]
)
def test_long_files_take_linear_time(line: str) -> None:
    start = time.process_time()
    changes("S = 1\n" + line * 10_000)
    assert time.process_time() - start < 10


def test_keys_of_inner_containers() -> None:
    file = Project(Workspace(Path("/nowhere"), {"a.py": "S[0]['a'] = 1\nS[0]['b'] += 1\ndel S[0]['c']\n"})).python(
        "a.py"
    )
    assert file is not None
    assert [(item.depth, item.key) for item in file.facts.changes] == [(2, "a"), (2, "b"), (2, "c")]
