"""Edits as a person types them, drawn at random from the files of a tree: successive texts of one file, for each kind of edit."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec


class Edit(msgspec.Struct, frozen=True):
    """Keys typed into a file: after each the text is one of ``texts``. ``kind`` is shown in the table."""

    kind: str
    path: str
    texts: list[str]


Typist = Callable[[str, random.Random], "list[str] | None"]
"""Types into a text: the text after each key; None where the text has no place for it."""


def _typed(before: str, keys: str, after: str) -> list[str]:
    return [before + keys[:length] + after for length in range(1, len(keys) + 1)]


def _at(pattern: str, keys: str) -> Typist:
    """Type ``keys`` at one of the places where a pattern ends; its group ``old`` is removed by the first key."""
    compiled = re.compile(pattern, re.MULTILINE)

    def typed(text: str, draw: random.Random) -> list[str] | None:
        places = list(compiled.finditer(text))
        if not places:
            return None
        found = draw.choice(places)
        start, end = found.span("old") if "old" in compiled.groupindex else (found.end(), found.end())
        return _typed(text[:start], keys.replace("INDENT", found.groupdict().get("indent") or ""), text[end:])

    return typed


KINDS: Mapping[str, tuple[str, Typist]] = {
    "manifest: comment": ("manifest", _at(r"^  \w+:.*$", "\n  # new")),
    "manifest: name of an input": ("manifest", _at(r"^      [a-z]\w*(?=: \{dtype)", "_new")),
    "manifest: default": ("manifest", _at(r"default: (?P<old>[\w.-]+)", "12")),
    "manifest: size in a row": ("manifest", _at(r"_shape: \[(?P<old>\d+)", "17")),
    "manifest: text that does not parse": ("manifest", _at(r"^  signature:$", "\n    a: {b")),
    "op: comment": ("op", _at(r"^(?P<indent>    +)[\w.]+ = .*[\w)\]]$", "\n    # new")),
    "op: statement": ("op", _at(r"^        [\w.]+ = .*[\w)\]]$", "\n        y = 1")),
    "op: name of a parameter": ("op", _at(r"^        [a-z]\w*(?=: (torch\.Tensor|int|float|bool)\b)", "_new")),
    "op: default": ("op", _at(r"^        \w+: \w+ = (?P<old>[\w.-]+)(?=,$)", "12")),
    "op: text that does not parse": ("op", _at(r"^        [\w.]+ = .*[\w)\]]$", "\n        f(a")),
    "base class: statement": ("base", _at(r"^        [\w.]+ = .*[\w)\]]$", "\n        y = 1")),
    "kernel: statement": ("kernel", _at(r"^        [\w.]+ = .*[\w)\]]$", "\n        y = 1")),
}
"""Kinds of edits by name, each with the group of files that it is drawn from."""

TILEOPS: Mapping[str, tuple[str, ...]] = {
    "manifest": ("src/tileops/manifest/*.yaml",),
    "op": ("src/tileops/ops/*/[a-z]*.py",),
    "base": ("src/tileops/ops/op_base.py", "src/tileops/ops/*/_base.py", "src/tileops/ops/*/*_base.py"),
    "kernel": ("src/tileops/kernels/*/[a-z]*.py",),
}
"""Files of TileOPs by group."""


def edits(root: Path, draw: random.Random, count: int) -> Iterator[Edit]:
    """``count`` edits of each kind, of files that have a place for it."""
    for kind, (group, typist) in KINDS.items():
        files = sorted({path for pattern in TILEOPS[group] for path in root.glob(pattern)})
        made = 0
        while made < count and files:
            path = draw.choice(files)
            texts = typist(path.read_text(encoding="utf-8"), draw)
            if texts is None:
                files.remove(path)
                continue
            made += 1
            yield Edit(kind, path.relative_to(root).as_posix(), texts)
