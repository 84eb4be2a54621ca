"""Findings of pure rules come from the cache while their subject's content is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from opschema_cli.cache import Cache
from opschema_cli.lint.diagnostic import Diagnostic, Place, Severity
from opschema_cli.lint.execute import Executor
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack, Speed
from opschema_cli.lint.pack_calls import loaded_by, read_on
from opschema_cli.lint.rule import Rule, rule
from opschema_cli.lint.settings import Settings
from opschema_cli.lint.shared_work import LostForkError
from opschema_cli.project import Project
from opschema_cli.source.python_workers import Parsers
from opschema_cli.source.text import Span
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace

RAN: list[str] = []


@dataclass
class Word:
    name: str
    content_key: str


@rule("TOY001", "pure-word", pure=True)
def pure_word(word: Word) -> Iterator[Diagnostic]:
    """A word, from which the finding follows."""
    RAN.append(f"pure {word.name}")
    yield Diagnostic(f"`{word.name}` is a word", Place("words.yaml", Span(0, 1)))


@rule("TOY002", "impure-word")
def impure_word(word: Word) -> Iterator[Diagnostic]:
    """A word, judged anew each time."""
    RAN.append(f"impure {word.name}")
    yield from ()


def _doubts(word: Word) -> Iterator[str]:
    RAN.append(f"candidates in {word.name}")
    if word.name == "broken":
        raise ValueError("no word")
    yield from (letter for letter in word.name if letter == "x")


@rule("TOY003", "suspicious-word", candidates=_doubts)
def suspicious_word(word: Word) -> Iterator[Diagnostic]:
    """A word with an `x`, judged in the light of other files."""
    RAN.append(f"suspicious {word.name}")
    if word.name == "broken":
        raise ValueError("no word")
    yield Diagnostic(f"`{word.name}` has an x", Place("words.yaml", Span(0, 1)))


RULES = (pure_word, impure_word)
SUSPICIOUS = (suspicious_word,)
PACK = Pack("toy", "words", lambda *_: True, lambda *_: Loaded(), RULES)


def _executor(cache: Cache, stamp: str = "stamp") -> Executor:
    severity = dict.fromkeys(("TOY001", "TOY002", "TOY003"), Severity.ERROR)
    return Executor(Settings(frozenset(severity), severity, (), Severity.ERROR, {}, {}), cache, stamp)


def _run(executor: Executor, pack: Pack, loaded: Loaded, project: Project) -> None:
    executor.run_rest(pack, loaded, project, executor.run_early(pack, loaded, project))


def run(
    cache: Cache, words: list[Word], stamp: str = "stamp", rules: tuple[Rule, ...] = RULES
) -> tuple[list[str], list[str]]:
    """The rules that ran, and the messages found."""
    RAN.clear()
    executor = _executor(cache, stamp)
    _run(executor, replace(PACK, rules=rules), Loaded(list(words)), Project(Workspace(Path())))
    return list(RAN), [item.message for item in executor.found]


def test_a_pure_rule_runs_once_for_one_content_and_an_impure_one_each_time(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    words = [Word("a", "1"), Word("b", "2")]
    first = run(cache, words)
    assert first == (["pure a", "pure b", "impure a", "impure b"], ["`a` is a word", "`b` is a word"])
    assert run(cache, words) == (["impure a", "impure b"], first[1])
    assert run(cache, [Word("a", "1"), Word("b", "changed")])[0] == ["pure b", "impure a", "impure b"]


def test_other_code_or_no_stamp_runs_everything(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    run(cache, [Word("a", "1")])
    assert run(cache, [Word("a", "1")], stamp="other code")[0] == ["pure a", "impure a"]
    assert run(cache, [Word("a", "1")], stamp="")[0] == ["pure a", "impure a"]


class Kept(dict[str, bytes]):
    """Values that a subject keeps."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value


@dataclass
class KeptWord(Word):
    kept: Kept


def test_findings_are_kept_where_a_subject_keeps_values_for_the_same_rules_and_code(tmp_path: Path) -> None:
    cache, kept = Cache(tmp_path / "cache.sqlite"), Kept()
    first = run(cache, [KeptWord("a", "", kept)])
    assert first[0] == ["pure a", "impure a"]
    assert run(cache, [KeptWord("a", "", kept)]) == (["impure a"], first[1])
    assert run(cache, [KeptWord("a", "", kept)], stamp="other code")[0] == ["pure a", "impure a"]
    assert run(cache, [KeptWord("a", "", kept)], stamp="")[0] == ["pure a", "impure a"]
    kept.clear()
    assert run(cache, [KeptWord("a", "", kept)])[0] == ["pure a", "impure a"]


