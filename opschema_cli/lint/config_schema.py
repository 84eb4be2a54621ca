"""The JSON Schema of the configuration, from the types that it is read with."""

from __future__ import annotations

from typing import Any

import msgspec

from opschema_cli.config import NO_KEYS, Config
from opschema_cli.lint.registry import Registry

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def config_schema(registry: Registry) -> bytes:
    """The schema of an opschema.toml, or of the table ``tool.opschema`` of a pyproject.toml, with the options of all packs."""
    packs = {pack.name: pack.options for pack in registry.all_packs}
    rules = {rule.name: rule.options for rule in registry.rules.values() if rule.options is not None}
    kinds = list(dict.fromkeys([Config, *packs.values(), *rules.values()]))
    found, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    schemas = dict(zip(kinds, found, strict=True))
    config = definitions["Config"]
    properties: dict[str, Any] = config["properties"]
    for name in NO_KEYS:
        del properties[name]
    properties.update((name, schemas[options]) for name, options in packs.items())
    properties["rules"] = {
        "type": "object",
        "properties": {name: schemas[options] for name, options in rules.items()},
        "additionalProperties": {"type": "object"},
    }
    whole = {"$schema": _DIALECT, **config, "title": "opschema.toml", "$defs": definitions}
    del definitions["Config"]
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"
