"""A signature's statements on every call: its names, its equations, and its default values."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from opschema_cli.schema.evaluate import Value
from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, parse_expression
from opschema_cli.schema.shapes import ShapeDeclaration, parse_shape
from opschema_cli.source.yaml import Data, Node, scalar_value
from opschema_rules.tileops.entry_parts import ParamDecl, Rule
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.param_types import admits

T = TypeVar("T")


STATIC_DIM = re.compile(r"([A-Za-z_]\w*)\.shape\[(-?\d+|[A-Za-z_]\w*)\]", re.ASCII)
"""The single-axis reference that a ``static_dims`` value is."""


class Equation(msgspec.Struct, frozen=True, eq=False):
    """Something that holds on every call, as written at ``node``: a shape rule, a declared shape, a static dimension."""

    kind: Literal["rule", "shape", "static-dim"]
    expression: Expression
    node: Node
    name: str = ""


class Statement(msgspec.Struct, frozen=True):
    """The statements of a signature about every call.

    ``shapes`` are the declared shapes that are equations, ``rules`` static dimensions and shape rules; ``symbols`` the names
    in them that are neither tensors nor params, and ``sizes`` the dimensions of declared shapes. ``omittable`` are the inputs
    that are ``None`` where a row does not pass them, and ``defaults`` the values of params that a row does not give.
    """

    shapes: Mapping[str, Equation]
    rules: tuple[Equation, ...]
    declarations: Mapping[str, ShapeDeclaration]
    symbols: frozenset[str]
    sizes: frozenset[str]
    tensors: tuple[str, ...]
    omittable: frozenset[str]
    params: Mapping[str, ParamDecl]
    defaults: Mapping[str, Value]


def per_entry(function: Callable[[OpEntry], T]) -> Callable[[OpEntry], T]:
    """Let a function of an entry compute its result once, for all the rules that ask for it."""
    results: WeakKeyDictionary[OpEntry, T] = WeakKeyDictionary()

    @wraps(function)
    def once(entry: OpEntry) -> T:
        try:
            return results[entry]
        except KeyError:
            results[entry] = found = function(entry)
            return found

    return once


def parsed(text: str) -> Expression | None:
    """Return the expression; None if it cannot be parsed."""
    try:
        return parse_expression(text)
    except ExpressionSyntaxError:
        return None


@per_entry
def tensor_names(entry: OpEntry) -> dict[str, None]:
    """The names of the entry's inputs and outputs, in order."""
    return dict.fromkeys(tensor.name for tensor in entry.tensors)


def static_dims(entry: OpEntry) -> Iterator[tuple[Node, Node, str]]:
    """Key, value and text of each static dimension that is a string."""
    owner = entry.get("signature", "static_dims")
    for key, value in owner.pairs() if owner is not None else ():
        value = entry.file.document.follow(value)
        text = entry.data_of(value) if value.kind == "scalar" else None
        if key.kind == "scalar" and isinstance(scalar_value(key), str) and isinstance(text, str):
            yield key, value, text


@per_entry
def shape_rules(entry: OpEntry) -> tuple[tuple[Rule, Expression], ...]:
    """The entry's shape rules that parse."""
    pairs = [(item, parsed(item.text)) for item in entry.shape_rules]
    return tuple((item, expression) for item, expression in pairs if expression is not None)


@per_entry
def is_complete(entry: OpEntry) -> bool:
    """Whether every name that the signature declares is known: no part of it is missing, malformed or merged in."""
    if unreadable_section(entry):
        return False
    if any(tensor.doubtful("shape") for tensor in entry.tensors):
        return False
    shapes = (tensor.shape for tensor in entry.tensors if tensor.attribute("shape") is not None)
    if any(text is None or parse_shape(text).problems for text in shapes):
        return False
    return len(shape_rules(entry)) == len(entry.shape_rules) and not entry.doubtful("signature", "shape_rules")


def unreadable_section(entry: OpEntry) -> str:
    """The first section of the signature that is missing, malformed or has names merged in; empty if all are known."""
    sections = ("inputs", "outputs", "params", "static_dims")
    return next((section for section in sections if not _is_readable(entry, section)), "")


