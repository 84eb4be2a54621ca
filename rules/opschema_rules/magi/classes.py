"""Classes of the tree: their place, bases, and kind of enumeration."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Expr
from opschema_cli.source.resolution import ClassRef, External, Folded, FunctionRef, Resolution, Unresolved
from opschema_cli.source.text import Span

MAX_BASES = 20
"""Maximum length of a chain of base classes of a local class to follow."""

Line: TypeAlias = "list[ClassRef | External] | Unresolved"
Values: TypeAlias = Literal["str", "other", "unknown"]

_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum"})
_STRINGS = frozenset({"str", "enum.StrEnum"})
_KNOWN_BASES = frozenset({"str", "int", "float", "object"})


class EnumKind(msgspec.Struct, frozen=True):
    """An enumeration. ``values`` are all strings or not; ``mixed`` is true when its members are strings themselves."""

    ref: ClassRef
    values: Values
    mixed: bool
    members: tuple[Assign, ...]

    @property
    def sole_base(self) -> Span | None:
        """The place of the only base, unless it is in parentheses of its own."""
        bases = self.ref.cls.bases
        ahead = self.ref.file.source.text[self.ref.cls.end : bases[0].start] if len(bases) == 1 else ""
        return bases[0].span if ahead.count("(") == 1 else None


class Classes:
    """The classes of one tree."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.bodies = evaluator.bodies
        self._lines: dict[ClassRef, Line] = {}

    def body(self, ref: ClassRef) -> Body:
        """Return the body of a class, with its enclosing ones."""
        return self.bodies.cls(ref) or self.bodies.module(ref.file)

    def line(self, ref: ClassRef) -> Line:
        """Its method resolution order; of a class in a function only where each has one base."""
        if ref not in self._lines:
            parent = self.body(ref).parent
            top = parent is None or (parent.function is None and parent.cls is None)
            self._lines[ref] = self.bodies.program.mro(ref) if top else self._local_line(ref)
        return self._lines[ref]

    def _local_line(self, ref: ClassRef) -> Line:
        found: list[ClassRef | External] = [ref]
        while len(found) <= MAX_BASES:
            last = found[-1]
            if isinstance(last, External) or not last.cls.bases:
                return found
            bases = [self.resolve(self.body(last), base.text) for base in last.cls.bases if base.text]
            if all(isinstance(base, External) for base in bases) and len(bases) == len(last.cls.bases):
                return [*found, *(base for base in bases if isinstance(base, External))]
            first = bases[0] if bases else None
            if len(last.cls.bases) != 1 or not isinstance(first, ClassRef):
                break
            found.append(first)
        return Unresolved(f"the bases of `{ref.name}` cannot be followed")

    def resolve(self, body: Body, dotted: str) -> Resolution:
        """The meaning of a name in the head of a class."""
        outer = body.parent or body
        inner = (outer.scope,) if outer.cls is not None else ()
        return self.bodies.program.resolve(body.file, dotted, (*inner, *outer.scopes))

    def method(self, ref: ClassRef, name: str) -> FunctionRef | None:
        """Return the method that instances have, from the class or its bases in the tree."""
        line = self.line(ref)
        for item in [ref] if isinstance(line, Unresolved) else line:
            function = item.cls.body.function(name) if isinstance(item, ClassRef) else None
            if isinstance(item, ClassRef) and function is not None:
                return FunctionRef(item.file, function, item)
        return None

    def enum(self, ref: ClassRef) -> EnumKind | None:
        """Return the kind of enumeration of a class; None if it is not one, or not known to be one."""
        line = self.line(ref)
        names = [] if isinstance(line, Unresolved) else [item.name for item in line if isinstance(item, External)]
        if not any(name == f"enum.{kind}" for name in names for kind in _ENUMS):
            return None
        mixed = any(name in _STRINGS for name in names)
        owners = [item for item in (line if isinstance(line, list) else []) if isinstance(item, ClassRef)]
        members = tuple(item for owner in owners for item in owner.cls.body.assigns if _is_member(item))
        return EnumKind(ref, self._values(owners, members, names, mixed), mixed, members)

    def _values(self, owners: list[ClassRef], members: tuple[Assign, ...], names: list[str], mixed: bool) -> Values:
        custom = any(owner.cls.body.function(name) for owner in owners for name in ("__new__", "_generate_next_value_"))
        unsure = not all(item.sure for item in members) or any(owner.cls.metaclass is not None for owner in owners)
        if custom or unsure or any(name not in _KNOWN_BASES and not name.startswith("enum.") for name in names):
            return "unknown"
        if not members or any(name.endswith(("IntEnum", "Flag", "IntFlag")) for name in names):
            return "other"
        if mixed:
            return "str"
        kinds = {self._value(owner, item) for owner in owners for item in members if item in owner.cls.body.assigns}
        return "other" if "other" in kinds else "unknown" if "unknown" in kinds else "str"

    def _value(self, owner: ClassRef, member: Assign) -> Values:
        value = member.value
        if value is None:
            return "unknown"
        if value.kind in ("tuple", "list", "dict", "set"):
            return "other"
        if value.kind == "call":
            called = self.bodies.external(self.body(owner), value.callee)
            return "other" if called == "enum.auto" else "unknown"
        folded = self.evaluator.fold(owner, value)
        if isinstance(folded, Unresolved) or folded.symbol:
            return "unknown"
        return "str" if isinstance(folded.value, str) else "other"


def _is_member(item: Assign) -> bool:
    name = item.target
    hidden = name.startswith("__") or (name.startswith("_") and name.endswith("_")) or "." in name
    return not hidden and item.value is not None and item.value.kind != "lambda"


def truth(evaluator: Evaluator, body: Body, value: Expr | None, default: bool) -> bool | None:
    """A flag that is passed as an argument; None when it is not known."""
    if value is None:
        return default
    folded = evaluator.fold(body, value)
    known = isinstance(folded, Folded) and not folded.symbol and isinstance(folded.value, bool | int | None)
    return bool(folded.value) if isinstance(folded, Folded) and known else None
