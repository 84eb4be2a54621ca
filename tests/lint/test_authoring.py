"""Everything that an author can get wrong is reported in words, with the line of the author's file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from opschema_cli.authoring import AuthorError
from opschema_cli.migrate.engine import MigrationFailure
from opschema_cli.testing import check_pack, lint_files, migrate_files

HEAD = """\
from opschema_cli.api import *

class Word:
    def __init__(self, name):
        self.name = name
        self.place = Place("a.txt", Span(0, 1))

def detect(project):
    return True

def load(project):
    return Loaded([Word("one"), Word("two")], files=["a.txt"])

def find(draft):
    yield Site(Place("a.txt", Span(0, 1)), "change it")

"""
LINES = HEAD.count("\n")
PACKED = "PACK = Pack('words', 'words', detect, load, rules=(check,))\n"


def module(folder: Path, text: str) -> ModuleType:
    """The author's module."""
    made = ModuleType("ours")
    sys.modules["ours"] = made
    exec(compile(HEAD + text, str(folder / "ours.py"), "exec"), made.__dict__)
    return made


AT_ONCE = {
    "a name": ("Pack('My Words', 'words', detect, load)", "a pack is called 'My Words'; a name is lower-case-words"),
    "detect is missing": ("Pack('words', 'words', None, load)", "the pack `words`: detect=None; it is a function"),
    "load is a value": ("Pack('words', 'words', detect, Loaded())", "`load` of the pack `words` is a Loaded, not a function"),
    "detect takes nothing": (
        "def nothing(): return True\nPack('words', 'words', nothing, load)",
        "`detect` of the pack `words` takes (); it is called with (project) or (project, options) (line 1 of",
    ),
    "load lacks the options": (
        "class Own(Options): x: int = 1\ndef found(project, options): return True\n"
        "Pack('words', 'words', found, load, options=Own)",
        "`load` of the pack `words` takes (project); it is called with (project, options)",
    ),
    "options are a dict": ("Pack('words', 'words', detect, load, options={})", "options=a dict; it is a subclass of `Options`"),
    "an option without a default": (
        "class Own(Options): x: int\nPack('words', 'words', detect, load, options=Own)",
        "the pack `words`: its option `x` needs a default",
    ),
    "one rule": (
        "@rule('ABC101', 'a')\ndef a(word: Word):\n    'A.'\nPack('words', 'words', detect, load, rules=(a))",
        "the pack `words`: `rules` is one rule; a tuple of one has a comma: rules=(my_rule,)",
    ),
    "a list of rules": ("Pack('words', 'words', detect, load, rules=[])", "`rules` is a list; it is a tuple: rules=(my_rule,)"),
    "a plain function": (
        "def a(word: Word): ...\nPack('words', 'words', detect, load, rules=(a,))",
        "`rules` holds `a` (line 1 of ours.py), which is not a rule; decorate a function with `@rule(...)`",
    ),
    "a plain migration": (
        "def a(draft, sites): ...\nPack('words', 'words', detect, load, migrations=(a,)).all_migrations()",
        "`migrations` holds `a` (line 1 of ours.py), which is not a migration",
    ),
    "an unknown field": ("Pack('words', 'words', detect, load, colour='red')", "Unexpected keyword argument 'colour'"),
    "two rules of one code": (
        "@rule('ABC101', 'a')\ndef a(word: Word):\n    'A.'\n@rule('ABC101', 'b')\ndef b(word: Word):\n    'B.'\n"
        "Pack('words', 'words', detect, load, rules=(a, b))",
        "has two rules `ABC101`: ABC101 (line 4 of ours.py) and ABC101 (line 1 of ours.py); give one another code and name",
    ),
    "one rule twice": (
        "@rule('ABC101', 'a')\ndef a(word: Word):\n    'A.'\nPack('words', 'words', detect, load, rules=(a, a))",
        "the pack `words` lists the rule ABC101 twice",
    ),
    "a rule without arguments": ("@rule\ndef a(word: Word): ...", '`@rule` needs a code and a name: @rule("ABC101", "some-name")'),
    "a bad code": ("@rule('AB1', 'a')\ndef a(word: Word):\n    'A.'", "rule 'AB1' 'a': a code is three capital letters"),
    "a bad severity": ("@rule('ABC101', 'a', severity='bad')\ndef a(word: Word):\n    'A.'", "severity='bad'; it is \"error\""),
    "a bad fixable": ("@rule('ABC101', 'a', fixable=True)\ndef a(word: Word):\n    'A.'", 'fixable=True; it is "safe"'),
    "needs a word": ("@rule('ABC101', 'a', needs='c++')\ndef a(word: Word):\n    'A.'", "needs='c++'; it is a tuple"),
    "no docstring": ("@rule('ABC101', 'a')\ndef a(word: Word): ...", "it has no docstring, so no page (line 1 of ours.py)"),
    "no annotation": ("@rule('ABC101', 'a')\ndef a(word):\n    'A.'", "rule ABC101: annotate `word` with a class"),
    "an annotation of nothing": ("@rule('ABC101', 'a')\ndef a(word: 'Wrd'):\n    'A.'", "an annotation names no type"),
    "a union": ("@rule('ABC101', 'a')\ndef a(word: Word | int):\n    'A.'", "annotate `word` with a class"),
    "three parameters": (
        "@rule('ABC101', 'a')\ndef a(word: Word, b: int, c: int):\n    'A.'",
        "rule ABC101: it takes a subject and, if it has options, these; not 3 parameters",
    ),
    "options of another type": (
        "@rule('ABC101', 'a')\ndef a(word: Word, options: int):\n    'A.'",
        "`options` is annotated with `int`; options are `Options`",
    ),
    "a migration's name": ("@migration('My', find=find)\ndef a(draft, sites):\n    'A.'", "migration 'My': a name is"),
    "a migration's find": ("@migration('my', find=None)\ndef a(draft, sites):\n    'A.'", "migration my: `find` is None"),
    "a migration's parameters": (
        "@migration('my', find=find)\ndef a(draft):\n    'A.'",
        "migration my: its function takes (draft); it is called with (draft, sites) or (draft, sites, options)",
    ),
    "a migration's options": (
        "class Own(Options): x: int\n@migration('my', find=find, options=Own)\ndef a(draft, sites, options):\n    'A.'",
        "migration my: `find` takes (draft); it is called with (draft, options)",
    ),
    "a migration's page": ("@migration('my', find=find)\ndef a(draft, sites): ...", "migration my: it has no docstring"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), AT_ONCE.values(), ids=AT_ONCE)
