"""Values of executed code.

Numbers, strings, None, tuples, lists, dictionaries, sets, slices and ranges are Python's own objects. Classes, modules, members
of enumerations and names of other packages are those of :mod:`opschema_cli.evaluation.values`. All else is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from opschema_cli.evaluation.values import ClassValue, Frame
from opschema_cli.source.bodies import Body
from opschema_cli.source.text import Place


class Opaque(msgspec.Struct, frozen=True, eq=False):
    """A value that is not known, and why; ``place`` is the code that made it.

    One object stands for one value: it is true in all conditions of a path, or in none. ``negates`` is the value that it is
    ``not`` of.
    """

    reason: str
    place: Place | None = None
    negates: Opaque | None = None


class Fixed(Opaque, frozen=True):
    """An opaque value that equals itself, such as the device of a tensor. Not every value does: tensors compare elements."""


class Device:
    """An unknown device that tensors share: an attribute such as ``is_cuda`` has one unknown value for all of them."""

    def __init__(self) -> None:
        self._facts: dict[str, Fixed] = {}

    def fact(self, name: str) -> Fixed:
        """The value of an attribute of the tensors on it, such as ``is_cuda``."""
        return self._facts.setdefault(name, Fixed(f"`{name}` of a tensor"))


class DtypeValue(msgspec.Struct, frozen=True):
    """A data type of tensors, by torch's main name (``float16``, not ``half``)."""

    name: str


class TensorValue(msgspec.Struct, frozen=True, eq=False):
    """A tensor without its elements. What is None is not known; a size may be :class:`Opaque`."""

    shape: tuple[object, ...]
    dtype: str | None = None
    device: Device | None = None


class Object(msgspec.Struct, eq=False):
    """An object of a class of the workspace; ``complete`` when it has no other attributes than these and its class's.

    ``lasting`` when it is held by a module: other code may have changed any attribute.
    """

    cls: ClassValue
    attributes: dict[str, object]
    complete: bool = True
    lasting: bool = False

    def __repr__(self) -> str:
        return f"Object({self.cls.ref.name}, {self.attributes})"


class RecordClass(msgspec.Struct, frozen=True, eq=False):
    """A class that ``collections.namedtuple`` makes; ``defaults`` are those of its last fields."""

    name: str
    fields: tuple[str, ...]
    defaults: tuple[object, ...] = ()


class Record(tuple[object, ...]):
    """A named tuple; its class is that of a workspace, or made by ``collections.namedtuple``."""

    cls: ClassValue | RecordClass
    fields: tuple[str, ...]

    @classmethod
    def of(cls, kind: ClassValue | RecordClass, fields: tuple[str, ...], values: Iterable[object]) -> Record:
        """A named tuple of a class."""
        made = cls(values)
        made.cls, made.fields = kind, fields
        return made

    def rebuilt(self, values: Iterable[object]) -> Record:
        """The same with other values."""
        return Record.of(self.cls, self.fields, values)


class Sentinel(msgspec.Struct, eq=False):
    """An ``object()``."""


class ErrorValue(msgspec.Struct, eq=False):
    """An exception of a built-in class."""

    name: str
    arguments: tuple[object, ...] = ()
    attributes: dict[str, object] = msgspec.field(default_factory=dict)


class ParameterNames(msgspec.Struct, frozen=True):
    """The names of parameters: those that take arguments by position, those that take them by name, and those for all others."""

    placed: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    rest: str = ""
    """The name of the ``*rest`` parameter; empty if there is none."""
    words: str = ""
    """The name of the ``**words`` parameter; empty if there is none."""


class Names(msgspec.Struct, frozen=True):
    """The names of a function: its ``own`` variables, and those that it declares ``global`` or ``nonlocal``."""

    own: frozenset[str] = frozenset()
    top: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    yields: bool = False
    """Whether the function is a generator."""
    asynchronous: bool = False
    """Whether it is an ``async def``."""
    params: ParameterNames = ParameterNames()


class Environment(msgspec.Struct, eq=False):
    """The variables of a running function; ``parent`` are those of the function around it.

    ``inner`` is true of a comprehension. ``frame`` is given for a function that is not executed, but evaluated.
    """

    body: Body
    variables: dict[str, object]
    names: Names
    parent: Environment | None = None
    inner: bool = False
    frame: Frame | None = None


class Closure(msgspec.Struct, eq=False):
    """A function of the workspace with its defaults; ``around`` are the variables of the functions around it."""

    body: Body
    around: Environment | None = None
    defaults: dict[str, object] = msgspec.field(default_factory=dict)
    attributes: dict[str, object] = msgspec.field(default_factory=dict)
    static: bool = False
    """Whether reading it from an object does not bind it."""


class BoundMethod(msgspec.Struct, frozen=True, eq=False):
    """A function with its first argument."""

    function: object
    this: object


class PropertyValue(msgspec.Struct, frozen=True, eq=False):
    """``property(getter, setter)``."""

    getter: object
    setter: object = None


class PartialCall(msgspec.Struct, frozen=True, eq=False):
    """``functools.partial(function, ...)``."""

    function: object
    positional: tuple[object, ...]
    keywords: dict[str, object]


class ValueMethod(msgspec.Struct, frozen=True, eq=False):
    """A method of a value that is not an object of the workspace."""

    this: object
    name: str


class SuperValue(msgspec.Struct, frozen=True, eq=False):
    """``super()``: attributes of ``this`` as the classes behind ``owner`` have them."""

    owner: ClassValue
    this: object


class Native(msgspec.Struct, frozen=True, eq=False):
    """A function that the interpreter or a dialect computes; it takes the machine and the arguments."""

    name: str
    function: Callable[..., object]


class UnionValue(msgspec.Struct, frozen=True):
    """``int | None`` and the like."""

    kinds: tuple[object, ...]


class Running(msgspec.Struct, eq=False):
    """An iterator: of a generator, or of ``iter`` and ``map``."""

    iterator: Iterator[object]
