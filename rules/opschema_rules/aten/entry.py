"""Entries of the YAML files of PyTorch's code generator, and the schemas in their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.lint.loaded import Entry as Declared
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import ParsedSchema, parse_schema
from opschema_cli.schema.schema_tokens import SchemaError
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile, scalar_value
from opschema_cli.source.yaml_scalars import TIMESTAMP
from opschema_cli.source.yaml_spans import value_span
from opschema_cli.suggestions import misspelt_names


class Entry(msgspec.Struct, eq=False, dict=True):
    """An item of one of the files: a mapping of fields. ``file`` is the YAML file that contains it."""

    file: YamlFile
    index: int
    node: Node

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on."""
        return f"{self.file.path} {self.node.start} {self.file.source.digest}"

    @property
    def name(self) -> str:
        """Name of the entry; empty if it is unknown, and where entries have no names."""
        return ""

    @property
    def first(self) -> Node:
        """Its first key, or where it has none the entry itself."""
        return self.node.items[0] if self.node.items else self.node

    @property
    def stretch(self) -> Declared:
        """The stretch of the file that suppressions on its first line cover."""
        return Declared(self.file.path, self.first.span, Span(self.node.start, self.node.end), self.name)

    @property
    def own_types(self) -> frozenset[str]:
        """Types that the torchgen of the file takes in a schema, and the newest known one does not."""
        return frozenset()

    @property
    def known_fields(self) -> frozenset[str]:
        """The fields that the generator knows; empty where it takes any."""
        return frozenset()

    @cached_property
    def fields(self) -> Mapping[str, tuple[Node, Node]]:
        """Key and value of each field, by the name that a misspelt key is meant to be."""
        if not self.misspelt:
            return self.written
        found: dict[str, tuple[Node, Node]] = {}
        for name, field in self.written.items():
            found.setdefault(self.misspelt.get(name, name), field)
        return found

    @cached_property
    def misspelt(self) -> Mapping[str, str]:
        """The fields that unknown keys are meant to be, by these keys."""
        known = self.known_fields
        return misspelt_names(self.written, known) if known and not self.written.keys() <= known else {}

    @cached_property
    def written(self) -> Mapping[str, tuple[Node, Node]]:
        """Return the key and value of each field as written, with aliases followed; for a repeated one the last, as PyYAML reads
        it.
        """
        pairs = ((key, self.file.document.follow(value)) for key, value in self.node.pairs())
        return {key.value: (key, value) for key, value in pairs if key.kind == "scalar"}

    def get(self, name: str) -> Node | None:
        """The value of a field."""
        found = self.fields.get(name)
        return found[1] if found is not None else None

    def key(self, name: str) -> Node | None:
        """The key of a field."""
        found = self.fields.get(name)
        return found[0] if found is not None else None

    def text(self, name: str) -> str | None:
        """A field that is a string; None when it is absent or something else."""
        return string(self.get(name))

    def within(self, *path: str) -> Node | None:
        """A node below a field, aliases followed."""
        node = self.get(path[0])
        for key in path[1:]:
            node = node.get(key) if node is not None and node.is_mapping else None
            node = self.file.document.follow(node) if node is not None else None
        return node

    def text_of(self, *path: str) -> str:
        """The string in a field or below it; empty without one."""
        return string(self.within(*path)) or ""

    def keys(self, *path: str) -> Iterator[Node]:
        """The keys of a mapping below a field."""
        node = self.within(*path)
        return (key for key, _ in node.pairs()) if node is not None and node.is_mapping else iter(())

    def flag(self, name: str, default: bool = False) -> bool | None:
        """A field that is true or false; ``default`` when it is absent, None when it is something else."""
        node = self.get(name)
        if node is None:
            return default
        value = scalar_value(node) if node.kind == "scalar" else None
        return value if isinstance(value, bool) else None

    def at(self, target: Node | Span) -> Place:
        """A node or span of the file as a place."""
        return Place(self.file.path, target.span if isinstance(target, Node) else target)

    def related(self, target: Node | Span, message: str) -> Related:
        """A node or span of the file as the other side of a finding."""
        return Related(self.at(target), message)

    def inner(self, node: Node, span: Span) -> Span:
        """A stretch of a scalar's *value* as a span of the file."""
        return value_span(self.file.source.text, node, span)

    def part(self, span: Span, *path: str) -> Span:
        """A stretch of the string in a field or below it as a span of the file."""
        node = self.within(*path)
        return self.inner(node, span) if node is not None else self.first.span


def string(node: Node | None) -> str | None:
    """Return the text of a scalar that PyYAML reads as a string; None for anything else."""
    value = scalar_value(node) if node is not None and node.kind == "scalar" else None
    if node is None or not isinstance(value, str) or is_date(node) or is_binary(node):
        return None
    return value


def is_date(node: Node) -> bool:
    """Whether PyYAML makes a date of a scalar that has no other value."""
    if node.style or not node.value[:1].isdigit():
        return False
    return node.tag in ("", _TIMESTAMP_TAG) and TIMESTAMP.fullmatch(node.value) is not None


def is_binary(node: Node) -> bool:
    """Whether PyYAML makes bytes of a scalar: ``!!binary aGVsbG8=``."""
    return node.tag == "tag:yaml.org,2002:binary"


_TIMESTAMP_TAG = "tag:yaml.org,2002:timestamp"


class SchemaText(msgspec.Struct, frozen=True, dict=True):
    """A schema that is written in a scalar, as torchgen reads it; spans of the schema count its own characters."""

    entry: Entry
    node: Node
    text: str

    @cached_property
    def parsed(self) -> ParsedSchema:
        """The parsed schema and its errors."""
        return parse_schema(self.text, "torchgen")

    @property
    def schema(self) -> OperatorSchema | None:
        """Return the schema, if all of it can be parsed and torchgen accepts it."""
        refused = any(error.refused and not self.is_own_type(error) for error in self.parsed.errors)
        return self.parsed.schema if not refused else None

    def is_own_type(self, error: SchemaError) -> bool:
        """Whether a fault is that of a type which the torchgen that reads the file has, and no schema of the newest one."""
        if error.kind not in ("unknown-type", "removed-type"):
            return False
        word = self.text[error.span.start : error.span.end]
        return word in self.entry.own_types

    def span(self, span: Span) -> Span:
        """A stretch of the schema as a span of the file."""
        return self.entry.inner(self.node, span)

    def place(self, span: Span) -> Place:
        """A stretch of the schema as a place."""
        return self.entry.at(self.span(span))


class FuncEntry(Entry, eq=False, dict=True):
    """An entry with an entire schema in the field ``func``."""

    @cached_property
    def schema_text(self) -> SchemaText | None:
        """The field ``func``, its leading namespace (``custom::``) included; None when it is not a string."""
        node = self.get("func")
        text = string(node)
        return SchemaText(self, node, text) if node is not None and text is not None else None
