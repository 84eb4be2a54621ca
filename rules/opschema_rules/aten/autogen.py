"""The line ``autogen: ...``, in which an entry lists the operators that torchgen generates for its group."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml_edit import insert_key, set_value
from opschema_rules.aten.groups import Group
from opschema_rules.aten.model import NativeEntry
from opschema_rules.aten.signatures import is_tensor_like, self_argument, type_text
from opschema_rules.aten.traits import autogen_of, tags_of


def wanted_names(group: Group) -> list[str]:
    """The names that the group's ``autogen`` lists, if any, in torchgen's order."""
    return sorted(item.name for item in group.wanted)


def listed_names(group: Group) -> list[str]:
    """The names that its entries list."""
    return [name for entry in group.entries if "autogen" in entry.fields for name, _ in autogen_of(entry)]


def is_asked_for(group: Group) -> bool:
    """Whether torchgen requires the line: it generates something, or would if the list were right."""
    return bool(group.generated or set(listed_names(group)).intersection(wanted_names(group)))


def obstacle(group: Group) -> tuple[Span, str] | None:
    """The reason why torchgen can make no out variant of a group's base entry, with its place; None if it can."""
    schema = group.base.schema if group.base is not None else None
    if schema is None or "inplace" in group.variants:
        return None
    own = self_argument(schema)
    if own is not None and own.is_write:
        return own.type_span, "`self` is written, but the name is not that of an in-place operator"
    for item in schema.returns:
        if item.alias is not None and item.alias.write:
            return item.type_span, "a written argument is returned"
        if not is_tensor_like(item.type):
            return item.type_span, f"a `{type_text(item.type)}` is returned beside tensors"
    return None


def autogen_edits(entry: NativeEntry, names: Sequence[str]) -> list[Edit]:
    """Write the line, or write it anew.

    Raises:
        YamlEditError: the line cannot be written without changing more.
    """
    text = ", ".join(names)
    node = entry.get("autogen")
    if node is not None:
        return set_value(entry.file, node, text)
    before = "tags" if _stands_before_tags(entry) else None
    return insert_key(entry.file, entry.node, "autogen", text, before=before)


def _stands_before_tags(entry: NativeEntry) -> bool:
    """Whether the line goes before the tags that end an entry: where the nearest entry with those tags has it."""
    fields = list(entry.fields)
    if fields[-1] != "tags":
        return False
    both = [item for item in entry.owner.having("autogen") if "tags" in item.fields and item is not entry]
    nearest = min(both, key=lambda item: (tags_of(item) != tags_of(entry), abs(item.index - entry.index)), default=None)
    return nearest is None or list(nearest.fields).index("autogen") < list(nearest.fields).index("tags")
