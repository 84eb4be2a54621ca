"""Annotations with ``tuple`` where a schema only knows lists: their replacements, and their places."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from opschema_cli.evaluation.type_forms import TENSORS, TypeForm
from opschema_cli.source.python import Expr
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.text import Edit, Span

_ELEMENTS = frozenset({"int", "float", "bool", *TENSORS})
"""Types of which the schema has lists."""

_TUPLES = frozenset({"tuple", "Tuple"})


def tuple_of(form: TypeForm | None) -> TypeForm | None:
    """The tuple that a type is, or is beside None."""
    if form is None:
        return None
    if form.kind == "union":
        rest = [item for item in form.args if item.kind != "none"]
        return tuple_of(rest[0]) if len(rest) == 1 and form.is_optional else None
    return form if form.origin == "tuple" else None


def element_of(form: TypeForm) -> TypeForm | None:
    """Return the type of all elements of a tuple; None if they differ, are not known, or the schema has no list of them."""
    items = [item for item in form.args if item.kind != "ellipsis"]
    same = items and all(item == items[0] for item in items)
    return items[0] if same and items[0].kind == "name" and items[0].name in _ELEMENTS else None


def rewritten(tree: PythonTree, annotation: Expr) -> list[Edit] | None:
    """Return the edits that turn the only tuple in an annotation into a list; None if it is written in an unsupported way."""
    for node in tree.nodes:
        if isinstance(node, cst.SimpleString) and tree.span(node) == annotation.span:
            return _in_string(tree, node)
    found = [
        edit for edit in _subscripts(tree) if annotation.start <= edit.span.start and edit.span.end <= annotation.end
    ]
    return found if len(found) == 1 else None


def _in_string(tree: PythonTree, node: cst.SimpleString) -> list[Edit] | None:
    if node.evaluated_value != node.raw_value or "\n" in node.raw_value:
        return None
    try:
        inner = PythonTree.parse(node.raw_value)
    except TreeError:
        return None
    start = tree.span(node).start + len(node.prefix) + len(node.quote)
    found = [
        Edit(Span(edit.span.start + start, edit.span.end + start), edit.replacement) for edit in _subscripts(inner)
    ]
    return found if len(found) == 1 else None


def _subscripts(tree: PythonTree) -> Iterator[Edit]:
    for node in tree.nodes:
        if type(node) is not cst.Subscript:
            continue
        head = node.value.attr if isinstance(node.value, cst.Attribute) else node.value
        index = node.slice[0].slice
        if isinstance(head, cst.Name) and head.value in _TUPLES and isinstance(index, cst.Index):
            first = index.value.elements[0].value if isinstance(index.value, cst.Tuple) else index.value
            if "#" not in tree.code(node):
                yield Edit(tree.span(node), f"list[{tree.code(first)}]")
