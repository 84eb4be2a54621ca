"""Readings of many texts, which the processes that parse compute."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from opschema_cli import worker_readings
from opschema_cli.cache import Cache
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source import parsing
from opschema_cli.source.cpp import CppTree
from opschema_cli.source.python_workers import Parsers
from opschema_cli.worker_readings import function_name
from opschema_cli.workspace import Workspace

HERE = os.getpid()


def words(text: str) -> list[str]:
    """The words of a text, and whether another process has read them."""
    return [*text.split(), *(["elsewhere"] if os.getpid() != HERE else [])]


def functions(tree: CppTree) -> list[str]:
    """The names of the functions of C++."""
    if "die" in tree.text:
        os.kill(os.getpid(), signal.SIGKILL)
    while "stall" in tree.text:
        pass
    if "refuse" in tree.text and os.getpid() != HERE:
        raise RuntimeError("no")
    return [node.text for node in tree.root.walk() if node.kind == "function_declarator"]


def process(tree: CppTree) -> bool:
    """Whether another process reads C++."""
    return os.getpid() != HERE


WORDS: Reading[str, list[str]] = Reading("test words", words, list[str], costly=True)
CHEAP: Reading[str, list[str]] = Reading("test words", words, list[str])
PROCESS: Reading[CppTree, bool] = Reading("test process", process, bool)
FUNCTIONS: Reading[CppTree, list[str]] = Reading("test functions", functions, list[str], (PROCESS,))
LOCAL: Reading[CppTree, list[str]] = Reading("test functions", lambda tree: functions(tree), list[str], (PROCESS,))

FILES = {
    "a.cpp": "void f();\n",
    "b.cu": "int g(int x) { return h(x); }\n",
    "b2.cu": "int g(int x) { return h(x); }\n",
    "empty.h": "",
    "ops.py": 'import torch\nload_inline("x", cpp_sources="""void k(int);""")\n',
    "plain.py": "def nothing(): ...\n",
}
NAMES = {"a.cpp": ["f()"], "b.cu": ["g(int x)"], "b2.cu": ["g(int x)"], "empty.h": [], "ops.py": ["k(int)"]}


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Parsers]:
    """Two workers, to whom any text is enough."""
    monkeypatch.setattr(worker_readings, "ENOUGH", 0)
    found = Parsers(2)
    yield found
    found.close()


def tree(root: Path, files: dict[str, str]) -> Workspace:
    for path, text in files.items():
        (root / path).write_text(text)
    return Workspace(root)


def test_cpp_is_read_by_workers_as_it_would_be_here(tmp_path: Path, parsers: Parsers) -> None:
    workspace = tree(tmp_path, FILES)
    here = Project(workspace)
    assert here.cpp_readings(FUNCTIONS, FILES) == NAMES
    assert set(here.cpp_readings(PROCESS, NAMES).values()) == {False}
    mine = Project(workspace, parsers=lambda: parsers)
    assert mine.cpp_readings(FUNCTIONS, FILES) == NAMES
    read = mine.cpp_readings(PROCESS, NAMES)
    assert read == {**dict.fromkeys(NAMES, True), "empty.h": False}
    assert mine.inputs == here.inputs
    assert not mine.problems


def test_values_of_workers_are_stored(tmp_path: Path, parsers: Parsers) -> None:
    (tmp_path / "tree").mkdir()
    workspace, cache = tree(tmp_path / "tree", FILES), Cache(tmp_path / "c.sqlite")
    first = Project(workspace, cache, lambda: parsers, stamp="s")
    first.cpp_readings(FUNCTIONS, FILES)
    first.save_readings()
    later = Project(workspace, cache, stamp="s")
    assert later.cpp_readings(PROCESS, ["a.cpp"]) == {"a.cpp": True}


@pytest.mark.parametrize("with_files", [False, True])
def test_files_that_are_being_parsed_are_parsed_nevertheless(
    tmp_path: Path, parsers: Parsers, *, with_files: bool
) -> None:
    names = [f"m{number}.py" for number in range(9)]
    texts = {name: f"class {name[:2].upper()}: ...\n" * 9 for name in names}
    mine = Project(tree(tmp_path, {**FILES, **texts}), parsers=lambda: parsers)
    mine.load_python([*names, *(["ops.py"] if with_files else [])])
    assert mine.cpp_readings(FUNCTIONS, FILES) == NAMES
    files = [mine.python(name) for name in [*names, "ops.py"]]
    assert [[*file.classes][:1] if file else None for file in files] == [*([f"M{n}"] for n in range(9)), []]


def test_a_costly_reading_of_texts_is_computed_by_workers_and_a_cheap_one_is_not(
    tmp_path: Path, parsers: Parsers
) -> None:
    workspace = tree(tmp_path, {"a.h": "x y", "b.h": "z"})
    for reading, more in ((WORDS, ["elsewhere"]), (CHEAP, [])):
        mine = Project(workspace, parsers=lambda: parsers)
        assert mine.readings(reading, ["a.h", "b.h"]) == {"a.h": ["x", "y", *more], "b.h": ["z", *more]}


def test_what_a_worker_cannot_compute_is_computed_here(tmp_path: Path, parsers: Parsers) -> None:
    workspace = tree(tmp_path, {"a.cpp": "void f();\n", "b.cpp": "void refuse();\n", "deep.cpp": "(" * 600})
    mine = Project(workspace, parsers=lambda: parsers)
    assert mine.cpp_readings(FUNCTIONS, ["a.cpp", "b.cpp", "deep.cpp"]) == {"a.cpp": ["f()"], "b.cpp": ["refuse()"]}
    assert mine.cpp_readings(PROCESS, ["a.cpp", "b.cpp"]) == {"a.cpp": True, "b.cpp": False}
    assert [(item.code, item.place.path) for item in mine.problems.values()] == [("OPS103", "deep.cpp")]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal here")
@pytest.mark.parametrize("name", ["die", "stall"])
def test_a_text_that_kills_or_stalls_a_worker_is_reported_and_not_read_here(
    tmp_path: Path, parsers: Parsers, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(parsing, "SECONDS", 0.4)
    workspace = tree(tmp_path, {**FILES, "bad.cpp": f"void {name}();\n"})
    mine = Project(workspace, parsers=lambda: parsers)
    assert mine.cpp_readings(FUNCTIONS, [*FILES, "bad.cpp"]) == NAMES
    assert [(item.code, item.message) for item in mine.problems.values()] == [
        ("OPS103", "this C++ is not read: the process that read it died of it, or took too long")
    ]


@pytest.mark.parametrize("cause", ["one processor", "few texts", "a function without a name", "stopped"])
def test_all_is_read_here_where_workers_do_not_pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    monkeypatch.setattr(worker_readings, "ENOUGH", 1_000 if cause == "few texts" else 0)
    parsers = Parsers(1 if cause == "one processor" else 2)
    if cause == "stopped":
        monkeypatch.setattr(Parsers, "submit_readings", lambda self, *_, **__: None)
    mine = Project(tree(tmp_path, FILES), parsers=lambda: parsers)
    reading = LOCAL if cause == "a function without a name" else FUNCTIONS
    assert mine.cpp_readings(reading, FILES) == NAMES
    assert set(mine.cpp_readings(PROCESS, NAMES).values()) == {False}
    parsers.close()


def test_a_function_is_named_only_if_its_name_leads_to_it() -> None:
    assert function_name(FUNCTIONS) == f"{__name__}:functions"
    assert function_name(LOCAL) == ""


def test_a_function_of_a_plugin_is_not_named_as_no_other_process_can_import_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = ModuleType("opschema_plugin_1")
    monkeypatch.setitem(sys.modules, plugin.__name__, plugin)
    exec("def read(tree): return 1", plugin.__dict__)
    assert function_name(Reading("test", plugin.read, int)) == ""


def test_answers_that_an_ended_run_has_asked_for_are_no_facts(tmp_path: Path, parsers: Parsers) -> None:
    workspace = tree(tmp_path, FILES)
    digest = workspace.digest("a.cpp")
    for function in (function_name(PROCESS), "no.such:function"):
        parsers.submit_readings({f"cpp {digest}": "void other();"}, (function,), cpp=True)
    mine = Project(workspace, parsers=lambda: parsers)
    mine.load_python(["plain.py"])
    mine.settle()
    assert mine.cpp_readings(FUNCTIONS, FILES) == NAMES
    assert not mine.problems
