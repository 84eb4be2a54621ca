"""The two collectors of facts give the same of real code: every so many files of each tree, by the hash of their text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from opschema_cli.source.ast_facts import NotTakenError, collect_from_ast
from opschema_cli.source.python_facts import collect_with_tree
from opschema_cli.source.text import DecodeError, decode

EACH = 24
"""One of so many files is compared: libcst needs some 5 seconds for a megabyte."""


def texts(root: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(root.rglob("*.py")):
        data = path.read_bytes() if path.is_file() else b""
        if data and hashlib.blake2b(data, digest_size=2).digest()[0] % EACH == 0:
            try:
                yield path, decode(data, python=True)[0]
            except DecodeError:
                continue


@pytest.mark.parametrize("tree", ["tileops-52dbc086", "flydsl/11c4174d", "pypto/simpler-6ebaf7715", "oplibs/aiter"])
def test_both_collectors_agree(corpus: Path, tree: str) -> None:
    if not (corpus / tree).is_dir():
        pytest.skip(f"{tree} is not below OPSCHEMA_CORPUS")
    taken, different = 0, []
    for path, text in texts(corpus / tree):
        try:
            found = collect_from_ast(text)
        except NotTakenError:
            continue
        reference = collect_with_tree(text)[0]
        taken += 1
        if not reference.error and found != reference:
            different.append(path)
    assert different == []
    assert taken > 5
