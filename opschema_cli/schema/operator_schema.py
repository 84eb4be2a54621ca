"""Operator schemas as PyTorch writes them: ``ns::name.overload(Tensor(a!) self, int[2] size=1) -> Tensor(a!)``.

What a schema is, and how it is written; :mod:`opschema_cli.schema.schema_string` reads one. Spans count characters of
the schema's own text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from opschema_cli.source.keyed_struct import KeyedStruct
from opschema_cli.source.text import Span

NOWHERE = Span(0, 0)


class AliasInfo(msgspec.Struct, frozen=True):
    """An alias annotation: ``(a!)`` has ``before`` {a} and ``write``; ``(a -> *)`` also ``after``.

    Only ``Tensor!``, which stands for a fresh set, has an empty ``before``.
    """

    before: tuple[str, ...]
    write: bool = False
    after: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.before:
            return "!"
        after = f" -> {'|'.join(self.after)}" if self.after else ""
        return f"({'|'.join(self.before)}{'!' if self.write else ''}{after})"


class SchemaType(KeyedStruct, frozen=True, dict=True):
    """A type; equal to another if torch takes them for the same, whatever they alias.

    A base type has a ``name`` (``Tensor``, ``SymInt``, or a class). A list or optional is one of ``inner``; ``size`` is a
    list's (``int[2]``). Others have ``items``: ``Dict``, ``Future``, ``RRef``, ``Await``, ``Union``, and a tuple, whose
    name is ``Tuple``. ``alias`` is the annotation written right behind it.
    """

    name: str = ""
    inner: SchemaType | None = None
    optional: bool = False
    size: int | None = None
    items: tuple[SchemaType, ...] = ()
    alias: AliasInfo | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """All fields except those on aliasing."""
        return self.name, self.inner, self.optional, self.size, self.items

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.inner is not None and not self.optional

    @cached_property
    def base(self) -> str:
        """The name of its innermost type."""
        return self.name if self.inner is None else self.inner.base

    @property
    def annotation(self) -> AliasInfo | None:
        """The annotation that counts for a value of this type: the outermost one."""
        if self.alias is not None or self.inner is None:
            return self.alias
        return self.inner.annotation

    def aliased(self, alias: AliasInfo | None) -> SchemaType:
        """Return the same type with this alias annotation directly after it."""
        return msgspec.structs.replace(self, alias=alias)

    def parts(self) -> Iterator[SchemaType]:
        """The type and every type in it."""
        yield self
        for item in (*self.items, *((self.inner,) if self.inner is not None else ())):
            yield from item.parts()

    def __str__(self) -> str:
        return self.text(annotated=False)

    def text(self, *, annotated: bool = True) -> str:
        """Return the type as written, with or without its alias annotations."""
        alias = str(self.alias) if annotated and self.alias is not None else ""
        if self.inner is not None:
            inner = self.inner.text(annotated=annotated)
            if not self.optional:
                return f"{inner}[{'' if self.size is None else self.size}]{alias}"
            return f"{inner}?{alias}"
        if not self.items and self.name != "Tuple":
            return self.name + alias
        items = ", ".join(item.text(annotated=annotated) for item in self.items)
        return f"{'' if self.name == 'Tuple' else self.name}({items}){alias}"


class Argument(msgspec.Struct, frozen=True):
    """An argument. ``default`` is its default as written, or None if it has none; ``span`` covers the entire argument."""

    name: str
    type: SchemaType
    span: Span = NOWHERE
    name_span: Span = NOWHERE
    type_span: Span = NOWHERE
    default: str | None = None
    default_span: Span | None = None
    kwarg_only: bool = False

    @property
    def alias(self) -> AliasInfo | None:
        """Its alias annotation."""
        return self.type.annotation

    @property
    def is_write(self) -> bool:
        """Whether the operator may write it."""
        return self.alias is not None and self.alias.write

    def __str__(self) -> str:
        default = "" if self.default is None else f"={self.default}"
        return f"{self.type.text()} {self.name}{default}"


class Return(msgspec.Struct, frozen=True):
    """One returned value."""

    type: SchemaType
    span: Span = NOWHERE
    type_span: Span = NOWHERE
    name: str | None = None

    @property
    def alias(self) -> AliasInfo | None:
        """Its alias annotation."""
        return self.type.annotation

    def __str__(self) -> str:
        return f"{self.type.text()} {self.name}" if self.name else self.type.text()


class OperatorSchema(msgspec.Struct, frozen=True, dict=True):
    """An entire schema.

    ``namespace`` and ``overload`` are empty when they are not written, ``name`` too in ``(Tensor x) -> Tensor``.
    ``vararg`` and ``varret`` are the ``...`` at the end of the arguments and of the returns. ``name_only`` says that the
    text is an operator's name without arguments and returns, as ``m.def(name, function)`` takes it.
    """

    name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    namespace: str = ""
    overload: str = ""
    name_span: Span = NOWHERE
    vararg: bool = False
    varret: bool = False
    name_only: bool = False

    @cached_property
    def positional(self) -> tuple[Argument, ...]:
        """The arguments before ``*``."""
        return tuple(item for item in self.arguments if not item.kwarg_only)

    @cached_property
    def kwarg_only(self) -> tuple[Argument, ...]:
        """The arguments after ``*``."""
        return tuple(item for item in self.arguments if item.kwarg_only)

    @property
    def slots(self) -> tuple[Argument | Return, ...]:
        """The arguments and the returns."""
        return (*self.arguments, *self.returns)

    def argument(self, name: str) -> Argument | None:
        """The argument of that name."""
        return next((item for item in self.arguments if item.name == name), None)

    @property
    def mutated(self) -> tuple[Argument, ...]:
        """The arguments that it writes."""
        return tuple(item for item in self.arguments if item.is_write)

    @property
    def qualified_name(self) -> str:
        """``ns::name.overload``, with the parts that are written."""
        namespace = f"{self.namespace}::" if self.namespace else ""
        return f"{namespace}{self.name}{'.' if self.overload else ''}{self.overload}"

    def __str__(self) -> str:
        if self.name_only:
            return self.qualified_name
        arguments = [str(item) for item in self.positional]
        if self.kwarg_only:
            arguments += ["*", *map(str, self.kwarg_only)]
        if self.vararg:
            arguments.append("...")
        returns = ", ".join([*map(str, self.returns), *(["..."] if self.varret else [])])
        if len(self.returns) + self.varret != 1 or returns.startswith("("):
            returns = f"({returns})"
        return f"{self.qualified_name}({', '.join(arguments)}) -> {returns}"
