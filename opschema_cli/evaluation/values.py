"""Values of expressions, as far as they are known without running the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.limits import MAX_ALTERNATIVES
from opschema_cli.source.bodies import Body
from opschema_cli.source.keyed_struct import KeyedStruct
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Constant, Expr
from opschema_cli.source.resolution import ClassKey
from opschema_cli.source.text import Place


class PackValue(msgspec.Struct, frozen=True):
    """Base class of the value types that packs add for objects of their own APIs."""

    @property
    def entered(self) -> Values:
        """Return the values that ``with value as name`` binds."""
        return UNKNOWN

    @property
    def replaces_methods(self) -> bool:
        """Whether a method whose decorators create this value is read as this value and not as a method."""
        return False

    def appended_to(self, text: Text) -> Value | None:
        """Return the value of a string followed by this value; None if that is not known."""
        return None

    def merged(self, other: PackValue) -> PackValue | None:
        """Merge two values of one origin that are written to one attribute; None if they differ."""
        return None


class Unknown(msgspec.Struct, frozen=True):
    """An unknown value, with the reason."""

    reason: str = "it is computed at run time"


class Text(KeyedStruct, frozen=True):
    """A string: one of ``names``; if these are None, a string of which only the beginning ``prefix`` is known."""

    names: frozenset[str] | None
    prefix: str = ""
    place: Place | None = None

    @property
    def key(self) -> tuple[frozenset[str] | None, str]:
        """Everything except the place."""
        return self.names, self.prefix

    @property
    def start(self) -> str:
        """The known beginning of the text."""
        return self.prefix if self.names is None else min(self.names, default="")


class Plain(msgspec.Struct, frozen=True):
    """A constant that is not a string."""

    value: Constant


class ExternalName(msgspec.Struct, frozen=True):
    """A name of another package, by its full dotted name."""

    name: str


class ModuleValue(msgspec.Struct, frozen=True):
    """A module of the workspace."""

    path: str


class ClassValue(msgspec.Struct, frozen=True):
    """A workspace class, or with ``below`` possibly a subclass of it."""

    ref: ClassRef
    below: bool = False


class Instance(msgspec.Struct, frozen=True):
    """An object of a workspace class, created by the call of its ``__init__`` in ``frame`` if that is known, or with the
    ``fields`` of a dataclass or named tuple.
    """

    ref: ClassRef
    frame: Frame | None = None
    fields: tuple[tuple[str, BoundArgument], ...] = ()


class Func(msgspec.Struct, frozen=True):
    """A function and the frame that defined it. ``wraps`` is the function whose signature it shows (``functools.wraps``)."""

    body: Body
    frame: Frame
    wraps: Func | None = None

    @property
    def shown(self) -> Func:
        """The function whose signature ``inspect.signature`` returns."""
        return self.wraps.shown if self.wraps is not None else self


class Wraps(msgspec.Struct, frozen=True):
    """``functools.wraps(function)``: a decorator."""

    function: Func


class Same(msgspec.Struct, frozen=True):
    """A decorator that leaves a function's signature unchanged."""


class EnumMember(KeyedStruct, frozen=True):
    """A member of a workspace enumeration, with the value that its body assigns to it."""

    ref: ClassRef
    name: str
    argument: BoundArgument

    @property
    def key(self) -> tuple[ClassKey, str]:
        """Its class and name."""
        return self.ref.key, self.name


ItemsKind: TypeAlias = Literal["tuple", "list", "set"]


class Items(msgspec.Struct, frozen=True):
    """A tuple, list or set; ``open`` if it may hold further elements, or hold them in another order."""

    elements: tuple[BoundArgument, ...]
    kind: ItemsKind = "tuple"
    open: bool = False


class Table(msgspec.Struct, frozen=True):
    """A dictionary with constant keys; ``open`` if it may have further entries."""

    entries: tuple[tuple[Constant, BoundArgument], ...]
    open: bool = False

    @property
    def words(self) -> dict[str, BoundArgument]:
        """The entries whose keys are strings."""
        return {key: item for key, item in self.entries if isinstance(key, str)}


