"""A workspace parsed: what cannot be read or parsed is one diagnostic, and what was parsed once comes from the cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source import parse_process, parsing, python_workers
from opschema_cli.source.python import ModuleFacts
from opschema_cli.source.text import Source
from opschema_cli.workspace import Workspace
from tests.stalling import STALLING


def project(root: Path, **files: str) -> Project:
    for name, text in files.items():
        (root / name.replace("__", ".")).write_text(text)
    return Project(Workspace(root))


def problems(project: Project) -> list[tuple[str, str, str, int]]:
    return [(item.code, item.place.path, item.message, item.place.span.start) for item in project.problems.values()]


def test_files_that_parse(tmp_path: Path) -> None:
    mine = project(tmp_path, a__yaml="x: 1\n", b__py="class A: ...\n")
    yaml, python = mine.yaml("a.yaml"), mine.python("b.py")
    assert yaml is not None
    assert yaml.data == {"x": 1}
    assert python is not None
    assert list(python.classes) == ["A"]
    assert problems(mine) == []


def test_cached_files_that_are_wanted_ahead_are_left_until_somebody_asks(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class A: ...\n")
    (tmp_path / "b.py").write_text("class B: ...\n")
    cached = Cache(tmp_path / "cache.sqlite")
    assert Project(Workspace(tmp_path), cached).python("a.py") is not None
    mine = Project(Workspace(tmp_path), cached)
    mine.load_python(["a.py", "b.py"], ahead=True)
    assert list(mine._python) == ["b.py"]
    assert mine.python("a.py") is not None


def test_each_kind_of_trouble_is_one_diagnostic_at_its_place_and_none_afterwards(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\0")
    mine = project(tmp_path, bad__yaml="a: [1\nb: 2\n", bad__py="x = 1\ndef f(:\n    pass\n")
    for _ in range(2):
        assert mine.yaml("bad.yaml") is mine.yaml("missing.yaml") is mine.yaml("binary.yaml") is None
        assert mine.python("bad.py") is mine.source("missing.py") is None
    found = {path: (code, message) for code, path, message, _ in problems(mine)}
    assert len(found) == len(problems(mine)) == 5
    assert found["missing.yaml"] == ("OPS101", "this file cannot be read: it does not exist")
    assert found["missing.py"] == ("OPS101", "this file cannot be read: it does not exist")
    assert found["binary.yaml"] == (
        "OPS101",
        "this file cannot be read: it holds NUL bytes, the first on line 1, so it is binary",
    )
    assert found["bad.py"] == ("OPS102", "this is not Python: invalid syntax")
    assert found["bad.yaml"][0] == "YML001"
    place = next(start for _, path, _, start in problems(mine) if path == "bad.py")
    assert "x = 1\ndef f(:\n    pass\n"[place] == ":"


def test_templates_need_not_parse(tmp_path: Path) -> None:
    (tmp_path / "{{cookiecutter.name}}").mkdir()
    (tmp_path / "{{cookiecutter.name}}" / "ops.py").write_text("import {{cookiecutter.name}}._C\n")
    (tmp_path / "{{cookiecutter.name}}" / "ops.yaml").write_text("- {{ x: [\n")
    mine = Project(Workspace(tmp_path))
    assert mine.python("{{cookiecutter.name}}/ops.py") is mine.yaml("{{cookiecutter.name}}/ops.yaml") is None
    assert [code for code, *_ in problems(mine)] == []
    assert mine.python("{{cookiecutter.name}}/missing.py") is None
    assert [code for code, *_ in problems(mine)] == ["OPS101"]


def test_paths_may_come_from_a_generator_and_repeat(tmp_path: Path) -> None:
    mine = project(tmp_path, a__yaml="x: 1\n", b__py="y = 1\n")
    mine.load_yaml(path for path in ["a.yaml", "a.yaml"])
    mine.load_python(path for path in ["b.py", "b.py"])
    assert mine.yaml("a.yaml") is not None
    assert mine.python("b.py") is not None


def test_what_is_in_the_cache_is_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("x: 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    (tmp_path / "bad.py").write_text("def (\n")
    (tmp_path / "cache").mkdir()
    for _ in range(2):
        mine = Project(Workspace(tmp_path), Cache(tmp_path / "cache/c.sqlite"))
        assert mine.yaml("a.yaml") is not None
        assert mine.python("b.py") is not None
        assert mine.python("bad.py") is None
        assert [code for code, *_ in problems(mine)] == ["OPS102"]

        def parsed_again(*args: object) -> bytes:
            raise AssertionError("parsed again")

        monkeypatch.setattr("opschema_cli.project.compose", parsed_again)
        monkeypatch.setattr(parsing, "encoded_facts", parsed_again)
    (tmp_path / "b.py").write_text("y = 2\n")
    with pytest.raises(AssertionError, match="parsed again"):
        Project(Workspace(tmp_path), Cache(tmp_path / "cache/c.sqlite")).python("b.py")


def test_a_text_is_read_once_for_each_code(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two")
    (tmp_path / "same.txt").write_text("one two")
    texts: list[str] = []

    def read(text: str) -> set[str]:
        texts.append(text)
        return set(text.split())

    words = Reading("words", read, set[str])

    def words_of(stamp: str, *paths: str) -> dict[str, set[str]]:
        texts.clear()
        cache = Cache(tmp_path / "cache" / "c.sqlite")
        mine = Project(Workspace(tmp_path), cache, stamp=stamp)
        found = {**mine.readings(words, paths), **mine.readings(words, paths)}
        mine.save_readings()
        return found

    found = {"a.txt": {"one", "two"}, "same.txt": {"one", "two"}}
    assert words_of("1", "a.txt", "same.txt", "missing.txt") == found
    assert texts == ["one two"]
    assert words_of("1", "a.txt", "same.txt") == found
    assert texts == []
    assert words_of("other code", "a.txt") == {"a.txt": {"one", "two"}}
    assert texts == ["one two"]
    assert words_of("", "a.txt") == {"a.txt": {"one", "two"}}
    assert texts == ["one two"]
    (tmp_path / "a.txt").write_text("three")
    assert words_of("1", "a.txt") == {"a.txt": {"three"}}


@pytest.mark.parametrize("rubbish", [b"", b"\xff", b"\x90", b"\x93\x01"])
def test_a_cache_entry_that_makes_no_sense_is_a_miss(
    tmp_path: Path, rubbish: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lying(Cache):
        def get(self, kind: str, keys: Iterator[str]) -> dict[str, bytes]:  # type: ignore[override]
            return dict.fromkeys(keys, rubbish)

    (tmp_path / "a.yaml").write_text("x: 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    mine = Project(Workspace(tmp_path), Lying(None))
    yaml, python = mine.yaml("a.yaml"), mine.python("b.py")
    assert yaml is not None
    assert yaml.data == {"x": 1}
    assert python is not None
    assert list(python.assigns) == ["y"]


@pytest.mark.parametrize("jobs", [0, 1, 3])
def test_however_many_processes_parse_the_result_is_the_same(
    tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_workers, "POOL_THRESHOLD", 10)
    names = [f"m{number}.py" for number in range(12)]
    for number, name in enumerate(names):
        (tmp_path / name).write_text(f"class C{number}: ...\n" * (number + 1) + ("def (" if number == 5 else ""))
    seen: list[tuple[int, int]] = []
    parsers = cache(lambda: python_workers.Parsers(jobs)) if jobs else None
    mine = Project(Workspace(tmp_path), None, parsers, lambda done, total: seen.append((done, total)))
    mine.load_python(names)
    parsed = [mine.python(name) for name in names]
    assert [list(file.classes) if file else None for file in parsed] == [
        None if number == 5 else [f"C{number}"] for number in range(12)
    ]
    assert seen == [(done, 12) for done in range(1, 13)]
    assert [path for _, path, *_ in problems(mine)] == ["m5.py"]


# Workers

DEADLY = "x = " + "1 if 1 else " * 30_000 + "1\n"  # more recursion than a stack has


def parse(texts: Sequence[str], jobs: int) -> list[bool]:
    """Whether each text got facts."""
    parsers = python_workers.Parsers(jobs)
    parsers.submit({str(number): text for number, text in enumerate(texts)})
    found: dict[str, bytes] = {}
    while part := parsers.collect(wait=True):
        assert not found.keys() & {item.key for item in part}
        found.update((item.key, item.facts) for item in part)
    parsers.close()
    assert len(found) == len(texts)
    return [bool(found[str(number)]) for number in range(len(texts))]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that give up sooner, to save the tests' time."""
    monkeypatch.setattr(parsing, "SECONDS", 0.4)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_text_that_kills_or_stalls_the_parser_costs_only_itself(jobs: int) -> None:
    texts = ["a = 1\n", DEADLY, "b = 1\n", STALLING, "c = 1\n", "class D: ...\n" * 50]
    assert parse(texts, jobs) == [True, False, True, False, True, True]


