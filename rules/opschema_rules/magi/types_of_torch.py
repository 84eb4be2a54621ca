"""Types of parameters and of returned values in torch's schemas, for resolved annotations.

The newest torch decides: what it refuses, older ones refuse, too.
"""

from __future__ import annotations

import re

from opschema_cli.evaluation.type_forms import TypeForm
from opschema_cli.schema.operator_schema import SchemaType
from opschema_cli.source.resolution import HARMLESS_BASES, ClassRef, External
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.model import MagiOp
from opschema_rules.torchlib.annotations import NONE, PythonType, union
from opschema_rules.torchlib.type_table import known_releases, parameter_type, return_type

_KNOWN = frozenset({"int", "float", "bool", "str", "torch.Tensor", "torch.dtype", "torch.device"})
_FOREIGN = frozenset(
    {
        "typing.Any",
        "object",
        "bytes",
        "complex",
        "list",
        "tuple",
        "dict",
        "set",
        "frozenset",
        "bytearray",
        "range",
        "slice",
    }
    | {
        "typing.Callable",
        "collections.abc.Callable",
        "typing.Dict",
        "typing.List",
        "typing.Tuple",
        "typing.Set",
        "type",
    }
    | {"torch.Size", "typing.Sequence", "typing.Hashable"}
)
"""Types that torch's schemas lack."""

_GENERICS = {"list": "builtin-list", "collections.abc.Sequence": "builtin-sequence"}
_FOREIGN_GENERICS = frozenset(
    {
        "set",
        "frozenset",
        "type",
        "dict",
        "tuple",
        "collections.abc.Callable",
        "collections.abc.Iterable",
        "collections.abc.Mapping",
    }
    | {"collections.abc.Iterator"}
)


_MODULES = re.compile(r"torch\.nn\.(?:\w+\.)*[A-Z]\w*")
"""Full names of torch's modules, layers and parameters, and of the objects annotated with them."""


def is_taken(op: MagiOp, form: TypeForm) -> bool | None:
    """Whether torch accepts a type for a parameter; None if that is not known."""
    if form.kind == "text":
        return False
    if form.kind == "class":
        return False if _is_plain_class(op, form) else None
    if any(part is not form and _is_only_taken_alone(op, part) for part in form.walk()):
        return False
    known = _converted(form)
    return None if known is None else parameter_type(known, known_releases()[-1]) is not None


def _is_only_taken_alone(op: MagiOp, part: TypeForm) -> bool:
    """Whether no optional type and no list may contain a type: a ``Literal``, or an enumeration of the tree."""
    is_enum = part.ref is not None and op.tree.lowerer.classes.enum(part.ref) is not None
    return part.kind == "literal" or (part.kind == "class" and is_enum)


def type_in_schema(form: TypeForm | None) -> SchemaType:
    """Return the type in the op's schema; with an empty name if that is not known."""
    known = _converted(form) if form is not None and form.kind not in ("text", "class") else None
    found = parameter_type(known, known_releases()[-1]) if known is not None else None
    return found if found is not None else SchemaType()


def is_returned(form: TypeForm) -> bool | None:
    """Whether torch accepts a type for a result; None if that is not known."""
    if form.kind == "generic" and form.name == "tuple":
        parts = [is_returned(item) if item.kind != "generic" or item.name != "tuple" else False for item in form.args]
        return False if False in parts else None if None in parts else True
    if form.kind == "ellipsis":
        return False
    if form.kind == "none":
        return None
    known = _converted(form)
    return None if known is None else return_type(known, known_releases()[-1]) is not None


def dataclass_in(op: MagiOp, form: TypeForm) -> Dataclass | None:
    """A dataclass that is only a part of a type: ``Optional[Config]``, ``list[Config]``."""
    for part in form.walk():
        if part is not form and part.kind == "class" and part.ref is not None:
            found = op.tree.lowerer.dataclasses.of(part.ref, None)
            if isinstance(found, Dataclass):
                return found
    return None


def dataclass_of(op: MagiOp, form: TypeForm | None) -> Dataclass | None:
    """The dataclass that a type is."""
    found = op.tree.lowerer.dataclasses.of(form.ref, None) if form is not None and form.ref is not None else None
    return found if isinstance(found, Dataclass) else None


def _makes_types(op: MagiOp, ref: ClassRef) -> bool:
    """Whether the tree makes classes known to torch."""
    return any("register_opaque_type" in file.source.text for file in [ref.file, *op.tree.bodies.files])


def _is_plain_class(op: MagiOp, form: TypeForm) -> bool:
    """Whether a class of the tree is unknown to the decorator and to torch."""
    lowerer = op.tree.lowerer
    line = lowerer.classes.line(form.ref) if form.ref is not None else None
    if form.ref is None or not isinstance(line, list) or form.args:
        return False
    outside = [item.name for item in line if isinstance(item, External) and item.name not in HARMLESS_BASES]
    foreign = [name for name in outside if not _MODULES.fullmatch(name)]
    special = lowerer.classes.enum(form.ref) is not None or lowerer.dataclasses.of(form.ref) is not None
    return not foreign and not special and not form.ref.cls.decorators and not _makes_types(op, form.ref)


def _converted(form: TypeForm) -> PythonType | None:
    """Return a type in the form of the type table; None if torch may have learned it in another way."""
    if form.kind == "none":
        return NONE
    if form.kind == "name":
        if form.is_tensor:
            return PythonType("name", "torch.Tensor")
        known_name = form.name in _KNOWN | _FOREIGN or _MODULES.fullmatch(form.name) is not None
        return PythonType("name", form.name) if known_name else None
    items = [_converted(item) for item in form.args]
    known = [item for item in items if item is not None]
    if form.kind == "generic" and form.name in _FOREIGN_GENERICS:
        return PythonType("other")
    if len(known) < len(items) or form.kind not in ("union", "generic"):
        return None
    if form.kind == "union":
        return union(tuple(known))
    kind = _GENERICS.get(form.name)
    if kind is None:
        return None
    return PythonType("builtin-list" if kind == "builtin-list" else "builtin-sequence", "", tuple(known))


def is_listed(origin: str) -> bool:
    """Whether a generic type lists its elements' types."""
    return origin in ("tuple", "dict")
