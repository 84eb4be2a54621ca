"""Which values in a traced function are known on the GPU only, so that Python cannot count, index or decide by them.

Each number among the parameters is one, unless it is a ``Constexpr``, and so is what is computed from it. The variable of a ``for``
over ``range``, which is a loop of the GPU too, is *raw*: no number of FlyDSL's even, and true wherever Python asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

from opschema_cli.source.bodies import Body
from opschema_cli.source.function_tree import FunctionTree, function_tree
from opschema_cli.source.text import Span
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.model import FlyTree, Kind, Traced
from opschema_rules.flydsl.suspicion import late_names

Late: TypeAlias = Literal["", "number", "raw", "either"]
"""Empty for what Python may know."""

DEEPEST = 60
"""How many expressions inside one another, and names that stand for others, are followed."""

_INDEXES = frozenset({"thread_idx", "block_idx"})
_ARITHMETIC = ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Div | ast.Mod | ast.BitAnd | ast.BitOr | ast.BitXor
_ORDER = ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq
_Bound: TypeAlias = "ast.expr | ast.For | None"


class RunTime:
    """The late values of one traced function and of the functions inside it."""

    def __init__(self, tree: FlyTree, traced: Traced) -> None:
        self.tree = tree
        self.traced = traced
        self.names = tree.names
        self.bodies = [body for body in tree.within(traced) if tree.around(body) is traced]
        self._shared = {name for body in self.bodies for name in body.scope.deleted}
        self._bound: dict[Body, dict[str, list[_Bound]]] = {}
        self._asked: set[tuple[Body, str]] = set()
        self._depth = 0

    @cached_property
    def suspects(self) -> frozenset[str]:
        """The names that may hold late values, told without a syntax tree."""
        numbers = [item.name for item in self.traced.parameters if item.kind in (Kind.NUMBER, Kind.PYTHON)]
        return late_names(self.bodies, numbers)

    def syntax(self, bodies: Iterable[Body]) -> Iterator[tuple[Body, FunctionTree]]:
        """The syntax trees of some of the function's bodies."""
        for body in bodies:
            tree = function_tree(body) if body.function is not None else None
            if tree is not None:
                yield body, tree

    def late(self, body: Body, node: ast.expr) -> Late:
        """Whether an expression that stands in a body has a value on the GPU only; nothing is known of a very deep one."""
        self._depth += 1
        try:
            return self._late(body, node) if self._depth <= DEEPEST else ""
        finally:
            self._depth -= 1

    def _late(self, body: Body, node: ast.expr) -> Late:
        match node:
            case ast.Name(id=name):
                return self._name(body, name, offset(body, node))
            case ast.Attribute():
                return self._attribute(body, node)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
                formats = isinstance(op, ast.Mod) and not self._is_number(body, left)
                return "" if formats else self._joined(body, [left, right])
            case ast.Compare(left=left, ops=ops, comparators=others) if all(isinstance(op, _ORDER) for op in ops):
                return self._joined(body, [left, *others])
            case ast.UnaryOp(op=op, operand=operand):
                found = self.late(body, operand)
                return found if found == "number" or not isinstance(op, ast.Not) else ""
            case ast.BoolOp(values=values):
                return "number" if all(self.late(body, item) == "number" for item in values) else ""
            case ast.IfExp(body=left, orelse=right):
                found = self.late(body, left)
                return found if found == self.late(body, right) else ""
            case ast.Call():
                return self._call(body, node)
        return ""

    def _joined(self, body: Body, operands: Iterable[ast.expr]) -> Late:
        """What comes of several operands; those of which nothing is known are taken for plain numbers."""
        items = list(operands)
        if any(isinstance(item, ast.JoinedStr) or _is_other_constant(item) for item in items):
            return ""
        found = {self.late(body, item) for item in items} - {""}
        if len(found) > 1:
            return "either"
        return next(iter(found), "")

    def _is_number(self, body: Body, node: ast.expr) -> bool:
        return bool(self.late(body, node)) or (isinstance(node, ast.Constant) and isinstance(node.value, int | float))

    def _attribute(self, body: Body, node: ast.Attribute) -> Late:
        name = dotted(node)
        parts = self.names.full(body, name).split(".") if not _INDEXES.isdisjoint(name.split(".")) else []
        return "number" if len(parts) > 2 and parts[-2] in _INDEXES and parts[-1] in ("x", "y", "z") else ""

    def _call(self, body: Body, node: ast.Call) -> Late:
        """A number of FlyDSL made of a late value."""
        name = dotted(node.func)
        if not is_number(name.rpartition(".")[2]) or len(node.args) != 1 or node.keywords:
            return ""
        return "number" if self.names.full(body, name) and self.late(body, node.args[0]) else ""

    # Names

    def _name(self, body: Body, name: str, at: int) -> Late:
        if name in self._shared or (body, name) in self._asked or body not in self.bodies:
            return ""
        bound = self._bindings(body).get(name)
        if any(item.name == name for item in body.params):
            return self._parameter(body, name) if bound is None else ""
        if bound is None:
            return self._name(body.parent, name, at) if body is not self.traced.body and body.parent else ""
        self._asked.add((body, name))
        found = {self._value(body, item, at) for item in bound}
        self._asked.discard((body, name))
        return found.pop() if len(found) == 1 else ""

    def _value(self, body: Body, bound: _Bound, at: int) -> Late:
        if isinstance(bound, ast.For):
            tree = function_tree(body)
            inside = tree is not None and offset(body, bound.body[0]) <= at < tree.place(bound).span.end
            return "raw" if inside and is_loop(bound) else ""
        return self.late(body, bound) if bound is not None else ""

    def _parameter(self, body: Body, name: str) -> Late:
        found = self.traced.parameter(name) if body is self.traced.body else None
        if found is None:
            return ""
        if self.traced.kind == "jit":
            return "number" if found.kind is Kind.NUMBER and launches(self.tree, self.traced) else ""
        plain = found.kind is Kind.PYTHON and found.param.annotation is not None
        number = (
            plain and found.param.annotation is not None and found.param.annotation.text in ("int", "float", "bool")
        )
        return "number" if found.kind is Kind.NUMBER or number else ""

    def _bindings(self, body: Body) -> dict[str, list[_Bound]]:
        if body not in self._bound:
            found: dict[str, list[_Bound]] = {}
            tree = function_tree(body) if body.function is not None else None
            for name, bound in _bindings(tree) if tree is not None else ():
                found.setdefault(name, []).append(bound)
            for name in (*(item.name for item in body.scope.functions), *(item.name for item in body.scope.imports)):
                found.setdefault(name, []).append(None)
            self._bound[body] = found
        return self._bound[body]

    def held(self, body: Body, name: str) -> list[_Bound] | None:
        """What a name is bound to where that body looks it up; None when it is not in the traced function."""
        for item in body.outward():
            if item not in self.bodies:
                return None
            if name in self._bindings(item) or any(param.name == name for param in item.params):
                parameter = any(param.name == name for param in item.params) or name in self._shared
                return [*([None] if parameter else []), *self._bindings(item).get(name, [])]
        return None


