"""Default values, and which of them an op's schema keeps."""

from __future__ import annotations

import builtins
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Constant, Expr
from opschema_cli.source.resolution import ClassRef, External, Folded, FunctionRef, ModuleRef, Unresolved, ValueRef
from opschema_rules.magi.classes import Classes
from opschema_rules.magi.dataclasses import Field

MAX_DEPTH = 8
"""Longest chain of names that is followed from a default."""

DefaultKind: TypeAlias = Literal["absent", "constant", "torch", "enum", "other", "unresolved"]

_DTYPES = frozenset(
    {
        "bfloat16",
        "bool",
        "cdouble",
        "cfloat",
        "chalf",
        "complex128",
        "complex32",
        "complex64",
        "double",
        "float",
        "float16",
    }
    | {
        "float32",
        "float64",
        "half",
        "int",
        "int16",
        "int32",
        "int64",
        "int8",
        "long",
        "short",
        "uint8",
        "uint16",
        "uint32",
    }
    | {
        "uint64",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn_x2",
    }
)
_FACTORIES: dict[str, Constant] = {"int": 0, "float": 0.0, "bool": False, "str": ""}
_BUILTINS = frozenset(dir(builtins)) - {"__debug__"}
_CONTAINERS = frozenset(
    {"list", "dict", "tuple", "set", "frozenset", "bytes", "bytearray", "complex", "object", "range"}
)
_TORCH_MAKERS = frozenset(
    {"torch.zeros", "torch.ones", "torch.empty", "torch.tensor", "torch.full", "torch.rand", "torch.randn"}
)


class Default(msgspec.Struct, frozen=True):
    """A default value.

    A ``constant`` is None, a truth value, a number or a string, in ``value``; ``torch`` a dtype or a device, in ``text``; ``enum``
    a member of an enumeration, whose members are strings where ``is_string`` (None when that is not known). ``other`` is any
    value that a schema cannot hold. ``expr`` is where it is written.
    """

    kind: DefaultKind
    expr: Expr | None = None
    body: Body | None = None
    value: Constant = None
    text: str = ""
    is_string: bool | None = False

    @property
    def kept(self) -> bool | None:
        """Whether the lowered signature keeps it; None when that is not known."""
        if self.kind == "enum":
            return self.is_string
        return {"constant": True, "torch": True, "other": False, "absent": False}.get(self.kind)

    def __str__(self) -> str:
        written = self.body.file.text(self.expr) if self.body is not None and self.expr is not None else ""
        return repr(self.value) if self.kind == "constant" else self.text or " ".join(written.split())


ABSENT = Default("absent")


class Defaults:
    """Reads the default values of one tree."""

    def __init__(self, evaluator: Evaluator, classes: Classes) -> None:
        self.evaluator = evaluator
        self.bodies = evaluator.bodies
        self.classes = classes

    def of(self, body: Body, expr: Expr | None) -> Default:
        """The value of a default that is written in ``body``."""
        if expr is None:
            return ABSENT
        found = self._value(body, expr, MAX_DEPTH)
        return Default(found.kind, expr, body, found.value, found.text, found.is_string)

    def of_field(self, item: Field) -> Default:
        """The default of a dataclass's field, as its ``default_factory`` makes it."""
        body = item.value_body or item.body
        if item.factory is None:
            return self.of(body, item.default)
        made = self._made(body, item.factory)
        return Default(made.kind, item.factory, body, made.value, made.text, made.is_string)

    def _value(self, body: Body, expr: Expr, hops: int) -> Default:
        if expr.kind in ("tuple", "list", "dict", "set", "lambda"):
            return Default("other")
        if expr.kind == "name":
            return self._named(body, expr, hops)
        if expr.kind == "call":
            called = self._called(body, expr)
            if called is not None:
                return called
        return _folded(self.evaluator.fold(body, expr))

    def _called(self, body: Body, call: Expr) -> Default | None:
        found = self._resolve(body, call.callee) if call.callee else None
        if isinstance(found, ClassRef):
            known = self.classes.enum(found) is None and not isinstance(self.classes.line(found), Unresolved)
            return Default("other") if known and self._is_plain(found) else Default("unresolved")
        name = found.name if isinstance(found, External) else ""
        if name == "torch.device":
            return Default("torch", text=" ".join(body.file.text(call).split()))
        if name in _CONTAINERS or name in _TORCH_MAKERS:
            return Default("other")
        return None

    def _is_plain(self, ref: ClassRef) -> bool:
        """Whether the instances of a class are none of the values that a schema holds."""
        line = self.classes.line(ref)
        harmless = {"object", "abc.ABC", "ABC", "typing.Generic"}
        return isinstance(line, list) and all(isinstance(item, ClassRef) or item.name in harmless for item in line)

    def _named(self, body: Body, expr: Expr, hops: int) -> Default:
        holder, _, member = expr.text.rpartition(".")
        owner = self._resolve(body, holder) if holder else None
        if isinstance(owner, ClassRef):
            enum = self.classes.enum(owner)
            if enum is not None:
                known = any(item.target == member for item in enum.members) and enum.values != "unknown"
                return Default("enum", text=expr.text, is_string=enum.mixed if known else None)
        found = self._resolve(body, expr.text)
        if isinstance(found, FunctionRef | ModuleRef):
            return Default("other")
        if isinstance(found, ClassRef):
            return Default("other")
        if isinstance(found, External):
            head, _, last = found.name.rpartition(".")
            if head == "torch" and last in _DTYPES:
                return Default("torch", text=found.name)
            if found.name in _BUILTINS:
                return Default("other")
        if isinstance(found, ValueRef) and found.owner is None and found.assign.sure and found.assign.value is not None:
            inner = self.bodies.module(found.file) if found.file is not body.file else body
            return self._value(inner, found.assign.value, hops - 1) if hops > 0 else Default("unresolved")
        return _folded(self.evaluator.fold(body, expr))

    def _made(self, body: Body, factory: Expr) -> Default:
        """What a ``default_factory`` returns."""
        if factory.kind == "lambda" and len(factory.items) == 1:
            return self._value(body, factory.items[0], MAX_DEPTH)
        found = self._resolve(body, factory.text) if factory.kind == "name" else None
        if isinstance(found, External):
            if found.name in _FACTORIES:
                return Default("constant", value=_FACTORIES[found.name])
            return Default("other") if found.name in _CONTAINERS else Default("unresolved")
        if isinstance(found, ClassRef):
            plain = self.classes.enum(found) is None and self._is_plain(found)
            return Default("other") if plain else Default("unresolved")
        return Default("unresolved")

    def _resolve(self, body: Body, dotted: str) -> object:
        inner = (body.scope,) if body.cls is not None else ()
        return self.bodies.program.resolve(body.file, dotted, (*inner, *body.scopes))


def _folded(found: Folded | Unresolved) -> Default:
    if isinstance(found, Unresolved) or found.symbol:
        return Default("unresolved")
    if found.value is None or isinstance(found.value, bool | int | float | str):
        return Default("constant", value=found.value)
    return Default("other")
