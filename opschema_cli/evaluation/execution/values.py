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
    """An unknown value and the reason; ``place`` is the code that created it.

    One object stands for one value: it is true in all conditions of a path, or in none. ``negates`` is the value that it is
    ``not`` of.
    """

    reason: str
    place: Place | None = None
    negates: Opaque | None = None


class Fixed(Opaque, frozen=True):
    """An opaque value that equals itself, such as the device of a tensor. Not all values do: tensors compare elements."""


class Device:
    """An unknown device shared by tensors: an attribute such as ``is_cuda`` has the same unknown value for all of them."""

    def __init__(self) -> None:
        self._facts: dict[str, Fixed] = {}

    def fact(self, name: str) -> Fixed:
        """Return the value of an attribute of its tensors, such as ``is_cuda``."""
        return self._facts.setdefault(name, Fixed(f"`{name}` of a tensor"))


class DtypeValue(msgspec.Struct, frozen=True):
    """A data type of tensors, by torch's main name (``float16``, not ``half``)."""

    name: str


class TensorValue(msgspec.Struct, frozen=True, eq=False):
    """A tensor without its elements. None means unknown; a size may be :class:`Opaque`."""

    shape: tuple[object, ...]
    dtype: str | None = None
    device: Device | None = None


class Object(msgspec.Struct, eq=False):
    """An object of a workspace class; ``complete`` if it has no attributes other than these and its class's.

    ``lasting`` when it is held by a module: other code may have changed any attribute.
    """

    cls: ClassValue
    attributes: dict[str, object]
    complete: bool = True
    lasting: bool = False

    def __repr__(self) -> str:
        return f"Object({self.cls.ref.name}, {self.attributes})"


class RecordClass(msgspec.Struct, frozen=True, eq=False):
    """A class made by ``collections.namedtuple``; ``defaults`` are those of its last fields."""

    name: str
    fields: tuple[str, ...]
    defaults: tuple[object, ...] = ()


class Record(tuple[object, ...]):
    """A named tuple; its class is a workspace class or was made by ``collections.namedtuple``."""

    cls: ClassValue | RecordClass
    fields: tuple[str, ...]

    @classmethod
    def of(cls, kind: ClassValue | RecordClass, fields: tuple[str, ...], values: Iterable[object]) -> Record:
        """Return a named tuple of a class."""
        made = cls(values)
        made.cls, made.fields = kind, fields
        return made

    def rebuilt(self, values: Iterable[object]) -> Record:
        """Return a copy with other values."""
        return Record.of(self.cls, self.fields, values)


class Sentinel(msgspec.Struct, eq=False):
    """An ``object()``."""


class ErrorValue(msgspec.Struct, eq=False):
    """An exception of a built-in class."""

    name: str
    arguments: tuple[object, ...] = ()
    attributes: dict[str, object] = msgspec.field(default_factory=dict)


class ParameterNames(msgspec.Struct, frozen=True):
    """The names of parameters: positional ones, keyword ones, and those that take the rest."""

    placed: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    rest: str = ""
    """The name of the ``*rest`` parameter; empty if there is none."""
    words: str = ""
    """The name of the ``**words`` parameter; empty if there is none."""


class Names(msgspec.Struct, frozen=True):
    """The names of a function: its ``own`` variables, and those declared ``global`` or ``nonlocal``."""

    own: frozenset[str] = frozenset()
    top: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    yields: bool = False
    """Whether the function is a generator."""
    asynchronous: bool = False
    """Whether it is an ``async def``."""
    params: ParameterNames = ParameterNames()


class Environment(msgspec.Struct, eq=False):
    """The variables of a running function; ``parent`` holds those of the enclosing function.

    ``inner`` is true of a comprehension. ``frame`` is given for a function that is not executed, but evaluated.
    """

    body: Body
    variables: dict[str, object]
    names: Names
    parent: Environment | None = None
    inner: bool = False
    frame: Frame | None = None


class Closure(msgspec.Struct, eq=False):
    """A workspace function with its defaults; ``around`` holds the variables of the enclosing functions."""

    body: Body
    around: Environment | None = None
    defaults: dict[str, object] = msgspec.field(default_factory=dict)
    attributes: dict[str, object] = msgspec.field(default_factory=dict)
    static: bool = False
    """Whether it stays unbound when read from an object."""


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
    """A method of a value that is not a workspace object."""

    this: object
    name: str


class SuperValue(msgspec.Struct, frozen=True, eq=False):
    """``super()``: attributes of ``this`` as defined by the classes after ``owner``."""

    owner: ClassValue
    this: object


class Native(msgspec.Struct, frozen=True, eq=False):
    """A function computed by the interpreter or a dialect; it takes the machine and the arguments."""

    name: str
    function: Callable[..., object]


class UnionValue(msgspec.Struct, frozen=True):
    """``int | None`` and similar unions."""

    kinds: tuple[object, ...]


class Running(msgspec.Struct, eq=False):
    """An iterator: of a generator, or of ``iter`` and ``map``."""

    iterator: Iterator[object]
