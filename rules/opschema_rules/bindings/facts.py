"""The bindings in one C++ file, as stored: the blocks of modules and of functions that get a module, step by step."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.text import Span

Library: TypeAlias = Literal["pybind11", "nanobind"]


class Annotation(msgspec.Struct, frozen=True, array_like=True):
    """A ``py::arg("x") = 1`` with its default as written (None without), or a marker: ``*`` for ``kw_only``, ``/`` for
    ``pos_only``. ``name`` is None if it is not a literal. ``methods`` are those called on it, such as ``.noconvert()``.
    """

    name: str | None
    span: Span
    default: str | None = None
    methods: str = ""

    @property
    def is_marker(self) -> bool:
        """Whether it is a marker and not an argument."""
        return self.name in ("*", "/")


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One statement on a module, whose variable is ``receiver``.

    ============= ============================================================================================
    kind          meaning
    ============= ============================================================================================
    ``def``       ``name`` is bound to ``value``, the function as it is written
    ``alias``     ``m.attr("name") = source.attr("value")``
    ``name``      another name of the module: a class, a constant
    ``submodule`` ``name`` of a submodule, whose variable is ``value``
    ``call``      the module is passed to ``value``, a function
    ``macro``     ``value`` is a call of a macro, to be read when macros are known
    ``unknown``   something that may bind any name
    ============= ============================================================================================
    """

    kind: Literal["def", "alias", "name", "submodule", "call", "macro", "unknown"]
    receiver: str
    span: Span
    name: str = ""
    value: str = ""
    value_span: Span = Span(0, 0)
    source: str = ""
    annotations: tuple[Annotation, ...] = ()
    conditions: tuple[Condition, ...] = ()
    branch: bool = False
    call: Span = Span(0, 0)
    """The statement without its semicolon, where it is nothing but one ``m.def``."""
    unread: bool = False
    """Whether some of its arguments are not understood."""
    prepended: bool = False
    """Whether its function is tried before those that are bound earlier: it has a ``py::prepend()``."""
    kept: bool = False
    """Whether the code uses the result of a call that gets the module."""


class Block(msgspec.Struct, frozen=True, array_like=True):
    """The block of a module, whose ``name`` is the macro's argument; or a function that takes a module.

    ``name_span`` is the place of that name, ``end`` that behind the block, ``namespace`` is that of C++ around it, ``broken`` says
    that something in it is not understood, ``locals`` are the names that it declares for itself, and ``gives_module`` that the
    function may return a module.
    """

    name: str
    variable: str
    span: Span
    steps: tuple[Step, ...]
    library: Library = "pybind11"
    is_module: bool = True
    namespace: str = ""
    conditions: tuple[Condition, ...] = ()
    broken: bool = False
    name_span: Span = Span(0, 0)
    end: int = 0
    locals: frozenset[str] = frozenset()
    gives_module: bool = False


class BindingFacts(msgspec.Struct, frozen=True, array_like=True):
    """All of one file; ``torch`` says that it has to do with tensors. ``imported`` are the last words of the names of modules that
    its code imports and may change.
    """

    blocks: tuple[Block, ...]
    torch: bool
    imported: tuple[str, ...] = ()