def test_a_mistake_that_shows_when_the_module_is_imported(
    tmp_path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError) as caught:
        module(tmp_path, text)
    expected = re.sub(r"line (\d+) of", lambda found: f"line {int(found[1]) + LINES} of", message)
    assert expected in str(caught.value)
    assert isinstance(caught.value, AuthorError) or "keyword" in message


def rule_that(body: str, arguments: str = ", fixable='safe'") -> str:
    return f"@rule('ABC101', 'a'{arguments})\ndef check(word: Word):\n    'A.'\n    {body}\n" + PACKED


HERE = "word.place"
RUNNING = {
    "raises": (rule_that("1 / 0"), "ZeroDivisionError: division by zero (line 4 of ours.py)"),
    "raises in the library": (rule_that("__import__('json').loads('x')"), "JSONDecodeError: Expecting value"),
    "returns None": (rule_that("return None"), "it returned None; a rule yields diagnostics"),
    "yields a word": (rule_that("yield 'wrong'"), "the rule yields a str; it yields `Diagnostic("),
    "a message": (rule_that(f"yield Diagnostic(1, {HERE})"), "a Diagnostic whose message is an int, not a str"),
    "a span for a place": (rule_that("yield Diagnostic('x', Span(0, 1))"), "place is a Span, not `Place(path, span)`"),
    "ops are a word": (rule_that(f"yield Diagnostic('x', {HERE}, ops='one')"), "whose `ops` are not a tuple of names"),
    "related is one": (
        rule_that(f"yield Diagnostic('x', {HERE}, related=Related({HERE}, 'y'))"),
        "whose `related` is not a tuple of `Related(place, message)`",
    ),
    "a fix that is an edit": (rule_that(f"yield Diagnostic('x', {HERE}, fix=Edit(Span(0, 1), ''))"), "whose fix is an Edit"),
    "edits of no file": (
        rule_that(f"yield Diagnostic('x', {HERE}, fix=Fix('y', (Edit(Span(0, 1), ''),)))"),
        "a Fix whose `edits` are not a tuple of `FileEdit(path, edit)`",
    ),
    "a span that ends before it starts": (rule_that("yield Diagnostic('x', Place('a.txt', Span(2, 1)))"), "with 0 <= start <= end"),
    "edits that overlap": (
        rule_that(
            f"edits = [FileEdit('a.txt', Edit(Span(i, i + 2), '')) for i in (0, 1)]\n"
            f"    yield Diagnostic('x', {HERE}, fix=Fix('y', tuple(edits)))"
        ),
        "a Fix whose edits of a.txt overlap: (0, 2) and (1, 3)",
    ),
    "a fix of a rule that has none": (
        rule_that(f"yield Diagnostic('x', {HERE}, fix=Fix('y', (FileEdit('a.txt', Edit(Span(0, 1), '')),)))", ""),
        "a Diagnostic with a fix, but `@rule` does not say fixable=",
    ),
    "an edit that is a word": (
        rule_that(f"yield Diagnostic('x', {HERE}, fix=Fix('y', (FileEdit('a.txt', 'z'),)))"),
        "a FileEdit that is not `FileEdit(path, Edit(span, text))`",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), RUNNING.values(), ids=RUNNING)
