"""Operators that the C++ of a tree defines and registers, to be joined with its Python."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from opschema_cli.source.cpp_strings import Literal
from opschema_cli.source.preprocessor import Condition
from opschema_rules.torchlib.cpp_made import Made
from opschema_rules.torchlib.gap import Gap
from opschema_rules.torchlib.model import CppProblem, CppRegistration, Definition


class CppDefinition(msgspec.Struct, frozen=True, eq=False):
    """An ``m.def``. ``name`` is ``ns::name.overload``, None when it is not known; ``conditions`` those of the preprocessor.

    The spans of its schema and errors count in the schema's text, which ``literal`` leads back to the file.
    """

    name: str | None
    definition: Definition
    conditions: tuple[Condition, ...] = ()
    literal: Literal | None = None


class CppOperators(msgspec.Struct, frozen=True):
    """All that the C++ of a tree defines and registers; ``unread`` are files that may and could not be read.

    ``targets`` gives the libraries that a source file is part of, ``target_of_both`` one that two files are surely part of.
    ``runtime_kernels`` are those of ExecuTorch's runtime. ``made`` are the expansions of macros of a file outside of functions.
    """

    definitions: list[CppDefinition] = msgspec.field(default_factory=list)
    registrations: list[CppRegistration] = msgspec.field(default_factory=list)
    runtime_kernels: list[CppRegistration] = msgspec.field(default_factory=list)
    problems: list[CppProblem] = msgspec.field(default_factory=list)
    gaps: list[Gap] = msgspec.field(default_factory=list)
    unread: list[str] = msgspec.field(default_factory=list)
    made: dict[str, list[Made]] = msgspec.field(default_factory=dict)
    targets: Callable[[str], frozenset[str]] = lambda _: frozenset()
    target_of_both: Callable[[str, str], str] = lambda path, other: ""
