"""The commands that pages of ``docs`` show print what is shown, in a copy of the fixture that the page starts from."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from opschema_cli.root import find_root
from tests.command import Here
from website.walkthrough import Step, all_steps, copy_repository, repository

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if repository(path.read_text(encoding="utf-8"))]


def as_shown(text: str) -> str:
    """An output without times and trailing blanks."""
    return re.sub(r"(?m)[ \t]+$", "", re.sub(r"\d+\.\d\d s\b", "0.00 s", text)).strip("\n")


def pattern(shown: str) -> str:
    """A pattern of the outputs that fit what a page shows, where a line of three dots stands for any lines."""
    return r"(?:.*\n)*?".join(re.escape(part) for part in re.split(r"(?m)^\.\.\.(?:\n|\Z)", as_shown(shown)))


@pytest.mark.parametrize("page", PAGES, ids=[path.relative_to(DOCS).as_posix() for path in PAGES])
def test_every_command_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page.read_text(encoding="utf-8")
    folder = tmp_path / "kit"
    copy_repository(repository(text), folder)
    here = Here(folder, tmp_path / "cache", monkeypatch, capsys)
    found = list(all_steps(text))
    assert found
    for step in found:
        output = as_shown(run(step, folder, here)) + "\n"
        assert re.fullmatch(pattern(step.output) + r"\n*", output), f"$ {step.command}\n{output}"


def run(step: Step, folder: Path, here: Here) -> str:
    """The output of a command; ``opschema`` runs in this process."""
    words = shlex.split(step.command)
    if words[0] == "opschema":
        done = here(*words[1:])
        assert done.code in (0, 1), done.err
        return done.out + done.err
    return subprocess.run(step.command, shell=True, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda path: str(path.stem))
def test_a_tutorial_says_how_to_copy_its_repository(page: Path, tmp_path: Path) -> None:
    """In a copy within the clone, the clone would be linted: it has a configuration of its own."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r"(?ms)^```\n(git clone .*?)^```$", text)
    assert found is not None
    clone, *commands = found[1].splitlines()
    assert clone == "git clone https://github.com/opschema/opschema"
    (tmp_path / "opschema").symlink_to(DOCS.parent)
    subprocess.run(["sh", "-ec", "\n".join(commands)], cwd=tmp_path, check=True, capture_output=True)
    assert find_root(tmp_path / "demo") == tmp_path / "demo"
    shutil.rmtree(tmp_path / "demo/.git")
    copy_repository(repository(text), tmp_path / "expected")
    assert files_below(tmp_path / "demo") == files_below(tmp_path / "expected")


def files_below(folder: Path) -> dict[Path, bytes]:
    """The files of a folder but compiled ones."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder): path.read_bytes() for path in files}


def test_lines_left_out_fit_any_lines() -> None:
    assert re.fullmatch(pattern("a\n...\nd\n"), "a\nb\nc\nd")
    assert re.fullmatch(pattern("a\n...\n"), "a\nb\n")
    assert not re.fullmatch(pattern("a\n...\nd"), "a\nb")
    assert PAGES
