"""The types that annotations state, names resolved through imports and aliases, in the one form in which Python compares them."""

from __future__ import annotations

from typing import Literal

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_TYPES
from opschema_cli.evaluation.namespaces import postponed
from opschema_cli.evaluation.quoted import quoted
from opschema_cli.evaluation.reaching import bindings
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import (
    HARMLESS_BASES,
    ClassRef,
    External,
    FunctionRef,
    Missing,
    ModuleRef,
    Resolution,
    Unresolved,
    ValueRef,
)
from opschema_cli.source.python import Expr, PythonFile

TypeKind = Literal[
    "name",
    "union",
    "list",
    "sequence",
    "builtin-list",
    "builtin-sequence",
    "tuple",
    "other",
    "none",
    "opaque",
    "unknown",
    "missing",
]


class PythonType(msgspec.Struct, frozen=True):
    """A type: a ``name`` (full and dotted, as ``torch.Tensor``), or a form with its ``items``.

    The items of a union are in no order, ``None`` apart. ``builtin-list`` is ``list[T]``, ``list`` is ``typing.List[T]``,
    likewise for sequences. ``other`` is a type that is known, but none of these; ``opaque`` a class that may be registered
    with torch as one; ``missing`` a name that its module does not have; ``unknown`` all that cannot be followed.
    """

    kind: TypeKind
    name: str = ""
    items: tuple[PythonType, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether all of it could be resolved; for an opaque class, this only concerns its form, and no form is ever accepted."""
        inner = (item.is_known or item.kind == "opaque" for item in self.items)
        return self.kind not in ("unknown", "missing", "opaque") and all(inner)

    @property
    def is_missing(self) -> bool:
        """Whether a name in it does not exist."""
        return self.kind == "missing" or any(item.is_missing for item in self.items)


NONE = PythonType("none")
UNKNOWN = PythonType("unknown")
GROUP_NAME = "torch.distributed.distributed_c10d.GroupName"
NUMBER = ("bool", "float", "int")

_FORMS: dict[str, TypeKind] = {
    "typing.List": "list", "list": "builtin-list", "typing.Sequence": "sequence", "collections.abc.Sequence": "builtin-sequence",
    "typing.Tuple": "tuple", "tuple": "tuple",
}  # fmt: skip

_BUILTINS = frozenset({"int", "float", "bool", "str", "list", "tuple", "dict", "set", "object", "bytes", "complex"})

_EVALUATED = frozenset({"list", "tuple", "collections.abc.Sequence"})
"""Forms in which torch evaluates strings; those of ``typing`` convert them to something else."""

_ALIASES = {
    "torch._tensor.Tensor": "torch.Tensor", "torch._C.dtype": "torch.dtype", "torch._C.device": "torch.device",
    "torch.types.Tensor": "torch.Tensor", "torch.types._dtype": "torch.dtype", "torch.types._device": "torch.device",
    "torch.types._int": "int", "torch.types._float": "float", "torch.types._bool": "bool", "builtins.int": "int",
    "typing_extensions.List": "typing.List", "typing_extensions.Optional": "typing.Optional", "typing_extensions.Union":
    "typing.Union",
}  # fmt: skip

_KNOWN_OTHERS = frozenset(
    {"dict", "set", "frozenset", "object", "bytes", "bytearray", "complex", "type", "range", "slice", "memoryview"}
    | {f"typing.{name}" for name in ("Any", "Dict", "Callable", "Literal", "Iterable", "Mapping", "Set", "Type",
    "NamedTuple", "Iterator")}
    | {f"collections.abc.{name}" for name in ("Callable", "Iterable", "Mapping", "Iterator")}
    | {f"torch.{name}" for name in ("Size", "SymInt", "SymFloat", "SymBool", "layout", "memory_format",
    "nn.Module", "Stream")}
    | {"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.cuda.Stream"}
    | {"numpy.ndarray", "pathlib.Path", "decimal.Decimal"}
)  # fmt: skip
"""Types that are not in the table, and never were."""

_OPAQUE = frozenset(
    {"torch.Generator", "torch._C.Generator", "torch.distributed.ProcessGroup", "torch.distributed.DeviceMesh"}
    | {"torch.distributed.distributed_c10d.ProcessGroup", "torch.distributed.device_mesh.DeviceMesh"}
    | {f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")}
)
"""Classes that torch 2.13 registers as opaque, or does once ``torch.distributed.tensor`` is imported."""

_PLAIN_BASES = HARMLESS_BASES | {
    "torch.nn.Module",
    "torch.Tensor",
    "typing.NamedTuple",
    "typing.TypedDict",
    "int",
    "str",
    "dict",
    "tuple",
}
_PLAIN_DECORATORS = frozenset({"dataclass", "dataclasses.dataclass", "final", "typing.final"})

_TYPE_CHECKING = ("TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING")


class _Where(msgspec.Struct, frozen=True):
    """The namespace of an annotation: a body, or with ``quoted`` the module at the point ``at``.

    ``evaluated`` is true of an annotation that is not a string itself, so that torch evaluates strings in ``list[...]`` and its
    like.
    """

    body: Body
    quoted: bool = False
    at: int | None = None
    evaluated: bool = False


class Annotations:
    """Reads annotations of one tree."""

    def __init__(self, evaluator: Evaluator, *, opaque: bool = False) -> None:
        self.evaluator = evaluator
        self.bodies = evaluator.bodies
        self.opaque = opaque
        self._postponed: dict[str, bool] = {}
        self._read: dict[tuple[Body, str, int | None], PythonType] = {}

    def read(self, body: Body, expr: Expr, at: int | None = None) -> PythonType:
        """The type of an annotation that is written in a body, outside the function that it is of; ``at`` is where its
        module is when torch evaluates strings.
        """
        key = (body, body.file.text(expr), at)
        if key not in self._read:
            self._read[key] = self._stated(body, expr, at)
        return self._read[key]

    def _stated(self, body: Body, expr: Expr, at: int | None) -> PythonType:
        later = _Where(self.bodies.module(body.file), True, at)
        if self._is_postponed(body.file):
            return self._type(later, expr, MAX_TYPES)
        if isinstance(expr.value, str):
            inner = quoted(expr.value, expr)
            return self._type(later, inner, MAX_TYPES) if inner is not None else UNKNOWN
        return self._type(_Where(body, False, at, True), expr, MAX_TYPES)

    def _is_postponed(self, file: PythonFile) -> bool:
        """Whether a module evaluates no annotation at its definition."""
        if file.path not in self._postponed:
            self._postponed[file.path] = postponed(file)
        return self._postponed[file.path]

    def _type(self, where: _Where, expr: Expr, depth: int) -> PythonType:
        if depth <= 0:
            return UNKNOWN
        if expr.kind == "const":
            return NONE if expr.value is None else PythonType("other", repr(expr.value))
        if expr.kind == "literal":
            return PythonType("other", expr.text)
        if expr.kind == "binary" and expr.text == "|":
            return union([self._type(where, item, depth - 1) for item in expr.items])
        if expr.kind == "subscript":
            return self._generic(where, expr, depth)
        return self._named(where, expr.text, depth) if expr.kind == "name" else UNKNOWN

    def _quoted(self, where: _Where, expr: Expr, depth: int) -> PythonType:
        """An item of a builtin form: a string in it is evaluated once."""
        if not where.evaluated or not isinstance(expr.value, str):
            return self._type(where, expr, depth)
        inner = quoted(expr.value, expr)
        later = _Where(self.bodies.module(where.body.file), True, where.at)
        return self._type(later, inner, depth) if inner is not None else UNKNOWN

    def _generic(self, where: _Where, expr: Expr, depth: int) -> PythonType:
        base = self._base(where, expr.items[0].text if expr.items[0].kind == "name" else "")
        parts = expr.items[1].items if len(expr.items) == 2 and expr.items[1].kind == "tuple" else expr.items[1:]
        if base == "typing.Annotated" or base == "typing.Literal":
            return PythonType("other", base)
        plain = [item for item in parts if item.kind != "literal" or item.text != "..."]
        read = self._quoted if base in _EVALUATED else self._type
        items = tuple(read(where, item, depth - 1) for item in plain)
        if base == "typing.Optional" and len(items) == 1:
            return union([items[0], NONE])
        if base == "typing.Union":
            return union(items)
        if base in _FORMS:
            kind = _FORMS[base]
            dots = kind == "tuple" and len(plain) != len(parts)
            return PythonType(kind, "..." if dots else "", items)
        return PythonType("other", base) if base in _KNOWN_OTHERS else UNKNOWN

    # Names

    def _base(self, where: _Where, name: str) -> str:
        found = self._resolve(where, name) if name else None
        return _ALIASES.get(found.name, found.name) if isinstance(found, External) else ""

    def _resolve(self, where: _Where, name: str) -> Resolution:
        """The meaning of a name; a builtin that only a star import could hide is the builtin."""
        body = where.body
        if name in _BUILTINS and not any(bindings(item.scope, name) for item in body.outward()):
            return External(name)
        first = name.partition(".")[0]
        if where.quoted and first not in _BUILTINS and _is_absent(body, first, where.at):
            return Missing(body.file.path, first)
        return self.bodies.resolve(body, name)

    def _named(self, where: _Where, name: str, depth: int) -> PythonType:
        found = self._resolve(where, name)
        if isinstance(found, External):
            return _external(_ALIASES.get(found.name, found.name))
        if isinstance(found, ValueRef) and found.assign.value is not None and found.assign.sure:
            return self._type(_Where(self.bodies.module(found.file)), found.assign.value, depth - 1)
        if isinstance(found, Missing) and found.module == where.body.file.path and found.name == name.partition(".")[0]:
            return PythonType("missing", name)
        if isinstance(found, ClassRef):
            return PythonType("opaque" if self._may_be_opaque(found) else "other", found.name)
        return PythonType("other", name) if isinstance(found, FunctionRef | ModuleRef) else UNKNOWN

    def _may_be_opaque(self, ref: ClassRef) -> bool:
        """Whether a class may be registered with torch: the tree registers some, or its bases are not known to be plain."""
        order = self.bodies.program.mro(ref)
        if self.opaque or isinstance(order, Unresolved):
            return True
        classes = [item.cls for item in order if isinstance(item, ClassRef)]
        decorators = {item.callee or item.text for cls in classes for item in cls.decorators}
        outside = {item.name for item in order if isinstance(item, External)}
        return bool(decorators - _PLAIN_DECORATORS or outside - _PLAIN_BASES or any(cls.metaclass for cls in classes))


def _is_absent(module: Body, name: str, at: int | None) -> bool:
    """Whether a name that a module binds is missing at run time: only a type checker sees it, or it is bound later."""
    found = bindings(module.scope, name)
    if not found or any(item.attr == "*" for item in module.scope.imports):
        return False
    if name in module.file.rebound:
        return False
    blocks = [item.body for item in module.scope.conditions if item.kind == "if" and item.expr.text in _TYPE_CHECKING]
    later = at if at is not None else max(item.start for item in found)
    return all(item.start > later or any(block.start <= item.start < block.end for block in blocks) for item in found)


def _external(name: str) -> PythonType:
    if name == "torch.types.Number":
        return PythonType("union", "", tuple(PythonType("name", item) for item in NUMBER))
    if name in ("typing.List", "list", "typing.Sequence", "collections.abc.Sequence", "typing.Tuple", "tuple"):
        return PythonType("other", name)
    if name in _KNOWN_OTHERS or name in _OPAQUE:
        return PythonType("opaque" if name in _OPAQUE else "other", name)
    known = name in ("int", "float", "bool", "str", "torch.Tensor", "torch.dtype", "torch.device", GROUP_NAME)
    return PythonType("name", name) if known else UNKNOWN


def union(items: list[PythonType] | tuple[PythonType, ...]) -> PythonType:
    """The union of some types: flat, without repetitions, in one order."""
    flat = [part for item in items for part in (item.items if item.kind == "union" else (item,))]
    found = sorted(dict.fromkeys(flat), key=lambda item: (item.kind == "none", item.kind, item.name, repr(item.items)))
    return found[0] if len(found) == 1 else PythonType("union", "", tuple(found))
