"""Results of one path, with unknown parts marked."""

from __future__ import annotations

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.values import Object, Opaque


def sealed(machine: Machine, value: object, seen: dict[int, object] | None = None) -> object:
    """Return a result with the containers of unknown contents made opaque."""
    seen = {} if seen is None else seen
    if id(value) in machine.tainted:
        return Opaque("a container whose contents are not known")
    if id(value) in seen or not machine.tainted:
        return value
    seen[id(value)] = value
    if isinstance(value, tuple):
        return tuple(sealed(machine, item, seen) for item in value)
    if isinstance(value, list):
        value[:] = [sealed(machine, item, seen) for item in value]
    elif isinstance(value, dict):
        value.update([(key, sealed(machine, item, seen)) for key, item in value.items()])
    elif isinstance(value, Object):
        value.attributes.update([(name, sealed(machine, item, seen)) for name, item in value.attributes.items()])
    return value
