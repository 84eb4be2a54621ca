"""Lookups by strings that need more than one step: functions that look up, and dictionaries of names."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.source.python_tree import PythonTree

INDIRECT = (
    r"attrgetter|methodcaller|getattr_static|setattr|patch\.object|__getattribute__|globals|locals|__dict__|\bvars\b"
)
"""A pattern of all these lookups."""

_MADE_BY = {"attrgetter": None, "methodcaller": 1}
"""The functions that make lookups; how many of their arguments are names."""

_OF_OBJECTS = ("setattr", "getattr_static", "patch.object", "object.__getattribute__")
_READING = ("get", "pop", "setdefault", "__getitem__")


class IndirectLookup(msgspec.Struct, frozen=True):
    """A lookup of the dotted ``path`` in ``owner``; without an owner, in an unknown object, or in the names of its own code if
    ``own`` is true.
    """

    node: cst.CSTNode
    owner: cst.CSTNode | None
    path: str
    own: bool = False


def indirect_lookups(tree: PythonTree, word: str) -> Iterator[IndirectLookup]:
    """Yield the lookups of a name, or of something in the object with that name."""
    for literal in tree.literals:
        before, found, _ = f".{literal.raw_value}.".partition(f".{word}.")
        if found:
            for above in tree.ancestors(literal):
                if isinstance(above, cst.Call | cst.Subscript):
                    yield from _lookups(tree, above, literal, f"{before}.{word}"[1:])
                    break


def _lookups(
    tree: PythonTree, node: cst.Call | cst.Subscript, literal: cst.SimpleString, path: str
) -> Iterator[IndirectLookup]:
    if isinstance(node, cst.Subscript):
        keys = [item.slice.value for item in node.slice if isinstance(item.slice, cst.Index)]
        if keys == [literal] and "." not in path and _is_own(node.value):
            yield IndirectLookup(node, None, path, own=True)
        return
    name, args = dotted(node.func), [arg.value for arg in node.args]
    maker = name.rpartition(".")[2]
    if maker in _MADE_BY and literal in args[: _MADE_BY[maker]]:
        outer = tree.parent(node)
        if isinstance(outer, cst.Call) and outer.func is node and len(outer.args) == 1:
            yield IndirectLookup(outer, outer.args[0].value, path)
        else:
            yield IndirectLookup(node, None, path)
    elif "." in path:
        return
    elif f".{name}".endswith(tuple(f".{item}" for item in _OF_OBJECTS)) and args[1:2] == [literal]:
        yield IndirectLookup(node, args[0], path)
    elif isinstance(node.func, cst.Attribute) and node.func.attr.value in _READING and args[:1] == [literal]:
        if _is_own(node.func.value):
            yield IndirectLookup(node, None, path, own=True)
        elif (owner := _owner(node.func.value)) is not None:
            yield IndirectLookup(node, owner, path)


def _is_own(node: cst.CSTNode) -> bool:
    """Whether an expression is a dictionary of the names that its own code may use."""
    return isinstance(node, cst.Call) and dotted(node.func) in ("globals", "locals", "vars") and not node.args


def _owner(node: cst.CSTNode) -> cst.CSTNode | None:
    """The object whose attributes a dictionary holds."""
    if isinstance(node, cst.Attribute) and node.attr.value == "__dict__":
        return node.value
    named = isinstance(node, cst.Call) and dotted(node.func) == "vars" and len(node.args) == 1
    return node.args[0].value if named and isinstance(node, cst.Call) else None
