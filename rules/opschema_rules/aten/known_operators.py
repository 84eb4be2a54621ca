"""The operators of all known releases by name: which releases have one, and which one a misspelt name is meant to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from opschema_cli.requirements import Version, dotted
from opschema_cli.slips import is_slip, slip_keys
from opschema_rules.aten.native_table import entry_releases
from opschema_rules.aten.torchgen_table import known_releases

_FUNC = re.compile(r"(?m)^- func:[ ]*([\w.]+)\(")
_AUTOGEN = re.compile(r"(?m)^  autogen:[ ]*([\w., ]+)")


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
    """Return the only operator of the known releases that a name can be a misspelling of; None if it may be a name of its own.

    Between one release and the next none of the operators that were added or removed is a slip of another.
    """
    if is_known(name):
        return None
    found = {other for other in slip_keys(name) if other in _by_text()}
    meant = {full for other in found for full in _by_text()[other] if is_slip(name, full)}
    meant = {full for full in meant if full.lower() == name.lower()} or meant
    return next(iter(meant)) if len(meant) == 1 else None


@lru_cache(maxsize=1)
def _by_text() -> Mapping[str, list[str]]:
    """The operators by their names in lower case, and by these without one letter."""
    found: dict[str, list[str]] = {}
    for name in operator_releases():
        for text in slip_keys(name):
            found.setdefault(text, []).append(name)
    return found
