"""Unintended content of a YAML file: keys written twice, scalars that the reader takes for something else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, YamlFile, scalar_value
from opschema_cli.source.yaml_edit import YamlEditError, quote_scalar
from opschema_rules.tileops.entry_paths import entry_at, mappings, path_name
from opschema_rules.tileops.model import ManifestFile, OpEntry, entries_node
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.scalar_roles import NUMBERS, Role, is_misread, role_at
from opschema_rules.tileops.scalars import Misreading, misreading
from opschema_rules.tileops.schema_validator import Path

_NO_TEXT = re.compile(
    r"^(?:[^A-Za-z_\n]|$|(?:yes|no|on|off|true|false|null)$)", re.ASCII | re.IGNORECASE | re.MULTILINE
)
"""Keys that may not be text to the reader, so that two spellings may be one key."""

_SUSPECT = frozenset("+-.0123456789yYnNoOiI")
"""First characters of everything that is misread."""


@rule("YML101", "duplicate-key", fixable="safe", pure=True, proof=ROWS)
def duplicate_key(subject: ManifestFile) -> Iterator[Diagnostic]:
    """A mapping gives the same key twice, and the reader silently keeps only the last value.

    PyYAML does not complain: the first value is lost, though readers of the file see both. Keys are compared as the reader
    takes them, so `yes` repeats `true`. A merge key (`<<`) may be repeated and overridden. An op that is declared twice is
    `MAN102`.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5, default: 0.25}
    ```

    Bad, the same value twice:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5, default: 0.5}
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
    ```

    Good, a merge that is overridden:

    ```yaml
    workloads:
      - &small {x_shape: [4, 8], dtypes: [float16], label: "small"}
      - {<<: *small, x_shape: [8, 8], label: "square"}
    ```
    """
    ops = entries_node(subject.file)
    for mapping in mappings(subject.file.root):
        if mapping is not ops:
            yield from _repeated(subject, mapping)


def _repeated(subject: ManifestFile, mapping: Node) -> Iterator[Diagnostic]:
    keys = [key.value for key in mapping.items[::2]]
    if len(set(keys)) == len(keys) and not _NO_TEXT.search("\n".join(keys)):
        return
    first: dict[object, tuple[Node, Node]] = {}
    for key, value in mapping.pairs():
        if key.kind != "scalar" or (key.value == "<<" and not key.style):
            continue
        read = scalar_value(key)
        identity = (type(read) is str, read)
        if identity not in first:
            first[identity] = (key, value)
        else:
            yield _duplicate(subject, mapping, first[identity], (key, value))


def _duplicate(subject: ManifestFile, mapping: Node, first: tuple[Node, Node], later: tuple[Node, Node]) -> Diagnostic:
    file = subject.file
    text = file.source.text
    same = text[first[1].start : first[1].end] == text[later[1].start : later[1].end]
    again = "with the same value" if same else "and the reader silently drops the first value"
    return Diagnostic(
        f"the key `{later[0].value}` is given twice, {again}; keep one",
        Place(file.path, later[0].span),
        (Related(Place(file.path, first[0].span), "it is first given here"),),
        _removal(file, mapping, later) if same else None,
        ops=_op_at(subject, later[0]),
    )


def _removal(file: YamlFile, mapping: Node, pair: tuple[Node, Node]) -> Fix | None:
    """Return a fix that removes a pair that is not the first of its mapping, if nothing else is on its lines."""
    text = file.source.text
    key, value = pair
    start, end = key.start, max(value.end, key.end)
    if mapping.style == "flow":
        before = mapping.items[2 * next(i for i, item in enumerate(mapping.items[::2]) if item is key) - 1]
        start = max(before.end, before.start)
    else:
        start = text.rfind("\n", 0, start) + 1
        newline = text.find("\n", end)
        if text[start : key.start].strip() or text[end : newline if newline >= 0 else len(text)].strip():
            return None
        end = newline + 1 if newline >= 0 else len(text)
    if "#" in text[start:end] or "&" in text[start:end]:
        return None
    return Fix(f"remove the second `{key.value}`", (FileEdit(file.path, Edit(Span(start, end), "")),))


@rule("YML102", "yaml11-scalar", fixable="safe", pure=True, proof=ROWS)
def misread_scalar(subject: ManifestFile) -> Iterator[Diagnostic]:
    """YAML 1.1 reads a plain scalar differently than it looks.

    The manifest is read as YAML 1.1: `no`, `yes`, `on` and `off` are booleans, as keys too; `010` is octal and `12:30` a
    base-60 number; `2026-01-31` is a date; `1e-6`, `1.0e5` and `-.5` are text, since a float needs a digit, a point and a
    sign in its exponent. Where text is required (names, dtypes, labels, paths, formulas), quote it; where a number is
    required, use a spelling that YAML 1.1 knows, without a point and exponent for an integer. A value whose kind the
    manifest does not fix, such as an extra key of a workload row, is a warning.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 5e-1}
    ```

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: no}
      - {x_shape: [8, 8], dtypes: [float16], label: 2026-01-31}
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 1.0e-6}
        inplace: {type: bool, default: no, kw_only: yes}
    ```

    Good, quoted text:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: 1e5}
      - {x_shape: [8, 8], dtypes: [float16], label: "010"}
    ```
    """
    for node, is_key in _misread(subject.file.root):
        found = misreading(node)
        entry = entry_at(subject, node.start)
        if found is not None and is_key:
            yield from _misread_key(subject, node, found)
        elif found is not None and entry is not None:
            yield from _misread_value(subject, entry, node, found)


def _misread(root: Node | None) -> list[tuple[Node, bool]]:
    """Scalars that are read otherwise than they look, in the order of the text, and whether each is a key."""
    found: list[tuple[Node, bool]] = []
    waiting = [root] if root is not None else []
    for node in waiting:  # it grows on the way
        for index, item in enumerate(node.items):
            if item.kind != "scalar":
                waiting.append(item)
            elif not item.style and item.value[:1] in _SUSPECT and misreading(item) is not None:
                found.append((item, node.kind == "mapping" and index % 2 == 0))
    return sorted(found, key=lambda pair: pair[0].start)


def _path_to(root: Node | None, target: Node) -> Path:
    """Keys and indexes from the root down to a node."""
    path: list[str | int] = []
    node = root
    while node is not None and node is not target:
        inside = next((i for i, item in enumerate(node.items) if item.start <= target.start < max(item.end, 1)), None)
        if inside is None:
            break
        if node.kind == "mapping":
            path.append(node.items[inside - inside % 2].value)
        else:
            path.append(inside)
        node = node.items[inside]
    return tuple(path)


def _op_at(subject: ManifestFile, node: Node) -> tuple[str, ...]:
    entry = entry_at(subject, node.start)
    return (entry.name,) if entry is not None else ()


def _misread_key(subject: ManifestFile, key: Node, found: Misreading) -> Iterator[Diagnostic]:
    if found.read == "text":
        return
    yield Diagnostic(
        f"the key `{key.value}` is {found.read} to a YAML 1.1 reader; quote it",
        Place(subject.file.path, key.span),
        fix=_quoting(subject.file, key),
        ops=_op_at(subject, key),
    )


def _misread_value(subject: ManifestFile, entry: OpEntry, node: Node, found: Misreading) -> Iterator[Diagnostic]:
    path = _path_to(subject.file.root, node)
    path = path[path.index(entry.key.value) + 1 :] if entry.key.value in path else path
    if not is_misread(entry, path, node):
        return
    role, where = role_at(entry, path), path_name(path).strip("`")
    fix: Fix | None = None
    if role == "text":
        advice, fix = "quote it", _quoting(subject.file, node)
    elif found.read == "text" and found.number is not None:
        number = found.integer if role == "integer" else found.number
        advice = f"write `{number}`" if number is not None else "write an integer"
        fix = _respelling(subject.file, node, number, role) if number is not None else None
    elif found.looks == "number":
        advice = f"write `{found.number}`, or `{scalar_value(node)}` if that is meant"
    elif role in NUMBERS:
        advice = "write a number"
    else:
        advice = f"write `{found.read.split('`')[1]}`, or quote it" if found.looks == "word" else "quote it"
        fix = _quoting(subject.file, node, sure=False)
    yield Diagnostic(
        f"`{where}` is `{node.value}`, {found.read} to a YAML 1.1 reader; {advice}",
        Place(subject.file.path, node.span),
        fix=fix,
        ops=(entry.name,),
        severity=Severity.WARNING if role == "any" else Severity.ERROR,
    )