class ValueMethod(msgspec.Struct, frozen=True):
    """A method of a string or a container."""

    receiver: Text | Items | Table
    name: str


class Partial(msgspec.Struct, frozen=True):
    """``functools.partial(target, ...)``."""

    target: Value
    arguments: Arguments


Value: TypeAlias = (
    "Unknown | Text | Plain | ExternalName | ModuleValue | ClassValue | Instance | EnumMember | Func | Wraps | Same | Items"
    " | Table | ValueMethod | Partial | PackValue"
)
Values: TypeAlias = "tuple[Value, ...]"

UNKNOWN: Values = (Unknown(),)
NO_CALL = Expr("other", 0, 0)
"""Placeholder for a call that is not in a file."""


def known(constant: Constant) -> Value:
    """Return the value of a constant."""
    return Text(frozenset({constant})) if isinstance(constant, str) else Plain(constant)


def distinct(values: Iterable[Value]) -> Values:
    """Return values without duplicates; too many are merged to an unknown value."""
    given = tuple(values)
    found = tuple(_first_of_each(given)) if len(given) > 1 else given
    return found if len(found) <= MAX_ALTERNATIVES else UNKNOWN


def _first_of_each(values: Iterable[Value]) -> Iterable[Value]:
    """Yield values without duplicates; 1, 1.0 and True are different."""
    found: dict[object, Value] = {}
    for item in values:
        found.setdefault((type(item.value), item) if isinstance(item, Plain) else item, item)
    return found.values()


class BoundArgument(msgspec.Struct, frozen=True, eq=False):
    """An argument: an expression in a frame, or known values; its place is that of the expression."""

    frame: Frame
    expr: Expr | None = None
    values: Values = ()

    @property
    def place(self) -> Place | None:
        """Its span."""
        return self.frame.body.at(self.expr) if self.expr is not None else None


class Arguments(msgspec.Struct, frozen=True, eq=False):
    """The arguments of a call. ``open`` if it may pass further ones."""

    frame: Frame
    call: Expr
    positional: tuple[BoundArgument, ...] = ()
    keywords: Mapping[str, BoundArgument] = msgspec.field(default_factory=dict)
    open: bool = False

    def joined(self, later: Arguments) -> Arguments:
        """Return the arguments followed by those of a later call."""
        words = {**self.keywords, **later.keywords}
        return Arguments(later.frame, later.call, (*self.positional, *later.positional), words, self.open or later.open)

    def by_name(self, names: tuple[str, ...]) -> dict[str, BoundArgument]:
        """Return the arguments by parameter name; each may be passed by position or by name."""
        found = dict(zip(names, self.positional, strict=False))
        return {**found, **{name: given for name, given in self.keywords.items() if name in names}}


class Site(msgspec.Struct, frozen=True, eq=False):
    """A followed call: the place from which a frame was entered."""

    frame: Frame
    call: Expr


class Frame(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A body with the values of its parameters and loop targets; ``parent`` is the enclosing frame, ``site`` the call that entered
    it.

    ``assumed`` is true of a function that nothing in the tree was seen to call.
    """

    body: Body
    parent: Frame | None = None
    bindings: dict[str, BoundArgument] = msgspec.field(default_factory=dict)
    site: Site | None = None
    assumed: bool = False

    @cached_property
    def depth(self) -> int:
        """The number of calls that lead to it."""
        return 0 if self.site is None else self.site.frame.depth + 1

    def callers(self) -> Iterator[Frame]:
        """Yield the frame and its callers, innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.site.frame if frame.site is not None else None

    def outward(self) -> Iterator[Frame]:
        """Yield the frame and all enclosing ones."""
        yield self
        if self.parent is not None:
            yield from self.parent.outward()

    def binding(self, names: Mapping[str, BoundArgument]) -> Frame:
        """Return the frame with other values of some names: for one iteration of a loop."""
        return Frame(self.body, self.parent, {**self.bindings, **names}, self.site, self.assumed)
