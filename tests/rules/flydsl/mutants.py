"""Makes faulty copies of Python text: tokens dropped, doubled, exchanged or replaced."""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Iterator

_TOKEN = re.compile(
    r"\"\"\".*?\"\"\"|\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*|\w+|\*\*|->|[-+*/%<>=!:]=|\n[ ]*|[ ]+|.", re.DOTALL
)
_SIGNS = "( ) [ ] { } : , . = * ** -> := @ ; ! ~ ... '' -1 1e999 0 é # \" ' \\"
_WORDS = "None False self lambda await yield class def import from global nonlocal return del try if else for in while async not"
_NAMES = "fx flyc flyc.kernel flyc.jit fx.Tensor fx.Int32 fx.Constexpr[int]"
_STRAY = (*_SIGNS.split(), *_WORDS.split(), *_NAMES.split(), "\n", "\n    ", "\n        ", "\t", "\x0c")


def mutants(text: str, count: int, seed: int) -> Iterator[str]:
    """Copies of a text, each with one to four changes of tokens; every other one is Python that parses."""
    chance = random.Random(seed)
    tokens = _TOKEN.findall(text)
    for number in range(count):
        copy = _changed(tokens, chance)
        while number % 2 and not _parses(copy):
            copy = _changed(tokens, chance)
        yield copy


def _changed(tokens: list[str], chance: random.Random) -> str:
    copy = list(tokens)
    for _ in range(chance.randint(1, 4)):
        _change(copy, chance)
    return "".join(copy)


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _change(tokens: list[str], chance: random.Random) -> None:
    at, other = (_word(tokens, chance) for _ in range(2))
    match chance.randrange(6):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[at])
        case 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 3:
            tokens[at] = tokens[other]
        case 4:
            tokens[at] = chance.choice(_STRAY)
        case _:
            tokens.insert(at, chance.choice(_STRAY))


def _word(tokens: list[str], chance: random.Random) -> int:
    """The place of a token that is not a blank, nor a comment: most of those are no change."""
    while True:
        at = chance.randrange(len(tokens))
        if tokens[at].strip(" ") and not tokens[at].startswith("#"):
            return at
