"""Operators by the names that people type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opschema_cli.errors import OpschemaError
from opschema_cli.operators.model import Operator
from opschema_cli.operators.names import closest_names, meant_name

MOST_NAMES = 3
"""Maximum number of suggestions for an unknown name."""

MOST_CHOICES = 8
"""Maximum number of choices listed for an ambiguous name."""

CUTOFF = 0.5


def named(name: str, operators: Sequence[Operator]) -> list[Operator]:
    """The operators that a name means, all of one name: an operator may be found by several packs.

    Raises:
        OpschemaError: there is none, or there are several; it names the closest.
    """
    found = meant_by(name, operators)
    names = list(dict.fromkeys(item.name for item in found))
    if len(names) == 1:
        return found
    problem = f"{len(names)} operators are called `{name}`" if names else f"no operator here is called `{name}`"
    raise OpschemaError(problem + suggestion(names[:MOST_CHOICES] or close_to(name, operators)))


def meant_by(name: str, operators: Sequence[Operator]) -> list[Operator]:
    """The operators that a name means: those of the name, else of the alias; else the ones whose name differs in case or namespace
    alone.
    """
    found = _called(name, operators)
    if found:
        return found
    meant = meant_name(name, close_to(name, operators))
    return _called(meant, operators) if meant is not None else []


def close_to(name: str, operators: Sequence[Operator]) -> list[str]:
    """Return the names closest to an unknown one, each for a different operator."""
    spellings: dict[str, list[int]] = {}
    for number, item in enumerate(operators):
        for spelling in (item.name, *item.aliases):
            spellings.setdefault(spelling, []).append(number)
    found: list[str] = []
    seen: set[int] = set()
    for close in closest_names(name, spellings, 3 * MOST_NAMES, CUTOFF):
        if not seen.issuperset(spellings[close]):
            seen.update(spellings[close])
            found.append(close)
    return found[:MOST_NAMES]


def suggestion(names: Iterable[str]) -> str:
    """A question whether one of these names was meant, to append to a message; empty without any."""
    quoted = [f"`{item}`" for item in names]
    return f"; did you mean {' or '.join(quoted)}?" if quoted else ""


def _called(name: str, operators: Sequence[Operator]) -> list[Operator]:
    return [item for item in operators if item.name == name] or [item for item in operators if name in item.aliases]
