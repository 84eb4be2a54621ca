"""Ops that share methods, and methods that share a name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from weakref import WeakKeyDictionary

from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.program import ClassRef, FunctionRef, Unresolved, ValueRef
from opschema_cli.source.python import Function
from opschema_rules.tileops.migrations.call_sites import FunctionKey, key_of
from opschema_rules.tileops.model import Manifest, OpEntry

METHODS = ("forward", "_infer_output_shapes", "_validate_dtypes", "eval_roofline")
"""The methods whose parameters bear the names of inputs."""

_USERS: WeakKeyDictionary[Manifest, Mapping[FunctionKey, list[OpEntry]]] = WeakKeyDictionary()


def others(manifest: Manifest, ref: FunctionRef, chosen: Collection[OpEntry]) -> Iterator[OpEntry]:
    """The entries, apart from those chosen, whose op runs a method too."""
    if manifest not in _USERS:
        _USERS[manifest] = _users(manifest)
    return (entry for entry in _USERS[manifest].get(key_of(ref), ()) if entry not in chosen)


def made_from(manifest: Manifest, ref: FunctionRef, chosen: Collection[OpEntry]) -> Iterator[OpEntry]:
    """The entries, apart from those chosen, whose op has a method that a hook may make from this one."""
    return (entry for entry in others(manifest, ref, chosen) if is_made(entry, ref.function.name))


def is_made(entry: OpEntry, name: str) -> bool:
    """Whether a method of an op is not known, as it may be made at run time."""
    ref = entry.op_class
    return isinstance(ref, ClassRef) and isinstance(entry.manifest.program.member(ref, name), Unresolved)


def computed_method(entry: OpEntry) -> str:
    """The first of an op's methods that is the value of an expression, such as a call of a factory; empty if none is."""
    ref = entry.op_class
    if not isinstance(ref, ClassRef):
        return ""
    return next((name for name in METHODS if isinstance(entry.manifest.program.member(ref, name), ValueRef)), "")


def definitions(owner: ClassRef, name: str) -> list[Function]:
    """Return the functions of a class body with a name: several are overloads, or are under conditions."""
    return [function for function in owner.cls.body.functions if function.name == name]


def repeated_method(entry: OpEntry, parameters: Collection[str]) -> tuple[Place, str] | None:
    """The place and name of a method that takes one of the parameters, and that its class defines several times: which definition
    runs is not known, and all have to change together.
    """
    ref = entry.op_class
    seen: set[str] = set()
    for owner in entry.manifest.program.lineage(ref) if isinstance(ref, ClassRef) else ():
        for name in (*METHODS, "__init__"):
            found = definitions(owner, name) if name not in seen else []
            if len(found) > 1 and any(function.param(one) for function in found for one in parameters):
                return Place(owner.file.path, found[0].span), name
        seen |= {function.name for function in owner.cls.body.functions}
    return None


def _users(manifest: Manifest) -> Mapping[FunctionKey, list[OpEntry]]:
    found: dict[FunctionKey, list[OpEntry]] = {}
    for op in manifest.implementations:
        for name in (*METHODS, "__init__"):
            method = op.written_method(name)
            if method is not None:
                found.setdefault(key_of(method), []).append(op.entry)
    return found
