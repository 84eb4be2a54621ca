"""Completion in YAML, by the JSON Schemas of the packs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from lsprotocol import types

from opschema_cli.schema.dtypes import DTYPES
from opschema_cli.server.outline import ITEM, Cursor

Schema: TypeAlias = "Mapping[str, Any]"


def completions(schema: Schema, cursor: Cursor, operators: Iterable[str]) -> list[types.CompletionItem]:
    """Completions at a cursor: keys of the mapping, or values that are known."""
    found = list(_at(schema, cursor.path))
    if cursor.kind == "key":
        keys = {name: part for node in found for name, part in _keys(schema, node)}
        listed = [_key(name, part) for name, part in keys.items()]
        values = _values(found, operators)  # an item of a list may begin here
        return listed or [types.CompletionItem(word, kind=types.CompletionItemKind.Value) for word in values]
    return [types.CompletionItem(word, kind=types.CompletionItemKind.Value) for word in _values(found, operators)]


def _key(name: str, part: Schema) -> types.CompletionItem:
    return types.CompletionItem(
        name,
        kind=types.CompletionItemKind.Property,
        detail=part.get("title"),
        documentation=part.get("description"),
        insert_text=f"{name}: ",
    )


def _keys(schema: Schema, node: Schema) -> Iterator[tuple[str, Schema]]:
    for name, part in node.get("properties", {}).items():
        followed = _followed(schema, part)
        if "not" not in followed:
            yield name, followed
    yield from ((name, {}) for name in node.get("x-keys", ()))


def _values(found: Iterable[Schema], operators: Iterable[str]) -> list[str]:
    words: dict[str, None] = {}
    for node in found:
        words.update(dict.fromkeys(str(value) for value in node.get("enum", ())))
        if isinstance(node.get("const"), bool):
            words["true" if node["const"] else "false"] = None
        if node.get("x-values") == "dtype":
            words.update(dict.fromkeys(DTYPES))
        if node.get("x-values") == "operator":
            words.update(dict.fromkeys(operators))
    return list(words)


def _at(schema: Schema, path: Iterable[str]) -> Iterator[Schema]:
    """Yield the schemas at the end of a path, with references resolved."""
    nodes = [_followed(schema, schema)]
    for step in path:
        nodes = [_followed(schema, part) for node in nodes for part in _parts(node, step)]
    yield from nodes


def _parts(node: Schema, step: str) -> Iterator[Schema]:
    if step == ITEM:
        yield node.get("items", {})
        return
    named = node.get("properties", {})
    if step in named:
        yield named[step]
    elif isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"]


def _followed(schema: Schema, part: Any) -> Schema:
    """A schema, joined with the definition that it refers to."""
    if not isinstance(part, dict):
        return {}
    reference = part.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return part
    other = _followed(schema, schema.get("$defs", {}).get(reference.rpartition("/")[2]))
    properties = {**other.get("properties", {}), **part.get("properties", {})}
    return {**other, **part, **({"properties": properties} if properties else {}), "$ref": ""}


def decoded_schema(text: bytes) -> Schema:
    """A schema from its text."""
    found: dict[str, Any] = msgspec.json.decode(text)
    return found