def _is_readable(entry: OpEntry, section: str) -> bool:
    node = entry.get("signature", section)
    if entry.doubtful("signature", section):
        return False
    if node is None or (node.kind == "scalar" and entry.data_of(node) is None):
        return section not in ("inputs", "outputs")
    values = [entry.file.document.follow(value) for _, value in node.pairs()]
    merged = any(key.value == "<<" for key, _ in node.pairs())
    kind = "scalar" if section == "static_dims" else "mapping"
    return node.is_mapping and not merged and all(value.kind == kind for value in values)


@lru_cache(maxsize=2048)
def bound_names(expression: Expression) -> frozenset[str]:
    """Return the names that an equation in ``expression`` can determine: a side of it, an entry of a tuple, or sums of them."""
    found: set[str] = set()
    for node in expression.nodes:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for sign, left, right in zip(node.ops, sides, sides[1:], strict=False):
                if isinstance(sign, ast.Eq):
                    found.update(_solvable(left), _solvable(right))
    return frozenset(found)


def _solvable(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _solvable(element)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        yield from _solvable(node.left)
        yield from _solvable(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from _solvable(node.operand)
    elif isinstance(node, ast.IfExp):
        yield from _solvable(node.body)
        yield from _solvable(node.orelse)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list"):
        for argument in node.args:
            yield from _solvable(argument)


@per_entry
def statement(entry: OpEntry) -> Statement:
    """The entry's statements about shapes."""
    tensors = tensor_names(entry)
    declarations = {tensor.name: parse_shape(tensor.shape) for tensor in entry.tensors if tensor.shape is not None}
    shapes = {equation.name: equation for equation in _shape_equations(entry, declarations)}
    rules = (Equation("rule", expression, item.node) for item, expression in shape_rules(entry))
    equations = (*_static_equations(entry), *rules)
    names = {use.name for equation in (*shapes.values(), *equations) for use in equation.expression.names()}
    params = {param.name: param for param in entry.params if param.name not in tensors}
    optional = entry.inputs if entry.manifest.spec.knows("optional") else []
    return Statement(
        shapes,
        equations,
        declarations,
        frozenset(names.difference(tensors, params)),
        frozenset(size.name for declaration in declarations.values() for size in declaration.symbols),
        tuple(tensors),
        frozenset(tensor.name for tensor in optional if tensor.optional),
        params,
        {
            name: value
            for name, param in params.items()
            for value in param_values(param, param.default)
            if param.has_default
        },
    )


def _shape_equations(entry: OpEntry, declarations: Mapping[str, ShapeDeclaration]) -> Iterator[Equation]:
    for tensor in entry.tensors:
        node = tensor.attribute("shape")
        rule = declarations[tensor.name].as_rule(tensor.name) if tensor.name in declarations else None
        if node is not None and rule is not None:
            yield Equation("shape", rule, entry.file.document.follow(node), tensor.name)


def _static_equations(entry: OpEntry) -> Iterator[Equation]:
    for key, node, text in static_dims(entry):
        rule = parsed(f"{key.value} == {text}") if STATIC_DIM.fullmatch(text) and key.value.isidentifier() else None
        if rule is not None:
            yield Equation("static-dim", rule, node, key.value)


def param_values(param: ParamDecl, data: Data) -> Iterator[Value]:
    """The value that a call passes for ``data``; nothing where the declared type leaves that open, or does not admit it."""
    if param.type is not None and admits(param.type, data) is False:
        return
    kinds = _words(param.type or "")
    if data is None:
        if kinds & {"None", "Optional"}:
            yield None
    elif isinstance(data, bool | int | float):
        if kinds & {"bool", "int", "float", "Number", "Scalar"}:
            yield data
    elif isinstance(data, str):
        if kinds & {"str", "Literal"}:
            yield data
    elif isinstance(data, list):
        items = [item for item in data if isinstance(item, bool | int | float)]
        if len(items) == len(data) and kinds & {"list", "tuple"}:
            yield items if "list" in kinds else tuple(items)


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))
