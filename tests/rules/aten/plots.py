"""Small trees cut out of the installed torch's own files: what torchgen and the linter need milliseconds for.

A plot is a few families of operators (all that share a base name, and what they refer to) with their derivatives and the
tags, and a backend's YAML that lists some of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from tests.rules.aten.oracle import BACKEND, DERIVATIVES, NATIVE, TAGS, installed

_ENTRY = re.compile(r"(?m)^(?=- )")
_NAME = re.compile(r"- (?:func|name|tag): *[\"']?([\w:.]+)")

LARGEST = 16
"""Most entries of a family that is taken."""


class Block(NamedTuple):
    """An entry as it is written, the comments behind it included."""

    name: str
    text: str

    @property
    def family(self) -> str:
        """The operators that belong together have the same: in-place ones, overloads, copies of views."""
        base = self.name.partition(".")[0]
        inner = base[3:-2] if re.fullmatch(r"__i\w+__", base) else base.strip("_")
        return inner.removeprefix("foreach_").removesuffix("_copy").removesuffix("_functional").removesuffix("_inverse")


@cache
def blocks(name: str) -> tuple[Block, ...]:
    """The entries of an installed file."""
    found = []
    for text in _ENTRY.split(installed(name))[1:]:
        named = _NAME.match(text)
        assert named is not None, text
        found.append(Block(named[1], text.rstrip("\n") + "\n\n"))
    return tuple(found)


@cache
def families() -> Mapping[str, tuple[Block, ...]]:
    """The operators by family; families that are large are left out."""
    found: dict[str, list[Block]] = {}
    for block in blocks(NATIVE):
        found.setdefault(block.family, []).append(block)
    return {name: tuple(items) for name, items in found.items() if len(items) <= LARGEST}


@cache
def _derivatives() -> Mapping[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in blocks(DERIVATIVES):
        found.setdefault(block.family, []).append(block)
    return found


NEIGHBOURS = ("relu", "narrow")
"""Families that every plot has: what is wrong with another one is none of their business."""


def plot(names: Iterable[str]) -> dict[str, str]:
    """The tree of some families, without a backend's YAML."""
    taken = dict.fromkeys((*NEIGHBOURS, *names))
    native = [block.text for name in taken for block in families()[name]]
    derivatives = [block.text for name in taken for block in _derivatives().get(name, ())]
    return {NATIVE: "".join(native), TAGS: installed(TAGS), DERIVATIVES: "".join(derivatives)}


def with_backend(names: Sequence[str], chance: random.Random) -> dict[str, str]:
    """The tree of some families, and a backend's YAML that lists their operators."""
    files = plot(names)
    listed: dict[str, list[str]] = {"supported": [], "full_codegen": [], "autograd": [], "symint": [], "ir_gen": []}
    for name in names:
        section = chance.choice(["supported", "supported", "full_codegen", "autograd"])
        for block in families()[name]:
            listed[section].append(block.name)
            if "SymInt" in block.text.partition(") ->")[0] and section != "autograd" and chance.random() < 0.7:
                listed["symint"].append(block.name)
            if section == "supported" and chance.random() < 0.2:
                listed["ir_gen"].append(block.name)
    lines = ["backend: XLA", "cpp_namespace: torch_xla"]
    for section in ("full_codegen", "ir_gen", "supported", "symint", "autograd"):
        items = listed[section]
        lines += [f"{section}:", *(f"  - {item}" for item in items)] if items else []
    return {**files, BACKEND: "\n".join(lines) + "\n"}
