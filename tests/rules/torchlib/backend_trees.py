"""Backends out of PyTorch's tree: each is right, and has faults with the verdict of torch 2.13; read from ``backend_trees.txt``.

In that file ``=== name`` begins a tree, ``--- path`` a file of it, and ``*** name: verdict`` a fault, which replaces text behind
``- `` by the text behind ``+ `` in the first file that has it; in all of them if its name ends in ``everywhere``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from tests.rules.torchlib.cpp_cases import Case

TEXT = Path(__file__).with_name("backend_trees.txt")


class BackendTree(msgspec.Struct, frozen=True):
    """A tree of C++ files, and the verdict of torch on it."""

    name: str
    files: dict[str, str]
    verdict: str

    @property
    def case(self) -> Case:
        """The same as one text, for the compiler: headers come first, and macros end with it."""
        paths = sorted(self.files, key=lambda path: (not path.endswith(".h"), path))
        text = re.sub(r"(?m)^#(?:include|pragma).*\n", "", "".join(self.files[path] for path in paths))
        ends = "".join(f"#undef {name}\n" for name in re.findall(r"(?m)^#define (\w+)", text))
        return Case(self.name, text + ends)


@cache
def backend_trees() -> tuple[BackendTree, ...]:
    """All of them."""
    return tuple(_trees(TEXT.read_text()))


def _trees(text: str) -> Iterator[BackendTree]:
    for part in text.split("=== ")[1:]:
        name, _, rest = part.partition("\n")
        right, *faults = re.split(r"(?m)^\*\*\* ", rest)
        files = dict(item.split("\n", 1) for item in re.split(r"(?m)^--- ", right)[1:])
        yield BackendTree(name, files, "ok")
        for fault in faults:
            title, _, lines = fault.partition("\n")
            what, _, verdict = title.rpartition(": ")
            before, after = (
                "\n".join(line[2:] for line in lines.splitlines() if line.startswith(mark)) for mark in "-+"
            )
            yield BackendTree(f"{name}: {what}", _replaced(files, before, after, what.endswith("everywhere")), verdict)


def _replaced(files: dict[str, str], before: str, after: str, everywhere: bool) -> dict[str, str]:
    holding = [path for path, text in files.items() if before in text]
    assert holding, before
    chosen = holding if everywhere else holding[:1]
    count = -1 if everywhere else 1
    return {path: text.replace(before, after, count) if path in chosen else text for path, text in files.items()}
