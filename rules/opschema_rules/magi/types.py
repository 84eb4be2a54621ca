"""Annotations with their names resolved: what ``typing.get_type_hints`` would give, as data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.python import Constant, Expr
from opschema_cli.source.resolution import ClassRef

MAX_TYPE_TEXT = 500
"""Longer string annotations are not read."""

TypeKind: TypeAlias = Literal["name", "generic", "union", "literal", "none", "class", "text", "ellipsis", "unresolved"]


class TypeForm(msgspec.Struct, frozen=True):
    """A type.

    ``name`` is the full name of one from outside the workspace (``torch.Tensor``, ``int``), of a ``generic`` its origin as
    ``typing.get_origin`` gives it (``list``, ``collections.abc.Sequence``); ``args`` are a generic's or union's. ``values`` are
    those of a ``literal``, None when one is not known. A ``class`` is one of the workspace. ``text`` is a string annotation, in
    ``name``, that does not evaluate where the op is registered, so that it stays a string. ``unresolved`` says why in ``name``.
    """

    kind: TypeKind
    name: str = ""
    args: tuple[TypeForm, ...] = ()
    values: tuple[Constant, ...] | None = ()
    ref: ClassRef | None = None

    def __str__(self) -> str:
        if self.kind == "generic":
            return f"{self.short}[{', '.join(map(str, self.args))}]"
        if self.kind == "union":
            return " | ".join(map(str, self.args))
        if self.kind == "literal":
            return "Literal[...]" if self.values is None else f"Literal[{', '.join(map(repr, self.values))}]"
        if self.kind == "class" and self.ref is not None:
            return self.ref.name
        fixed = {"none": "None", "ellipsis": "...", "unresolved": "?", "text": repr(self.name)}
        return fixed.get(self.kind, self.short)

    @property
    def short(self) -> str:
        """The name without the module it comes from."""
        return self.name.rpartition(".")[2]

    @property
    def origin(self) -> str:
        """What ``typing.get_origin`` gives; empty for None."""
        if self.kind in ("union", "literal"):
            return self.kind
        return self.name if self.kind == "generic" else _BARE_ORIGINS.get(self.name, "")

    @property
    def is_tensor(self) -> bool:
        """Whether it is ``torch.Tensor`` itself."""
        return self.kind == "name" and self.name in TENSORS

    @property
    def is_optional(self) -> bool:
        """Whether it is a union with None."""
        return self.kind == "union" and any(item.kind == "none" for item in self.args)

    @property
    def is_known(self) -> bool:
        """Whether all of it is resolved."""
        return not any(item.kind == "unresolved" for item in self.walk())

    def walk(self) -> Iterator[TypeForm]:
        """The type and all that it is made of."""
        yield self
        for item in self.args:
            yield from item.walk()


TENSORS = frozenset({"torch.Tensor", "torch._tensor.Tensor"})
STR = TypeForm("name", "str")
NONE = TypeForm("none")
ELLIPSIS = TypeForm("ellipsis")

_BARE_ORIGINS = {
    "typing.Tuple": "tuple", "typing.Dict": "dict", "typing.List": "list", "typing.Set": "set",
    "typing.Sequence": "collections.abc.Sequence",
}  # fmt: skip


def unresolved(reason: str) -> TypeForm:
    """A type that is not known, and why."""
    return TypeForm("unresolved", reason)


def parsed(text: str, at: Expr) -> Expr | None:
    """The expression in a string annotation, all of it placed at the string; None when it is none."""
    if len(text) > MAX_TYPE_TEXT:
        return None
    try:
        return _expr(ast.parse(text.strip(), mode="eval").body, at)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _expr(node: ast.expr, at: Expr) -> Expr:
    start, end = at.start, at.end
    if isinstance(node, ast.Constant):
        if node.value is ...:
            return Expr("literal", start, end, "...")
        if isinstance(node.value, str | int | float | bool | None):
            return Expr("const", start, end, "", node.value)
    if isinstance(node, ast.Name):
        return Expr("name", start, end, node.id)
    if isinstance(node, ast.Attribute):
        owner = _expr(node.value, at)
        return (
            Expr("name", start, end, f"{owner.text}.{node.attr}") if owner.kind == "name" else Expr("other", start, end)
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return Expr("binary", start, end, "|", None, (_expr(node.left, at), _expr(node.right, at)))
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return Expr("subscript", start, end, "", None, (_expr(node.value, at), *(_expr(item, at) for item in inner)))
    return Expr("other", start, end)
