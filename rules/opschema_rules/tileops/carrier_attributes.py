"""Carriers in op classes: 0-dim tensors that are made only to be handed to custom ops that never use their values.

Each such tensor is followed from where it is made to every place it reaches. Where one of them is anything
else, or is not known, there is no carrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.bodies import Bodies, Body, param_for
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Assign, Expr, Function, Param
from opschema_cli.source.text import Span
from opschema_rules.tileops.creations import creates, makes_tensor, may_create
from opschema_rules.tileops.custom_ops import CustomOp, CustomOps
from opschema_rules.tileops.mentions import MentionIndex
from opschema_rules.tileops.own_writes import own_write


class Handing(msgspec.Struct, frozen=True, eq=False):
    """A call that hands a carrier to custom ops: the argument, and of each op the parameter that takes it.

    ``held`` is the class and the attribute that the carrier came from, None when it was made on the spot.
    """

    body: Body
    call: Expr
    argument: Expr
    takers: tuple[tuple[CustomOp, Param], ...]
    held: tuple[ClassRef, str] | None = None


class CarrierAttribute(msgspec.Struct, frozen=True, eq=False):
    """A carrier of an op class: an attribute or property ``name``, empty when the tensor is made for each call.

    ``writes`` are the places that make it: an assignment's target, a property's name or the expression.
    """

    owner: ClassRef
    name: str
    writes: tuple[Place, ...]
    handings: tuple[Handing, ...]


Reached = list[Handing]


class Tracker:
    """Follows 0-dim tensors. ``elsewhere`` says whether the library uses an attribute outside the package of ops."""

    def __init__(
        self, bodies: Bodies, custom_ops: CustomOps, mentions: MentionIndex, elsewhere: Callable[[str], bool]
    ) -> None:
        self.bodies = bodies
        self.evaluator = TreeEvaluator(bodies)
        self.custom_ops = custom_ops
        self.mentions = mentions
        self.elsewhere = elsewhere
        self.known: dict[tuple[ClassRef, str], CarrierAttribute | None] = {}
        self.open: set[tuple[ClassRef, str]] = set()

    def attributes(self) -> list[CarrierAttribute]:
        """Every carrier of the package, by place."""
        loose = [
            item
            for file in self.bodies.files
            if may_create(file.source.text)
            for body in self.bodies.of(file, partial(_may_make, file.source.text))
            for expr in _makers(body)
            for item in self._followed_maker(body, expr)
        ]
        kept = [item for item in self.known.values() if item is not None]
        return sorted([*kept, *loose], key=lambda item: _order(item.writes[0]))

    def _followed_maker(self, body: Body, expr: Expr) -> Iterator[CarrierAttribute]:
        """Follow an expression's value; yield the carrier that it is if nothing stores it."""
        if creates(self.evaluator, body, expr):
            reached = self._reached(body, expr.span, body.owner, MAX_CALLS) or []
            direct = tuple(item for item in reached if item.held is None)
            owner = direct[0].body.owner if direct else None
            if owner is not None:
                yield CarrierAttribute(owner, "", (body.at(expr),), direct)

    # Making

    def _makes(self, body: Body, expr: Expr, hops: int) -> bool:
        """Whether an expression is None or such a tensor, made here or by a helper, or kept on the instance."""
        if expr.kind == "const":
            return expr.value is None
        if hops <= 0:
            return False
        if expr.kind == "name":
            holder, _, name = expr.text.rpartition(".")
            if holder:
                return holder == body.this and self._carries(body.owner, name)
            values = body.values(name)
            return bool(values) and all(self._makes(body, value, hops - 1) for value in values or ())
        if expr.kind not in ("call", "subscript"):
            return False
        return creates(self.evaluator, body, expr) or self._helps(self.bodies.called(body, expr.callee), hops - 1)

    def _helps(self, helper: Body | None, hops: int) -> bool:
        """Whether a function returns nothing but such tensors."""
        returns = helper.scope.returns if helper is not None else []
        return helper is not None and bool(returns) and all(self._makes(helper, item, hops) for item in returns)

    def _carries(self, owner: ClassRef | None, name: str) -> bool:
        """Whether an attribute is a carrier, or is just being looked into."""
        key = (self._writer(owner, name), name) if owner is not None else None
        return key is not None and (key in self.open or self._attribute(*key) is not None)

    # Reaching

    def _reached(self, body: Body, span: Span, owner: ClassRef | None, hops: int) -> Reached | None:
        """The calls that the value written at ``span`` is handed to; None when it may go anywhere else."""
        if hops <= 0:
            return None
        parts: list[Reached | None] = []
        for call in body.scope.calls:
            at = (index for index, item in enumerate(call.items) if item.span == span)
            parts += (self._given(body, call, index, owner, hops - 1) for index in at)
        for assign in body.scope.assigns:
            if assign.value is not None and assign.value.span == span:
                parts.append(self._stored(body, assign, hops - 1))
        if any(value.span == span for value in body.scope.returns):
            parts.append(self._returned(body, hops - 1))
        parts += ([] for condition in body.scope.conditions if _is_none_test(condition.expr, span))
        return _all(parts) if parts else None

    def _given(self, body: Body, call: Expr, index: int, owner: ClassRef | None, hops: int) -> Reached | None:
        """The use of an argument: a call may keep it on its own instance."""
        write = own_write(self.bodies, body, call)
        if write is not None and write.value is call.items[index]:
            return self._stored(body, write, hops)
        return self._handed(body, call, index, owner)

    def _handed(self, body: Body, call: Expr, index: int, owner: ClassRef | None) -> Reached | None:
        ops = self.custom_ops.called(body, call.items[0], owner) if index and owner is not None else ()
        takers = [(op, param_for(call, index, op.body.params)) for op in ops]
        known = tuple((op, param) for op, param in takers if param is not None and op.leaves(param))
        return [Handing(body, call, call.items[index], known)] if known and len(known) == len(ops) else None

    def _stored(self, body: Body, assign: Assign, hops: int) -> Reached | None:
        name = body.attribute_of(assign.target)
        if name and body.owner is not None:
            found = self._attribute(self._writer(body.owner, name), name)
            return list(found.handings) if found is not None else None
        return self._local(body, assign.target, hops) if body.function and "." not in assign.target else None

    def _local(self, body: Body, name: str, hops: int) -> Reached | None:
        values = body.values(name)
        if not values or not all(self._makes(body, value, hops) for value in values):
            return None
        inner = [item for item in self.bodies.of(body.file) if body in item.outward()]
        uses = ((item, use) for item in inner for use in item.scope.uses if use.name.partition(".")[0] == name)
        return _all(self._reached(item, use.span, item.owner, hops) if use.name == name else None for item, use in uses)

    def _returned(self, body: Body, hops: int) -> Reached | None:
        function = body.function
        if function is None or not self._helps(body, MAX_CALLS):
            return None
        if function.is_property and body is body.method and body.owner is not None:
            found = self._attribute(self._writer(body.owner, function.name), function.name)
            return list(found.handings) if found is not None else None
        calls = list(self.bodies.calls_of(body))
        named = (use.name.rpartition(".")[2] for item in self.bodies.near(function.name) for use in item.scope.uses)
        if sum(name == function.name for name in named) != len(calls):
            return None
        return _all(self._reached(item, call.span, item.owner, hops) for item, call in calls)

    # Attributes

    def _writer(self, owner: ClassRef, name: str) -> ClassRef:
        """The first class of a lineage that writes an attribute: a subclass that writes it again means the same one."""
        mentions = self.mentions.of(name)
        for ref in reversed(self.bodies.program.lineage(owner)):
            writes = mentions.writes.get(ref, ())
            if ref in mentions.functions or any(assign.value is not None for _, assign in writes):
                return ref
        return owner

    def _attribute(self, owner: ClassRef, name: str) -> CarrierAttribute | None:
        key = (owner, name)
        if key not in self.known:
            before = len(self.known)
            self.known[key] = None
            self.open.add(key)
            found = self._followed(owner, name)
            self.open.discard(key)
            if found is None:
                # What was taken for a carrier on the way may have leaned on this one.
                self.known = dict(islice(self.known.items(), before))
            self.known[key] = found
        return self.known[key]

    def _followed(self, owner: ClassRef, name: str) -> CarrierAttribute | None:
        """An attribute as a carrier; None when something else may be in it, or when anything else uses it."""
        mentions, family = self.mentions.of(name), self.bodies.family(owner)
        writes = self._writes(name, family)
        if not writes or mentions.quoted:
            return None
        parts: list[Reached | None] = []
        for ref in (*family, None):
            for body, use in mentions.uses.get(ref, ()):
                whole = use.name.endswith("." + name)
                parts.append(self._reached(body, use.span, owner, MAX_CALLS) if whole else None)
        reached = _all(parts)
        if not reached or self.elsewhere(name):
            return None
        held = tuple(replace(item, held=(owner, name)) for item in reached)
        return CarrierAttribute(owner, name, tuple(sorted(writes, key=_order)), held)

    def _writes(self, name: str, family: Iterable[ClassRef]) -> list[Place]:
        """Places where a family of classes makes an attribute; empty when other code may assign it."""
        mentions, found = self.mentions.of(name), list[Place]()
        if None in mentions.writes:
            return []
        for ref in family:
            for body in mentions.functions.get(ref, ()):
                if body.function is None or not body.function.is_property or not self._helps(body, MAX_CALLS):
                    return []
                found.append(body.at(body.function.span))
            for body, assign in mentions.writes.get(ref, ()):
                if assign.value is None and assign.annotation is not None:
                    continue
                if assign.value is None or not self._makes(body, assign.value, MAX_CALLS):
                    return []
                if assign.value.kind != "const":
                    found.append(body.at(assign.span))
        return found


def _may_make(text: str, function: Function) -> bool:
    return makes_tensor(text, function.outer)


def _makers(body: Body) -> Iterator[Expr]:
    """The calls of a body, and the elements of something that are handed over or kept."""
    yield from body.scope.calls
    values = (item.value for item in body.scope.assigns if item.value is not None)
    passed = (item for call in body.scope.calls for item in call.items[1:])
    yield from (item for item in (*values, *passed, *body.scope.returns) if item.kind == "subscript")


def _order(place: Place) -> tuple[str, int]:
    return place.path, place.span.start


def _all(parts: Iterable[Reached | None]) -> Reached | None:
    found: Reached = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found


def _is_none_test(expr: Expr, span: Span) -> bool:
    """Whether a condition tests if the value at ``span`` is None."""
    return any(
        item.kind == "compare" and item.text in ("is", "is-not") and item.items[0].span == span
        for item in expr.walk()
        if item.kind == "compare" and item.items[-1].kind == "const" and item.items[-1].value is None
    )