def test_late_subjects_are_made_after_the_pure_rules_have_run(tmp_path: Path) -> None:
    """So that what they are made of may be parsed meanwhile."""
    executor = _executor(Cache(tmp_path / "cache.sqlite"))

    def late() -> Iterator[Word]:
        RAN.append("made")
        yield Word("late", "3")

    RAN.clear()
    _run(executor, PACK, Loaded([Word("early", "1")], late=[late]), Project(Workspace(tmp_path)))
    assert RAN == ["pure early", "made", "pure late", "impure early", "impure late"]


def test_late_subjects_that_cannot_be_made_are_a_finding_and_hide_nothing(tmp_path: Path) -> None:
    executor = _executor(Cache(tmp_path / "cache.sqlite"))

    def late() -> Iterator[Word]:
        yield Word("one", "1")
        raise RuntimeError("no more")

    _run(executor, PACK, Loaded([Word("early", "1")], late=[late]), Project(Workspace(tmp_path)))
    assert [item.code for item in executor.found] == ["TOY001", "OPS900", "TOY001"]
    assert executor.crashed


def test_a_rule_runs_only_where_there_are_candidates_which_is_remembered(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    words = [Word("ax", "1"), Word("b", "2")]
    first = run(cache, words, rules=SUSPICIOUS)
    assert first == (["candidates in ax", "candidates in b", "suspicious ax"], ["`ax` has an x"])
    assert run(cache, words, rules=SUSPICIOUS) == (["suspicious ax"], first[1])
    assert run(cache, words, rules=SUSPICIOUS, stamp="") == first
    assert run(cache, [Word("b", "3")], rules=SUSPICIOUS) == (["candidates in b"], [])


def test_where_the_search_for_candidates_fails_the_rule_runs_and_tells(tmp_path: Path) -> None:
    ran, messages = run(Cache(tmp_path / "cache.sqlite"), [Word("broken", "1")], rules=SUSPICIOUS)
    assert ran == ["candidates in broken", "suspicious broken"]
    assert ["no word" in message for message in messages] == [True]


def test_a_pack_is_asked_what_it_reads_on_until_that_is_nothing(tmp_path: Path) -> None:
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text("x = 1\n")
    project = Project(Workspace(tmp_path))
    asked: list[bool] = []

    def reads_on(project: Project, options: object) -> list[str]:
        asked.append(project.python("first.py") is not None)
        return [["first.py"], ["second.py"], []][len(asked) - 1]

    read_on(replace(PACK, speed=Speed(reads_on=reads_on)), project, None)
    assert asked == [True, True, True]
    assert set(project.inputs) == {"first.py", "second.py"}


def test_a_pack_that_fails_to_tell_what_it_reads_on_stops_nothing(tmp_path: Path) -> None:
    asked: list[bool] = []

    def reads_on(project: Project, options: object) -> list[str]:
        asked.append(True)
        raise ValueError("no")

    read_on(replace(PACK, speed=Speed(reads_on=reads_on)), Project(Workspace(tmp_path)), None)
    assert asked == [True], "it fails again where it is reported"


def test_a_failure_of_what_waits_for_all_files_ends_the_run(tmp_path: Path) -> None:
    """It was taken for one of the pack whose further files had just been parsed, and the packs of the other process were lost."""
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text(f"x = {name!r}\n")
    parsers = Parsers(1)
    project = Project(Workspace(tmp_path), parsers=lambda: parsers)

    def divide() -> None:
        raise LostForkError

    try:
        project.load_python(["first.py", "second.py"])
        read_on(replace(PACK, speed=Speed(reads_on=lambda *_: ["second.py"])), project, None, lambda *_: ["first.py"])
        project.when_settled(divide)
        with pytest.raises(LostForkError):
            project.settle()
    finally:
        parsers.close()


def test_what_rests_on_the_work_of_rules_is_counted_after_them() -> None:
    RAN.clear()

    def count(loaded: Loaded) -> None:
        RAN.append("counted")
        loaded.ops, loaded.files = 2, ["words.yaml"]

    def load(project: Project, options: object) -> Loaded:
        return Loaded([Word("one", "1")], counting=count)

    pack = Pack("toy", "words", lambda project, options: True, load, (pure_word, impure_word))
    linted = lint_files([pack], {"words.yaml": "one\n"})
    assert RAN == ["pure one", "impure one", "counted"]
    assert linted.outcome.ops == 2
    assert loaded_by(pack, linted.project, None).files == ["words.yaml"]
    assert RAN[3:] == ["counted"], "at once where no rules run"
