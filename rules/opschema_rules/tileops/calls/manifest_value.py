"""The manifest in executed code: a dictionary that records which of its entries are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller
from opschema_cli.evaluation.execution.values import Native


class ManifestValue(msgspec.Struct, frozen=True, eq=False):
    """The result of ``load_manifest()``. ``read`` is called with the name of each entry that is looked up, ``read_all`` where
    anything else is done with it.
    """

    entries: dict[str, object]
    read: Callable[[str], None]
    read_all: Callable[[], None]

    def looked_up(self, name: object) -> bool:
        """Whether there is an entry of a name."""
        if not isinstance(name, str):
            self.read_all()
            return False
        self.read(name)
        return name in self.entries

    def all(self) -> dict[str, object]:
        """All entries."""
        self.read_all()
        return self.entries


def attribute(machine: Caller, value: object, name: str) -> object:
    """The methods of a dictionary that only read."""
    if not isinstance(value, ManifestValue):
        return NOT_KNOWN
    if name == "get":
        return Native("get", lambda call: _get(value, call))
    return machine.attribute(value.all(), name)


def _get(value: ManifestValue, call: Call) -> object:
    name, *rest = (*call.positional, None)
    if call.keywords or not isinstance(name, str) or len(rest) > 2:
        return call.machine.call(call.machine.attribute(value.all(), "get"), call.positional, call.keywords)
    return value.entries[name] if value.looked_up(name) else rest[0]


def operator(machine: Caller, word: str, operands: Sequence[object]) -> object:
    """A lookup, the length and the truth."""
    value, *others = operands
    if not isinstance(value, ManifestValue):
        return NOT_KNOWN
    if word == "[]" and isinstance(others[0], str):
        name = others[0]
        return value.entries[name] if value.looked_up(name) else machine.throw("KeyError", name)
    if word == "in" and value is operands[0]:
        return value.looked_up(others[0]) if isinstance(others[0], str) else NOT_KNOWN
    if word in ("len", "bool"):
        return len(value.all()) if word == "len" else bool(value.all())
    return NOT_KNOWN  # what is made of all entries at once may be anything: a dictionary, a list of names
