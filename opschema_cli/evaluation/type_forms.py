"""Annotations with their names resolved: what ``typing.get_type_hints`` would give, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.python import Constant
from opschema_cli.source.resolution import ClassRef

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
        """The name without its module."""
        return self.name.rpartition(".")[2]

    @property
    def origin(self) -> str:
        """The result of ``typing.get_origin``; empty for None."""
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
        """Yield the type and all types that it contains."""
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
    """Return an unknown type with the reason."""
    return TypeForm("unresolved", reason)
