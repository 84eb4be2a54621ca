"""Order of values: sorting, minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import first_opaque, is_plain, performed
from opschema_cli.evaluation.execution.values import Opaque


def sorted_values(machine: Machine, values: Sequence[object], options: Mapping[str, object]) -> list[object] | Opaque:
    """Return the values in order; ``options`` are ``key`` and ``reverse``."""
    keys = keys_of(machine, values, options.get("key"))
    reverse = options.get("reverse", False)
    if isinstance(keys, Opaque) or isinstance(reverse, Opaque):
        return keys if isinstance(keys, Opaque) else machine.opaque("the order of a sort is not known")
    machine.spend(len(keys) * 4)
    places = performed(machine, lambda: sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(reverse)))  # type: ignore[arg-type]
    return [values[place] for place in places]


def keys_of(machine: Machine, values: Sequence[object], key: object) -> list[object] | Opaque:
    """Return the keys to order values by; all of them are Python's own values."""
    keys = list(values) if key is None else [machine.call(key, (item,), {}) for item in values]
    opaque = first_opaque(keys)
    if opaque is not None:
        return opaque
    return keys if all(is_plain(machine, item) for item in keys) else machine.opaque("the order of values is not known")


def extreme(
    machine: Machine, function: Callable[..., int], values: Sequence[object], options: Mapping[str, object]
) -> object:
    """Return the result of ``min`` or ``max``."""
    if not values:
        if "default" in options:
            return options["default"]
        machine.throw("ValueError")
    keys = keys_of(machine, values, options.get("key"))
    if isinstance(keys, Opaque):
        return keys
    machine.spend(len(keys))
    return values[performed(machine, lambda: function(range(len(keys)), key=keys.__getitem__))]