def _quoting(file: YamlFile, node: Node, *, sure: bool = True) -> Fix | None:
    try:
        edits = tuple(FileEdit(file.path, edit) for edit in quote_scalar(file, node))
    except YamlEditError:
        return None
    title = f"quote `{node.value}`"
    return Fix(title, edits) if sure else Fix(title, edits, "unsafe", f"the value becomes text, and was {_kind(node)}")


def _respelling(file: YamlFile, node: Node, number: str, role: Role) -> Fix:
    edits = (FileEdit(file.path, Edit(node.span, number)),)
    title = f"write `{number}`"
    if role == "number" and not number.lstrip("+-").isdigit():
        return Fix(title, edits, "unsafe", "the value becomes a float, where an integer may be meant")
    if role in NUMBERS:
        return Fix(title, edits)
    return Fix(title, edits, "unsafe", "the value becomes a number, and was text")


def _kind(node: Node) -> str:
    found = misreading(node)
    return found.read if found is not None else "text"


_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "binary", "timestamp", "omap", "pairs", "set", "str", "seq", "map")
)
"""The tags that a safe loader constructs; PyYAML 6.0.3, constructor.py, ``SafeConstructor``."""


@rule("YML103", "yaml-tag", pure=True)
def yaml_tag(subject: ManifestFile) -> Iterator[Diagnostic]:
    """A value carries a tag that a safe YAML loader refuses.

    `yaml.safe_load` raises at such a tag, so the entire file is lost, not only the entry. A tag such as
    `!!python/object/apply:` is an attempt to run code when the file is read.

    Bad:

    ```yaml
    family: !custom example
    ```

    Good:

    ```yaml
    family: !!str example
    ```
    """
    root = subject.file.root
    for node in root.walk() if root is not None else ():
        if node.tag and node.tag != "!" and node.tag not in _TAGS:
            message = f"a safe loader rejects the tag `{node.tag}`, and with it the entire file; drop the tag"
            yield Diagnostic(message, Place(subject.file.path, node.span), ops=_op_at(subject, node))
