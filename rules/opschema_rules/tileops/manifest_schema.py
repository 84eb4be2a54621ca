"""The manifest's JSON Schema, reduced to the demands of one tree's specification, and the errors it finds.

``manifest.schema.json`` states the newest form for editors. Here ``$ref`` is inlined, parts that the tree does not know
(``x-spec``) or that a rule of their own reports (``x-rule``) are taken out, and the rest is compiled once.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from opschema_cli.source.yaml import Data
from opschema_rules.tileops.schema_validator import Json, Path, compiled


class SchemaError(msgspec.Struct, frozen=True):
    """One violation: where in the entry, the keyword that is violated, its schema, and the keys it is about.

    ``keys`` are the missing key of ``required``, or the unknown ones of ``additionalProperties``.
    """

    path: Path
    keyword: str
    schema: Mapping[str, Json]
    keys: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """A text annotation of the schema; empty when absent."""
        found = self.schema.get(name)
        return found if isinstance(found, str) else ""

    @property
    def known(self) -> tuple[str, ...]:
        """The keys that are allowed here."""
        found = self.schema.get("properties")
        parts = found.items() if isinstance(found, dict) else ()
        return tuple(name for name, part in parts if not (isinstance(part, dict) and "not" in part))

    def title_of(self, key: str) -> str:
        """The title of a key of this mapping: a description of its values."""
        properties = self.schema.get("properties")
        found = properties.get(key) if isinstance(properties, dict) else None
        title = found.get("title") if isinstance(found, dict) else None
        return title if isinstance(title, str) else ""


class EntrySchema:
    """The schema of one entry, compiled."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self._schema = schema
        self._validator = compiled(schema)

    @property
    def title(self) -> str:
        """The title of an entry: its description."""
        return str(self._schema["title"])

    def accepts(self, data: Data) -> bool:
        """Whether an entry is sound, all its keys strings included."""
        return self._validator.accepts(data)

    def errors(self, data: Data) -> list[SchemaError]:
        """All violations, in the order of the schema. Keys that are not strings are left out."""
        return [
            SchemaError(found.path, found.keyword, _walk(self._schema, found.schema_path), found.keys)
            for found in self._validator.violations(as_json(data))
        ]


def _walk(schema: Json, steps: Sequence[str | int]) -> Mapping[str, Json]:
    node: Json = schema
    for step in steps:
        if isinstance(node, dict) and isinstance(step, str):
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int):
            node = node[step]
    return node if isinstance(node, dict) else {}


@lru_cache(maxsize=8)
def entry_schema(known: frozenset[str]) -> EntrySchema:
    """The schema of one entry in a tree whose specification knows the demands ``known``."""
    whole = _document()
    definitions = whole["$defs"]
    assert isinstance(definitions, dict)
    cut = _cut(definitions["entry"], definitions, known)
    assert isinstance(cut, dict)
    return EntrySchema(cut)


@lru_cache(maxsize=1)
def _document() -> dict[str, Json]:
    document: dict[str, Json] = msgspec.json.decode(schema_text())
    return document


def schema_text() -> bytes:
    """The schema of a manifest's file, in its newest form."""
    return pathlib.Path(__file__).with_name("manifest.schema.json").read_bytes()


class Allowed(msgspec.Struct, frozen=True):
    """The keys, or values of an enumeration, at a place in the newest form of the manifest; empty if it is open."""

    keys: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()


def allowed_at(path: Sequence[str]) -> Allowed:
    """The keys or values allowed at a path below an entry; `*` is any key or item."""
    definitions = _document()["$defs"]
    assert isinstance(definitions, dict)
    nodes = [definitions["entry"]]
    for step in path:
        nodes = [part for node in nodes if isinstance(node, dict) for part in _parts(_inlined(node, definitions), step)]
    found = [_inlined(node, definitions) for node in nodes if isinstance(node, dict)]
    keys: set[str] = set()
    values: set[str] = set()
    for node in found:
        properties, listed = node.get("properties"), node.get("enum")
        if isinstance(properties, dict) and (node.get("x-typos") or node.get("additionalProperties") is False):
            keys.update(properties)
        elif isinstance(listed, list):
            values.update(map(str, listed))
        else:
            return Allowed()
    return Allowed(frozenset(keys), frozenset(values))


def _parts(node: Mapping[str, Json], step: str) -> Iterator[Json]:
    """Return the schemas that a step leads to."""
    properties, items, others = node.get("properties"), node.get("items"), node.get("additionalProperties")
    named = properties if isinstance(properties, dict) else {}
    if isinstance(items, dict) and (step == "*" or step.isdigit()):
        yield items
    yield from (part for name, part in named.items() if step in ("*", name))
    if isinstance(others, dict) and step not in named:
        yield others


def _cut(node: Json, definitions: Mapping[str, Json], known: frozenset[str]) -> Json:
    """``node`` with references inlined, without the parts that do not hold; typos in open mappings become errors."""
    if isinstance(node, list):
        return [_cut(item, definitions, known) for item in node if _holds(item, known) and not _elsewhere(item)]
    if not isinstance(node, dict):
        return node
    node = _inlined(node, definitions)
    found: dict[str, Json] = {}
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            found[key] = {
                name: _cut(part, definitions, known) if _holds(part, known) and not _elsewhere(part) else {}
                for name, part in value.items()
                if _holds(part, known) or (isinstance(part, dict) and part.get("x-known"))
            }
        elif key in ("additionalProperties", "items") and _elsewhere(value):
            continue
        else:
            found[key] = _cut(value, definitions, known)
    if not found.get("allOf", True):  # an empty list is not a schema
        del found["allOf"]
    if node.get("x-typos"):
        found["additionalProperties"] = False
    return found


def _inlined(node: dict[str, Json], definitions: Mapping[str, Json]) -> dict[str, Json]:
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return node
    target = definitions[reference.rpartition("/")[2]]
    assert isinstance(target, dict)
    target = _inlined(target, definitions)
    own = {key: value for key, value in node.items() if key != "$ref"}
    theirs, ours = target.get("properties"), own.get("properties")
    if isinstance(theirs, dict) and isinstance(ours, dict):
        own["properties"] = {**theirs, **ours}
    return {**target, **own}


def _holds(node: Json, known: frozenset[str]) -> bool:
    feature = node.get("x-spec") if isinstance(node, dict) else None
    return feature is None or feature in known


def _elsewhere(node: Json) -> bool:
    return isinstance(node, dict) and "x-rule" in node


def as_json(data: Data) -> Json:
    """Plain data as JSON: without keys that are not strings, which :func:`other_keys` finds, and within its numbers."""
    if isinstance(data, dict):
        return {_text(key): as_json(value) for key, value in data.items() if isinstance(key, str)}
    if isinstance(data, list):
        return [as_json(item) for item in data]
    if isinstance(data, str):
        return _text(data)
    if isinstance(data, float) and not -1e308 < data < 1e308:
        return 0.5
    if isinstance(data, int) and not isinstance(data, bool):
        return max(-(2**62), min(data, 2**62))
    return data


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def other_keys(data: Data, path: Path = ()) -> Iterator[tuple[Path, Data]]:
    """Keys that are not strings, with the path of their mapping; those inside of a param's value are its own affair."""
    if (path[:1] == ("workloads",) and len(path) > 2) or (path[1:2] == ("params",) and path[3:4] == ("default",)):
        return
    if isinstance(data, dict):
        for key, value in data.items():
            if isinstance(key, str):
                yield from other_keys(value, (*path, key))
            else:
                yield path, key
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from other_keys(value, (*path, index))
