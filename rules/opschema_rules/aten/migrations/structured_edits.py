"""The edits that make an entry structured, or the delegate of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opschema_cli.source.text import Edit, apply_edits
from opschema_cli.source.yaml import Data
from opschema_cli.source.yaml_edit import YamlEditError, insert_key, remove_key, rename_key, set_value
from opschema_rules.aten.migrations.remove_field import remove_field
from opschema_rules.aten.model import DispatchItem, NativeEntry

_FLAG = re.compile(r":[ \t]+(true|True)\b")


def set_structured(out: NativeEntry, inherits: str) -> list[Edit]:
    """Return edits that write ``structured: True`` and ``structured_inherits`` after the schema.

    Raises:
        YamlEditError, ValueError: the editor refuses.
    """
    fields: dict[str, str | bool] = {"structured": True, **({"structured_inherits": inherits} if inherits else {})}
    return _fitting(out, [edit._replace(replacement=_spelt(out, edit.replacement)) for edit in _set(out, fields)])


def delegate_edits(entry: NativeEntry, out: str, dropped: Sequence[DispatchItem]) -> list[Edit]:
    """Return edits that write ``structured_delegate`` after the schema, and remove dispatch keys.

    Raises:
        YamlEditError, ValueError: the editor refuses.
    """
    return _fitting(entry, [*_set(entry, {"structured_delegate": out}), *_drop(entry, dropped)])


def _fitting(entry: NativeEntry, edits: list[Edit]) -> list[Edit]:
    """The edits.

    Raises:
        YamlEditError: they touch each other.
    """
    try:
        apply_edits("", edits)  # for its check alone
    except ValueError:
        raise YamlEditError("the fields to change are neighbours in braces", entry.node.span) from None
    return edits


def _set(entry: NativeEntry, fields: dict[str, str | bool]) -> list[Edit]:
    """Return edits that set fields, new ones together after the schema."""
    edits: list[Edit] = []
    added = ""
    for name, value in fields.items():
        node = entry.get(name)
        if node is not None:
            edits += set_value(entry.file, node, value)
            continue
        after = "device_check" if entry.get("device_check") is not None else "func"
        (edit,) = insert_key(entry.file, entry.node, name, value, after=after)
        added += edit.replacement
        edits = [item for item in edits if item.span != edit.span] + [Edit(edit.span, added)]
    return edits


def _spelt(entry: NativeEntry, text: str) -> str:
    """The flag as the file writes it; as torchgen's own does where it has none."""
    found = _FLAG.search(entry.file.source.text)
    return re.sub(r"\btrue\b", found[1] if found is not None else "True", text)


def _drop(entry: NativeEntry, dropped: Sequence[DispatchItem]) -> list[Edit]:
    table = entry.get("dispatch")
    if table is None or not dropped:
        return []
    left = {key.value: _left(key.value, dropped) for key, _ in table.pairs()}
    if not any(left.values()):
        return remove_field(entry.file, entry.node, "dispatch")
    if table.style == "flow":
        kept: dict[Data, Data] = {left[key.value]: value.value for key, value in table.pairs() if left[key.value]}
        return set_value(entry.file, table, kept)
    edits: list[Edit] = []
    for key, rest in left.items():
        if rest != key:
            edits += rename_key(entry.file, table, key, rest) if rest else remove_key(entry.file, table, key)
    return edits


def _left(keys: str, dropped: Sequence[DispatchItem]) -> str:
    """The rest of a key that lists several with commas."""
    removed = {item.key for item in dropped}
    kept = [key.strip() for key in keys.split(",")]
    return keys if not removed.intersection(kept) else ", ".join(key for key in kept if key not in removed)
