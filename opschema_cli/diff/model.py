"""Changes of contracts as data: their kinds, who is affected, and the levels at which they are breaking."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.text import Place

Audience: TypeAlias = Literal["callers", "graphs", "new-graphs", "backends", "semantics"]
"""Who is affected by a change: ``callers`` of the operator; ``graphs`` that were saved with the old side and are run by the new
one; ``new-graphs`` that are saved with the new side and run by the old one; ``backends`` and kernels outside the tree; users of
the ``semantics`` that the declaration states.
"""

Level: TypeAlias = Literal["schema", "callers", "serialised"]
"""The level of a comparison: ``serialised`` holds only promises to saved graphs, ``callers`` to callers too, ``schema`` all."""

LEVELS: dict[Level, frozenset[Audience]] = {
    "serialised": frozenset(("graphs",)),
    "callers": frozenset(("graphs", "callers")),
    "schema": frozenset(("graphs", "callers", "new-graphs", "backends", "semantics")),
}

AUDIENCES: dict[Audience, str] = {
    "callers": "callers",
    "graphs": "saved graphs",
    "new-graphs": "older releases that load new graphs",
    "backends": "backends and kernels",
    "semantics": "users of what the declaration states",
}
"""Audiences, as reports name them."""


class Change(msgspec.Struct, frozen=True):
    """One change of an operator's contract.

    ``kind`` is a key of :data:`KINDS`. ``old`` and ``new`` are the places on both sides, None where a side has none or does not
    know it. ``hits`` is empty for a change that affects nobody.
    """

    kind: str
    operator: str
    message: str
    old: Place | None = None
    new: Place | None = None
    hits: tuple[Audience, ...] = ()
    pack: str = ""

    def breaks(self, level: Level) -> bool:
        """Whether it is breaking at a level."""
        return not LEVELS[level].isdisjoint(self.hits)


class Unclear(msgspec.Struct, frozen=True):
    """Something that could not be compared, and why; its place is on the old side unless it is ``on_new_side``."""

    operator: str
    reason: str
    place: Place | None = None
    on_new_side: bool = False


class Kind(msgspec.Struct, frozen=True):
    """A kind of change: the code of its findings, and a description."""

    code: str
    summary: str


KINDS: dict[str, Kind] = {
    "operator-removed": Kind("DIF101", "An operator or overload was removed."),
    "operator-renamed": Kind("DIF102", "An operator or overload has another name."),
    "operator-added": Kind("DIF103", "An operator or overload was added."),
    "argument-removed": Kind("DIF201", "An argument was removed."),
    "argument-added": Kind("DIF202", "An argument was added."),
    "argument-renamed": Kind("DIF203", "An argument has another name."),
    "argument-moved": Kind("DIF204", "An argument is in another position."),
    "keyword-only": Kind("DIF205", "A positional argument can only be passed by keyword."),
    "positional": Kind("DIF206", "A keyword-only argument can be passed by position."),
    "positional-only": Kind("DIF207", "An argument cannot be passed by keyword any more."),
    "required": Kind("DIF208", "An optional argument is now required."),
    "default": Kind("DIF209", "The default of an argument differs."),
    "type": Kind("DIF210", "The type of an argument differs."),
    "symint": Kind("DIF211", "An argument changed between `int` and `SymInt`."),
    "alias": Kind("DIF212", "The alias annotation or the mutability of an argument differs."),
    "dtypes": Kind("DIF213", "The dtypes of an argument or return differ."),
    "shape": Kind("DIF214", "The declared shape of an argument or return differs."),
    "constraint": Kind("DIF215", "A declared condition on calls or results was added, changed or removed."),
    "refusal": Kind("DIF216", "The code refuses a workload that it took."),
    "returns": Kind("DIF301", "The number or the types of the returned values differ."),
    "return-alias": Kind("DIF302", "The alias annotation of a return differs."),
    "return-renamed": Kind("DIF303", "A returned value has another name."),
    "schema": Kind("DIF304", "The schema differs in another respect."),
    "status": Kind("DIF305", "The declared status of an operator differs."),
    "workload": Kind("DIF306", "A declared workload was removed."),
    "kernel-keys": Kind("DIF401", "A kernel of a dispatch key was removed or added."),
    "backend": Kind("DIF402", "A backend lists an operator no more, or lists another one."),
    "structured": Kind("DIF403", "An operator became structured or composite, or ceased to be."),
    "kernel-signature": Kind("DIF404", "A kernel has another name in a dispatch table, or other parameters in C++."),
    "tag": Kind("DIF501", "A tag was removed or added."),
    "fake": Kind("DIF502", "The fake (meta) kernel was removed or added."),
    "autograd": Kind("DIF503", "The autograd formula was removed or added."),
}
"""The kinds of changes, by name."""
