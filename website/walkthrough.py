"""Pages that walk through a repository: the examples that they start from, and the commands that they show with output.

Such a page names in its first lines the fixtures that it starts from, each copied over the one before::

    <!-- repository: tilekit tilekit_migrated -->

Its blocks of the language ``console`` are commands behind ``$``, each with its output. They run in order, in one copy.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

FIXTURES = Path(__file__).parents[1] / "fixtures"

_REPOSITORY = re.compile(r"(?m)^<!-- repository: (.+) -->$")
BLOCK = re.compile(r"(?ms)^```console\n(?P<text>.*?)^```\n")
"""A block of commands and outputs."""


class Step(msgspec.Struct, frozen=True):
    """A command, and the output that the page shows; a line of three dots there stands for lines left out."""

    command: str
    output: str


def repository(page: str) -> tuple[str, ...]:
    """The fixtures that a page starts from; none for a page that walks through no repository."""
    found = _REPOSITORY.search(page)
    return tuple(found[1].split()) if found else ()


def steps(block: str) -> list[Step]:
    """The commands of a block with their outputs."""
    parts = re.split(r"(?m)^\$ (.*)\n", block)[1:]
    return [Step(command, output) for command, output in zip(parts[::2], parts[1::2], strict=True)]


def all_steps(page: str) -> Iterator[Step]:
    """The commands of a page in their order."""
    for block in BLOCK.finditer(page):
        yield from steps(block["text"])


def copy_repository(names: Sequence[str], folder: Path) -> None:
    """Copy the fixtures of a page to a folder, without what they hold for their own tests."""
    for name in names:
        shutil.copytree(FIXTURES / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
