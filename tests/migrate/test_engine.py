"""Migrations over toy files: what is migrated, what stays, what comes back as a note, and what a bad one ends with."""

from __future__ import annotations

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, MigrationFailure, Task, migrate_all
from opschema_cli.migrate.options import fill
from opschema_cli.testing import Migrated, _prepare, migrate_files
from tests.toypack import PACK


def run(name: str, text: str, *options: str, only: tuple[str, ...] = (), skip: tuple[str, ...] = ()) -> Migrated:
    return migrate_files(PACK, name, {"a.toy.yaml": text}, options, only=only, skip=skip)


def test_sites_are_migrated_and_notes_say_where_their_places_are_afterwards() -> None:
    done = run("lower-docs", "add:\n  doc: LOUD\nmul: {doc: QUITE LOUD, dtype: f16}\nsub: {doc: x}\n")
    assert done.files == {"a.toy.yaml": "add:\n  doc: loud\nmul: {doc: quite loud, dtype: f16}\nsub: {doc: x}\n"}
    assert done.sites() == ["a.toy.yaml:2: lower the doc of `add`", "a.toy.yaml:3: lower the doc of `mul`"]
    assert done.notes() == ["a.toy.yaml:1: `add` has no dtype"]


def test_without_a_site_the_migration_is_not_run() -> None:
    done = run("lower-docs", "add: {doc: x}\n")
    assert (done.result.sites, done.result.notes, done.result.changes) == ([], [], [])


@pytest.mark.parametrize(
    "text",
    [
        "add: {doc: LOUD}  # opschema: ignore[TOY102] it must be heard\n",
        "# opschema: ignore[loud-doc]\nadd: {doc: LOUD}\n",
        "add:  # opschema: ignore[TOY102]\n  dtype: f16\n  doc: LOUD\n",
        "# opschema: ignore-file[TOY1]\nadd: {dtype: f16}\nmul:\n\n  doc: LOUD\n",
    ],
    ids=["line", "line above", "the op's key", "file"],
)
def test_a_suppressed_site_is_left_alone(text: str) -> None:
    done = run("lower-docs", text)
    assert done.files == {"a.toy.yaml": text}
    assert [item.status for item in done.result.sites] == ["suppressed"]


@pytest.mark.parametrize(
    "text",
    [
        "add: {doc: LOUD}  # opschema: ignore[TOY101]\n",
        "mul: {doc: x}  # opschema: ignore[TOY102]\nadd: {doc: LOUD}\n",
        "add: {doc: LOUD, note: '# opschema: ignore[TOY102]'}\n",
    ],
    ids=["another rule", "another line", "in a string"],
)
def test_what_looks_like_a_suppression_of_it_is_none(text: str) -> None:
    assert run("lower-docs", text).files == {"a.toy.yaml": text.replace("LOUD", "loud")}


def test_per_file_ignores_leave_sites_alone_too() -> None:
    files = {"opschema.toml": '[per-file-ignores]\n"old/*" = ["TOY102"]\n', "old/a.toy.yaml": "add: {doc: LOUD}\n"}
    files["b.toy.yaml"] = "mul: {doc: LOUD}\n"
    done = migrate_files(PACK, "lower-docs", files)
    assert [item.status for item in done.result.sites] == ["migrated", "suppressed"]
    assert done.files["old/a.toy.yaml"] == "add: {doc: LOUD}\n"


LOUD = "add: {doc: LOUD}\nadd_out: {doc: LOUD}\nmul: {doc: LOUD}\n"


@pytest.mark.parametrize(
    ("only", "skip", "migrated"),
    [
        (("add",), (), ["add"]),
        (("add*",), (), ["add", "add_out"]),
        (("add*",), ("add_out",), ["add"]),
        ((), ("mul",), ["add", "add_out"]),
        (("add", "mul"), (), ["add", "mul"]),
        (("a.toy.yaml:2",), (), ["add_out"]),
        (("./a.toy.yaml:2", "a.toy.yaml:3"), (), ["add_out", "mul"]),
        (("a.toy.yaml",), (), ["add", "add_out", "mul"]),
        (("*.yaml",), (), ["add", "add_out", "mul"]),
        ((".",), ("*",), []),
        ((), (), ["add", "add_out", "mul"]),
    ],
)
def test_places_choose_sites(only: tuple[str, ...], skip: tuple[str, ...], migrated: list[str]) -> None:
    done = run("lower-docs", LOUD, only=only, skip=skip)
    assert [item.site.ops[0] for item in done.result.sites if item.status == "migrated"] == migrated
    assert {item.status for item in done.result.sites} <= {"migrated", "skipped"}
    assert done.files["a.toy.yaml"].count("LOUD") == 3 - len(migrated)


