"""Custom ops of ``torch.library``: where they are registered, and whether an implementation reads an argument.

An op is known when the package registers it and Python implements it; nothing is said of any other. What a
call calls is found in :mod:`opschema_rules.tileops.op_calls`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef, Folded, ValueRef
from opschema_cli.source.python import Expr, Param

REGISTERS = frozenset({"torch.library.custom_op", "torch.library.triton_op", "torch._library.custom_ops.custom_op"})
"""What makes a function a custom op, as decorator or as call."""

FAKES = frozenset({"register_fake", "impl_abstract", "register_meta", "_register_fake"})
"""What registers a fake kernel; a fake kernel has no values to read."""

KERNELS = frozenset({"register_kernel", "impl"})
"""What registers one more implementation."""

METADATA = frozenset(
    {"device", "dtype", "layout", "is_cuda", "is_cpu", "get_device", "itemsize", "element_size"}
    | {"shape", "ndim", "dim", "size", "numel"}
    | {"new_empty", "new_zeros", "new_ones", "new_full", "new_tensor"}
)
"""Attributes of a tensor that do not depend on its values."""

_WRITTEN = re.compile(r"\(\w+!\)\??\s+(\w+)")


class CustomOp(msgspec.Struct, frozen=True, eq=False):
    """One registered op.

    ``bodies`` are its implementations, ``fakes`` its fake kernels, ``mutated`` the parameters that it may
    write, ``names`` the qualified names that it may have, None when they are not known.
    """

    bodies: tuple[Body, ...]
    fakes: tuple[Body, ...]
    mutated: frozenset[str]
    names: frozenset[str] | None

    @property
    def body(self) -> Body:
        """The implementation that the op was made of."""
        return self.bodies[0]

    @property
    def factory(self) -> Body | None:
        """The function that registers it, when it is nested in one."""
        parent = self.body.parent
        return parent if parent is not None and parent.function is not None else None

    def leaves(self, param: Param) -> bool:
        """Whether no implementation reads or writes the values of a parameter."""
        place = self.body.params.index(param)
        return param.name not in self.mutated and not any(_touches(body, place) for body in self.bodies)


def _touches(body: Body, place: int) -> bool:
    """Whether a function may use the values of its parameter at ``place``."""
    if place >= len(body.params) or not body.params[place].by_name:
        return True
    name = body.params[place].name
    for scope in body.scope.walk():
        if any(call.callee in ("locals", "vars", "eval", "exec") for call in scope.calls):
            return True
        for use in scope.uses:
            first, _, rest = use.name.partition(".")
            if first == name and rest.partition(".")[0] not in METADATA:
                return True
    return False


class Registrations:
    """The custom ops that a package registers, read as they are asked for."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self.evaluator = Evaluator(bodies)
        self._ops: dict[int, CustomOp | None] = {}

    def of_function(self, body: Body) -> CustomOp | None:
        """The op that a decorated function is."""
        key = id(body.function)
        if key not in self._ops:
            self._ops[key] = self._decorated(body)
        return self._ops[key]

    def _decorated(self, body: Body) -> CustomOp | None:
        outer = body.parent
        if body.function is None or outer is None:
            return None
        for decorator in body.function.decorators:
            if self.bodies.external(outer, decorator.callee) in REGISTERS:
                return self._made(outer, decorator, body, body.function.name)
        return None

    def of_call(self, body: Body, call: Expr) -> CustomOp | None:
        """The op that ``custom_op(name, function, …)`` or ``custom_op(name, …)(function)`` makes."""
        register = call.items[0] if call.items[0].kind == "call" else call
        function = call.positional()[-1:]
        if self.bodies.external(body, register.callee) not in REGISTERS or not function or not function[0].text:
            return None
        made_of = self.bodies.called(body, function[0].text)
        return self._made(body, register, made_of, "") if made_of is not None else None

    def holders(self, op: CustomOp) -> set[ClassRef]:
        """The classes on which the body that registers an op puts it."""
        function, outer = op.body.function, op.body.parent
        found: set[ClassRef] = set()
        if function is not None and outer is not None:
            for assign in outer.scope.assigns:
                holder = assign.target.rpartition(".")[0]
                if holder and assign.value is not None and assign.value.text == function.name:
                    found.update(self.bodies.classes_named(outer, holder, assign.start))
        return found

    def _made(self, outer: Body, call: Expr, body: Body, name: str) -> CustomOp | None:
        mutated = self._mutated(outer, call)
        title = call.positional()[:1]
        names = self.evaluator.texts(outer, title[0]) if title else None
        if mutated is None or body.function is None or body.function.stub:
            return None
        bodies: list[Body] = [body]
        fakes: list[Body] = []
        for kind, other in [*self._on_object(outer, name), *self._on_names(outer, names)]:
            if kind in FAKES:
                fakes += filter(None, [other])
            elif kind in KERNELS and other is not None:
                bodies.append(other)
            else:
                return None
        return CustomOp(tuple(bodies), tuple(dict.fromkeys(fakes)), mutated, names)

    def _mutated(self, body: Body, call: Expr) -> frozenset[str] | None:
        """The names of ``mutates_args``; None when they are not known (torch then takes every tensor as written)."""
        value = call.keyword("mutates_args")
        if value is None or (value.kind == "dict" and not value.items):
            return frozenset() if value is not None else None
        if value.kind == "set":
            value = Expr("tuple", *value.span, "", None, value.items)
        folded = self.evaluator.fold(body, value)
        names = folded.value if isinstance(folded, Folded) else None
        return frozenset(map(str, names)) if isinstance(names, tuple | list) else None

    def _on_object(self, outer: Body, name: str) -> Iterator[tuple[str, Body | None]]:
        """What is registered through an op's own methods: which method, and the function if it is known."""
        for use in (use for scope in outer.scope.walk() for use in scope.uses if name):
            owner, _, kind = use.name.rpartition(".")
            if owner == name:
                inner = [body for body in self.bodies.within(outer) if body.function is not None]
                named = [body for body in inner if body.function and use.name in body.function.decorator_names]
                yield from ((kind, body) for body in named)
                if not named:
                    yield kind, None

    def _on_names(self, outer: Body, names: frozenset[str] | None) -> Iterator[tuple[str, Body | None]]:
        """What the op's file registers for it by its qualified name."""
        for body in self.bodies.of(outer.file) if names else ():
            for call in body.scope.calls:
                first = next(iter(call.positional()), None)
                if first is not None and isinstance(first.value, str) and names and first.value in names:
                    used = self.bodies.external(body, call.callee)
                    if used.startswith("torch.library.") and used not in REGISTERS:
                        yield used.rpartition(".")[2], self._registered(body, call)

    def _registered(self, body: Body, call: Expr) -> Body | None:
        """The function that a registering call decorates or is given."""
        for inner in self.bodies.within(body):
            if inner.function is not None and any(item.span == call.span for item in inner.function.decorators):
                return inner
        given = call.positional()[1:2]
        return self.bodies.called(body, given[0].text) if given and given[0].kind == "name" else None

    # Ops by name

    def named(self, name: str) -> list[CustomOp]:
        """The ops that ``namespace::name`` may be; empty when none is sure to be it."""
        found = [op for op in self._all if op.names is None or name in op.names]
        if not found:
            found = list(filter(None, [self._by_library(name)]))
        return found if any(op.names is not None for op in found) else []

    @cached_property
    def _all(self) -> list[CustomOp]:
        files = self.bodies.files_holding("custom_op", "triton_op")
        bodies = [body for file in files for body in self.bodies.near_in(file, "@")]
        ops = [self.of_function(body) for body in bodies if body.function and body.function.decorators]
        return [op for op in ops if op is not None]

    def _by_library(self, name: str) -> CustomOp | None:
        """The op that ``Library.define`` and ``impl``, or their like, register under a qualified name."""
        found: dict[str, list[Body | None]] = {"impl": [], "fake": []}
        schemas: list[str] = []
        for body in self.bodies.holding(name.partition("::")[2]):
            for call in body.scope.calls:
                kind = call.callee.rpartition(".")[2]
                text = self._qualified(body, call) if kind in {"define", *FAKES, *KERNELS} else ""
                if text.partition("(")[0] != name:
                    continue
                if kind == "define":
                    schemas.append(text + str(call.positional()[-1].value))
                else:
                    found["impl" if kind in KERNELS else "fake"].append(self._registered(body, call))
        known = [body for body in found["impl"] if body is not None and body.function and not body.function.stub]
        if not known or len(known) != len(found["impl"]) or not schemas:
            return None
        mutated = frozenset(word for schema in schemas for word in _WRITTEN.findall(schema))
        return CustomOp(tuple(known), tuple(filter(None, found["fake"])), mutated, frozenset({name}))

    def _qualified(self, body: Body, call: Expr) -> str:
        """The ``namespace::name``, and what follows it, that a call of ``torch.library`` is about; else empty."""
        plain = call.positional()
        text = next((item.value for item in plain if isinstance(item.value, str)), "")
        if "::" in text.partition("(")[0]:
            return text if self.bodies.external(body, call.callee).startswith("torch.library.") else ""
        library = plain[0].text if plain and plain[0].kind == "name" else call.callee.rpartition(".")[0]
        found = self.bodies.resolve(body, library) if library else None
        value = found.assign.value if isinstance(found, ValueRef) else None
        if not text or value is None or self.bodies.external(body, value.callee) != "torch.library.Library":
            return ""
        namespace = next(iter(value.positional()), None)
        return f"{namespace.value}::{text}" if namespace is not None else ""
