"""Suggestions of known names for an unknown one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opschema_cli.suggestions import near_names


def closest_names(name: str, known: Iterable[str], limit: int = 3, cutoff: float = 0.4) -> list[str]:
    """Return the known names closest to a name, most likely first: equal except for case, its overloads, equal in the last part,
    then similar names.

    ``cutoff`` is difflib's: 0 takes any name, 1 only equal ones.
    """
    names = sorted(set(known))
    wanted = name.casefold()
    folded: dict[str, list[str]] = {}
    for item in names:
        folded.setdefault(item.casefold(), []).append(item)
    equal = folded.get(wanted, [])
    overloads = [item for item in names if item.casefold().startswith(f"{wanted}.")] if wanted else []
    ending = [item for item in names if _last(item) == _last(wanted) != ""]
    similar = [item for key in near_names(wanted, folded, limit, cutoff) for item in folded[key]]
    return [*dict.fromkeys([*equal, *overloads, *ending, *similar])][:limit]


def meant_name(name: str, close: Iterable[str]) -> str | None:
    """Return the only one of the closest names that equals ``name`` except for case, or else whose last part does. Return None
    if there is no such name or several.
    """
    names = list(dict.fromkeys(close))
    equal = [item for item in names if item.casefold() == name.casefold()]
    found = equal or [item for item in names if _last(item) == name.casefold()]
    return found[0] if len(found) == 1 else None


def _last(name: str) -> str:
    """The last part of a qualified name, for comparing: ``rotate`` of ``kit::Rotate``."""
    return re.split(r"::|[.:/]", name)[-1].casefold()
