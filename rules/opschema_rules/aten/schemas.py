"""JSON Schemas of native_functions.yaml and of backends' YAML, from the words of torchgen that the rules check with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from opschema_cli.lint.pack import FileSchema
from opschema_cli.project import Project
from opschema_cli.source.yaml import YamlFile
from opschema_rules.aten.detection import AtenOptions, files_of
from opschema_rules.aten.dialects import BACKEND_KEYS, DIALECTS
from opschema_rules.aten.releases import Torchgens
from opschema_rules.aten.vocabulary import Vocabulary

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string"}


def native_fields(words: Vocabulary) -> dict[str, object]:
    """The fields of an entry of native_functions.yaml, with their schemas."""
    keys = {"propertyNames": {"pattern": f"^({_any_of(words.supported)})(, *({_any_of(words.supported)}))*$"}}
    dispatch = {"type": "object", "x-keys": sorted(words.supported), **keys, "additionalProperties": TEXT}
    known: dict[str, object] = {"func": {**TEXT, "title": "the schema of the operator"}, "dispatch": dispatch}
    return {field: known.get(field, {}) for field in sorted(words.fields)}


def mapping_of(properties: Mapping[str, object], **more: object) -> dict[str, object]:
    """The schema of a mapping with certain keys and no others."""
    return {"type": "object", **more, "additionalProperties": False, "properties": properties}


def list_of(title: str, properties: Mapping[str, object], **more: object) -> dict[str, object]:
    """The schema of a file that lists mappings; ``more`` are further words about each."""
    return {"$schema": DIALECT, "title": title, "type": "array", "items": mapping_of(properties, **more)}


def native_schema(words: Vocabulary) -> dict[str, object]:
    """The schema of a native_functions.yaml."""
    return list_of("native_functions.yaml", native_fields(words), required=["func"])


def backend_schema(words: Vocabulary) -> dict[str, object]:
    """The schema of the YAML of a backend, in any of its dialects."""
    lists = sorted({name for dialect in DIALECTS.values() for name in dialect.lists})
    item = {"x-values": "operator"}
    properties: dict[str, object] = {name: {"type": ["array", "null"], "items": item} for name in lists}
    properties |= {name: {} for name in BACKEND_KEYS}
    properties["backend"] = {"type": "string", "enum": sorted(words.dispatch_keys)}
    properties["cpp_namespace"] = properties["class_name"] = TEXT
    return {"$schema": DIALECT, "title": "the YAML of a backend", "type": "object", "properties": properties}


def as_text(schema: Mapping[str, object]) -> bytes:
    """A schema as JSON."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def schema_of(
    name: str,
    make: Callable[[Project, Any], Mapping[str, object]],
    files: Callable[[Project, Any], Iterable[YamlFile]],
) -> FileSchema:
    """The schema that ``make`` returns for ``files``."""
    return FileSchema(
        name,
        lambda project, options: as_text(make(project, options)),
        lambda project, options: [file.path for file in files(project, options)],
    )


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words))


def _schema(name: str, kind: str, make: Callable[[Vocabulary], Mapping[str, object]]) -> FileSchema:
    def schema(project: Project, options: AtenOptions) -> Mapping[str, object]:
        return make(Torchgens(project, options.installed_torch, options.torch).assumed.vocabulary)

    def files(project: Project, options: AtenOptions) -> list[YamlFile]:
        return [file for found, file in files_of(project, options) if found == kind]

    return schema_of(name, schema, files)


SCHEMAS = (_schema("native-functions", "native", native_schema), _schema("backend", "backend", backend_schema))
