"""The operators of all known releases by name: which releases have one, and which one a misspelt name is meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from opschema_cli.requirements import Version, dotted
from opschema_rules.aten.native_table import entry_releases
from opschema_rules.aten.torchgen_table import known_releases

_FUNC = re.compile(r"(?m)^- func:[ ]*([\w.]+)\(")
_AUTOGEN = re.compile(r"(?m)^  autogen:[ ]*([\w., ]+)")
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_SHORTEST = 4
"""Letters of the shortest word in which a wrong letter is a slip: of `sin` and `sinh`, `u` and `v` both are names."""


@lru_cache(maxsize=1)
def operator_releases() -> Mapping[str, tuple[Version, ...]]:
    """The known releases that have an operator, those that torchgen generates included, by its name with overload."""
    found: dict[str, set[Version]] = {}
    for entry, versions in entry_releases():
        generated = _AUTOGEN.search(entry)
        names = [*_FUNC.findall(entry), *(generated[1].split(",") if generated is not None else ())]
        for name in filter(None, map(str.strip, names)):
            found.setdefault(name, set()).update(versions)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def is_known(name: str) -> bool:
    """Whether a known release has an operator."""
    return name in operator_releases()


def releases_text(name: str) -> str:
    """The known releases that have an operator, for messages: ``torch 2.4 to 2.12``; empty where none has it."""
    versions = operator_releases().get(name, ())
    if not versions:
        return ""
    first, last = dotted(versions[0]), dotted(versions[-1])
    return f"torch {first}" if first == last else f"torch {first} to {last}"


def all_releases_text() -> str:
    """All known releases, for messages."""
    return f"torch {dotted(known_releases()[0])} to {dotted(known_releases()[-1])}"


def certain_slip(name: str) -> str | None:
    """The only operator of the known releases that a name can be a slip of; None where it may be a name of its own.

    A slip is the case, or inside of a word one letter that is doubled, dropped, wrong or exchanged with the next. Letters that
    begin a word, digits and underscores make other names: `rsqrt`, `conv3d`, `relu_`. Between one release and the next none of
    the operators that were added or removed is a slip of another.
    """
    if is_known(name):
        return None
    found = {other for other in _neighbours(name) if other in _by_text()}
    meant = {full for other in found for full in _by_text()[other] if _is_slip(name, full)}
    meant = {full for full in meant if full.lower() == name.lower()} or meant
    return next(iter(meant)) if len(meant) == 1 else None


@lru_cache(maxsize=1)
def _by_text() -> Mapping[str, list[str]]:
    """The operators by their names in lower case, and by these without one letter."""
    found: dict[str, list[str]] = {}
    for name in operator_releases():
        for text in _neighbours(name):
            found.setdefault(text, []).append(name)
    return found


def _neighbours(name: str) -> set[str]:
    """A name in lower case, and without each of its letters; names that are one slip apart share one of these."""
    lower = name.lower()[:200]
    return {lower, *(lower[:at] + lower[at + 1 :] for at in range(len(lower)))}


def _is_slip(name: str, other: str) -> bool:
    lower, meant = name.lower(), other.lower()
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
    return rest == wanted[1:] and wanted[:1].isalpha() and _inside(meant, at) and not _ends(meant, at)


def _inside(name: str, at: int, shortest: int = _SHORTEST) -> bool:
    """Whether a letter is in a word that is long enough, and does not begin it."""
    return _length(name, at) >= shortest and _length(name, at - 1) == _length(name, at)


def _length(name: str, at: int) -> int:
    """The length of the word that a letter is in; 0 for what is none."""
    return next((end - start for start, end in _words(name) if start <= at < end), 0)


def _ends(name: str, at: int) -> bool:
    """Whether a letter ends a word without being the double of the letter before it."""
    return any(at == word[1] - 1 for word in _words(name)) and name[at] != name[at - 1]


def _words(name: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _WORD.finditer(name))
