"""``opschema migrate``, run as users run it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import EXECUTABLE, TOYPACK, Opschema, environment
from tests.test_git import git


@pytest.fixture
def repository(root: Path) -> Path:
    """The toy workspace with two loud ops, committed."""
    (root / "a.toy.yaml").write_text("add: {doc: LOUD}\nmul: {doc: QUITE LOUD, dtype: f16}  # kept\n")
    git(root, "init", "-q", ".")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


LOWERED = "add: {doc: loud}\nmul: {doc: quite loud, dtype: f16}  # kept\n"
DIFF = """\
--- a/a.toy.yaml
+++ b/a.toy.yaml
@@ -1,2 +1,2 @@
-add: {doc: LOUD}
-mul: {doc: QUITE LOUD, dtype: f16}  # kept
+add: {doc: loud}
+mul: {doc: quite loud, dtype: f16}  # kept
"""


def texts(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found if path.suffix != ".pyc"}


# List


def test_without_a_name_it_lists_what_applies(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate")
    assert (done.code, done.err) == (0, "")
    assert done.out == opschema("migrate", "--list").out
    assert done.out == (
        "lower-docs  2 sites\n  Lower the docs that shout.\n"
        "misbehave  needs -o how=…\n  Do what a migration must not do.\n"
        "move-files  2 sites\n  Move toy files into one folder, with a list of them.\n"
        "rename-key  needs -o old=… -o new=…\n  Rename a key of ops.\n"
        "`opschema migrate NAME` shows what it would change; `--apply` writes it.\n"
    )


def test_the_list_as_json(opschema: Opschema, repository: Path) -> None:
    found = json.loads(opschema("migrate", "--output-format", "json").out)
    assert found["version"] == 1
    assert [(item["name"], item["sites"], item["needs"]) for item in found["migrations"]] == [
        ("lower-docs", 2, []),
        ("misbehave", None, ["how"]),
        ("move-files", 2, []),
        ("rename-key", None, ["old", "new"]),
    ]
    assert {item["reason"] for item in found["migrations"]} == {""}
    assert found["migrations"][3]["options"] == ["old", "new", "ops", "at-most"]


def test_where_nothing_is_detected_nothing_is_listed(opschema: Opschema, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = opschema("migrate", cwd=tmp_path / "empty")
    assert (done.code, done.out) == (0, "")
    assert "found nothing to migrate here" in done.err


BEGINNING = '''

import msgspec


def _nothing(draft, options):
    if not _ops(draft):
        yield Site(Place("notes.txt", Span(0, 0)), "begin a toy file")


@migration("begin", find=_nothing, anywhere=True)
def begin(draft, sites, options):
    """Begin a toy file."""
    draft.create("new.toy.yaml", "add: {doc: x}\\n")
    return []


PACK = msgspec.structs.replace(PACK, migrations=lambda: (begin, lower_docs))
'''


def test_a_migration_may_make_what_its_pack_looks_for(opschema: Opschema, root: Path) -> None:
    for path in root.rglob("*.toy.yaml"):
        path.unlink()
    (root / "notes.txt").write_text("nothing yet\n")
    (root / "toypack.py").write_text(TOYPACK.read_text() + BEGINNING)
    done = opschema("migrate", "begin")
    assert (done.code, done.err) == (0, "")
    assert "+++ b/new.toy.yaml\n@@ -0,0 +1 @@\n+add: {doc: x}\n" in done.out
    done = opschema("migrate", "lower-docs")
    assert done.code == 2
    assert "the migration `lower-docs` is one of the pack `toy`, which finds nothing here" in done.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("drop-carier", "no migration is called `drop-carier`; did you mean `drop-carrier`?"),
        ("drop-carrier", "the migration `drop-carrier` is one of the pack `tileops`, which finds nothing here"),
    ],
)
def test_a_migration_of_another_pack_is_named(opschema: Opschema, name: str, message: str) -> None:
    done = opschema("migrate", name, cwd=TOYPACK.parents[1] / "fixtures/orchkit")
    assert (done.code, done.err) == (2, f"opschema: {message}\n")


def test_that_there_are_no_migrations_is_told(opschema: Opschema, tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/opschema.toml").write_text("")
    (tmp_path / "kit/ops.py").write_text('import torch\n\ntorch.library.define("kit::f", "(Tensor x) -> Tensor")\n')
    done = opschema("migrate", cwd=tmp_path / "kit")
    assert done.code == 0
    assert done.out.startswith(
        "There are no migrations for the code found here, which torchlib checks.\nNot applicable: "
    )


# Diff


def test_the_diff_is_a_patch_with_notes_and_summary_behind_it(opschema: Opschema, repository: Path) -> None:
    before = texts(repository)
    done = opschema("migrate", "lower-docs")
    assert (done.code, done.err) == (0, "")
    assert done.out == DIFF + (
        "1 place needs manual edits:\n  a.toy.yaml:1:1: `add` has no dtype\n\nWould migrate 2 sites in 1 file; --apply writes.\n"
    )
    assert texts(repository) == before
    subprocess.run(["git", "apply"], input=done.out.encode(), cwd=repository, check=True)
    assert (repository / "a.toy.yaml").read_text() == LOWERED


def test_added_and_removed_files_are_in_the_patch(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate", "move-files", "--diff")
    subprocess.run(["git", "apply"], input=done.out.encode(), cwd=repository, check=True)
    assert sorted(path for path in texts(repository) if "toypack" not in path) == [
        "moved/a.toy.yaml",
        "moved/b.toy.yaml",
        "moved/list.txt",
        "opschema.toml",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal_the_diff_is_numbered_coloured_and_obeys_no_file(
    opschema: Opschema, repository: Path, columns: int
) -> None:
    import fcntl
    import pty
    import struct
    import termios

    (repository / "a.toy.yaml").write_text(f"add: {{doc: LOUD}}  # \u202eevil {'long ' * 40}\n")
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = environment(opschema.cache, COLUMNS=None, TERM="xterm-256color", NO_COLOR=None)
    run = subprocess.Popen([EXECUTABLE, "migrate", "lower-docs"], cwd=repository, env=variables, stdout=other)
    os.close(other)
    shown = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        shown += piece
    assert run.wait() == 0
    os.close(main)
    assert "\u202e".encode() not in shown
    assert b"\\u202eevil" in shown
    assert b"\x1b[1;4;32mloud" in shown
    plain = shown.replace(b"\r\n", b"\n").decode()
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[38;5;243m", "\x1b[31m", "\x1b[32m", "\x1b[1;4;31m", "\x1b[1;4;32m"):
        plain = plain.replace(code, "")
    lines = plain.splitlines()
    assert lines[0] == "a.toy.yaml +1 -1"
    assert lines[1].startswith("    1     - add: {doc: LOUD}")
    assert all(len(line) <= columns for line in lines), lines


# Check


def test_check_fails_while_something_is_pending(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate", "lower-docs", "--check")
    assert done.code == 1
    assert done.out == (
        "a.toy.yaml:1:12: lower-docs: lower the doc of `add`\n"
        "a.toy.yaml:2:12: lower-docs: lower the doc of `mul`\n"
        "Pending: lower-docs, 2 sites; `opschema migrate lower-docs --apply` migrates.\n"
    )
    assert opschema("migrate", "lower-docs", "--apply").code == 0
    done = opschema("migrate", "lower-docs", "--check")
    assert (done.code, done.out) == (0, "Nothing to migrate: no doc shouts.\n")


def test_check_names_every_pending_migration(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate", "lower-docs", "move-files", "--check")
    assert done.code == 1
    summary = "Pending: lower-docs, move-files, 4 sites; `opschema migrate lower-docs move-files --apply` migrates.\n"
    assert done.out.endswith(summary)
    found = json.loads(opschema("migrate", "lower-docs", "move-files", "--check", "--output-format", "json").out)
    assert [len(item["sites"]) for item in found["migrations"]] == [2, 2]
    assert (found["applied"], found["summary"]["pending"]) == (False, 4)


def test_check_tells_the_command_with_its_options(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate", "rename-key", "-o", "old=doc", "-o", "new=a b", "--skip", "mul", "--check")
    told = " ".join(done.out.split())
    assert told.endswith("`opschema migrate rename-key --skip mul -o old=doc -o 'new=a b' --apply` migrates.")


def test_suppressed_and_skipped_sites_are_not_pending(opschema: Opschema, repository: Path) -> None:
    text = "add: {doc: LOUD}  # opschema: ignore[TOY102] it must be\nmul: {doc: LOUD}\n"
    (repository / "a.toy.yaml").write_text(text)
    done = opschema("migrate", "lower-docs", "--check", "--skip", "mul")
    assert (done.code, done.out) == (0, "Nothing to migrate (1 suppressed, 1 skipped).\n")


def test_what_a_migration_leaves_is_not_pending(opschema: Opschema, repository: Path) -> None:
    (repository / "a.toy.yaml").write_text("add: {doc: LOUD, keep: y}\n")
    done = opschema("migrate", "lower-docs", "--check")
    assert (done.code, done.out) == (0, "Nothing to migrate (1 to do by hand).\n")
    done = opschema("migrate", "lower-docs", "--apply", "--allow-dirty")
    assert "a.toy.yaml:1:12: `add` is to keep its doc" in done.out


# Apply


def test_apply_writes_and_a_second_time_changes_nothing(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate", "lower-docs", "--apply")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "a.toy.yaml +2 -2\n1 place needs manual edits:\n  a.toy.yaml:1:1: `add` has no dtype\n\nMigrated 2 sites in 1 file.\n"
    )
    assert (repository / "a.toy.yaml").read_text() == LOWERED
    after = texts(repository)
    done = opschema("migrate", "lower-docs", "--apply")
    assert (done.code, done.out) == (0, "Nothing to migrate: no doc shouts.\n")
    assert texts(repository) == after


def test_the_baseline_loses_what_a_migration_removes(opschema: Opschema, repository: Path) -> None:
    opschema("baseline")
    baseline = repository / ".opschema-baseline.json"
    held = json.loads(baseline.read_text())["findings"]
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "baseline")
    done = opschema("migrate", "lower-docs", "--apply", "--only", "add")
    assert done.err == "opschema: removed 1 entry from .opschema-baseline.json\n"
    left = json.loads(baseline.read_text())["findings"]
    assert [item["code"] for item in held if item not in left] == ["TOY102"]
    assert "SUP003" not in opschema("lint").out


def test_plan_and_result_as_json(opschema: Opschema, repository: Path) -> None:
    command = ("migrate", "lower-docs", "--skip", "mul", "--output-format", "json")
    plan, result = json.loads(opschema(*command).out), json.loads(opschema(*command, "--apply").out)
    assert plan == {
        "version": 1,
        "migrations": [
            {
                "name": "lower-docs",
                "reason": "",
                "sites": [
                    {
                        "path": "a.toy.yaml",
                        "line": 1,
                        "column": 12,
                        "title": "lower the doc of `add`",
                        "ops": ["add"],
                        "status": "migrated",
                    },
                    {
                        "path": "a.toy.yaml",
                        "line": 2,
                        "column": 12,
                        "title": "lower the doc of `mul`",
                        "ops": ["mul"],
                        "status": "skipped",
                    },
                ],
                "notes": [{"path": "a.toy.yaml", "line": 1, "column": 1, "message": "`add` has no dtype"}],
                "files": [
                    {
                        "path": "a.toy.yaml",
                        "change": "modified",
                        "diff": "--- a/a.toy.yaml\n+++ b/a.toy.yaml\n@@ -1,2 +1,2 @@\n-add: {doc: LOUD}\n+add: {doc: loud}\n"
                        " mul: {doc: QUITE LOUD, dtype: f16}  # kept\n",
                    }
                ],
            }
        ],
        "applied": False,
        "summary": {"migrated": 1, "pending": 0, "left": 0, "suppressed": 0, "skipped": 1, "notes": 1, "files": 1},
    }
    assert result == {**plan, "applied": True}


def test_nothing_was_applied_where_nothing_was_to_do(opschema: Opschema, repository: Path) -> None:
    assert opschema("migrate", "lower-docs", "--apply").code == 0
    found = json.loads(opschema("migrate", "lower-docs", "--apply", "--output-format", "json").out)
    assert (found["applied"], found["summary"]["files"]) == (False, 0)


def test_places_may_be_absolute(opschema: Opschema, repository: Path) -> None:
    shutil.copy(repository / "a.toy.yaml", repository / "sub/a.toy.yaml")
    place = f"{repository / 'a.toy.yaml'}:1"
    done = opschema("migrate", "lower-docs", "--only", place, "--check", cwd=repository / "sub")
    assert "a.toy.yaml:1:12: lower-docs: lower the doc of `add`\n" in done.out
    assert "Pending: lower-docs, 1 site (3 skipped)" in done.out
    assert "(2 skipped)" in opschema("migrate", "lower-docs", "--skip", str(repository / "sub"), "--check").out
    assert opschema("migrate", "lower-docs", "--only", str(repository), "--check").out.count("lower the doc") == 4
    done = opschema("migrate", "lower-docs", "--only", str(repository.parent / "b.yaml"))
    assert (done.code, done.out) == (2, "")
    assert "is outside the workspace" in done.err
    done = opschema("migrate", "lower-docs", "--only", str(repository / "b.toy.yaml"))
    assert (done.code, done.out) == (2, "")
    assert "there is no such op, file or line here" in done.err


def test_several_are_applied_as_one(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate", "lower-docs", "move-files", "-o", "into=there", "--apply")
    assert done.code == 0
    assert (repository / "there/a.toy.yaml").read_text() == LOWERED
    assert not (repository / "a.toy.yaml").exists()
    assert "there/a.toy.yaml:1:1: `add` has no dtype" in done.out


# Git


@pytest.mark.parametrize("dirty", ["sub/b.toy.yaml", "a.toy.yaml"])
def test_a_dirty_tree_is_refused(opschema: Opschema, repository: Path, dirty: str) -> None:
    with (repository / dirty).open("a") as stream:
        stream.write("# mine\n")
    before = texts(repository)
    done = opschema("migrate", "lower-docs", "--apply")
    assert (done.code, done.out) == (2, "")
    assert f"nothing was written: git has uncommitted changes in {dirty}; commit or stash them first" in done.err
    assert texts(repository) == before
    assert opschema("migrate", "lower-docs", "--apply", "--allow-dirty").code == 0
    assert texts(repository) != before


def test_outside_of_git_it_is_told_and_done(opschema: Opschema, root: Path) -> None:
    done = opschema("migrate", "lower-docs", "--apply")
    assert done.code == 0
    assert "this is not in git" in done.err


def test_explain_prints_the_page_and_needs_no_option(opschema: Opschema, repository: Path) -> None:
    done = opschema("migrate", "rename-key", "--explain")
    assert done.code == 0
    assert done.out.startswith("# rename-key\n")
    assert "-o old=… -o new=…" in done.out


# Wrong usage, bad migrations


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["lower-doc"], "no migration is called `lower-doc`; did you mean `lower-docs`?"),
        (["--apply"], "--apply needs the NAME of a migration"),
        (["--explain"], "--explain needs the NAME of a migration"),
        (["--check"], "--check needs the NAME of a migration"),
        (["lower-docs", "--apply", "--check"], "choose one of --apply and --check"),
        (["lower-docs", "--allow-dirty"], "--allow-dirty goes with --apply"),
        (["lower-docs", "--recover"], "--recover takes neither a NAME nor options of one"),
        (["lower-docs", "--explain", "--only", "add"], "--explain takes no options of a migration"),
        (["lower-docs", "--explain", "--output-format", "json"], "--explain has no --output-format json"),
        (["--recover", "--output-format", "json"], "--recover has no --output-format json"),
        (["lower-docs", "--only", "ad"], "--only ad: there is no such op, file or line here; did you mean `add`?"),
        (["lower-docs", "-o", "x=1"], "-o x: `lower-docs` has no such option"),
        (["rename-key"], "`rename-key` needs -o old=… -o new=…"),
        (["-o", "x=1"], "--only, --skip and --option need the NAME of a migration; `opschema migrate` lists them"),
        (["--only", "add"], "--only, --skip and --option need the NAME of a migration"),
        (["--list", "--only", "add"], "--list takes neither a NAME nor options of one"),
        (["misbehave", "-o", "how=refuse"], "opschema: the toy refuses"),
    ],
)
def test_2_on_wrong_usage(opschema: Opschema, repository: Path, args: list[str], message: str) -> None:
    done = opschema("migrate", *args)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("how", ["raise", "raise in find", "overlap", "break", "nothing"])
def test_3_when_a_migration_fails_and_nothing_is_written(opschema: Opschema, repository: Path, how: str) -> None:
    before = texts(repository)
    done = opschema("migrate", "lower-docs", "misbehave", "-o", f"how={how}", "--apply")
    assert (done.code, done.out) == (3, "")
    assert "opschema: the migration `misbehave` failed: " in done.err
    assert done.err.endswith("; nothing was written\n")
    assert texts(repository) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights here")
def test_2_when_a_file_leads_out_of_the_workspace(opschema: Opschema, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.toy.yaml").write_text("add: {doc: LOUD}\n")
    shutil.copy(repository / "a.toy.yaml", repository / "z.toy.yaml")
    (repository / "link.toy.yaml").symlink_to(tmp_path / "theirs.toy.yaml")
    before = texts(repository)
    done = opschema("migrate", "lower-docs", "--apply", "--allow-dirty")
    assert (done.code, done.out) == (2, "")
    assert "link.toy.yaml: this file cannot be read: it leads out of the workspace; no migration sees it" in done.err
    assert "nothing was written: link.toy.yaml cannot be read, so half of the change may lie there" in done.err
    assert texts(repository) == before
    assert (tmp_path / "theirs.toy.yaml").read_text() == "add: {doc: LOUD}\n"


# Killed

KILLED = """
import os, signal, sys
from opschema_cli.main import run
real = os.replace
def replace(source, target):
    real(source, target)
    if str(target).endswith(".yaml"):  # the first of two
        os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "later":
    os.replace = replace
