"""The README is correct: its samples, numbers and commands; and `make help` lists all targets."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from opschema_cli.commands.pre_commit import Origin, hook_entry
from opschema_cli.lint.registry import load_registry
from opschema_cli.main import cli
from opschema_cli.migrate.engine import load_migrations
from tests.command import TILEKIT, Opschema

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DRIFTED, MIGRATED = TILEKIT.with_name("tilekit_drifted"), TILEKIT.with_name("tilekit_migrated")
DOCUMENTS = ("README.md", "docs/configuration.md", "docs/verify.md", "docs/pytorch-schemas.md")


def fences(text: str, language: str = "") -> list[str]:
    """The fenced blocks of a page in a language."""
    return [block for kind, block in re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", text) if kind == language]


def samples() -> list[str]:
    """The output of `opschema lint` in the README, without the command."""
    first = "$ opschema lint\n"
    return [block.removeprefix(first) for block in fences(README) if block.startswith(first)]


@pytest.fixture
def opschema(tmp_path: Path) -> Opschema:
    return Opschema(tmp_path, tmp_path / "cache")


def test_the_first_sample_is_that_of_the_first_page_of_the_documentation() -> None:
    """Its command runs with those of all pages (``tests/website``)."""
    shown = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert f"$ opschema lint\n{samples()[0]}" in shown
    assert re.match(r"\S+  error ", samples()[0]), "the first screen shows an error"


def test_the_example_differs_from_tilekit_in_a_line_for_each_fault() -> None:
    files = [path.relative_to(DRIFTED) for path in DRIFTED.rglob("*") if path.is_file() and path.name != "README.md"]
    assert len(files) == 2
    for path in files:
        base = MIGRATED if (MIGRATED / path).is_file() else TILEKIT
        before, after = ((folder / path).read_text().splitlines() for folder in (base, DRIFTED))
        assert len(before) == len(after)
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_the_second_sample_is_part_of_the_output_on_a_broken_backend(opschema: Opschema) -> None:
    out = opschema("lint", cwd=TILEKIT.with_name("atenkit_broken")).out
    first, shown, last = samples()[1].split("...\n")
    assert (first, last) == ("", "")
    assert len(shown.splitlines()) > 10
    assert shown.rstrip() in out


def test_the_table_counts_rules_and_migrations() -> None:
    packs = load_registry().packs
    rows = {line.split("`")[1]: line for line in README.splitlines() if line.startswith("| `")}
    assert rows.keys() == {pack.name for pack in packs}
    for pack in packs:
        found = re.search(r"(\d+) rules:.*?(?:; (\d+) migrations?)?(?:; `opschema stubs`)? \|$", rows[pack.name])
        assert found is not None, rows[pack.name]
        assert (int(found[1]), int(found[2] or 0)) == (len(pack.rules), len(load_migrations(pack))), pack.name


def test_the_hook_is_what_init_writes_in_a_checkout() -> None:
    checkout = yaml.safe_load("repos:\n" + hook_entry([Origin("opschema-cli", "1.0", "file:///home/a/opschema")]))
    for document in ("README.md", "docs/configuration.md"):
        (shown,) = (
            block
            for block in fences((ROOT / document).read_text(), "yaml")
            if block.startswith("repos:") and "local" in block
        )
        assert yaml.safe_load(shown) == checkout, document


def test_every_claim_links_to_its_test_or_its_figure() -> None:
    section = README.partition("## What you can rely on\n")[2].partition("\n## ")[0]
    claims = re.findall(r"(?ms)^- \*\*(.+?)\*\*(.*?)(?=^- |\Z)", section)
    assert len(claims) > 5
    links = {
        name: re.findall(r"\]\(https://github\.com/opschema/opschema/blob/main/([^)#]+)", text) for name, text in claims
    }
    assert [name for name, files in links.items() if not files] == []
    assert [file for files in links.values() for file in files if not (ROOT / file).is_file()] == []


def commands() -> list[str]:
    """The commands in the fenced blocks of documents."""
    blocks = [block for name in DOCUMENTS for block in fences((ROOT / name).read_text(encoding="utf-8"))]
    return [line for block in blocks for line in re.findall(r"(?m)^(?:\$ )?(opschema .+)$", block)]


@pytest.mark.parametrize("line", commands())
def test_every_command_that_is_shown_exists_with_its_options(line: str) -> None:
    words = shlex.split(line.replace("…", ""), comments=True)
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None, line
    if isinstance(command, click.Group) and len(words) > 2:
        command = command.get_command(click.Context(command), words[2])
        assert command is not None, line
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert {word.partition("=")[0] for word in words[2:] if word.startswith("-")} <= known


def test_there_are_commands_to_check() -> None:
    assert len(commands()) > 20


# make


def make(*args: str) -> str:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    return subprocess.run(["make", *args], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_make_help_lists_every_target() -> None:
    phony = re.search(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())
    assert phony is not None
    listed = re.findall(r"(?m)^  make ([\w-]+) +\S", make("help"))
    assert listed == phony[1].split()
    assert set(re.findall(r"(?m)^make (\w+)", "\n".join(fences(README)))) <= set(listed)


def test_the_demo_begins_with_the_example_of_the_readme() -> None:
    steps = make("--dry-run", "--always-make", "demo").splitlines()
    runs = [step for step in steps if re.search(r"bin/opschema ", step)]
    assert runs[0] == "cd .venv/drifted && ../bin/opschema lint || test $? -eq 1"
    assert "cp -r fixtures/tilekit_migrated/. fixtures/tilekit_drifted/. .venv/drifted" in steps
