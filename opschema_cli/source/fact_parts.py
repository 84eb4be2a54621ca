"""Data passed from a syntax collector to the facts: the contents of a syntax tree, scopes under construction, kept constants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
    Param,
    Scope,
    Statement,
    Unpack,
    packed_uses,
)
from opschema_cli.source.text import Span

MAX_EXPR_DEPTH = 12
"""Maximum depth of an expression; deeper parts are ``other``."""

MAX_STATEMENT_DEPTH = 60
"""Maximum depth of a function's statements; deeper ones are ``other``, and each ``elif`` is one level."""

NOT_CONSTANT: Constant = "\0not a constant"
"""Placeholder for the value of an expression that is not a constant, or not kept in facts."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,63}\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Definition(msgspec.Struct):
    """A function or class as written; ``keywords`` are a class's, with an empty name for ``**``."""

    name: str
    span: Span
    body: list[Statement]
    decorators: tuple[Expr, ...] = ()
    params: tuple[Param, ...] = ()
    returns: Expr | None = None
    bases: tuple[Expr, ...] = ()
    keywords: tuple[tuple[str, Expr], ...] = ()


class Syntax(msgspec.Struct):
    """The statements of a module, and what these and their expressions leave out, by the ``id`` of each.

    ``definitions`` and ``imports`` belong to statements. ``patterns`` has the names that a ``case`` binds and the expressions
    in its pattern. ``params`` are those of a lambda, ``below`` is the expression that an ``other`` stands for. ``heads`` has the
    span of ``a`` in ``a . b`` where it does not follow from the text.
    """

    body: list[Statement] = msgspec.field(default_factory=list)
    definitions: dict[int, Definition] = msgspec.field(default_factory=dict)
    imports: dict[int, list[Import]] = msgspec.field(default_factory=dict)
    patterns: dict[int, tuple[list[Expr], list[Expr]]] = msgspec.field(default_factory=dict)
    params: dict[int, tuple[Param, ...]] = msgspec.field(default_factory=dict)
    below: dict[int, Expr] = msgspec.field(default_factory=dict)
    heads: dict[int, Span] = msgspec.field(default_factory=dict)


class Parts(msgspec.Struct):
    """A scope under construction; of a use only its fields."""

    assigns: list[Assign] = msgspec.field(default_factory=list)
    imports: list[Import] = msgspec.field(default_factory=list)
    calls: list[Expr] = msgspec.field(default_factory=list)
    uses: list[tuple[str, int, int]] = msgspec.field(default_factory=list)
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
        """Add the uses and effects of a lambda to the enclosing scope."""
        for name, parts in msgspec.structs.asdict(inner).items():
            if name != "lambdas":
                getattr(self, name).extend(parts)

    def finished(self) -> Scope:
        """Return the completed scope."""
        return Scope(
            tuple(self.assigns),
            tuple(self.imports),
            tuple(self.calls),
            packed_uses(self.uses),
            tuple(self.loops),
            tuple(self.returns),
            tuple(self.functions),
            tuple(self.classes),
            tuple(self.deleted),
            tuple(self.strings),
            tuple(self.conditions),
            tuple(self.guarded),
            tuple(self.items),
            tuple(self.unpacks),
            tuple(self.lambdas),
        )


def kept_text(value: object) -> Constant:
    """Return a string literal's value; :data:`NOT_CONSTANT` for bytes and for values that cannot be cached."""
    return value if isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value)) else NOT_CONSTANT


def kept_int(value: int) -> Constant:
    """Return an integer literal's value, if it fits into 64 bits."""
    return value if abs(value) < 2**63 else NOT_CONSTANT


def is_word(value: Constant) -> bool:
    """Whether a constant is a string that could name something."""
    return isinstance(value, str) and _IDENTIFIER.match(value) is not None


def format_text(span: Span, text: str) -> Expr:
    """Return the text between the fields of a formatted string at ``span``."""
    known = kept_text(text) is not NOT_CONSTANT
    return Expr("const", *span, "", text) if known else Expr("literal", *span)


def flattened(operator: str, operands: Iterable[Expr]) -> tuple[Expr, ...]:
    """Return the operands of ``and`` or ``or``, including those of nested operations with the same operator."""
    found: list[Expr] = []
    for item in operands:
        found += item.items if item.kind == "boolop" and item.text == operator else (item,)
    return tuple(found)


def slice_of(start: int, parts: Sequence[Expr | None]) -> Expr:
    """Return a slice at ``start`` from its bounds and step."""
    written = [part for part in parts if part is not None]
    span = (written[0].start, written[-1].end) if written else (start, start + 1)
    absent = Expr("absent", span[0], span[0])
    return Expr("slice", *span, "", None, tuple([part if part is not None else absent for part in parts]))


def clause_of(word: str, parts: tuple[Expr, ...]) -> Expr:
    """Return a ``for`` clause of a comprehension from its target, iterable and conditions."""
    return Expr("for", parts[0].start, parts[-1].end, word, None, parts)