else:
    link = os.link  # the user's keys are made by links, too
    os.link = lambda old, new: os.kill(os.getpid(), signal.SIGKILL) if str(old).endswith(".yaml") else link(old, new)
run(sys.argv[2:])
"""


def killed(opschema: Opschema, repository: Path, when: str) -> None:
    (repository / "sub/b.toy.yaml").write_text("mul: {doc: LOUD}\n")
    run = subprocess.run(
        [sys.executable, "-c", KILLED, when, "migrate", "lower-docs", "--apply", "--allow-dirty"],
        cwd=repository,
        env=environment(opschema.cache),
        check=False,
        capture_output=True,
    )
    assert run.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ here")
def test_after_a_kill_readers_refuse_and_recover_completes(opschema: Opschema, repository: Path) -> None:
    opschema("lint")
    killed(opschema, repository, "later")
    half = texts(repository)
    assert (half["a.toy.yaml"], half["sub/b.toy.yaml"]) == (LOWERED.encode(), b"mul: {doc: LOUD}\n")
    for args in (["lint"], ["migrate"], ["migrate", "lower-docs"], ["show", "add"], ["lint", "--fix", "--diff"]):
        done = opschema(*args)
        assert (done.code, done.out) == (2, "")
        assert "an apply is unfinished here" in done.err
    assert texts(repository) == half
    done = opschema("migrate", "--recover")
    assert (done.code, done.out) == (0, "completed the changes that an earlier run had begun (2 files)\n")
    assert sorted(texts(repository)) == ["a.toy.yaml", "opschema.toml", "sub/b.toy.yaml", "toypack.py"]
    assert (repository / "sub/b.toy.yaml").read_text() == "mul: {doc: loud}\n"
    assert opschema("migrate", "--recover").out == "nothing was left unfinished here\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ here")
@pytest.mark.parametrize(
    "args", [["lint", "--fix"], ["migrate", "lower-docs", "--apply", "--allow-dirty"]], ids=" ".join
)
@pytest.mark.parametrize("when", ["sooner", "later"])
def test_after_a_kill_the_next_run_that_writes_goes_on(
    opschema: Opschema, repository: Path, args: list[str], when: str
) -> None:
    killed(opschema, repository, when)
    if when == "sooner":
        assert opschema("lint").code != 2, "nothing was changed yet"
    done = opschema(*args)
    assert (
        "completed" if when == "later" else "discarded"
    ) + " the changes that an earlier run had begun (2 files)" in done.err
    assert sorted(texts(repository)) == ["a.toy.yaml", "opschema.toml", "sub/b.toy.yaml", "toypack.py"]
    assert (repository / "sub/b.toy.yaml").read_text() == "mul: {doc: loud}\n"
    assert (repository / "a.toy.yaml").read_text() == LOWERED


@pytest.mark.parametrize("args", [["lint"], ["lint", "--fix"], ["migrate", "--recover"]], ids=" ".join)
def test_a_journal_that_the_repository_brings_is_not_obeyed(
    opschema: Opschema, repository: Path, args: list[str]
) -> None:
    (repository / ".opschema-journal").write_text("opschema journal 1 00\n{}\ncommit\n")
    before = texts(repository)
    done = opschema(*args)
    assert (done.code, done.out) == (2, "")
    assert ".opschema-journal is not a journal of yours (it does not have your seal)" in done.err
    assert texts(repository) == before


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_2_when_the_disk_is_full(opschema: Opschema, repository: Path) -> None:
    # Caches may grow; the texts of this tree are larger than what may be written.
    (repository / "a.toy.yaml").write_text("add: {doc: LOUD}\n" + "# long\n" * 100_000)
    before = texts(repository)
    command = f"ulimit -f 500; exec {EXECUTABLE} migrate lower-docs --apply --allow-dirty --no-cache"
    run = subprocess.run(
        ["bash", "-c", command], cwd=repository, env=environment(opschema.cache), capture_output=True, check=False
    )
    assert (run.returncode, run.stdout) == (2, b"")
    assert b"opschema: nothing was written: [Errno 27] File too large" in run.stderr
    assert texts(repository) == before
