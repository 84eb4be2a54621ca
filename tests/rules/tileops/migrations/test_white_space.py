"""`drop-carrier` over code whose dotted names have white space in them, which means the same."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import pytest

from opschema_cli.testing import migrate_files
from opschema_rules.tileops.pack import PACK

FIXTURE = Path(__file__).parents[4] / "fixtures/tilekit"
TEXTS = {
    path.relative_to(FIXTURE).as_posix(): path.read_text()
    for path in FIXTURE.rglob("*")
    if path.suffix in (".py", ".yaml", ".toml", ".md")
}


def spaced(text: str, dot: str) -> str:
    """A module with another dot in the dotted names of its expressions."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    importing = {token.start[0] for token in tokens if token.string in ("import", "from")}
    lines = text.splitlines(keepends=True)
    for token in reversed(tokens):
        row, at = token.start
        if token.string == "." and row not in importing:
            line = lines[row - 1]
            lines[row - 1] = line[:at] + dot + line[at + 1 :]
    return "".join(lines)


@pytest.mark.parametrize("dot", [" .", ". ", " . "])
def test_the_same_is_dropped(dot: str) -> None:
    before = {path: spaced(text, dot) if path.endswith(".py") else text for path, text in TEXTS.items()}
    plain, done = migrate_files(PACK, "drop-carrier", TEXTS), migrate_files(PACK, "drop-carrier", before)
    assert done.sites() == plain.sites()
    assert done.notes() == plain.notes()
    assert plain.files != TEXTS
    for path, text in plain.files.items():
        assert "".join(done.files[path].split()) == "".join(text.split()), path