@pytest.mark.parametrize(
    ("path", "candidates"),
    [("..", ["..", "kit"]), ("../../b.yaml", ["../../b.yaml", "b.yaml"]), ("./b.yaml", ["b.yaml", "kit/ops/b.yaml"])],
)
def test_paths_are_relative_to_the_folder_as_well(path: str, candidates: list[str]) -> None:
    assert Choice(cwd="kit/ops")._candidates(path) == candidates


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("ad", "; did you mean `add`?"),
        ("a.toy.yml", "; did you mean `a.toy.yaml`?"),
        ("a.toy.yaml:99", "; did you mean `a.toy.yaml`?"),
        ("a.toy.yaml:0", "; did you mean `a.toy.yaml`?"),
        ("..", ""),
        ("zzz*", ""),
        ("", ""),
    ],
)
def test_a_place_that_means_nothing_is_refused(pattern: str, hint: str) -> None:
    with pytest.raises(OpschemaError) as caught:
        run("lower-docs", LOUD, only=(pattern,))
    assert str(caught.value) == f"--only {pattern}: there is no such op, file or line here{hint}"


def test_a_place_where_nothing_is_left_to_do_is_fine() -> None:
    done = run("lower-docs", "add: {doc: x}\n", only=("add",))
    assert done.result.sites == []


# Options


def test_options_are_converted() -> None:
    text = "add: {dc: x}\nmul: {dc: y}\nsub: {dc: z}\n"
    done = run("rename-key", text, "old=dc", "new=doc", "ops=add, mul", "at-most=2")
    assert done.files["a.toy.yaml"] == "add: {doc: x}\nmul: {doc: y}\nsub: {dc: z}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "`rename-key` needs -o old=… -o new=…"),
        (["old=a"], "`rename-key` needs -o new=…"),
        (["old=a", "new=b", "nwe=c"], "-o nwe: `rename-key` has no such option; did you mean `new`?"),
        (["old=a", "new=b", "at-most=x"], "`rename-key`: `at-most`: Expected `int`, got `str`"),
        (["old"], "-o old: expected NAME=VALUE"),
        (["old=a", "new=b", "ops=x", "ops=y"], "-o ops: given twice; the items of a list have commas between them"),
        (["xyz=1"], "-o xyz: `rename-key` has no such option; known: `at-most`, `new`, `old`, `ops`"),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(OpschemaError) as caught:
        run("rename-key", "add: {}\n", *options)
    assert str(caught.value) == message


# Files


def test_files_move_and_come_and_their_edits_with_them() -> None:
    done = migrate_files(PACK, "move-files", {"a.toy.yaml": "add: {}\n", "sub/b.toy.yaml": "mul: {}\n"}, ["into=x/y"])
    assert done.files == {
        "x/y/a.toy.yaml": "add: {}\n",
        "x/y/b.toy.yaml": "mul: {}\n",
        "x/y/list.txt": "a.toy.yaml\nsub/b.toy.yaml\n",
    }
    assert [change.path for change in done.result.changes if change.after is None] == ["a.toy.yaml", "sub/b.toy.yaml"]


