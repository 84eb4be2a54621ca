"""Names that are close to one that is not known, for "did you mean"; how much a run may spend on them is limited.

To compare a name with others takes time in the product of their numbers, so a file with thousands of unknown names gets no
suggestions for the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable

WORK = 3_000_000
"""What one run may spend: one for each name that is looked at, :data:`COMPARED` for one that is compared letter by letter."""

COMPARED = 20
MAX_LENGTH = 100
"""Characters of a name that count."""

_spent = [0]


def start_anew() -> None:
    """Let a run begin to spend."""
    _spent[0] = 0


def exhausted() -> bool:
    """Whether the run has spent what it may."""
    return _spent[0] > WORK


def may_be_near(name: str, known: Iterable[str], cutoff: float) -> bool:
    """Whether one of the ``known`` names is like a name; true once that is not looked for, so that nothing is concluded."""
    return bool(near_names(name, known, 1, cutoff)) or exhausted()


def near_names(name: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most ``count`` of the ``known`` names that are like a name, the most like it first, as
    :func:`difflib.get_close_matches` finds them; none once the run has spent what it may.
    """
    if exhausted():
        return []
    candidates = list(known)
    name = name[:MAX_LENGTH]
    _spent[0] += len(candidates)
    # No two are more alike than their lengths are.
    alike = [item for item in candidates if 2 * min(len(item), len(name)) >= cutoff * (len(item) + len(name))]
    _spent[0] += COMPARED * len(alike)
    if not alike or exhausted():
        return []
    # Not at the top: most runs do without.
    from difflib import get_close_matches

    return get_close_matches(name, alike, count, cutoff)
