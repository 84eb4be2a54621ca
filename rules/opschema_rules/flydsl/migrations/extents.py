"""Follows a buffer descriptor through helpers, kernels and launchers to the tensor behind it: the number of its elements, and
the value of a byte count on the same path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Place
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.migrations.call_paths import CallPath, Entered, NeedsCaller, Unproved, calls_of
from opschema_rules.flydsl.migrations.counts import Count, TooLargeError
from opschema_rules.flydsl.migrations.references import References
from opschema_rules.flydsl.model import Descriptor, Wrap

T = TypeVar("T")

MAX_PATHS = 64
"""Maximum number of call paths to one descriptor."""

_SIZES = {"float16": 16, "bfloat16": 16, "half": 16, "float32": 32, "float": 32, "float64": 64, "double": 64}
_SIZES |= {f"{sign}int{size}": size for sign in ("", "u") for size in (8, 16, 32, 64)}
_SIZES |= {f"float8_{kind}": 8 for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")}
_DEFAULT = 32
_MAKERS = frozenset({"torch.empty", "torch.zeros", "torch.ones", "torch.rand", "torch.randn", "torch.full"})
_LIKE = frozenset({"torch.empty_like", "torch.zeros_like", "torch.ones_like", "torch.rand_like", "torch.randn_like"})
_SAME = frozenset({"cuda", "cpu", "contiguous", "detach", "clone"})
_CASTS = {"half": 16, "bfloat16": 16, "float": 32}
_WIDTH = re.compile(r"[A-Za-z]+?(\d+)")


class Layout(msgspec.Struct, frozen=True):
    """The layout of a tensor: the number of elements from the first to the last in memory, and the bits of one element (0 if not
    known).

    ``baked`` when the size is a constant of the compiled code without being part of its key, ``constant`` when it is one.
    ``extents`` are as they are written, with the body that they stand in.
    """

    elements: Count
    bits: int
    extents: tuple[tuple[Body, Expr], ...]
    baked: bool = False
    constant: bool = False


class Sized(msgspec.Struct, frozen=True):
    """The sizes that one path of calls gives a descriptor: the tensor's layout, the requested bytes, and whether these are
    computed at run time with 64 bits.
    """

    layout: Layout
    given: Count
    wide: bool


def sizes(references: References, found: Descriptor) -> Iterator[Sized]:
    """Yield the sizes that each path of calls gives a descriptor.

    Raises:
        Unproved: a path cannot be followed.
    """
    yield from _each(references, found.place, lambda path: path.sized(found))


def layouts(references: References, found: Descriptor) -> Iterator[Layout]:
    """Yield the layouts of the tensors that paths of calls give a descriptor.

    Raises:
        Unproved: a path cannot be followed.
    """
    yield from _each(references, found.place, lambda path: path.described(found))


def _each(references: References, place: Place, ask: Callable[[TensorPath], T]) -> Iterator[T]:
    """Yield the result of ``ask`` for each path of calls that leads to a place."""
    waiting: list[Entered] = [{}]
    parsed: dict[str, PythonTree] = {}
    paths = 0
    while waiting:
        entered = waiting.pop()
        paths += 1
        if paths > MAX_PATHS:
            raise Unproved(place, "too many calls lead here")
        try:
            yield ask(TensorPath(references.tree, entered, parsed))
        except NeedsCaller as needs:
            waiting += [{**entered, needs.function: call} for call in calls_of(references, needs.function)]


class TensorPath(CallPath):
    """Follows tensors too."""

    def sized(self, found: Descriptor) -> Sized:
        """Return the sizes that this path gives a descriptor.

        Raises:
            Unproved: it cannot be followed.
        """
        layout, given = self.described(found), found.num_records
        if given is None:
            raise Unproved(found.place, "what it is given is not known")
        try:
            self.wide = False
            return Sized(layout, self.count(found.body, given), self.wide)
        except TooLargeError:
            raise self.unknown(found.body, given) from None

    def described(self, found: Descriptor) -> Layout:
        """Return the layout of the described tensor; raises as :meth:`sized` does."""
        tensor = found.tensor
        if tensor is None:
            raise Unproved(found.place, "what it is given is not known")
        try:
            return self.tensor(found.body, tensor)
        except TooLargeError:
            raise self.unknown(found.body, tensor) from None

    def tensor(self, body: Body, expr: Expr) -> Layout:
        """Return the layout of a tensor in a kernel, or of an argument of a launcher."""
        self.step(body, expr)
        if expr.kind == "name":
            found = self.follow(body, expr, enter=True)
            if isinstance(found, str):
                raise self.unknown(body, expr)
            return self.tensor(*found)
        wrap = self._wraps.get((body.file.path, expr.start, expr.end))
        if wrap is not None:
            return self._wrapped(wrap)
        if expr.kind == "call":
            match self.names.called(body, expr):
                case "Tensor" if len(expr.items) == 2 and not expr.keywords[0]:
                    return self.tensor(body, expr.items[1])
                case "make_view" if len(expr.items) == 3 and not any(expr.keywords):
                    return self._view(body, expr.items[1], expr.items[2])
        made = self._made(body, expr)
        return replace(made, baked=Era.BAKED in self.tree.contract.eras)

    @cached_property
    def _wraps(self) -> dict[tuple[str, int, int], Wrap]:
        return {(item.body.file.path, *item.whole.span): item for item in self.tree.wraps}

    def _wrapped(self, wrap: Wrap) -> Layout:
        tensor = wrap.tensor
        if tensor is None:
            raise self.unknown(wrap.body, wrap.whole)
        made = self._made(wrap.body, tensor)
        if any(mark.items[0].text == "mark_layout_dynamic" for mark in wrap.marks):
            return made
        eras = self.tree.contract.eras
        return replace(made, baked=Era.BAKED in eras, constant=bool(eras - {Era.DYNAMIC}))

    def _view(self, body: Body, pointer: Expr, layout: Expr) -> Layout:
        """Return the layout of a view of a pointer with a literal layout."""
        bits = self._pointed(body, pointer)
        while layout.kind == "name":
            self.step(body, layout)
            found = self.follow(body, layout, enter=True)
            if isinstance(found, str):
                raise self.unknown(body, layout)
            body, layout = found
        if self.names.called(body, layout) != "make_layout" or len(layout.items) != 3 or any(layout.keywords):
            raise self.unknown(body, layout)
        shape, stride = (list(_leaves(item)) for item in layout.items[1:])
        if len(shape) != len(stride):
            raise self.unknown(body, layout)
        last = Count.of(0)
        for extent, step in zip(shape, stride, strict=True):
            last += (self.count(body, extent) - Count.of(1)) * self.count(body, step)
        return Layout(last + Count.of(1), bits, tuple((body, item) for item in shape), constant=True)

    def _pointed(self, body: Body, pointer: Expr) -> int:
        """Return the bits of the elements behind a tensor's pointer; 0 if not known."""
        if self.names.called(body, pointer) == "recast_iter" and pointer.positional():
            width = _WIDTH.match(self.names.last(body, pointer.items[1]))
            return int(width[1]) if width else 0
        if self.names.called(body, pointer) != "get_iter" or len(pointer.items) != 2:
            return 0
        try:
            return self.tensor(body, pointer.items[1]).bits
        except Unproved:
            return 0

    def _made(self, body: Body, expr: Expr) -> Layout:
        """Return the layout of a contiguous tensor, from the torch call that creates it."""
        self.step(body, expr)
        if expr.kind == "name":
            found = self.follow(body, expr, enter=True)
            if not isinstance(found, str):
                return self._made(*found)
        if expr.kind != "call":
            raise self.unknown(body, expr)
        maker = self.bodies.external(body, expr.callee)
        if maker in _MAKERS:
            dtype, full = expr.keyword("dtype"), maker == "torch.full"
            bits = self._bits(body, dtype) if dtype is not None or full else _DEFAULT
            return self._sized_as(body, self._extents(body, expr, last=full), bits)
        if maker in _LIKE and expr.positional():
            like, dtype = self._made(body, expr.positional()[0]), expr.keyword("dtype")
            return replace(like, bits=self._bits(body, dtype)) if dtype is not None else like
        method = self._method(body, expr)
        if method is None:
            raise self.unknown(body, expr)
        return self._changed(body, expr, *method)

    def _method(self, body: Body, call: Expr) -> tuple[Expr, str] | None:
        """Return the object and the name of a tensor method in a call."""
        callee = call.items[0]
        if callee.kind == "attribute":
            return callee.items[0], callee.text
        owner, _, name = callee.text.rpartition(".")
        if callee.kind == "name" and owner and "." not in owner:
            return Expr("name", callee.start, callee.start + len(owner), owner), name
        return None

    def _changed(self, body: Body, call: Expr, owner: Expr, method: str) -> Layout:
        made = self._made(body, owner)
        if method in _SAME:
            return made
        if method in _CASTS and len(call.items) == 1:
            return replace(made, bits=_CASTS[method])
        if method == "to":
            for keyword, value in call.args:
                bits = self._bits(body, value)
                if bits:
                    made = replace(made, bits=bits)
                elif keyword != "device" and not (value.kind == "const" and isinstance(value.value, str)):
                    made = replace(made, bits=0)
            return made
        raise self.unknown(body, call)

    def _extents(self, body: Body, call: Expr, *, last: bool) -> list[Expr]:
        """Return the extents that a tensor is created with; ``last`` if other arguments follow them."""
        size, given = call.keyword("size"), call.positional()
        extents = [size] if size is not None else given[:1] if last else given
        if len(extents) == 1 and extents[0].kind in ("tuple", "list"):
            extents = list(extents[0].items)
        if not extents or any(word in ("*", "**", "out") for word in call.keywords):
            raise self.unknown(body, call)
        return extents

    def _sized_as(self, body: Body, extents: list[Expr], bits: int) -> Layout:
        elements = Count.of(1)
        for item in extents:
            elements *= self.count(body, item)
        return Layout(elements, bits, tuple((body, item) for item in extents))

    def _bits(self, body: Body, dtype: Expr | None) -> int:
        """Return the bits of an element of a torch dtype; 0 if not known."""
        while dtype is not None and dtype.kind == "name":
            self.step(body, dtype)
            name = self.bodies.external(body, dtype.text)
            if name:
                return _SIZES.get(name.removeprefix("torch."), 0) if name.startswith("torch.") else 0
            try:
                found = self.follow(body, dtype, enter=False)
            except Unproved:
                return 0
            if isinstance(found, str):
                return 0
            body, dtype = found
        return 0


def _leaves(expr: Expr) -> Iterator[Expr]:
    """Yield the members of nested tuples."""
    if expr.kind != "tuple":
        yield expr
    for item in expr.items if expr.kind == "tuple" else ():
        yield from _leaves(item)
