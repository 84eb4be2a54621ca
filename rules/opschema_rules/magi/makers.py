"""The decorators that make dataclasses: ``dataclasses.dataclass`` under any name, with its arguments."""

from __future__ import annotations

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassRef, External, Unresolved, ValueRef
from opschema_rules.magi.classes import Classes, truth

MAKERS = frozenset({"dataclasses.dataclass"})
"""Names of decorators that make a class a dataclass."""

_HARMLESS_DECORATORS = frozenset(
    {"functools.total_ordering", "typing.final", "typing_extensions.final", "typing.runtime_checkable"}
)


class Maker(msgspec.Struct, frozen=True):
    """The decorator that makes a dataclass, and the calls that pass it arguments, the nearest first."""

    expr: Expr
    calls: tuple[tuple[Body, Expr], ...]

    def flag(self, evaluator: Evaluator, name: str, *, default: bool) -> bool | None:
        """An argument; None when it is not known."""
        for body, call in self.calls:
            if "**" in call.keywords:
                return None
            value = call.keyword(name)
            if value is not None:
                return truth(evaluator, body, value, default)
        return default


class Makers:
    """Reads the decorators of one tree's classes."""

    def __init__(self, bodies: Bodies, classes: Classes) -> None:
        self.bodies = bodies
        self.classes = classes

    def of(self, ref: ClassRef) -> Maker | Unresolved | None:
        """The decorator that makes a class a dataclass; None without one, Unresolved where another may do more."""
        body = self.classes.body(ref)
        found: Maker | Unresolved | None = None
        for decorator in ref.cls.decorators:
            maker = self._as_maker(body, decorator)
            if maker is None and self.named(body, decorator) not in _HARMLESS_DECORATORS:
                return Unresolved(f"`{ref.name}` is made by a decorator that is not known")
            found = found or maker
        return found

    def _as_maker(self, body: Body, decorator: Expr) -> Maker | None:
        callee = decorator.items[0] if decorator.kind == "call" else decorator
        outer = body.parent or body
        given = [(outer, decorator)] if decorator.kind == "call" else []
        if self.named(body, decorator) in MAKERS:
            return Maker(decorator, tuple(given))
        found = self.classes.resolve(body, callee.text) if callee.kind == "name" else None
        value = found.assign.value if isinstance(found, ValueRef) and found.assign.sure else None
        if value is not None and isinstance(found, ValueRef) and value.positional():
            module = self.bodies.module(found.file)
            named = self.bodies.external(module, value.positional()[0].text)
            if self.bodies.external(module, value.callee) == "functools.partial" and named in MAKERS:
                return Maker(decorator, (*given, (module, value)))
        return None

    def named(self, body: Body, decorator: Expr) -> str:
        """Return the full external name of a decorator or call in a class's header or body."""
        dotted = decorator.callee or decorator.text
        found = self.classes.resolve(body, dotted) if dotted else None
        return found.name if isinstance(found, External) else ""
