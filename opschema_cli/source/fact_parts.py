"""What the two collectors of facts share: a scope that is being filled, and which constants are kept."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.source.python import (
    Assign,
    Class,
    Condition,
    Constant,
    Expr,
    Function,
    Import,
    Item,
    Loop,
    Scope,
    Unpack,
    Use,
    packed_uses,
)
from opschema_cli.source.text import Span

MAX_EXPR_DEPTH = 12
"""Deeper parts of an expression are ``other``."""

NOT_CONSTANT: Constant = "\0not a constant"
"""Stands for the value of an expression that is no constant which facts keep."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,63}\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Parts(msgspec.Struct):
    """A scope that is being filled."""

    assigns: list[Assign] = msgspec.field(default_factory=list)
    imports: list[Import] = msgspec.field(default_factory=list)
    calls: list[Expr] = msgspec.field(default_factory=list)
    uses: list[Use] = msgspec.field(default_factory=list)
    loops: list[Loop] = msgspec.field(default_factory=list)
    returns: list[Expr] = msgspec.field(default_factory=list)
    functions: list[Function] = msgspec.field(default_factory=list)
    classes: list[Class] = msgspec.field(default_factory=list)
    deleted: list[str] = msgspec.field(default_factory=list)
    strings: list[str] = msgspec.field(default_factory=list)
    conditions: list[Condition] = msgspec.field(default_factory=list)
    guarded: list[Span] = msgspec.field(default_factory=list)
    items: list[Item] = msgspec.field(default_factory=list)
    unpacks: list[Unpack] = msgspec.field(default_factory=list)
    lambdas: list[Function] = msgspec.field(default_factory=list)

    def take(self, inner: Parts) -> None:
        """What a lambda in this scope does is done in this scope, too."""
        for name, parts in msgspec.structs.asdict(inner).items():
            if name != "lambdas":
                getattr(self, name).extend(parts)

    def finished(self) -> Scope:
        """The scope, now that it is whole."""
        told = {name: tuple(parts) for name, parts in msgspec.structs.asdict(self).items() if name != "uses"}
        return Scope(**told, packed_uses=packed_uses(self.uses))


def kept_text(value: object) -> Constant:
    """A string literal's value; :data:`NOT_CONSTANT` for bytes and for what no cache can hold."""
    return value if isinstance(value, str) and not _SURROGATE.search(value) else NOT_CONSTANT


def kept_int(value: int) -> Constant:
    """An integer literal's value, if it fits into 64 bits."""
    return value if abs(value) < 2**63 else NOT_CONSTANT


def is_word(value: Constant) -> bool:
    """Whether a constant is text that could name something."""
    return isinstance(value, str) and _IDENTIFIER.match(value) is not None