def launches(tree: FlyTree, traced: Traced) -> bool:
    """Whether a traced function launches kernels, so that it is called from the host, and all that the tree passes it are plain
    numbers of the host.
    """
    within = list(tree.within(traced))
    starts = any(call.items[0].text.rpartition(".")[2] == "launch" for body in within for call in body.scope.calls)
    return starts and all(tree.around(call.body) is None for call in traced.calls)


def is_loop(loop: ast.For) -> bool:
    """Whether FlyDSL makes a loop of the GPU of a ``for``: over ``range``, called by any name that ends in it."""
    call = loop.iter
    if not isinstance(call, ast.Call) or not isinstance(loop.target, ast.Name):
        return False
    return dotted(call.func).rpartition(".")[2] == "range" and not call.keywords


def offset(body: Body, node: ast.expr | ast.stmt) -> int:
    """Where a node of a function's syntax tree begins in its file."""
    tree = function_tree(body)
    return tree.place(node).span.start if tree is not None else 0


def node_at(body: Body, span: Span) -> ast.expr | None:
    """The expression of a function's syntax tree that is written there."""
    tree = function_tree(body) if body.function is not None else None
    return _expressions(tree).get(span) if tree is not None else None


@lru_cache(maxsize=16)
def _expressions(tree: FunctionTree) -> dict[Span, ast.expr]:
    return {tree.place(node).span: node for node in reversed(tree.nodes) if isinstance(node, ast.expr)}


def dotted(node: ast.expr) -> str:
    """A dotted name as it is written; empty for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed([*names, node.id])) if isinstance(node, ast.Name) else ""


def _is_other_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, int | float)


def _bindings(tree: FunctionTree) -> Iterator[tuple[str, _Bound]]:
    """Each name that a function's own statements bind, with the value, the loop, or None where neither is known."""
    known: set[ast.expr] = set()
    for node in tree.nodes:
        for target, bound in _plain(node):
            known.add(target)
            if not isinstance(node, ast.AugAssign):
                yield target.id, bound
    for node in tree.nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in known:
            yield node.id, None
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, None


def _plain(node: ast.AST) -> Iterator[tuple[ast.Name, _Bound]]:
    """The names that one statement binds whose values are told; what ``n += 1`` adds leaves a number what it was."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
            yield target, value
        case ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.AugAssign(target=ast.Name() as target):
            yield target, None
        case ast.For(target=ast.Name() as target):
            yield target, node


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, _Bound]]:
    if isinstance(target, ast.Name):
        yield target, value
        return
    left, right = _elements(target), _elements(value)
    if len(left) == len(right) and not any(isinstance(item, ast.Starred) for item in (*left, *right)):
        for one, other in zip(left, right, strict=True):
            yield from _pairs(one, other)


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else []
