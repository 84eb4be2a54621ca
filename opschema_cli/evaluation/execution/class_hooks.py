"""Class members after ``__init_subclass__`` of the bases has run."""

from __future__ import annotations

from opschema_cli.evaluation.execution.classes import ABSENT, member, method_value, order
from opschema_cli.evaluation.execution.dialect import Call
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.values import BoundMethod
from opschema_cli.evaluation.values import ClassValue
from opschema_cli.source.resolution import ClassRef, FunctionRef, Unresolved

HOOK = "__init_subclass__"


def made_member(machine: Machine, cls: ClassValue, name: str) -> object:
    """Return the member ``name`` of a class after the hooks of its bases have run, starting with the classes that it inherits from.

    A hook that never writes the member is left out, also where another one calls it by ``super()``.
    """
    lineage = _lineage(machine, cls)
    hooks = {ref: _own_hook(ref) for ref in lineage}
    silent = [hook for hook in hooks.values() if hook is not None and not _may_write(machine, hook, name)]
    bodies = [body for body in map(machine.evaluator.bodies.function, silent) if body is not None]
    by_dialect = {body: machine.shared.by_dialect.get(body) for body in bodies}
    machine.shared.by_dialect.update(dict.fromkeys(bodies, _nothing))
    try:
        for ref in reversed(lineage):
            _make(machine, ref, name, {key: hook for key, hook in hooks.items() if hook not in silent})
    finally:
        machine.shared.by_dialect.update(by_dialect)
    return machine.class_attributes.get((cls.ref.key, name), ABSENT)


def namespace(machine: Machine, cls: ClassValue) -> object:
    """Return ``cls.__dict__``: the names that the body of a class binds."""
    found = {name: member(machine, cls, name) for name in cls.ref.cls.body.named if "." not in name}
    return found if ABSENT not in found.values() else machine.opaque(f"the names of `{cls.ref.name}`")


def _nothing(call: Call) -> object:
    return None


def _lineage(machine: Machine, cls: ClassValue) -> list[ClassRef]:
    found = order(machine, cls)
    if isinstance(found, Unresolved):
        machine.stop(found.reason)
    return [item for item in found if isinstance(item, ClassRef)]


def _own_hook(ref: ClassRef) -> FunctionRef | None:
    found = ref.cls.body.function(HOOK)
    return FunctionRef(ref.file, found, ref) if found is not None else None


def _may_write(machine: Machine, hook: FunctionRef, name: str) -> bool:
    return bool(machine.evaluator.program.patches.written(hook, 0) & {name, "*"})


def _make(machine: Machine, ref: ClassRef, name: str, hooks: dict[ClassRef, FunctionRef | None]) -> None:
    """Create a class: its own or inherited member, then the first hook of its bases."""
    own = machine.evaluator.program.own_member(ref, name)
    replaced = machine.evaluator.program.patches.replaced(ref, name)
    if replaced is not None:
        machine.stop(replaced.reason)
    bases = _lineage(machine, ClassValue(ref))[1:]
    if isinstance(own, FunctionRef):
        machine.class_attributes[ref.key, name] = method_value(machine, own, ref)
    elif own is not None:
        machine.stop(f"`{ref.name}.{name}` is assigned")
    else:
        inherited = (
            machine.class_attributes[base.key, name] for base in bases if (base.key, name) in machine.class_attributes
        )
        found = next(inherited, ABSENT)
        if found is not ABSENT:
            machine.class_attributes[ref.key, name] = found
    hook = next((hooks[base] for base in bases if hooks.get(base) is not None), None)
    body = machine.evaluator.bodies.function(hook) if hook is not None else None
    if hook is None or hook.owner is None:
        return
    if body is None or ref.cls.keywords:
        machine.stop(f"`{hook.owner.name}.{HOOK}` takes arguments")
    machine.call(BoundMethod(method_value(machine, hook, hook.owner), ClassValue(ref)), (), {})
