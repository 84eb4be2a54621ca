"""Changes of containers in the expressions and targets of a module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from opschema_cli.source.python import ContainerChange, Expr

_REMOVING = ("pop", "popitem", "clear")
CHANGING = frozenset(
    {
        *(
            "append",
            "extend",
            "insert",
            "add",
            "update",
            "remove",
            "discard",
            "setdefault",
            "sort",
            "reverse",
            *_REMOVING,
        ),
        *("appendleft", "extendleft", "popleft", "rotate", "move_to_end", "subtract"),
        *("intersection_update", "difference_update", "symmetric_difference_update"),
        *("__setitem__", "__delitem__", "__iadd__", "__ior__", "__iand__", "__isub__", "__ixor__", "__imul__"),
    }
)
"""Methods that change a list, dictionary, set, or a container of `collections`."""

_ENDINGS = frozenset(name[-3:] for name in CHANGING)
"""The last letters of these methods: nearly all other names end in different ones."""

_MOST_STEPS = 100
"""Maximum number of expressions to examine for the containers of one change: chains of calls may be long."""


class ContainerChanges:
    """The changes of one module; ``below`` holds the expressions behind placeholders for deeply nested ones."""

    def __init__(self, below: Mapping[int, Expr]) -> None:
        self._below = below
        self._found: dict[ContainerChange, int] = {}

    def finished(self) -> tuple[ContainerChange, ...]:
        """Return all changes in source order; those that are counted, once for each occurrence."""
        return tuple(change for change, count in self._found.items() for _ in range(count))

    def stored(self, target: Expr, kind: Literal["write", "delete"], key: str = "") -> None:
        """Record a target that is written or deleted, if it is an item, or an attribute of one."""
        if target.kind in ("subscript", "attribute"):
            # An attribute changes the object in an item, not the container of the item.
            self._add(target.items[0], 1 if target.kind == "subscript" else 2, kind, key)

    def attribute(self, expr: Expr) -> None:
        """Record an attribute of anything but a name, if it is a method that changes a container."""
        if expr.text in CHANGING:
            self._add(expr.items[0], 0, "method")

    def uses(self, names: Iterable[str]) -> None:
        """Record the dotted names that end in a method that changes a container."""
        for name in names:
            if name[-3:] in _ENDINGS:
                holder, dot, method = name.rpartition(".")
                if dot and method in CHANGING and not holder.startswith("?"):
                    self._count(_last(holder), 0, "method")

    def call(self, call: Expr) -> None:
        """Record the key that a call removes from a named container."""
        holder, _, method = call.callee.rpartition(".")
        if holder and method in _REMOVING:
            first = call.items[1].value if len(call.items) > 1 and not call.keywords[0] else None
            self._count(_last(holder), 0, "removal", first if isinstance(first, str) else "")

    def _add(
        self, holder: Expr, depth: int, kind: Literal["method", "removal", "write", "delete"], key: str = ""
    ) -> None:
        for name, inner in self._holders(holder, depth):
            self._count(name, inner, kind, key)

    def _count(
        self, holder: str, depth: int, kind: Literal["method", "removal", "write", "delete"], key: str = ""
    ) -> None:
        change = ContainerChange(holder, depth, kind, key)
        self._found[change] = self._found.get(change, 0) + 1 if kind == "write" else 1

    def _holders(self, holder: Expr, depth: int) -> Iterator[tuple[str, int]]:
        """Yield the names of the containers that an expression may be, or be an element of, each with the number of indexes
        after it.
        """
        waiting = [(holder, depth)]
        for _ in range(_MOST_STEPS):
            if not waiting:
                return
            expr, depth = waiting.pop()
            expr = self._below.get(id(expr), expr)
            if expr.kind == "name":
                yield _last(expr.text), depth
            elif expr.kind == "attribute":
                yield f".{expr.text}", depth
            elif expr.kind == "subscript":
                waiting.append((expr.items[0], depth + 1))
            elif expr.kind == "call" and (owner := expr.items[0].owner) is not None:
                waiting.append((owner, depth + 1))  # `A.get("x")` and `A.setdefault("x", [])` are items of `A`
            elif expr.kind in ("boolop", "ifexp", "walrus"):
                waiting += [(item, depth) for item in expr.items[expr.kind != "boolop" :]]


def _last(name: str) -> str:
    """Return the last word of a dotted name; an attribute's word keeps the dot before it."""
    _, dot, last = name.rpartition(".")
    return f"{dot}{last}"
