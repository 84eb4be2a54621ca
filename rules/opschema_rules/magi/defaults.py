"""Default values, and those that an op's schema keeps."""

from __future__ import annotations

import builtins
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.containers import constant
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import (
    Arguments,
    EnumMember,
    ExternalName,
    Instance,
    Plain,
    Text,
    Unknown,
    Value,
    Values,
    distinct,
    known,
)
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Constant, Expr
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Place
from opschema_rules.magi.classes import Classes
from opschema_rules.magi.dataclasses import Field
from opschema_rules.magi.dialect import TorchValue

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
_HARMLESS = frozenset({"object", "abc.ABC", "ABC", "typing.Generic"})


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
        """Whether the lowered signature keeps it; None if that is not known."""
        if self.kind == "enum":
            return self.is_string
        return {"constant": True, "torch": True, "other": False, "absent": False}.get(self.kind)

    @property
    def place(self) -> Place | None:
        """The place of its expression; None without one."""
        return self.body.at(self.expr) if self.body is not None and self.expr is not None else None

    def __str__(self) -> str:
        written = self.body.file.text(self.expr) if self.body is not None and self.expr is not None else ""
        return repr(self.value) if self.kind == "constant" else self.text or " ".join(written.split())


ABSENT = Default("absent")
UNRESOLVED = Default("unresolved")


class Defaults:
    """Reads the default values of one tree."""

    def __init__(self, evaluator: Evaluator, classes: Classes) -> None:
        self.evaluator = evaluator
        self.classes = classes

    def of(self, body: Body, expr: Expr | None) -> Default:
        """The value of a default that is written in ``body``."""
        if expr is None:
            return ABSENT
        return self._written(body, expr, self.evaluator.evaluate(self.evaluator.frames.at(body), expr))

    def of_field(self, item: Field) -> Default:
        """The default of a dataclass's field, as its ``default_factory`` makes it."""
        body = item.value_body or item.body
        return self.of(body, item.default) if item.factory is None else self._made(body, item.factory)

    def _made(self, body: Body, factory: Expr) -> Default:
        """The value that a ``default_factory`` returns."""
        frame = self.evaluator.frames.at(body)
        found: list[Value] = []
        for callee in self.evaluator.evaluate(frame, factory):
            if isinstance(callee, ExternalName) and callee.name in _FACTORIES:
                found.append(known(_FACTORIES[callee.name]))
            else:
                found += self.evaluator.apply(callee, Arguments(frame, factory))
        return self._written(body, factory, distinct(found))

    def _written(self, body: Body, expr: Expr, values: Values) -> Default:
        """The default that values are: one, or several that no schema holds."""
        found = [self._default(item) for item in values]
        same = len(found) == 1 or all(item.kind == "other" for item in found)
        one = found[0] if found and same else UNRESOLVED
        return Default(one.kind, expr, body, one.value, one.text, one.is_string)

    def _default(self, value: Value) -> Default:
        if isinstance(value, Plain | Text):
            found = constant(value)
            return Default("constant", value=found[0]) if found is not None else UNRESOLVED
        if isinstance(value, EnumMember):
            enum = self.classes.enum(value.ref)
            is_string = enum.mixed if enum is not None and enum.values != "unknown" else None
            return Default("enum", text=f"{value.ref.name}.{value.name}", is_string=is_string)
        if isinstance(value, ExternalName):
            return _external(value.name)
        if isinstance(value, TorchValue):
            return Default("torch", text=value.text) if value.text else Default("other")
        if isinstance(value, Instance):
            return Default("other") if self._is_plain(value.ref) else UNRESOLVED
        return UNRESOLVED if isinstance(value, Unknown) else Default("other")

    def _is_plain(self, ref: ClassRef) -> bool:
        """Whether the instances of a class are not values that a schema can hold."""
        line = self.classes.line(ref)
        return isinstance(line, list) and all(isinstance(item, ClassRef) or item.name in _HARMLESS for item in line)


def _external(name: str) -> Default:
    head, _, last = name.rpartition(".")
    if head == "torch" and last in _DTYPES:
        return Default("torch", text=name)
    return Default("other") if name in _BUILTINS else UNRESOLVED
