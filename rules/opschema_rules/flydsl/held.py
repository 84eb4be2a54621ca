"""What a captured variable holds, where it is sure that the cache key does not see it.

FlyDSL folds captured values into the key of a compiled function by their ``repr``, if they are numbers, strings, None,
tuples or (from 0.3.2) members of enumerations; it follows captured functions; all else it leaves out, from 0.1.5 to today.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Set
from functools import cached_property, lru_cache

import msgspec

from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.program import HARMLESS_BASES, ClassRef, External, Unresolved
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.captures import Cell, dotted
from opschema_rules.flydsl.key import sees_enumerations
from opschema_rules.flydsl.model import FlyTree

MAX_DEPTH = 8
"""Longest chain of names and branches that is followed."""


class Held(msgspec.Struct, frozen=True):
    """A kind of value that the key leaves out: ``words`` name it, ``instead`` says what of ``{}`` the key does see.

    ``cls`` is the dataclass that it is an instance of.
    """

    words: str
    instead: str
    mutable: bool = False
    cls: ClassRef | None = None


_LIST = Held("a list", "capture `tuple({})` instead", mutable=True)
_DICT = Held("a dict", "capture `tuple({}.items())` instead", mutable=True)
_SET = Held("a set", "capture `tuple(sorted({}))` instead", mutable=True)
_FROZENSET = Held("a frozenset", "capture `tuple(sorted({}))` instead")
_DTYPE = Held("a torch.dtype", "capture `str({})` and read it, too")
_DEVICE = Held("a torch.device", "capture `str({})` and read it, too")
_BYTES = Held("bytes", "capture `{}.hex()` and read it, too")
_RANGE = Held("a range", "capture its bounds instead")
_PARTIAL = Held("a functools.partial", "define a function instead")
_NAMESPACE = Held("a namespace", "capture the values that it holds instead")

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
"""Types by their full name."""

_MAKERS = {**{name: held for name, held in _TYPES.items() if not name.startswith("typing.")}, "sorted": _LIST}
"""What calls give, by the full name of the function."""

_DISPLAYS: dict[type[ast.expr], Held] = {
    ast.List: _LIST,
    ast.ListComp: _LIST,
    ast.Dict: _DICT,
    ast.DictComp: _DICT,
    ast.Set: _SET,
    ast.SetComp: _SET,
}
_ENUMS = frozenset({"enum.Enum", "enum.Flag"})
_DTYPES = re.compile(r"torch\.(?:b?float\w*|half|double|u?int\d*|short|long|bool)\Z")


_SEEN = frozenset({"const", "unary", "binary", "compare", "tuple", "subscript", "boolop"})
"""Kinds of expressions that may give what the key sees."""


class Holder:
    """Tells what variables of one tree hold."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._cells: dict[Cell, Held | None] = {}

    def cell(self, cell: Cell, depth: int = MAX_DEPTH) -> Held | None:
        """What a variable surely holds that no key sees; None for anything else and where it is not sure."""
        if cell not in self._cells:
            self._cells[cell] = None  # of a variable that comes from itself nothing is known
            self._cells[cell] = self._cell(cell, depth)
        return self._cells[cell]

    @cached_property
    def _given(self) -> set[str]:
        """The last words of what is called with an argument that may be of a kind that no key sees."""
        bodies = (body for file in self.tree.bodies.files for body in self.tree.bodies.of(file))
        calls = (call for body in bodies for call in body.scope.calls)
        return {call.callee.rpartition(".")[2] for call in calls if any(map(_may_be_missed, call.items[1:]))}

    def _cell(self, cell: Cell, depth: int) -> Held | None:
        if depth <= 0 or cell.name in cell.binder.scope.deleted:
            return None
        written = [item for item in cell.binder.scope.assigns if item.target == cell.name]
        values = [item.value for item in written if item.value is not None]
        if cell.is_parameter:
            return None if written else self.parameter(cell, depth)
        if not written or len(values) < len([item for item in written if item.annotation is None or item.value]):
            return None
        if any(item.kind in _SEEN for item in values):
            return None
        found = [self.value(cell.binder, expression(cell.binder, item), depth - 1) for item in values]
        return found[0] if found and all(item is not None for item in found) else None

    def parameter(self, cell: Cell, depth: int = MAX_DEPTH) -> Held | None:
        """What a parameter takes, by its annotation, or by what every caller in the workspace passes."""
        param = next(item for item in cell.binder.params if item.name == cell.name)
        if not param.by_name:
            return _DICT if param.kind == "kwarg" else None
        if param.annotation is None:
            return self._passed(cell, depth)
        around = cell.binder.parent or cell.binder
        return self._annotated(around, expression(around, param.annotation), depth)

    def value(self, body: Body, node: ast.expr | None, depth: int = MAX_DEPTH) -> Held | None:
        """What an expression of a body surely gives."""
        if node is None or depth <= 0:
            return None
        if type(node) in _DISPLAYS:
            return _DISPLAYS[type(node)]
        if isinstance(node, ast.IfExp):
            first, second = (self.value(body, item, depth - 1) for item in (node.body, node.orelse))
            return first if second is not None else None
        if isinstance(node, ast.Constant):
            return _BYTES if isinstance(node.value, bytes) else None
        if isinstance(node, ast.Name) and (binder := body.binder(node.id)) is not None:
            return self.cell(Cell(binder, node.id), depth - 1)
        return self._named(body, node)

    def _named(self, body: Body, node: ast.expr) -> Held | None:
        called = dotted(node.func) if isinstance(node, ast.Call) else ""
        if called:
            made = self.tree.bodies.resolve(body, called)
            if isinstance(made, ClassRef):
                return self._instance(made)
            return _MAKERS.get(made.name) if isinstance(made, External) else None
        named = dotted(node)
        external = self.tree.bodies.external(body, named) if named else ""
        return _DTYPE if _DTYPES.match(external) else None

    def _passed(self, cell: Cell, depth: int) -> Held | None:
        function = cell.binder.function
        known = function is not None and function.name in self._given and depth > 1
        calls = self.tree.bodies.calls_of(cell.binder) if known else []
        if not calls:
            return None
        given = [argument_for(call, cell.binder.params, cell.name) for _, call in calls]
        found = [
            self.value(body, expression(body, item), depth - 2) if item is not None else None
            for (body, _), item in zip(calls, given, strict=True)
        ]
        return found[0] if all(item is not None for item in found) else None

    def _annotated(self, body: Body, node: ast.expr | None, depth: int) -> Held | None:
        """What a value of an annotated type is, if it is not None."""
        if node is None or depth <= 0:
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._one_of(body, [node.left, node.right], depth)
        if isinstance(node, ast.Subscript):
            name = self.tree.bodies.external(body, dotted(node.value))
            if name == "typing.Optional":
                return self._annotated(body, node.slice, depth - 1)
            if name == "typing.Union":
                return self._one_of(body, node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice], depth)
            return _TYPES.get(name)
        found = self.tree.bodies.resolve(body, dotted(node)) if dotted(node) else None
        if isinstance(found, ClassRef):
            return self._any_instance(found)
        return _TYPES.get(found.name) if isinstance(found, External) else None

    def _any_instance(self, ref: ClassRef) -> Held | None:
        """Instances of a class and of all below it: of a protocol anything may be one."""
        family = [item for item in self.tree.bodies.family(ref) if item != ref]
        known = all(self._instance(item, {"object"}) is not None for item in family)
        return self._instance(ref, {"object"}) if known else None

    def _one_of(self, body: Body, nodes: list[ast.expr], depth: int) -> Held | None:
        kept = [item for item in nodes if not (isinstance(item, ast.Constant) and item.value is None)]
        found = [self._annotated(body, item, depth - 1) for item in kept]
        return found[0] if found and all(item is not None for item in found) else None

    def _instance(self, ref: ClassRef, harmless: Set[str] = HARMLESS_BASES) -> Held | None:
        """Instances of a class whose bases are all known, so that none is a tuple, a string or a number."""
        order = self.tree.bodies.program.mro(ref)
        if isinstance(order, Unresolved) or any(item.cls.metaclass for item in order if isinstance(item, ClassRef)):
            return None
        outside = {item.name for item in order if isinstance(item, External)}
        if outside and outside <= _ENUMS:
            missed = sees_enumerations(self.tree) is False
            return Held(f"a member of `{ref.name}`", "capture `{}.name` and read it, too") if missed else None
        if not outside <= harmless:
            return None
        decorators = [self.tree.bodies.external(self.tree.bodies.module(ref.file), item) for item in _decorators(ref)]
        if any(item not in ("dataclasses.dataclass", "typing.final") for item in decorators):
            return None
        return Held(f"an instance of `{ref.name}`", "capture what it reads of it instead", cls=ref)


def _decorators(ref: ClassRef) -> list[str]:
    return [item.callee or item.text for item in ref.cls.decorators]


def _may_be_missed(expr: Expr) -> bool:
    return expr.kind in ("list", "dict", "set") or expr.text.startswith("torch.")


def expression(body: Body, expr: Expr) -> ast.expr | None:
    """The syntax tree of an expression."""
    return _parsed(body.file.text(expr))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(f"(\n{text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
