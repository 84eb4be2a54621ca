"""Known names that are close to an unknown one, for "did you mean"; the work that a run may spend on them is limited.

To compare a name with others takes time in the product of their numbers, so a file with thousands of unknown names gets no
suggestions for the last of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

WORK = 3_000_000
"""Budget of one run: a name costs 1, or :data:`COMPARED` if it is compared letter by letter."""

COMPARED = 20
MAX_LENGTH = 100
"""Characters of a name that count."""

_spent = [0]


def start_anew() -> None:
    """Reset the budget for a new run."""
    _spent[0] = 0


def spent() -> int:
    """Return the part of its budget that this run has used."""
    return _spent[0]


def spend(work: int) -> None:
    """Count work that another process has done for this run."""
    _spent[0] += work


def exhausted() -> bool:
    """Whether the budget of the run is spent."""
    return _spent[0] > WORK


def may_be_near(name: str, known: Iterable[str], cutoff: float) -> bool:
    """Whether one of the ``known`` names is close to a name; true once the budget is spent, so that nothing is concluded."""
    return bool(near_names(name, known, 1, cutoff)) or exhausted()


def near_names(name: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most ``count`` of the ``known`` names that are similar to a name, the closest first, like
    :func:`difflib.get_close_matches`; return none when the budget is used up.
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


def near_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The closest of the ``known`` names; None if none is close."""
    return next(iter(near_names(name, known, 1, cutoff)), None)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The closest of the ``known`` names other than ``name``, ignoring case; None if none is close."""
    if exhausted():
        return None
    folded = {other[:MAX_LENGTH].lower(): other for other in sorted(set(known) - {name}, reverse=True)}
    found = near_name(name[:MAX_LENGTH].lower(), folded, cutoff)
    return folded[found] if found is not None else None


def misspelt_names(written: Collection[str], known: Collection[str], cutoff: float = 0.75) -> dict[str, str]:
    """Map unknown keys of a mapping to the known names that they probably mean. Names that are present themselves are not
    suggested.

    What is below such a key is read under the name that is meant, so that one slip gives one finding.
    """
    free = [name for name in known if name not in written]
    found = {name: nearest(name, free, cutoff) for name in sorted(set(written).difference(known))} if known else {}
    return {name: meant for name, meant in found.items() if meant is not None}


def suggested(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return a suggestion to append to a message about an unknown name, or an empty text if no ``known`` name is close."""
    return did_you_mean(nearest(name, known, cutoff))


def did_you_mean(name: str | None) -> str:
    """The end of a message about an unknown name; empty without a suggestion."""
    return f"; did you mean `{name}`?" if name else ""
