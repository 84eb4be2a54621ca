"""The structure of manifest entries, by the JSON Schema that editors use too."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Place, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.yaml import Data, Node, YamlFile, YamlSyntaxError, scalar_value
from opschema_cli.source.yaml_edit import quote_scalar, remove_key, rename_key, set_value
from opschema_cli.suggestions import near_name, nearest
from opschema_rules.tileops.doubtful_keys import is_doubtful
from opschema_rules.tileops.drift import yaml_fix
from opschema_rules.tileops.entry_paths import first_line, key_at, kind_of_key, owner_span, path_name, shown, value_span
from opschema_rules.tileops.manifest_schema import EntrySchema, SchemaError, entry_schema, other_keys
from opschema_rules.tileops.model import ManifestFile, OpEntry, entries_node, is_op_name
from opschema_rules.tileops.proofs import VALIDATOR
from opschema_rules.tileops.scalar_roles import is_misread
from opschema_rules.tileops.scalars import misreading
from opschema_rules.tileops.schema_validator import Path
from opschema_rules.tileops.spec import Spec

_CLOSE = 0.8
"""The similarity of a misspelt key to the intended one (difflib's ratio)."""

PARTS = ("signature", "workloads", "roofline", "source")
"""Keys of entries; a mapping without any of them is not an entry."""

_KEYS = ("required", "dependentRequired", "additionalProperties", "propertyNames")
"""JSON Schema keywords that concern a mapping's keys, not the value itself."""


@rule("MAN101", "manifest-structure", fixable="safe", pure=True, proof=VALIDATOR)
def manifest_structure(file: ManifestFile) -> Iterator[Diagnostic]:
    """A part of an entry is missing, misspelt or of the wrong kind.

    The loader passes the entry on unchanged, so a string where a list is expected fails later, elsewhere, or never: a
    misspelt key is simply not read. Every entry is validated against one JSON Schema, `manifest.schema.json`, which editors
    can use too (`# yaml-language-server: $schema=...`), and every violation is reported, whatever the entry's status. Other
    rules skip what is malformed here.

    In older trees, only what their own specification and validator know is checked: `status`, `ref_api`, a `shape` for
    every output, text for every formula, a `kernel_map` for implemented ops and a closed set of keys were added one by one.
    A key that the tree's specification mentions is never unknown.

    Bad:

    ```yaml
    status: implemeted
    signature:
      inputs: [x]
      params:
        eps: {type: float, defualt: 0.5}
    workloads: []
    roofline: {flop: "2 * N", bytes: "N"}
    ```

    Bad:

    ```yaml
    roofline:
      func: kit.perf.formulas.example_roofline
      flops: "2 * N"
    ```

    Bad:

    ```yaml
    roofline: {flops: 4, bytes: "8"}
    torch_compile_fullgraph: false
    ```

    Good:

    ```yaml
    status: spec-only
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]", note: "free text is allowed"}
      params:
        bias: {type: "dict | None", default: {1: 2}}
    ```
    """
    yield from _root(file)
    yield from _other_ops(file.file)
    schema = entry_schema(file.manifest.spec.known)
    for entry in file.entries:
        if entry.key.value != "<<" or entry.key.style:
            yield from _entry(entry, schema)


def _root(subject: ManifestFile) -> Iterator[Diagnostic]:
    """A file of a manifest folder that holds something other than entries."""
    file, root = subject.file, subject.file.root
    in_folder = subject.manifest.folder.rpartition("/")[2] == "manifest"
    if in_folder and root is not None and not root.is_mapping and shown(file, root) != "empty":
        message = f"the file holds {shown(file, root)}; a manifest file maps op names to entries"
        yield Diagnostic(message, Place(file.path, first_line(file, root)))


def _other_ops(file: YamlFile) -> Iterator[Diagnostic]:
    """Yield findings on keys that cannot be the name of an op, so that their values are not entries."""
    owner = entries_node(file)
    for key, _ in owner.pairs() if owner is not None else ():
        if key.kind == "scalar" and not is_op_name(key):
            message = f"`{key.value}` is {kind_of_key(key)}; a manifest file maps op names, which are text, to entries"
            yield Diagnostic(message, Place(file.path, key.span))


def _entry(entry: OpEntry, schema: EntrySchema) -> Iterator[Diagnostic]:
    data = entry.data
    if data is None and (bomb := _bomb(entry)) is not None:
        yield Diagnostic(bomb.reason, entry.at(bomb.span), ops=(entry.name,))
        return
    yield from _other_keys(entry, data)
    if schema.accepts(data):
        return
    found = [error for error in schema.errors(data) if not _is_unclear(entry, error)]
    typos = {error.path: list(_unknown(entry, error)) for error in found if error.keyword == "additionalProperties"}
    meant = {(path, best) for path, keys in typos.items() for _, best in keys if best}
    if isinstance(data, dict) and data.keys().isdisjoint(PARTS) and not any(((), part) in meant for part in PARTS):
        message = f"the entry has none of {quoted(PARTS)}; it must be {schema.title}"
        yield Diagnostic(message, entry.place, ops=(entry.name,))
        return
    misspelt = {path for path, _ in meant}
    judged: set[Path] = set()
    for error in found:
        if error.keyword == "additionalProperties":
            for key, best in typos[error.path]:
                yield _unknown_key(entry, error, key, best)
        elif error.keyword in _KEYS:
            if (error.path, *error.keys) not in meant:
                yield _about_key(entry, error)
        elif error.path not in judged and not _explained(error, misspelt):
            judged.add(error.path)
            yield from _about_value(entry, error)


def _is_unclear(entry: OpEntry, error: SchemaError) -> bool:
    """Whether a violation follows from a repeated or misspelt key, here or where ``x-without`` points."""
    other = error.text("x-without")
    if other and entry.doubtful(*other.split(".")):
        return True
    owner, key = entry.get(*error.path[:-1]), error.path[-1] if error.path else 0
    return owner is not None and isinstance(key, str) and owner.get(key) is not None and is_doubtful(owner, key)


def _bomb(entry: OpEntry) -> YamlSyntaxError | None:
    """The reason why an entry has no data: aliases in it that expand without end."""
    try:
        entry.file.document.data(entry.node)
    except YamlSyntaxError as error:
        return error
    return None


def _explained(error: SchemaError, misspelt: Collection[Path]) -> bool:
    """Whether a misspelt key is why no form of a mapping fits."""
    return error.keyword == "anyOf" and error.path in misspelt


# Keys.


def _other_keys(entry: OpEntry, data: Data) -> Iterator[Diagnostic]:
    for path in dict.fromkeys(path for path, _ in other_keys(data)):
        owner = entry.get(*path)
        for key, _ in owner.pairs() if owner is not None else ():
            if key.kind == "scalar" and not isinstance(scalar_value(key), str) and misreading(key) is None:
                message = f"the key `{key.value}` of {path_name(path)} is {kind_of_key(key)}; keys are text, rename it"
                yield Diagnostic(message, entry.at(key), ops=(entry.name,))


def _unknown(entry: OpEntry, error: SchemaError) -> Iterator[tuple[str, str | None]]:
    """Keys that are wrong here, with the known key each was probably meant to be."""
    spec = entry.manifest.spec
    owner = entry.get(*error.path)
    free = [key for key in error.known if owner is None or owner.get(key) is None]
    for key in error.keys:
        best = near_name(key[:50], free, _CLOSE)
        required = error.schema.get("required")
        lacking = isinstance(required, list) and best in required
        closed = "x-typos" not in error.schema and spec.knows("unknown-keys")
        if (best and lacking) or ((best or closed) and not _allows(spec, error.path, key)):
            yield key, best


def _allows(spec: Spec, path: Path, key: str) -> bool:
    """Whether the tree's own specification has a key that the schema does not know."""
    valid = _valid_keys(spec, "_VALID_SIGNATURE_KEYS" if path else "_VALID_TOP_KEYS")
    return key in valid if valid and path in ((), ("signature",)) else spec.mentions(key)


@lru_cache(maxsize=16)
def _valid_keys(spec: Spec, name: str) -> frozenset[str]:
    """Return the keys that the tree's validator lists under a name; empty if it has no such list."""
    found = re.search(rf"{name}\s*=[^\n{{]*\{{([^}}]*)\}}", spec.text)
    return frozenset(re.findall(r"[\"'](\w+)[\"']", found[1])) if found is not None else frozenset()


def _unknown_key(entry: OpEntry, error: SchemaError, key: str, best: str | None) -> Diagnostic:
    node = key_at(entry, (*error.path, key))
    message = f"{path_name(error.path)} has no key `{key}`, so nothing reads it"
    message += f"; did you mean `{best}`?" if best else f"; it knows {quoted(error.known)}"
    return Diagnostic(
        message,
        entry.at(node if node is not None else owner_span(entry, error.path)),
        fix=_renaming(entry, error.path, key, best) if best else None,
        ops=(entry.name,),
    )


def _renaming(entry: OpEntry, path: Path, old: str, new: str) -> Fix | None:
    owner = entry.get(*path)
    if owner is None:
        return None
    why = f"it takes `{old}` for a misspelling"
    return yaml_fix(entry, f"rename `{old}` to `{new}`", lambda: rename_key(entry.file, owner, old, new), why)


def _about_key(entry: OpEntry, error: SchemaError) -> Diagnostic:
    key = error.keys[0] if error.keys else ""
    name, since = path_name(error.path), error.text("x-error-since")
    place = entry.at(owner_span(entry, error.path))
    if error.text("x-message"):
        message = error.text("x-message").replace("{path}", name.strip("`"))
    elif error.keyword == "propertyNames":
        node = key_at(entry, (*error.path, key))
        place = entry.at(node) if node is not None else place
        message = f"{name} declares `{key}`, which is not a Python name; rename it"
    elif error.keyword == "dependentRequired":
        message = f"{name} has `constraints` but no `{key}`, whose dimensions they restrict; add it"
    else:
        title = error.title_of(key)
        message = f"{name} lacks `{key}`; add {title}" if title else f"{name} lacks `{key}`; add it"
        message += _instead(entry, error.path, key)
    hard = not since or entry.manifest.spec.knows(since)
    return Diagnostic(message, place, ops=(entry.name,), severity=Severity.ERROR if hard else Severity.WARNING)


def _instead(entry: OpEntry, path: Path, key: str) -> str:
    """Return the key of a workload row, whose keys are free, that was probably meant to be the missing one."""
    row = next((row for row in entry.rows if path == ("workloads", row.index)), None)
    stray = row.data.keys() - {param.name for param in entry.params} if row is not None else ()
    best = nearest(key, stray, 0.75)
    return f", or rename `{best}` to it" if best is not None else ""


# Values.


def _about_value(entry: OpEntry, error: SchemaError) -> Iterator[Diagnostic]:
    node = entry.get(*error.path)
    if node is not None and is_misread(entry, error.path, node):
        return
    if error.path[-1:] == ("layout",) and node is not None and entry.manifest.spec.mentions(node.value):
        return
    at = key_at(entry, (*error.path, error.text("x-at"))) if error.text("x-at") else None
    yield Diagnostic(
        _value_message(entry, error, node),
        entry.at(at.span if at is not None else value_span(entry, error.path)),
        fix=_value_fix(entry, error, node),
        ops=(entry.name,),
    )


def _value_message(entry: OpEntry, error: SchemaError, node: Node | None) -> str:
    name, custom = path_name(error.path), error.text("x-message")
    if custom:
        keys = [key.value for key, _ in node.pairs()] if node is not None else []
        others = [key for key in keys if key != error.text("x-at")]
        custom = custom.replace("{keys}", quoted(keys) if keys else "nothing").replace("{path}", name.strip("`"))
        return custom.replace("{others}", quoted(others))
    value = shown(entry.file, node) if node is not None else "missing"
    best = _best_option(error, node)
    return f"{name} is {value}; it must be {error.text('title')}" + (f", probably `{best}`" if best else "")


def _best_option(error: SchemaError, node: Node | None) -> str | None:
    options = error.schema.get("enum")
    if not isinstance(options, list) or node is None or node.kind != "scalar":
        return None
    words = [option for option in options if isinstance(option, str)]
    return near_name(_words(node.value[:50]), words)


def _words(text: str) -> str:
    return text.lower().replace("_", "-")


def _value_fix(entry: OpEntry, error: SchemaError, node: Node | None) -> Fix | None:
    """Return a fix for a value with a clear meaning in a form that is not accepted."""
    if node is None or node.kind != "scalar":
        return None
    value = scalar_value(node)
    option = _best_option(error, node)
    owner = entry.get(*error.path[:-1])
    if option is not None:
        why = "" if _words(node.value) == option else f"it takes `{node.value}` for a misspelling"
        return yaml_fix(entry, f"write `{option}`", lambda: set_value(entry.file, node, option), why)
    if error.schema.get("const") is True and value is False and owner is not None:
        key = str(error.path[-1])
        return yaml_fix(entry, f"remove `{key}`", lambda: remove_key(entry.file, owner, key))
    if error.path[:1] == ("roofline",) and isinstance(value, int | float) and not isinstance(value, bool):
        return yaml_fix(entry, f"quote `{node.value}`", lambda: quote_scalar(entry.file, node))
    return None
