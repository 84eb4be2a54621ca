"""Registrations of one C++ file, as stored: blocks of ``TORCH_LIBRARY`` and its kin with the calls in them.

:mod:`opschema_rules.torchlib.cpp_reader` reads it from one file's own text; macros of other files are not known there, so a
call that cannot be read is kept as it is written (``raw``), to be read again when they are.
"""

from __future__ import annotations

import msgspec

from opschema_cli.source.cpp_strings import Literal
from opschema_cli.source.preprocessor import Condition, Macro
from opschema_cli.source.text import Span

METHODS = ("def", "impl", "fallback", "op")
"""Methods of a library that define or register; ``op`` is that of ``torch::RegisterOperators``."""


class CppArgument(msgspec.Struct, frozen=True, array_like=True):
    """An argument as written; ``literal`` if it is a string, ``partial`` if that is only its beginning."""

    text: str
    span: Span
    literal: Literal | None = None
    partial: bool = False


class CppCall(msgspec.Struct, frozen=True, array_like=True):
    """A call in a library's block, of its ``method`` or of a function or macro that is named. ``text`` is set where it is raw.

    ``branch`` is true under an ``if`` or in a loop, so that it may not take place, or several times; and for a
    ``torch::RegisterOperators`` in a function, whose operators end with it.
    """

    method: str
    span: Span
    arguments: tuple[CppArgument, ...]
    conditions: tuple[Condition, ...] = ()
    branch: bool = False
    text: str = ""


class CppLibrary(msgspec.Struct, frozen=True, array_like=True):
    """A block: the macro that opens it, with its arguments as written, and the calls of its library.

    ``macro`` is empty for a function that takes a library, whose name is the first argument; and ``torch::RegisterOperators`` for
    that. ``broken`` is true when something in it is not understood. ``namespace`` is that of C++ around it.
    """

    macro: str
    arguments: tuple[str, ...]
    span: Span
    calls: tuple[CppCall, ...]
    conditions: tuple[Condition, ...] = ()
    broken: bool = False
    namespace: str = ""


class CppFacts(msgspec.Struct, frozen=True, array_like=True):
    """The contents of one file: its blocks, its macros, the calls outside of functions (possibly of macros), and possible
    blocks.
    """

    libraries: tuple[CppLibrary, ...]
    macros: tuple[Macro, ...]
    outside: tuple[CppCall, ...]
    lost: tuple[Span, ...]
