"""Mentions of an attribute by name in a package: its writers, its readers, and the objects. Read once for each name."""

from __future__ import annotations

import msgspec

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Assign, Use
from opschema_rules.tileops.own_writes import own_write


class Mentions(msgspec.Struct):
    """All mentions of one attribute.

    ``uses``, ``writes`` and ``functions`` are kept by the class whose own code they stand in, and through whose
    instance or body they go; what goes through anything else is under None. ``writes`` holds calls that write it too
    (:mod:`opschema_rules.tileops.own_writes`); ``quoted`` is true if any other call is given the name as a string.
    """

    uses: dict[ClassRef | None, list[tuple[Body, Use]]] = msgspec.field(default_factory=dict)
    writes: dict[ClassRef | None, list[tuple[Body, Assign]]] = msgspec.field(default_factory=dict)
    functions: dict[ClassRef, list[Body]] = msgspec.field(default_factory=dict)
    quoted: bool = False


class MentionIndex:
    """The mentions of each requested attribute."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self._known: dict[str, Mentions] = {}

    def of(self, name: str) -> Mentions:
        """Every mention of an attribute in the package."""
        if name not in self._known:
            found = Mentions()
            for body in self.bodies.near(name):
                _collect(self.bodies, body, name, found)
            self._known[name] = found
        return self._known[name]


def _collect(bodies: Bodies, body: Body, name: str, found: Mentions) -> None:
    method = body.function is not None and body.parent is not None and body.parent.cls is not None
    if method and body.owner is not None and body.function is not None and body.function.name == name:
        found.functions.setdefault(body.owner, []).append(body)
    for assign in body.scope.assigns:
        own = bool(body.attribute_of(assign.target))
        if assign.target.rpartition(".")[2] == name and (own or "." in assign.target):
            found.writes.setdefault(body.owner if own else None, []).append((body, assign))
    for use in body.scope.uses:
        first, *rest = use.name.split(".")
        if name in rest:
            found.uses.setdefault(body.owner if first == body.this else None, []).append((body, use))
    quoting = [call for call in body.scope.calls if any(item.value == name for item in call.items[1:])]
    for call in quoting:
        write = own_write(bodies, body, call)
        if write is not None and write.value is not None and write.value.value != name:
            found.writes.setdefault(body.owner, []).append((body, write))
            continue
        found.quoted = True