@pytest.mark.usefixtures("impatient")
def test_such_a_file_is_a_diagnostic_and_the_others_are_parsed(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(STALLING)
    (tmp_path / "good.py").write_text("class A: ...\n")
    mine = Project(Workspace(tmp_path), parsers=cache(lambda: python_workers.Parsers(1)))
    mine.load_python(["bad.py", "good.py"])
    assert mine.python("bad.py") is None
    assert mine.python("good.py") is not None
    assert [(code, path) for code, path, *_ in problems(mine)] == [("OPS102", "bad.py")]
    assert "took too long" in problems(mine)[0][2]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal here")
def test_a_worker_that_runs_out_of_time_once_is_given_another_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual machine that is paused may charge the pause to whatever runs."""
    real, mark = parsing.parsed, tmp_path / "paused"

    def paused_once(text: str, *, with_tree: bool) -> tuple[ModuleFacts, bytes]:
        if "slow" in text and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGPROF)
        return real(text, with_tree=with_tree)

    monkeypatch.setattr(parse_process, "parsed", paused_once)
    assert parse(["a = 1\n", "slow = 1\n", "b = 1\n"], 1) == [True, True, True]
    assert mark.exists()


def test_a_long_chain_that_python_accepts_is_parsed() -> None:
    """500 terms nest 500 deep in the tree; visiting them takes more calls than Python allows by default."""
    assert parse(
        ["x = " + "a + " * 500 + "a\n", "x = (" + "'a' " * 500 + ")\n", "if a: ...\n" + "elif b: ...\n" * 500], 1
    ) == [
        True,
        True,
        True,
    ]


def test_nothing_to_parse_starts_nothing() -> None:
    assert parse([], 4) == []


def test_leaving_early_leaves_no_process_behind() -> None:
    import multiprocessing

    parsers = python_workers.Parsers(2)
    parsers.submit({str(number): "a = 1\n" for number in range(50)})
    assert parsers.collect(wait=True)
    assert multiprocessing.active_children()
    parsers.close()

    assert multiprocessing.active_children() == []


def test_workers_that_were_started_early_serve_later_files_too(tmp_path: Path) -> None:
    """One remains when all is parsed, so that a file that is asked for late starts no other."""
    import multiprocessing

    parsers = python_workers.Parsers(2)
    parsers.start(2)
    names = ["a.py", "b.py", "late.py"]
    for name in names:
        (tmp_path / name).write_text(f"class {name[0].upper()}: ...\n")
    mine = Project(Workspace(tmp_path), parsers=lambda: parsers)
    mine.load_python(names[:2])
    mine.pump()
    mine.settle()
    [last] = multiprocessing.active_children()
    assert [list(file.classes) for file in map(mine.python, names) if file is not None] == [["A"], ["B"], ["L"]]
    assert multiprocessing.active_children() == [last]
    parsers.close()


def test_what_waits_for_some_files_comes_before_what_waits_for_all(tmp_path: Path) -> None:
    parsers = python_workers.Parsers(1)
    mine = Project(Workspace(tmp_path), parsers=lambda: parsers)
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n")
    done: list[str] = []

    def go_on() -> None:
        done.append("a")
        mine.load_python(["b.py"])

    try:
        mine.load_python(["a.py"])
        mine.when_settled(lambda: done.append("all"))
        mine.when_parsed(["a.py"], go_on)
        mine.when_parsed(["a.py", "b.py"], lambda: done.append("a and b"))
        assert done == []
        mine.settle()
        assert done == ["a", "a and b", "all"]
    finally:
        parsers.close()


class _Counting(dict[str, list[Source]]):
    """Texts that are being parsed, with the number of those that were looked at one after the other."""

    seen = 0

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.seen += 1
            yield key


def test_a_look_at_what_is_done_does_not_go_through_all_that_is_not(tmp_path: Path) -> None:
    """With 20,000 files each took a third of a millisecond, and there is one after each run of a rule."""
    parsers = python_workers.Parsers(1)
    mine = Project(Workspace(tmp_path), parsers=lambda: parsers)
    names = [f"a{number}.py" for number in range(100)]
    for name in names:
        (tmp_path / name).write_text(f"x = {name!r}\n")
    done: list[str] = []
    try:
        mine.load_python(names)
        mine.when_parsed(names[-1:], lambda: done.append("last"))
        mine._awaited = counting = _Counting(mine._awaited)
        for _ in range(10):
            mine._go_on()
        assert (counting.seen, done) == (0, [])
        mine.settle()
        assert done == ["last"]
    finally:
        parsers.close()


def test_all_answers_are_taken_at_once(tmp_path: Path) -> None:
    texts = {f"k{number}": f"x = {number}\n" for number in range(12)}
    parsers = python_workers.Parsers(1)
    try:
        parsers.submit(texts)
        found: list[str] = []
        calls = 0
        while len(found) < len(texts):
            time.sleep(0.2)  # a worker answers in a fraction of that
            found += [item.key for item in parsers.collect(wait=False)]
            calls += 1
        assert calls < len(texts)
        assert sorted(found) == sorted(texts)
    finally:
        parsers.close()


def test_no_text_is_lost_where_no_process_can_take_the_place_of_a_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answered for the text that it died of, and whoever waited did so for ever."""
    texts = {f"k{number}": f"x = {number}\n" * 20_000 for number in range(3)}  # none is parsed before the worker dies
    parsers = python_workers.Parsers(1)

    def refuse(*arguments: object) -> object:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    try:
        parsers.submit(texts)
        [worker] = parsers._workers
        assert isinstance(worker, parse_process.Worker)
        worker.has_started()
        os.kill(worker.process.pid or 0, signal.SIGKILL)
        worker.process.join()
        with monkeypatch.context() as patched:
            patched.setattr(parse_process.Worker, "__init__", refuse)
            with pytest.raises(OpschemaError, match="temporarily unavailable"):
                parsers.collect(wait=True)
        found: list[str] = []
        until = time.monotonic() + 30
        while len(found) < len(texts) and time.monotonic() < until:
            found += [item.key for item in parsers.collect(wait=False)]
            time.sleep(0.01)
        assert sorted(found) == sorted(texts)
    finally:
        parsers.close()


def test_a_project_whose_workers_were_stopped_reports_what_was_left(tmp_path: Path) -> None:
    parsers = python_workers.Parsers(1)
    (tmp_path / "a.py").write_text("x = 1\n")
    mine = Project(Workspace(tmp_path), parsers=lambda: parsers)
    mine.load_python(["a.py"])
    parsers.close()
    assert mine.python("a.py") is None
    assert [code for code, *_ in problems(mine)] == ["OPS102"]


def test_a_draft_on_top_of_files_that_are_still_being_parsed_has_them(tmp_path: Path) -> None:
    parsers = python_workers.Parsers(1)
    names = [f"m{number}.py" for number in range(6)]
    for name in names:
        (tmp_path / name).write_text(f"class {name[:2].upper()}: ...\n" * 20)
    mine = Project(Workspace(tmp_path), parsers=lambda: parsers)
    mine.load_python(names)
    other = mine.with_overlay({"m0.py": "class New: ...\n"})
    files = [other.python(name) for name in names]
    parsers.close()
    assert [list(file.classes) if file else None for file in files] == [["New"], *([f"M{n}"] for n in range(1, 6))]


def test_workers_that_cannot_be_started_are_an_error_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    parsers = python_workers.Parsers(1)
    monkeypatch.setattr(python_workers, "Worker", refuse)
    for ask in (lambda: parsers.submit({"a": "x = 1\n"}), lambda: parsers.collect(wait=True)):
        with pytest.raises(OpschemaError, match=r"does not start: Resource temporarily unavailable"):
            ask()


@pytest.mark.parametrize("short", [60_000, 0])
def test_facts_of_a_file_that_was_expected_are_those_of_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: int
) -> None:
    monkeypatch.setattr("opschema_cli.project.SHORT", short)
    text = '# -*- coding: latin-1 -*-\nx = "\u00e9\u00e9\u00e9\u00e9"\ndef g(): pass\n'
    (tmp_path / "tree").mkdir()
    file = tmp_path / "tree/a.py"
    file.write_bytes(text.encode("latin-1"))
    cache = Cache(tmp_path / "c.sqlite")
    parsers = python_workers.Parsers(1)
    try:
        first = Project(Workspace(tmp_path / "tree"), cache, lambda: parsers)
        first.expect_file("a.py")
        first.expect_file("missing.py")
        assert bool(parsers._workers) is (not short), "a short text is parsed by this process"
        first.settle()
        assert not first.inputs
        assert not first.problems
        stored = Project(Workspace(tmp_path / "tree"), cache).python("a.py")
        assert stored is not None
        assert stored.text(stored.body.functions[0].span) == "g"
        file.write_bytes(text.encode("utf-8"))  # by its cookie another text
        other = Project(Workspace(tmp_path / "tree"), cache).python("a.py")
        assert other is not None
        assert other.text(other.body.functions[0].span) == "g"
    finally:
        parsers.close()


def test_what_the_running_python_does_not_parse_is_left_to_workers(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def (\n")
    parsers = python_workers.Parsers(1)
    try:
        mine = Project(Workspace(tmp_path), parsers=lambda: parsers)
        mine.expect_file("a.py")
        assert parsers._workers
        assert mine.python("a.py") is None
        assert [code for code, *_ in problems(mine)] == ["OPS102"]
    finally:
        parsers.close()


RISK = """\
import time
from opschema_cli.source import parsing

def busy(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

parsing.SECONDS = 0.2
with parsing.at_risk("x = 1"):
    pass
busy(0.4)
print("alive", flush=True)
with parsing.at_risk("x = 1"):
    busy(5)
print("too late", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal here")
def test_a_process_that_parses_too_long_dies_and_its_budget_ends_with_the_text() -> None:
    done = subprocess.run([sys.executable, "-c", RISK], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("alive\n", -signal.SIGPROF)
