"""Operators that the C++ of a tree defines and registers, to be joined with its Python."""

from __future__ import annotations

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.cpp_strings import Literal
from opschema_cli.source.preprocessor import Condition
from opschema_rules.torchlib.model import CppProblem, CppRegistration, Definition


class CppDefinition(msgspec.Struct, frozen=True, eq=False):
    """An ``m.def``. ``name`` is ``ns::name.overload``, None when it is not known; ``conditions`` those of the preprocessor.

    The spans of its schema and errors count in the schema's text, which ``literal`` leads back to the file.
    """

    name: str | None
    definition: Definition
    conditions: tuple[Condition, ...] = ()
    literal: Literal | None = None


class CppGap(msgspec.Struct, frozen=True):
    """A place that may define or register more than is known, in ``namespace``, or in any when that is None.

    ``names`` are the operators' names without namespace and overload; None when they may be any.
    """

    namespace: str | None
    place: Place
    reason: str
    names: frozenset[str] | None = None


class CppOperators(msgspec.Struct, frozen=True):
    """All that the C++ of a tree defines and registers; ``unread`` are files that may and could not be read."""

    definitions: list[CppDefinition] = msgspec.field(default_factory=list)
    registrations: list[CppRegistration] = msgspec.field(default_factory=list)
    problems: list[CppProblem] = msgspec.field(default_factory=list)
    gaps: list[CppGap] = msgspec.field(default_factory=list)
    unread: list[str] = msgspec.field(default_factory=list)
