"""Values that torchgen reads from an entry's fields besides its schema; where a field is malformed the answer is open (None)."""

from __future__ import annotations

from opschema_cli.source.text import Span
from opschema_cli.source.yaml import scalar_value
from opschema_rules.aten.entry import string
from opschema_rules.aten.model import NativeEntry
from opschema_rules.aten.signatures import base_name, full_name

IMPLICIT = "CompositeImplicitAutograd"
IMPLICIT_NESTED = "CompositeImplicitAutogradNestedTensor"
EXPLICIT = "CompositeExplicitAutograd"

_RESIZES = frozenset({"resize_", "resize_as_"})
_NO_KEYS: frozenset[str] = frozenset()
_ONLY_IMPLICIT = frozenset({IMPLICIT})


def tags_of(entry: NativeEntry) -> tuple[str, ...]:
    """The field ``tags``: one or several."""
    node = entry.fields.get("tags")
    if node is None:
        return ()
    if node[1].kind == "sequence":
        return tuple(filter(None, (string(entry.file.document.follow(item)) for item in node[1].items)))
    one = string(node[1])
    return (one,) if one else ()


def autogen_of(entry: NativeEntry) -> list[tuple[str, Span]]:
    """Return the operators of the field ``autogen`` and the place of each in the field's value."""
    node = entry.fields.get("autogen")
    text = string(node[1]) if node is not None else None
    found: list[tuple[str, Span]] = []
    at = 0
    for name in text.split(", ") if text else ():
        found.append((name, Span(at, at + len(name))))
        at += len(name) + 2
    return found


def dispatch_of(entry: NativeEntry) -> frozenset[str] | None:
    """The dispatch keys that the entry has kernels for, with those that it does not have to name."""
    fields = entry.fields
    keys = _NO_KEYS
    table = fields.get("dispatch")
    if table is not None and table[1].is_mapping:
        keys = frozenset([item.key for item in entry.dispatch()])
    elif table is not None and (table[1].kind != "scalar" or scalar_value(table[1]) is not None):
        return None
    elif not in_structured_group(entry):
        keys = _ONLY_IMPLICIT
    return keys | {"CPU", "CUDA"} if "ufunc_inner_loop" in fields else keys


def is_structured(entry: NativeEntry) -> bool:
    """Whether it is a structured kernel itself."""
    return "structured" in entry.fields and entry.flag("structured") is True


def in_structured_group(entry: NativeEntry) -> bool:
    """Whether it is a structured kernel or delegates to one."""
    return _delegates(entry) or is_structured(entry)


def _delegates(entry: NativeEntry) -> bool:
    node = entry.get("structured_delegate")
    return node is not None and (node.kind != "scalar" or scalar_value(node) is not None)


def is_view(entry: NativeEntry) -> bool:
    """Whether torchgen takes it for a view (``NativeFunction.is_view_op``)."""
    schema, text = entry.schema, entry.schema_text
    if schema is None or text is None:
        return False
    if "tags" in entry.fields and "inplace_view" in tags_of(entry) and full_name(schema) not in _RESIZES:
        return True
    if text.text.count("Tensor(") == text.text.count("!)"):
        return False  # all that is annotated is written
    if any(item.alias is not None and not item.alias.write for item in schema.returns):
        return True
    return "-> *" in text.text and any(item.alias is not None and "*" in item.alias.after for item in schema.arguments)


def is_in_place(entry: NativeEntry) -> bool:
    """Whether its name says that it works in place."""
    return entry.schema is not None and base_name(entry.schema.name).inplace
