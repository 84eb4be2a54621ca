"""Patterns of a ``.gitignore``, each beside git's own answer."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opschema_cli.errors import OpschemaError
from opschema_cli.gitignore import glob_spec

EXAMPLES = int(os.environ.get("OPSCHEMA_SLOW", "0")) * 1000 + 150


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ignored")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def git_ignores(repository: Path, patterns: list[str], paths: list[str]) -> set[str]:
    """The paths that git leaves out; it asks no file, so that each is taken for one, and what is above it for a folder."""
    (repository / ".gitignore").write_text("".join(f"{line}\n" for line in patterns))
    run = subprocess.run(
        ["git", "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=repository, input="\0".join(paths).encode(), capture_output=True, check=False,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stderr
    return set(run.stdout.decode().split("\0")) - {""}


def own_ignores(patterns: list[str], paths: list[str]) -> set[str]:
    kept = []
    for pattern in patterns:
        try:
            glob_spec([pattern])
        except OpschemaError:
            continue  # git matches nothing with it
        kept.append(pattern)
    spec = glob_spec(kept)
    return {path for path in paths if spec.ignores(path)}


CASES = {
    "a name anywhere": (["x"], "x a/x a/x/b y x/y"),
    "anchored by a slash": (["/x", "a/x"], "x a/x b/x b/a/x"),
    "folders alone": (["x/"], "x x/a a/x a/x/b"),
    "a star stays in its part": (["*.py", "a*b", "c/*"], "m.py d/m.py ab a/b axxb c/d c/d/e"),
    "two stars": (["**/x", "a/**", "b/**/c", "**"], "x q/x a/b b/c b/d/c b/d/e/c zz"),
    "stars within a part": (["a**b", "c/**d", "e**/f", "***/g"], "ab axb a/b c/d c/xd c/x/d e/f ex/f e/x/f g h/g"),
    "question marks": (["a?b"], "axb a/b ab"),
    "classes": (["[ab]c", "[!a]d", "[^a]e", "[a-c]f", "[]]g", "[a-]h"], "ac bc cc ad bd ae be bf df ]g ag -h"),
    "classes with slashes": (["a[/]b", "a[!x]b", "a[.-0]b"], "a/b axb ayb a.b a0b"),
    "named classes": (["[[:digit:]]", "[[:upper:][:space:]]x", "[[:nosuch:]]y", "[^[:alpha:]]z"], "1 a Ax bx ay 1z az"),
    "escapes": ([r"\#a", r"\!b", r"a\*c", r"[\]]d", r"e\ ", "f "], "#a !b a*c axc ]d e f"),
    "taken back": (["*.py", "!keep.py", "a/keep.py"], "keep.py x.py a/keep.py b/keep.py"),
    "never out of an ignored folder": (["d/", "!d/keep", "!keep"], "d/keep d/e/keep keep"),
    "a folder taken back": (["d*/", "!d1/"], "d1/x d2/x"),
    "comments and nothing": (["# x", "", "   ", "#"], "x #"),
    "not closed": (["[ab", "a[", "b\\"], "a b [ab a[ b\\"),
    "a range the wrong way round": (["[z-a]"], "a z m"),
    "only slashes": (["/", "//", "!", "!/"], "a a/b"),
    "dots": ([".*", "!.a"], ".a .b a/.b x"),
    "other letters": (["ä*"], "äx ö"),
    "many slashes": (["a//b", "//c", "/a/b/c/"], "a/b c a/b/c a/b/c/d"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_git_ignores_is_ignored(repository: Path, case: tuple[list[str], str]) -> None:
    patterns, paths = case[0], case[1].split()
    assert own_ignores(patterns, paths) == git_ignores(repository, patterns, paths)


PART = st.text("ab*?[]!^-\\. ", min_size=1, max_size=5) | st.sampled_from(["**", "*", "a", "b", "[a-b]", "[!a]", "a*"])
PATTERN = st.builds(
    lambda negated, first, parts, last: negated + first + "/".join(parts) + last,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(PART, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
PATHS = [*"ab-]!", *(f"{one}/{other}" for one in ("a", "b", "ab", ".a") for other in ("a", "b", "a/b", "b.a/ba", "ab"))]


@settings(max_examples=EXAMPLES)
@given(st.lists(PATTERN, min_size=1, max_size=4))
def test_random_patterns_are_read_as_git_reads_them(repository: Path, patterns: list[str]) -> None:
    assert own_ignores(patterns, PATHS) == git_ignores(repository, patterns, PATHS), patterns


def test_a_folder_is_asked_for_with_a_slash() -> None:
    spec = glob_spec(["build/", "!kept/"])
    assert [spec.verdict(path) for path in ("build/", "build", "kept/", "kept", "kept/x", "x/build/y")] == [
        True, None, False, None, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["!", "a[", "b\\", "/", "[[:nosuch:]]"])
def test_a_pattern_that_matches_nothing_is_named(pattern: str) -> None:
    with pytest.raises(OpschemaError, match=r"exclude: `.*` is not a pattern of a \.gitignore"):
        glob_spec(["x", pattern], "exclude")


def test_classes_and_question_marks_are_of_characters_where_git_takes_bytes() -> None:
    spec = glob_spec(["[ö-ü]", "a?"])
    assert [spec.ignores(path) for path in ("ö", "ü", "ô", "aä")] == [True, True, False, True]


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/a/" * 20 + "b", "a/" * 400 + "c"),
        ("*a" * 40 + "b", "a" * 255),
        ("**/" + "*a" * 20 + "/b", ("a" * 200 + "/") * 15 + "c"),
        ("/".join(["*"] * 200), "a/" * 198 + "a"),
    ],
)
def test_patterns_with_many_stars_take_no_time(pattern: str, path: str) -> None:
    started = time.process_time()
    assert not glob_spec([pattern]).ignores(path)
    assert time.process_time() - started < 2
