"""Captured variables whose values the cache key surely leaves out.

FlyDSL folds captured values into the key of a compiled function by their ``repr``, if they are numbers, strings, None,
tuples or (from 0.3.2) members of enumerations; it follows captured functions; all else it leaves out, up to 0.4.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

import msgspec

from opschema_cli.evaluation.closures import Cell
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.statements import is_variable
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.program import HARMLESS_BASES, ClassRef, External, Unresolved
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.alternatives import alternatives
from opschema_rules.flydsl.key import sees_enumerations
from opschema_rules.flydsl.model import FlyTree


class UncachedCapture(msgspec.Struct, frozen=True):
    """A kind of value that the key ignores: ``words`` name it, and ``instead`` names the part of ``{}`` that the key contains.

    ``cls`` is the dataclass that it is an instance of.
    """

    words: str
    instead: str
    mutable: bool = False
    cls: ClassRef | None = None


_LIST = UncachedCapture("a list", "capture `tuple({})` instead", mutable=True)
_DICT = UncachedCapture("a dict", "capture `tuple({}.items())` instead", mutable=True)
_SET = UncachedCapture("a set", "capture `tuple(sorted({}))` instead", mutable=True)
_FROZENSET = UncachedCapture("a frozenset", "capture `tuple(sorted({}))` instead")
_DTYPE = UncachedCapture("a torch.dtype", "capture `str({})` and read it too")
_DEVICE = UncachedCapture("a torch.device", "capture `str({})` and read it too")
_BYTES = UncachedCapture("bytes", "capture `{}.hex()` and read it too")
_RANGE = UncachedCapture("a range", "capture its bounds instead")
_PARTIAL = UncachedCapture("a functools.partial", "define a function instead")
_NAMESPACE = UncachedCapture("a namespace", "capture the values that it holds instead")

_TYPES = {
    **dict.fromkeys(["list", "typing.List"], _LIST),
    **dict.fromkeys(["dict", "typing.Dict", "collections.defaultdict", "collections.OrderedDict"], _DICT),
    **dict.fromkeys(["set", "typing.Set"], _SET),
    **dict.fromkeys(["frozenset", "typing.FrozenSet"], _FROZENSET),
    **dict.fromkeys(["functools.partial", "functools.partialmethod"], _PARTIAL),
    "torch.dtype": _DTYPE,
    "torch.device": _DEVICE,
    "bytes": _BYTES,
    "range": _RANGE,
    "types.SimpleNamespace": _NAMESPACE,
}
"""Kinds by the full name of a type."""

_MAKERS = {**{name: kind for name, kind in _TYPES.items() if not name.startswith("typing.")}, "sorted": _LIST}
"""Kinds of call results, by the full name of the function."""

_DISPLAYS = {"list": _LIST, "listcomp": _LIST, "dict": _DICT, "dictcomp": _DICT, "set": _SET, "setcomp": _SET}
_ENUMS = frozenset({"enum.Enum", "enum.Flag"})
_DTYPES = re.compile(r"torch\.(?:b?float\w*|half|double|u?int\d*|short|long|bool)\Z")


_SEEN = frozenset({"const", "unary", "binary", "compare", "tuple", "subscript", "boolop"})
"""Expression kinds whose value may be part of the key."""


class Captures:
    """The kinds of the variables of one tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._cells: dict[Cell, UncachedCapture | None] = {}

    def cell(self, cell: Cell, depth: int = MAX_CALLS) -> UncachedCapture | None:
        """Return the kind of a variable that no key contains; None for any other, and if that is not known."""
        if cell not in self._cells:
            self._cells[cell] = None  # nothing is known of a variable that comes from itself
            self._cells[cell] = self._cell(cell, depth)
        return self._cells[cell]

    def _cell(self, cell: Cell, depth: int) -> UncachedCapture | None:
        if depth <= 0 or cell.name in cell.binder.scope.deleted:
            return None
        written = [item for item in cell.binder.scope.assigns if item.target == cell.name]
        values = [item.value for item in written if item.value is not None]
        if cell.is_parameter:
            return None if written else self.parameter(cell, depth)
        if written and not values:
            return self._alternative(cell.binder, Expr("name", 0, 0, cell.name), depth - 1)
        if not written or len(values) < len([item for item in written if item.annotation is None or item.value]):
            return None
        if any(item.kind in _SEEN and not alternatives(self.tree, cell.binder, item) for item in values):
            return None
        found = [self.value(cell.binder, item, depth - 1) for item in values]
        return found[0] if found and all(item is not None for item in found) else None

    def parameter(self, cell: Cell, depth: int = MAX_CALLS) -> UncachedCapture | None:
        """Return the kind of a parameter, by its annotation or by the arguments of every caller in the workspace."""
        param = next(item for item in cell.binder.params if item.name == cell.name)
        if not param.by_name:
            return _DICT if param.kind == "kwarg" else None
        if param.annotation is None:
            return self._of_callers(cell, depth)
        around = cell.binder.parent or cell.binder
        return self._annotated(around, param.annotation, depth)

    def value(self, body: Body, expr: Expr, depth: int = MAX_CALLS) -> UncachedCapture | None:
        """Return the kind of an expression of a body, if it is known."""
        if depth <= 0:
            return None
        if expr.kind in _DISPLAYS:
            return _DISPLAYS[expr.kind]
        if expr.kind == "ifexp":
            first, second = (self.value(body, item, depth - 1) for item in expr.items[1:])
            return first if second is not None else None
        if expr.kind == "literal":
            return _BYTES if _is_bytes(expr) else None
        if is_variable(expr) and (binder := body.binder(expr.text)) is not None:
            return self.cell(Cell(binder, expr.text), depth - 1)
        return self._named(body, expr) or self._alternative(body, expr, depth - 1)

    def _alternative(self, body: Body, expr: Expr, depth: int) -> UncachedCapture | None:
        """Return the kind of a loop variable or list item, if all its possible values have the same kind."""
        found = [self.value(at, item, depth) for at, item in alternatives(self.tree, body, expr)]
        return found[0] if found and all(item is not None for item in found) else None

    def _named(self, body: Body, expr: Expr) -> UncachedCapture | None:
        if expr.callee:
            kind, name = self.tree.names.meaning(body, expr.callee)
            made = self.tree.bodies.resolve(body, expr.callee) if kind == "class" else None
            if isinstance(made, ClassRef):
                return self._instance(made)
            return _MAKERS.get(name) if kind == "external" else None
        external = self.tree.names.external(body, expr.text) if expr.kind == "name" else ""
        return _DTYPE if _DTYPES.match(external) else None

    def _of_callers(self, cell: Cell, depth: int) -> UncachedCapture | None:
        function = cell.binder.function
        known = function is not None and self.tree.words.is_taking(function.name) and depth > 1
        calls = self.tree.bodies.calls_of(cell.binder) if known else []
        if not calls:
            return self._alternative(cell.binder, Expr("name", 0, 0, cell.name), depth - 1)
        arguments = [(body, argument_for(call, cell.binder.params, cell.name)) for body, call in calls]
        found = [self.value(body, item, depth - 2) if item is not None else None for body, item in arguments]
        return found[0] if all(item is not None for item in found) else None

    def _annotated(self, body: Body, expr: Expr, depth: int) -> UncachedCapture | None:
        """Return the kind of a value with an annotated type, if it is not None."""
        if depth <= 0:
            return None
        if expr.kind == "binary" and expr.text == "|":
            return self._one_of(body, expr.items, depth)
        if expr.kind == "subscript":
            owner, *indices = expr.items
            name = self.tree.names.external(body, owner.text if owner.kind == "name" else "")
            if name in ("typing.Optional", "typing.Union"):
                return self._one_of(body, indices[0].items if indices[0].kind == "tuple" else indices, depth)
            return _TYPES.get(name)
        found = self.tree.bodies.resolve(body, expr.text) if expr.kind == "name" else None
        if isinstance(found, ClassRef):
            return self._any_instance(found)
        return _TYPES.get(found.name) if isinstance(found, External) else None

    def _any_instance(self, ref: ClassRef) -> UncachedCapture | None:
        """Return the kind of instances of a class and its subclasses; a protocol may have any instance."""
        family = [item for item in self.tree.bodies.family(ref) if item != ref]
        known = all(self._instance(item, {"object"}) is not None for item in family)
        return self._instance(ref, {"object"}) if known else None

    def _one_of(self, body: Body, types: Sequence[Expr], depth: int) -> UncachedCapture | None:
        kept = [item for item in types if not (item.kind == "const" and item.value is None)]
        found = [self._annotated(body, item, depth - 1) for item in kept]
        return found[0] if found and all(item is not None for item in found) else None

    def _instance(self, ref: ClassRef, harmless: Set[str] = HARMLESS_BASES) -> UncachedCapture | None:
        """Return the kind of instances of a class, if all its bases are known and none is a tuple, a string or a number."""
        order = self.tree.bodies.program.mro(ref)
        if isinstance(order, Unresolved) or any(item.cls.metaclass for item in order if isinstance(item, ClassRef)):
            return None
        outside = {item.name for item in order if isinstance(item, External)}
        if outside and outside <= _ENUMS:
            missed = sees_enumerations(self.tree) is False
            return UncachedCapture(f"a member of `{ref.name}`", "capture `{}.name` and read it too") if missed else None
        if not outside <= harmless:
            return None
        decorators = [self.tree.names.external(self.tree.bodies.module(ref.file), item) for item in _decorators(ref)]
        if any(item not in ("dataclasses.dataclass", "typing.final") for item in decorators):
            return None
        return UncachedCapture(
            f"an instance of `{ref.name}`", "capture the values that are read from it instead", cls=ref
        )


def _decorators(ref: ClassRef) -> list[str]:
    return [item.callee or item.text for item in ref.cls.decorators]


def _is_bytes(literal: Expr) -> bool:
    prefix = literal.text[: len(literal.text) - len(literal.text.lstrip("bBrRuU"))]
    return "b" in prefix.lower()
