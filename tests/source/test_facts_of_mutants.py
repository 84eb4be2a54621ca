"""The two collectors of facts agree on code that nobody would write: stretches of the standard library, changed token by token."""

from __future__ import annotations

import io
import random
import sysconfig
import tokenize
from pathlib import Path

import pytest

from opschema_cli.source.ast_facts import NotTakenError, collect_from_ast
from opschema_cli.source.python_facts import collect_with_tree

MODULES = ("argparse", "ast", "dis", "inspect", "typing")
MUTANTS = 250
LONGEST = 4_000

INSTEAD = ("f'{a.b} {c!r:>{d}}'", "'x' 'y'", "b'z'", "(a for a in (b))", "{**(c)}", "lambda *a, k=(1): a", "(((1,)))",
           "None.x", "not (a)", "await x", "yield", "", "[*a, (b)]", "x[a:(b)]", "{a: b for a in c}",
           "(a := b)", "a if (b) else c", "f'{a=}{b!s}'")  # fmt: skip
BEHIND = (
    ",",
    ";",
    " and x",
    " if y else z",
    "[a, b]",
    "[(a, b)]",
    ".é",
    "(*a, k=1)",
    " := 1",
    "\\\n",
    "  # (*,\n",
    " ",
)


def stretch(text: str, rng: random.Random) -> str:
    """Some whole definitions of a module."""
    start = (
        max(text.rfind("\ndef ", 0, rng.randrange(len(text))), text.rfind("\nclass ", 0, rng.randrange(len(text)))) + 1
    )
    part = text[start : start + LONGEST]
    return part[: part.rfind("\n\n") + 1]


def mutant(text: str, rng: random.Random) -> str:
    """The text with a few tokens bracketed, replaced or followed by something."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    edits: dict[int, tuple[int, str]] = {}
    for token in rng.choices(tokens, k=rng.randint(1, 4)):
        start, end = (starts[min(row - 1, len(starts) - 1)] + column for row, column in (token.start, token.end))
        written = text[start:end]
        edits[start] = (end, rng.choice([f"({written})", rng.choice(INSTEAD), written + rng.choice(BEHIND)]))
    for start in sorted(edits, reverse=True):
        end, new = edits[start]
        text = text[:start] + new + text[end:]
    return text


@pytest.mark.parametrize("module", MODULES)
def test_they_agree_on_mutants(module: str) -> None:
    text = Path(sysconfig.get_path("stdlib"), f"{module}.py").read_text(encoding="utf-8")
    rng = random.Random(module)
    taken = 0
    for _ in range(MUTANTS):
        try:
            # libcst loses a line that ends with a backslash before the colon of `except`.
            changed = mutant(stretch(text, rng), rng).replace("\\\n:", ":")
            found = collect_from_ast(changed)
        except (NotTakenError, tokenize.TokenError, IndentationError):
            continue
        reference = collect_with_tree(changed)[0]
        taken += 1
        assert reference.error or found == reference, changed
    assert taken > 5
