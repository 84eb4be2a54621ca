"""The signature of a C++ function that is registered as a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from opschema_cli.cpp_units import Declared
from opschema_cli.lint.diagnostic import Place
from opschema_cli.operators.model import Argument, Signature
from opschema_cli.schema.cpp_inference import CppMismatch, mismatches, takes_symint
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.cpp_functions import CppParameterText
from opschema_cli.source.preprocessor import Condition

_WORD = re.compile(r"[A-Za-z_]\w*")


class CppSignature(msgspec.Struct, frozen=True):
    """A function's ``name`` (empty for a lambda), its result and its parameters, as written.

    The ``DispatchKeySet`` that a kernel may take first is left out, as torch leaves it out. ``places`` are those of the
    parameters. A ``stable`` one is boxed by ``TORCH_BOX``, so that torch compares it with a schema only when it is called.
    ``conditions`` are those of the preprocessor under which it is declared.
    """

    name: str
    returns: str
    parameters: tuple[CppParameterText, ...]
    place: Place
    places: tuple[Place, ...]
    stable: bool = False
    conditions: tuple[Condition, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its parameters and its result, normalized as far as they are known."""
        written = (*(item.type for item in self.parameters), self.returns)
        return tuple(spelling(item) or " ".join(item.split()) for item in written)

    @property
    def known_types(self) -> tuple[str, ...] | None:
        """The types of its parameters and its result; None unless all of them are known."""
        written = (*(item.type for item in self.parameters), self.returns)
        found = [spelling(item) for item in written]
        known = tuple(item for item in found if item is not None)
        return known if len(known) == len(found) else None

    @property
    def parameter_types(self) -> list[str]:
        """The types of its parameters as written."""
        return [item.type for item in self.parameters]

    def mismatches(self, schema: OperatorSchema) -> list[CppMismatch]:
        """Its differences from a schema for which torch refuses it."""
        return mismatches(schema, self.parameter_types, self.returns, stable=self.stable)

    @property
    def takes_symint(self) -> bool:
        """Whether torch treats it as a function that takes ``SymInt``."""
        return takes_symint(self.parameter_types)

    @property
    def shown(self) -> str:
        """The name of the function in findings."""
        return f"`{self.name}()`" if self.name else "the lambda"

    def with_aliases(self, aliases: Mapping[str, str]) -> CppSignature:
        """Return the signature with type aliases resolved."""
        parameters = tuple(replace(item, type=_aliased(item.type, aliases)) for item in self.parameters)
        return replace(self, parameters=parameters, returns=_aliased(self.returns, aliases)).without_key_set()

    def without_key_set(self) -> CppSignature:
        """The signature without the ``DispatchKeySet`` in front."""
        first = spelling(self.parameters[0].type) if self.parameters else None
        if first != "DispatchKeySet":
            return self
        return replace(self, parameters=self.parameters[1:], places=self.places[1:])


def _aliased(written: str, aliases: Mapping[str, str]) -> str:
    used: set[str] = set()
    while spelling(written) is None:
        found = {name for name in _WORD.findall(written) if aliases.get(name)} - used
        if not found:
            break
        written = _replaced(written, {name: aliases[name] for name in found})
        used |= found
    return written


def _replaced(written: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: names.get(match[0], match[0]), written)


def signature_of(item: Declared, *, stable: bool = False) -> CppSignature:
    """The signature of a function of the tree."""
    function = item.function
    places = tuple(Place(item.path, one.span) for one in function.parameters)
    name = f"{function.owner}::{function.name}" if function.owner else function.name
    return CppSignature(name, function.returns, function.parameters, item.place, places, stable, function.conditions)


def table_signature(written: CppSignature) -> Signature:
    """The signature in the table of operators, whose parameters are compared by position."""
    parameters = tuple(
        Argument(item.name, item.type, text=f"{item.type} {item.name}".strip(), place=place)
        for item, place in zip(written.parameters, written.places, strict=True)
    )
    return Signature(written.name or "lambda", written.place, parameters, by="position")
