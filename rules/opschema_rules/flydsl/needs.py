"""Where Python itself needs a value while a function is traced: to count, to index, to decide, to make a shape."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.bodies import Body
from opschema_cli.source.function_tree import FunctionTree
from opschema_rules.flydsl.model import Kind
from opschema_rules.flydsl.run_time import Late, RunTime, dotted
from opschema_rules.flydsl.suspicion import displays, may_need

Way: TypeAlias = Literal["count", "index", "shape", "decide", "decide: const_expr"]

_SHAPED = {"full": 1, "make_rmem_tensor": 1, "filled": 1, "UniversalCopy": 1, "make_tile": 9}
"""FlyDSL's functions whose first arguments are shapes that it needs while it traces, and how many."""
_GUARD = re.compile(r"\b(?:isinstance|hasattr|type|is_static)\(\s*([A-Za-z_]\w*)")
_CALLED = frozenset({"range_constexpr", "range", "int", "float", "bool", "min", "max", *_SHAPED})


class Need(msgspec.Struct, frozen=True, eq=False):
    """A late value that Python needs: ``by`` names what needs it, and ``outer`` is the whole of that."""

    body: Body
    tree: FunctionTree
    node: ast.expr
    late: Late
    way: Way
    by: str
    outer: ast.expr


def needs(run_time: RunTime) -> Iterator[Need]:
    """What a traced function needs of its late values."""
    inner, traced = run_time.bodies, run_time.traced
    constants = [item.name for item in traced.parameters if item.kind is Kind.CONSTEXPR]
    arrays = {"Array", *constants, *displays([*traced.body.outward(), *inner])}
    suspected = [body for body in inner if may_need(body, run_time.suspects, _CALLED | {"const_expr"}, arrays)]
    for body, tree in run_time.syntax(suspected):
        found = _Needs(run_time, body, tree)
        for node in tree.nodes:
            yield from found.of(node)


class _Needs:
    def __init__(self, run_time: RunTime, body: Body, tree: FunctionTree) -> None:
        self.run_time = run_time
        self.body = body
        self.tree = tree
        self.loops = {node.iter for node in tree.nodes if isinstance(node, ast.For)}

    def of(self, node: ast.AST) -> Iterator[Need]:
        match node:
            case ast.If(test=ast.Call() as test) | ast.While(test=ast.Call() as test) if _is_const_expr(test):
                yield from self._decided(test.args[0], "const_expr", test)
            case ast.Assert(test=test):
                yield from self._decided(test, "assert", test)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from self._decided(test, "if", test)
            case ast.Call():
                yield from self._called(node)
            case ast.Subscript(value=value, slice=index):
                yield from self._indexed(node, value, index)

    def _need(self, node: ast.expr, way: Way, by: str, outer: ast.expr) -> Iterator[Need]:
        late = self.run_time.late(self.body, node)
        if late and not self._is_guarded(node):
            yield Need(self.body, self.tree, node, late, way, by, outer)

    def _is_guarded(self, node: ast.expr) -> bool:
        """Whether the function looks at what kind of value a name holds."""
        text = self.run_time.traced.body.file.text(self.run_time.traced.function.outer)
        names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
        return any(match[1] in names for match in _GUARD.finditer(text))

    def _decided(self, node: ast.expr, by: str, outer: ast.expr) -> Iterator[Need]:
        way: Way = "decide: const_expr" if by == "const_expr" else "decide"
        yield from (item for item in self._need(node, way, by, outer) if item.late != "either")

    def _called(self, node: ast.Call) -> Iterator[Need]:
        if any(isinstance(item, ast.Starred) for item in node.args):
            return
        name = dotted(node.func)
        if name.rpartition(".")[2] not in _CALLED and not name.startswith("math."):
            return
        own = self.run_time.names.full(self.body, name).rpartition(".")[2]
        external = self.run_time.names.bodies.external(self.body, name)
        if own == "range_constexpr" or (external == "range" and node not in self.loops):
            yield from self._each(node.args, "count", own or external, node)
        elif own in _SHAPED:
            yield from self._each(_flat(node.args[: _SHAPED[own]]), "shape", name, node)
        elif external in ("int", "float") or external.startswith("math."):
            yield from self._each(node.args, "count", external, node)
        elif external == "bool" and len(node.args) == 1:
            yield from self._decided(node.args[0], external, node)
        elif external in ("min", "max") and len(node.args) > 1:
            late = [item for item in node.args if self.run_time.late(self.body, item) == "number"]
            yield from self._each(late[:1], "decide", external, node)

    def _each(self, nodes: list[ast.expr], way: Way, by: str, outer: ast.expr) -> Iterator[Need]:
        for node in nodes:
            yield from self._need(node, way, by, outer)

    def _indexed(self, node: ast.Subscript, value: ast.expr, index: ast.expr) -> Iterator[Need]:
        if self._is_array(value) and isinstance(index, ast.Tuple):
            yield from self._each(index.elts[1:], "shape", dotted(value), node)
        elif not isinstance(index, ast.Tuple) and self._is_sequence(value):
            parts = [index.lower, index.upper, index.step] if isinstance(index, ast.Slice) else [index]
            by = ast.unparse(value) if isinstance(value, ast.Name) else "a list"
            yield from self._each([item for item in parts if item is not None], "index", by, node)

    def _is_array(self, value: ast.expr) -> bool:
        name = dotted(value)
        return name.rpartition(".")[2] == "Array" and self.run_time.names.full(self.body, name).endswith(".Array")

    def _is_sequence(self, value: ast.expr) -> bool:
        """Whether an expression is a list or a tuple of Python's."""
        if not isinstance(value, ast.Name):
            return _is_display(value)
        held = self.run_time.held(self.body, value.id)
        if held is not None:
            parameter = self.run_time.traced.parameter(value.id)
            constant = parameter is not None and parameter.kind is Kind.CONSTEXPR and held == [None]
            return constant or all(isinstance(item, ast.expr) and _is_display(item) for item in held)
        binder = self.body.binder(value.id) or self.run_time.names.bodies.module(self.body.file)
        values = binder.values(value.id)
        return bool(values) and all(item.kind in ("list", "tuple") for item in values or ())


def _is_const_expr(node: ast.Call) -> bool:
    return dotted(node.func).rpartition(".")[2] == "const_expr" and len(node.args) == 1


def _is_display(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.ListComp | ast.Tuple)


def _flat(nodes: list[ast.expr]) -> list[ast.expr]:
    """Expressions, with those of tuples in their place."""
    return [part for node in nodes for part in (_flat(node.elts) if isinstance(node, ast.Tuple) else [node])]
