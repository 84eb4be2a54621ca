"""Proves that an op's result has the shape, strides, type and device of one of its tensors. None means not proven.

A scalar beside a tensor keeps its shape, but not always its type (`x * 0.5` of integers); `.to(x.dtype)` gives that back.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.tensors.results import torch_names
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Leaf

MAX_DEPTH = 20
"""Maximum depth of an expression, and length of a chain of locals, to follow."""

_SAME = frozenset({"clone", "neg", "negative", "relu", "sign", "floor", "ceil", "round", "trunc"})
_SHAPE = frozenset(
    {"exp", "sigmoid", "tanh", "sqrt", "rsqrt", "sin", "cos", "log", "abs", "float", "half", "double", "bfloat16"}
)
_ACTIVATIONS = frozenset({"relu", "silu", "gelu", "mish", "hardswish"})
_SCALARS = frozenset({"int", "float", "bool"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "**", "%"})


class Mirror(msgspec.Struct, frozen=True):
    """A value like the tensor ``leaf``; ``typed`` when it has its type too, ``fresh`` when it is not an input itself."""

    leaf: Leaf
    typed: bool = True
    fresh: bool = False


class Mirrors(msgspec.Struct, frozen=True, dict=True):
    """Looks at one op's body."""

    op: MagiOp

    @property
    def body(self) -> Body:
        """The op's body."""
        return self.op.body

    def outputs(self) -> tuple[Leaf, ...] | None:
        """Return the leaf that each output matches, on every path; None if that is not proven."""
        count, returns = self.op.output_count, self.body.scope.returns
        if count is None or count < 1 or not returns or not self._returns_tensors():
            return None
        found = {self._returned(item, count) for item in returns}
        return found.pop() if len(found) == 1 else None

    def _returns_tensors(self) -> bool:
        form = self.op.returns
        return form is not None and (form.is_tensor or (form.origin == "tuple" and all(i.is_tensor for i in form.args)))

    def _returned(self, expr: Expr, count: int) -> tuple[Leaf, ...] | None:
        many = self.op.returns is not None and self.op.returns.origin == "tuple"
        items = expr.items if many and expr.kind == "tuple" else () if many else (expr,)
        if len(items) != count or len({item.text for item in items if item.kind == "name"}) < sum(
            item.kind == "name" for item in items
        ):
            return None
        found = [self.value(item, MAX_DEPTH) for item in items]
        leaves = [item.leaf for item in found if item is not None and item.typed and item.fresh]
        return tuple(leaves) if len(leaves) == count else None

    def value(self, expr: Expr, depth: int) -> Mirror | None:
        """The mirror of an expression's value; None when it has none."""
        if depth <= 0:
            return None
        if expr.kind == "name":
            return self._name(expr.text, depth)
        if expr.kind == "unary" and expr.text == "-":
            return _made(self.value(expr.items[0], depth - 1))
        if expr.kind == "binary" and expr.text in _ARITHMETIC:
            return self._binary(expr, depth - 1)
        return self._call(expr, depth - 1) if expr.kind == "call" else None

    # Names

    def _name(self, name: str, depth: int) -> Mirror | None:
        first = name.partition(".")[0]
        if self._reshapes or any(first in scope.deleted for scope in self.body.scope.walk()):
            return None
        if any(item.name == first for item in self.body.params):
            leaf = self._leaf(name)
            return Mirror(leaf) if leaf is not None and leaf.is_tensor else None
        values = self.body.values(name) if "." not in name and self.body.binds(name) else None
        found = [self.value(item, depth - 1) for item in values or ()]
        known = [item for item in found if item is not None]
        if not known or len(known) != len(found) or any(item.leaf is not known[0].leaf for item in known):
            return None
        return Mirror(known[0].leaf, all(item.typed for item in known), all(item.fresh for item in known))

    def _leaf(self, name: str) -> Leaf | None:
        """The leaf that a dotted name reads, if its parameter is never bound anew."""
        path = tuple(name.split("."))
        for scope in self.body.scope.walk():
            rebound = any(item.target == path[0] or item.target.startswith(f"{path[0]}.") for item in scope.assigns)
            if path[0] in scope.deleted or (rebound and scope is self.body.scope):
                return None
        return next((leaf for leaf in self.op.lowering.leaves if leaf.path == path), None)

    @cached_property
    def _reshapes(self) -> bool:
        """Whether a tensor, under any name, may be reshaped in place."""
        for scope in self.body.scope.walk():
            if any(item.target.endswith(".data") for item in scope.assigns):
                return True
            for call in scope.calls:
                if call.items[0].text.rpartition(".")[2] in torch_names("reshaping") or call.keyword("out") is not None:
                    return True
        return False

    # Operations

    def _binary(self, expr: Expr, depth: int) -> Mirror | None:
        left, right = (self.value(item, depth) for item in expr.items)
        if left is not None and right is not None:
            both = left.leaf is right.leaf
            typed = left.typed and right.typed and expr.text in ("+", "*")
            return Mirror(left.leaf, typed, True) if both else None
        found, other = (left, expr.items[1]) if left is not None else (right, expr.items[0])
        return Mirror(found.leaf, False, True) if found is not None and self._is_scalar(other) else None

    def _is_scalar(self, expr: Expr) -> bool:
        """Whether an expression is a Python number."""
        if expr.kind == "const":
            return isinstance(expr.value, int | float)
        if expr.kind in ("unary", "binary"):
            return expr.text in _ARITHMETIC and all(map(self._is_scalar, expr.items))
        leaf = self._leaf(expr.text) if expr.kind == "name" else None
        return leaf is not None and leaf.lowered_type is not None and leaf.lowered_type.name in _SCALARS

    def _call(self, expr: Expr, depth: int) -> Mirror | None:
        module, _, name = self.op.tree.bodies.external(self.body, expr.callee).rpartition(".")
        if module == "torch" and name.endswith("_like") and name in torch_names("functions"):
            return self._like(expr, depth)
        if module == "torch.nn.functional" and name in _ACTIVATIONS and self._plain(expr, "approximate"):
            return _made(self.value(expr.items[1], depth))
        if module == "torch" and (name in _SAME or name in _SHAPE) and self._plain(expr):
            return _made(self.value(expr.items[1], depth), typed=name in _SAME)
        return self._method(expr, depth)

    def _plain(self, expr: Expr, *allowed: str) -> bool:
        return expr.keywords[:1] == ("",) and all(keyword in allowed for keyword in expr.keywords[1:])

    def _like(self, expr: Expr, depth: int) -> Mirror | None:
        source = next(iter(expr.positional()), expr.keyword("input"))
        found = self.value(source, depth) if source is not None else None
        if found is None or not set(expr.keywords) <= {"", "input", "fill_value", "dtype"}:
            return None
        wanted = expr.keyword("dtype")
        return _made(found if wanted is None else self._as_type(found, wanted))

    def _as_type(self, found: Mirror, wanted: Expr) -> Mirror:
        holder, _, last = wanted.text.rpartition(".") if wanted.kind == "name" else ("", "", "")
        leaf = self._leaf(holder) if last == "dtype" else None
        return replace(found, typed=leaf is found.leaf)

    def _method(self, expr: Expr, depth: int) -> Mirror | None:
        callee = expr.items[0]
        holder, _, name = callee.text.rpartition(".")
        if callee.kind == "attribute":
            name, receiver = callee.text, callee.items[0]
        elif callee.kind == "name" and holder:
            receiver = Expr("name", callee.start, callee.end, holder)
        else:
            return None
        found = self.value(receiver, depth)
        if found is None:
            return None
        if name in _SAME and len(expr.items) == 1:
            return _made(found)
        if name in _SHAPE and len(expr.items) == 1:
            return replace(found, typed=False, fresh=found.fresh or name not in ("float", "half", "double", "bfloat16"))
        if name == "to" and expr.keywords in (("",), ("dtype",)) and expr.items[1].text.endswith(".dtype"):
            return self._as_type(found, expr.items[1])
        if name == "type_as" and expr.keywords == ("",) and expr.items[1].kind == "name":
            other = self._leaf(expr.items[1].text)
            return replace(found, typed=True) if other is found.leaf else None
        return None


def _made(found: Mirror | None, *, typed: bool = True) -> Mirror | None:
    return replace(found, fresh=True, typed=found.typed and typed) if found is not None else None
