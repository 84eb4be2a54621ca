"""Detection of misspelt names.

A slip is the case, or inside of a word one letter that is doubled, dropped, wrong or exchanged with the next. Letters that begin a
word, digits and underscores make other names: `rsqrt`, `conv3d`, `relu_`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_SHORTEST = 4
"""Letters of the shortest word in which a wrong letter is a slip: of `sin` and `sinh`, `u` and `v` both are names."""


def slip_keys(name: str) -> set[str]:
    """A name in lower case, and without each of its letters: names that are one slip apart share one of these."""
    lower = name.lower()[:200]
    return {lower, *(lower[:at] + lower[at + 1 :] for at in range(len(lower)))}


def is_slip(name: str, meant: str) -> bool:
    """Whether a name is one typing error away from the intended name."""
    lower, meant = name.lower(), meant.lower()
    if lower == meant:
        return True
    pairs = enumerate(zip(lower, meant, strict=False))
    at = next((at for at, (left, right) in pairs if left != right), min(len(lower), len(meant)))
    rest, wanted = lower[at:], meant[at:]
    if len(rest) > 1 and rest[1::-1] + rest[2:] == wanted:
        return wanted[:2].isalpha() and _inside(meant, at)
    if rest and wanted and rest[1:] == wanted[1:]:
        return wanted[0].isalpha() and rest[0].isalpha() and _inside(meant, at, _SHORTEST + 1)
    if rest[1:] == wanted:
        return rest[:1].isalpha() and at > 0 and rest[0] == lower[at - 1] and _length(meant, at - 1) >= _SHORTEST
    if rest != wanted[1:] or not wanted[:1].isalpha() or _ends(meant, at):
        return False
    return _inside(meant, at, _SHORTEST if meant[at] == meant[at - 1] else _SHORTEST + 1)  # `cat` is not `cast`


def _inside(name: str, at: int, shortest: int = _SHORTEST) -> bool:
    """Whether a letter is in a word that is long enough, and does not begin it."""
    return _length(name, at) >= shortest and _length(name, at - 1) == _length(name, at)


def _length(name: str, at: int) -> int:
    """Return the length of the word that contains a letter, or 0 if none does."""
    return next((end - start for start, end in _words(name) if start <= at < end), 0)


def _ends(name: str, at: int) -> bool:
    """Whether a letter ends a word without being the double of the letter before it."""
    return any(at == word[1] - 1 for word in _words(name)) and name[at] != name[at - 1]


def _words(name: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _WORD.finditer(name))
