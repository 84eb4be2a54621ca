"""What a call in an op class calls: the custom ops that the class, its module or ``torch.ops`` hold."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.source.bodies import MAX_HOPS, Bodies, Body
from opschema_cli.source.program import ClassRef, External, FunctionRef, ValueRef
from opschema_cli.source.python import Expr
from opschema_rules.tileops.custom_ops import CustomOp, Registrations
from opschema_rules.tileops.mentions import MentionIndex

Ops = tuple[CustomOp, ...]


class OpCalls:
    """Resolves callees to custom ops. Each answer is all ops that it may be, or None when one is not known."""

    def __init__(self, bodies: Bodies, registrations: Registrations, mentions: MentionIndex) -> None:
        self.bodies = bodies
        self.registrations = registrations
        self.mentions = mentions
        self._puts: dict[str, dict[ClassRef, list[tuple[Body, Expr]]]] = {}

    def called(self, body: Body, callee: Expr, owner: ClassRef) -> Ops:
        """Every op that ``callee`` may be for an instance of ``owner``; empty when one of them is not known."""
        return self._value(body, callee, owner, MAX_HOPS) or ()

    def _value(self, body: Body, expr: Expr, owner: ClassRef, hops: int) -> Ops | None:
        if hops <= 0:
            return None
        if expr.kind == "const":
            return () if expr.value is None else None
        if expr.kind == "name":
            return self._name(body, expr.text, owner, hops)
        if expr.kind == "boolop":
            return _joined(self._value(body, item, owner, hops) for item in expr.items)
        if expr.kind == "attribute" and is_own_type(body, expr.items[0]):
            return self._attribute(owner, expr.text, hops)
        return self._call(body, expr, owner, hops) if expr.kind == "call" else None

    def _name(self, body: Body, dotted: str, owner: ClassRef, hops: int) -> Ops | None:
        first, _, rest = dotted.partition(".")
        if rest and body.this and first in (body.this, "cls"):
            return self._attribute(owner, rest.removeprefix("__class__."), hops)
        binder = body.binder(first)
        if binder is not None and first not in (item.name for item in binder.scope.imports):
            return self._local(binder, first, rest, owner, hops)
        holder = self.bodies.resolve(body, dotted.rpartition(".")[0]) if rest else None
        if isinstance(holder, ClassRef):
            return self._attribute(holder, dotted.rpartition(".")[2], hops)
        found = self.bodies.resolve(body, dotted)
        if isinstance(found, External):
            return self._by_name(found.name)
        if isinstance(found, FunctionRef):
            return self._function(self.bodies.function(found))
        if isinstance(found, ValueRef) and found.assign.value is not None:
            return self._value(self.bodies.module(found.file), found.assign.value, owner, hops - 1)
        return None

    def _local(self, binder: Body, name: str, rest: str, owner: ClassRef, hops: int) -> Ops | None:
        values = binder.values(name)
        functions = self.bodies.functions_within(binder, name)
        if rest:
            typed = bool(values) and all(is_own_type(binder, value) for value in values or ())
            return self._attribute(owner, rest, hops) if typed else None
        if functions:
            return self._function(functions[0]) if len(functions) == 1 and not values else None
        return _joined(self._value(binder, value, owner, hops - 1) for value in values) if values else None

    def _call(self, body: Body, call: Expr, owner: ClassRef, hops: int) -> Ops | None:
        plain = call.positional()
        if call.callee == "staticmethod" and len(plain) == 1:
            return self._value(body, plain[0], owner, hops - 1)
        if call.callee == "getattr" and len(plain) > 1 and isinstance(plain[1].value, str):
            if is_own_type(body, plain[0]):
                return self._attribute(owner, plain[1].value, hops)
            return self._name(body, f"{plain[0].text}.{plain[1].value}", owner, hops - 1) if plain[0].text else None
        op = self.registrations.of_call(body, call)
        return (op,) if op is not None else None

    def _by_name(self, dotted: str) -> Ops | None:
        """The op ``torch.ops.<namespace>.<name>``, with or without its overload."""
        parts = dotted.removeprefix("torch.ops.").split(".")
        if not dotted.startswith("torch.ops.") or len(parts) not in (2, 3):
            return None
        return tuple(self.registrations.named("::".join(parts[:2]))) or None

    def _function(self, body: Body | None) -> Ops | None:
        op = self.registrations.of_function(body) if body is not None else None
        return (op,) if op is not None else None

    def _attribute(self, owner: ClassRef, name: str, hops: int) -> Ops | None:
        if "." in name:
            return None
        return _joined(
            self._function(value) if isinstance(value, Body) else self._value(body, value, owner, hops - 1)
            for body, value in self._written(owner, name)
        )

    def _written(self, owner: ClassRef, name: str) -> list[tuple[Body, Expr | Body]]:
        """What the attribute ``name`` of an instance of ``owner`` may be, wherever the package writes it."""
        mentions, puts = self.mentions.of(name), self._put(name)
        found: list[tuple[Body, Expr | Body]] = []
        for ref in self.bodies.family(owner):
            found += ((body, body) for body in mentions.functions.get(ref, ()))
            own = mentions.writes.get(ref, ())
            found += ((body, assign.value) for body, assign in own if assign.value is not None)
            found += puts.get(ref, ())
        return found

    def _put(self, name: str) -> dict[ClassRef, list[tuple[Body, Expr]]]:
        """What code outside a class writes to its attribute ``name``, by class."""
        if name not in self._puts:
            mentions = self.mentions.of(name)
            outside = mentions.writes.get(None, ())
            pairs = [(body, item.target.rpartition(".")[0], item.value) for body, item in outside if item.value]
            for body, call in mentions.sets:
                plain = call.positional()
                if len(plain) == 3 and plain[0].kind == "name" and plain[1].value == name:
                    pairs.append((body, plain[0].text, plain[2]))
            found: dict[ClassRef, list[tuple[Body, Expr]]] = {}
            for body, holder, value in pairs:
                for ref in dict.fromkeys(self.bodies.classes_named(body, holder, value.start)):
                    found.setdefault(ref, []).append((body, value))
            self._puts[name] = found
        return self._puts[name]


def is_own_type(body: Body, expr: Expr) -> bool:
    """Whether an expression is ``type(self)``."""
    named = [item.text for item in expr.items[1:]] if expr.kind == "call" and expr.callee == "type" else []
    return bool(body.this) and named == [body.this]


def _joined(found: Iterable[Ops | None]) -> Ops | None:
    ops: dict[CustomOp, None] = {}
    for item in found:
        if item is None:
            return None
        ops.update(dict.fromkeys(item))
    return tuple(ops)