def test_a_rule_that_fails_is_reported_once(
    tmp_path: Path, text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pack = module(tmp_path, text).PACK
    (found,) = lint_files(pack, {"a.txt": "words"}).diagnostics
    expected = re.sub(r"line (\d+) of", lambda found: f"line {int(found[1]) + LINES} of", reason)
    assert found.message.startswith("the rule ABC101 (a) of the pack `words` failed on `one` and 1 more subject: ")
    assert expected in found.message
    assert found.code == "OPS900"


LOADING = {
    "detect returns None": (
        "def detect(project): ...",
        "`detect` of the pack `words` returned None; it returns True or False",
    ),
    "detect is a generator": (
        "def detect(project):\n    yield True",
        "`detect` of the pack `words` returned a generator; it",
    ),
    "load returns a list": (
        "def load(project):\n    return []",
        "`load` of the pack `words` returned a list; it returns `Loaded(...)`",
    ),
    "subjects are a tuple": ("def load(project):\n    return Loaded(())", "`subjects` is a tuple; it is a list"),
    "load raises": (
        "def load(project):\n    return project.nothing",
        "'Project' object has no attribute 'nothing' (line 2 of ours.py)",
    ),
}


@pytest.mark.parametrize(("text", "message"), LOADING.values(), ids=LOADING)
def test_a_pack_that_cannot_load_is_reported(
    tmp_path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pack = module(tmp_path, text + "\nPACK = Pack('words', 'words', detect, load)\n").PACK
    (found,) = lint_files(pack, {"a.txt": "words"}).diagnostics
    expected = re.sub(r"line (\d+) of", lambda found: f"line {int(found[1]) + LINES} of", message)
    assert found.message.startswith("the pack `words` failed: ")
    assert expected in found.message
    assert "ours.py)" in found.message


def migration_that(find: str, apply: str) -> str:
    return (
        f"def find(draft):\n    {find}\n@migration('change', find=find)\ndef change(draft, sites):\n    'Change.'\n    {apply}\n"
        "PACK = Pack('words', 'words', detect, load, migrations=(change,))\n"
    )


ONE = "yield from [Site(Place('a.txt', Span(0, 1)), 'x')] if draft.text('a.txt')[0] == 'w' else []"
EDIT = "draft.edit('a.txt', [Edit(Span(0, 1), 'v')])"
MIGRATING = {
    "find returns None": (
        migration_that("pass", "pass"),
        "its `find` yields nothing but returns None (line 3 of ours.py)",
    ),
    "find yields a place": (
        migration_that("yield Place('a.txt', Span(0, 1))", "pass"),
        "its `find` yields a Place, not a `Site(place",
    ),
    "a note that is a word": (migration_that(ONE, f"{EDIT}; yield 'note'"), "it yields a str, not a `Note(place"),
    "it raises": (migration_that(ONE, "1 / 0"), "ZeroDivisionError: division by zero (line 6 of ours.py)"),
    "it does nothing": (migration_that(ONE, "pass"), "it would have to run again: a.txt:1 (x)"),
}


@pytest.mark.parametrize(("text", "message"), MIGRATING.values(), ids=MIGRATING)
def test_a_migration_that_fails_names_its_line(
    tmp_path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pack = module(tmp_path, text).PACK
    expected = re.sub(r"line (\d+) of", lambda found: f"line {int(found[1]) + LINES} of", message)
    with pytest.raises(MigrationFailure) as caught:
        migrate_files(pack, "change", {"a.txt": "words"})
    assert str(caught.value).startswith("the migration `change` failed: ")
    assert expected in str(caught.value)


def test_a_migration_needs_neither_options_nor_notes(tmp_path: Path) -> None:
    pack = module(tmp_path, migration_that(ONE, EDIT)).PACK
    assert migrate_files(pack, "change", {"a.txt": "words"}).files == {"a.txt": "vords"}
    with pytest.raises(AssertionError, match="the pack `words` has no migration `chnge`; it has: change"):
        migrate_files(pack, "chnge", {})


BAD = "Bad:\n\n    ```text a.txt\n    x\n    ```\n\n    Good:\n\n    ```text b.txt\n    x\n    ```\n"
CHECKED = {
    "no examples": ("'A.'\n    yield from ()", "its docstring has no `Bad:` example"),
    "a fence without a file": (
        f"'''A.\n\n    {BAD.replace(' a.txt', '')}'''\n    yield from ()",
        "the fence ```text names no file; write its path behind the language: ```yaml kit/ops.yaml",
    ),
    "it does not fire": (f"'''A.\n\n    {BAD}'''\n    yield from ()", "example 1 (bad): the rule does not fire"),
    "a place in no file": (
        f"'''A.\n\n    {BAD}'''\n    yield Diagnostic('x', Place('no.txt', Span(0, 1)))",
        "example 1 (bad): the place of a finding is not in its file",
    ),
    "it always fires": (f"'''A.\n\n    {BAD}'''\n    yield Diagnostic('x', word.place)", "example 2 (good): ['x'"),
}


@pytest.mark.parametrize(("body", "message"), CHECKED.values(), ids=CHECKED)
def test_an_example_that_does_not_hold_is_named(tmp_path: Path, body: str, message: str) -> None:
    pack = module(tmp_path, f"@rule('ABC101', 'a')\ndef check(word: Word):\n    {body}\n" + PACKED).PACK
    with pytest.raises(AssertionError) as caught:
        check_pack(pack)
    assert message in str(caught.value)
    assert f"ABC101 (line {LINES + 1} of " in str(caught.value)


def test_a_rule_whose_subjects_are_never_loaded_is_told_so(tmp_path: Path) -> None:
    text = (
        f"class Other: ...\n@rule('ABC101', 'a')\ndef check(word: Other):\n    '''A.\n\n    {BAD}'''\n    yield\n"
        + PACKED
    )
    with pytest.raises(AssertionError, match="the rule does not fire: it takes `Other`, and `load` gives `Word`"):
        check_pack(module(tmp_path, text).PACK)