# Bad migrations


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", "KeyError: 'the toy broke' (line "),
        ("raise in find", "ZeroDivisionError: the toy broke (line "),
        ("overlap", "a.toy.yaml:1: edits of Span(start=0, end=2) and Span(start=1, end=3) overlap"),
        ("break", "a.toy.yaml:1: the draft does not parse: this is not YAML: "),
        ("create twice", "new.txt: it is there already"),
        ("reach too far", "a.toy.yaml: an edit of Span(start=0, end=1000000) in a text of "),
        ("nothing", "it would have to run again: a.toy.yaml:1 (harm `add`)"),
    ],
)
def test_a_migration_that_fails_is_named(how: str, message: str) -> None:
    with pytest.raises(MigrationFailure) as caught:
        run("misbehave", "add: {doc: x}\nmul: {doc: x}\n", f"how={how}")
    assert str(caught.value).startswith(f"the migration `misbehave` failed: {message}")


def test_what_a_migration_refuses_is_its_users_to_mend() -> None:
    with pytest.raises(OpschemaError, match="the toy refuses"):
        run("misbehave", "add: {}\n", "how=refuse")


def test_a_migration_that_leaves_some_of_its_sites_fails() -> None:
    with pytest.raises(MigrationFailure, match=r"it would have to run again: a\.toy\.yaml:2 \(`dc` of `mul`\)"):
        run("rename-key", "add: {dc: x}\nmul: {dc: y}\n", "old=dc", "new=doc", "at-most=1")


def test_a_site_that_was_skipped_may_still_be_there_wherever_it_moved_to() -> None:
    text = "add: {doc: LOUD}\nmul: {doc: LOUDER}\nsub: {doc: LOUDEST}\n"
    done = run("lower-docs", text, skip=("mul",))
    assert done.files["a.toy.yaml"] == "add: {doc: loud}\nmul: {doc: LOUDER}\nsub: {doc: loudest}\n"


def test_a_site_that_the_migration_leaves_with_a_note_may_still_be_there() -> None:
    text = "add: {doc: LOUD}\nmul: {doc: LOUDER, keep: y}\n"
    done = run("lower-docs", text)
    assert done.files["a.toy.yaml"] == text.replace("LOUD}", "loud}")
    assert [item.status for item in done.result.sites] == ["migrated", "left"]
    assert done.notes() == ["a.toy.yaml:1: `add` has no dtype", "a.toy.yaml:2: `mul` is to keep its doc"]


# Several migrations


def several(files: dict[str, str], names: list[str], options: list[str]) -> tuple[Draft, list[list[str]], list[str]]:
    """The draft after migrations one after the other, the titles of their sites, and the places of their notes."""
    job, project = _prepare([PACK], files, [])
    records = {item.name: item for item in PACK.all_migrations()}
    pack_options = job.settings.pack_options["toy"]
    values = fill([records[name] for name in names], options)
    tasks = [Task(records[name], values[name], lambda loaded: PACK.load(loaded, pack_options)) for name in names]
    draft = Draft(project, tasks[0].load)
    results = migrate_all(draft, tasks, Ground(job.registry, job.settings, Choice()))
    notes = [
        f"{left.note.place.path}:{left.position.line}:{left.position.column}" for item in results for left in item.notes
    ]
    return draft, [[item.site.title for item in result.sites] for result in results], notes


def test_a_migration_sees_what_the_one_before_it_left() -> None:
    files = {"a.toy.yaml": "add: {dc: LOUD}\n"}
    draft, titles, _ = several(files, ["rename-key", "lower-docs"], ["old=dc", "new=doc"])
    assert titles == [["`dc` of `add`"], ["lower the doc of `add`"]]
    assert draft.text("a.toy.yaml") == "add: {doc: loud}\n"


def test_notes_follow_their_places_through_later_migrations() -> None:
    files = {"a.toy.yaml": "add: {x: 1}\nmul: {doc: LOUD}\n"}
    _, _, notes = several(
        files, ["lower-docs", "rename-key", "move-files"], ["old=x", "new='long\\nkey'", "into=there"]
    )
    assert notes == ["there/a.toy.yaml:2:1"]


def test_one_that_brings_back_what_an_earlier_one_removed_fails_the_run() -> None:
    files = {"a.toy.yaml": "add: {doc: x, shout: LOUD}\n"}
    with pytest.raises(MigrationFailure, match="`lower-docs` failed: it would have to run again"):
        several(files, ["lower-docs", "rename-key"], ["old=shout", "new=doc", "ops=add"])
