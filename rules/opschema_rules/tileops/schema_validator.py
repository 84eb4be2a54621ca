"""Violations of a JSON Schema, found by jsonschema-rs, or by the package jsonschema if that is not installed.

jsonschema-rs is written in Rust, and no WebAssembly build of it is published. jsonschema is several hundred times slower, which
does not matter for the few entries of a page in a browser. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from opschema_cli.source.yaml import Data

if TYPE_CHECKING:
    import jsonschema_rs

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
Path: TypeAlias = "tuple[str | int, ...]"


class Violation(msgspec.Struct, frozen=True):
    """A violation: where in the data, the keyword that is violated, the path to its schema, and the keys it is about.

    ``keys`` are the missing key of ``required``, the unknown ones of ``additionalProperties``, or that of ``propertyNames``.
    """

    path: Path
    keyword: str
    schema_path: Path
    keys: tuple[str, ...] = ()


class Validator(Protocol):
    """A compiled schema."""

    def accepts(self, data: Data) -> bool:
        """Whether the data satisfy it; never those with a key that is not a string."""

    def violations(self, data: Json) -> Iterator[Violation]:
        """All violations."""


def compiled(schema: dict[str, Json]) -> Validator:
    """The validator of a schema of draft 2020-12."""
    try:
        import jsonschema_rs
    except ImportError:
        return PythonValidator(schema)
    return RustValidator(jsonschema_rs.Draft202012Validator(schema))


class RustValidator:
    """A validator of jsonschema-rs."""

    def __init__(self, validator: jsonschema_rs.Draft202012Validator) -> None:
        self._validator = validator

    def accepts(self, data: Data) -> bool:
        """Whether the data satisfy the schema; never those with a key that is not a string, or text that is not Unicode."""
        try:
            return self._validator.is_valid(data)
        except ValueError:
            return False

    def violations(self, data: Json) -> Iterator[Violation]:
        """All violations, in the order of the schema."""
        return map(self._violation, self._validator.iter_errors(data))

    def _violation(self, error: jsonschema_rs.ValidationError) -> Violation:
        from jsonschema_rs import ValidationErrorKind as Kind

        *steps, keyword = error.schema_path
        kind, keys = error.kind, tuple[object, ...]()
        if isinstance(kind, Kind.PropertyNames):
            *steps, keyword = steps
            keys = (kind.error.instance,)
        elif isinstance(kind, Kind.Required):
            keys = (kind.property,)
        elif isinstance(kind, Kind.AdditionalProperties):
            keys = tuple(kind.unexpected)
        return Violation(tuple(error.instance_path), str(keyword), tuple(steps), tuple(map(str, keys)))


class PythonValidator:
    """A validator of the package jsonschema."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        import jsonschema

        self._validator: Any = jsonschema.Draft202012Validator(schema)

    def accepts(self, data: Data) -> bool:
        """Whether the data satisfy the schema; never those with a key that is not a string."""
        return _has_string_keys(data) and bool(self._validator.is_valid(data))

    def violations(self, data: Json) -> Iterator[Violation]:
        """All violations, in the order of the schema."""
        return map(self._violation, self._validator.iter_errors(data))

    def _violation(self, error: Any) -> Violation:
        *steps, keyword = error.absolute_schema_path
        keys: tuple[object, ...] = ()
        if steps and steps[-1] == "propertyNames":
            *steps, keyword = steps
            keys = (error.instance,)
        elif keyword == "required":
            keys = tuple(name for name in error.validator_value if error.message.startswith(f"{name!r} is a required"))
        elif keyword == "additionalProperties":
            known = error.schema.get("properties", {})
            keys = tuple(name for name in error.instance if name not in known)
        return Violation(tuple(error.absolute_path), str(keyword), tuple(steps), tuple(map(str, keys)))


def _has_string_keys(data: Data) -> bool:
    """Whether all keys are strings, those of mappings inside of others as well."""
    if isinstance(data, dict):
        return all(isinstance(key, str) and _has_string_keys(value) for key, value in data.items())
    return not isinstance(data, list) or all(map(_has_string_keys, data))
