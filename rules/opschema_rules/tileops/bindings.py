"""What a workload row gives to the names in its entry's rules, and what follows from it.

A row passes ``{tensor}_shape`` for a tensor, a param by its name, and a dimension of a declared shape by its name;
aggregate keys such as ``kv_shape`` bind nothing. What a row leaves open stays open.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from opschema_cli.schema.evaluate import Tensor, Value
from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, parse_expression
from opschema_cli.schema.shapes import ShapeDeclaration, parse_shape
from opschema_cli.schema.solve import Outcome, Solution, Violated, solve
from opschema_cli.source.yaml import Data, Node
from opschema_rules.tileops.model import OpEntry, ParamDecl, Row, Rule

T = TypeVar("T")

RESERVED_KEYS = frozenset({"dtypes", "label"})
"""Row keys that are neither shapes nor params."""

STATIC_DIM = re.compile(r"([A-Za-z_]\w*)\.shape\[(-?\d+|[A-Za-z_]\w*)\]", re.ASCII)
"""The single-axis reference that a ``static_dims`` value is."""

_DIMENSION = "\u00b7"
"""Marks a dimension called like a tensor of its entry (``B`` in ``B: "[B, S, N]"``) in the expressions that are solved."""


@dataclass(frozen=True, eq=False)
class Equation:
    """Something that holds on every call, as written at ``node``: a shape rule, a declared shape, a static dimension."""

    kind: Literal["rule", "shape", "static-dim"]
    expression: Expression
    node: Node
    name: str = ""


@dataclass(frozen=True)
class Statement:
    """What a signature says about every call.

    ``equations`` are declared shapes, static dimensions and shape rules, in this order; ``symbols`` the names in them that
    are neither tensors nor params. ``omittable`` are the inputs that are ``None`` where a row does not pass them, and
    ``defaults`` the values of params that a row does not give.
    """

    equations: tuple[Equation, ...]
    declarations: Mapping[str, ShapeDeclaration]
    symbols: frozenset[str]
    tensors: tuple[str, ...]
    omittable: frozenset[str]
    params: Mapping[str, ParamDecl]
    defaults: Mapping[str, Value]


@dataclass(frozen=True)
class BoundRow:
    """A row, the names of the values that it gives, and what follows from them: an outcome for each equation.

    The declared shape of an input that the row leaves out is no equation of it.
    """

    row: Row
    given: frozenset[str]
    equations: tuple[Equation, ...]
    solution: Solution

    @property
    def values(self) -> Mapping[str, Value]:
        """All values that are known in the end."""
        return self.solution.values

    def outcomes(self) -> Iterator[tuple[Equation, Outcome]]:
        """Each equation with what becomes of it."""
        return zip(self.equations, self.solution.rules, strict=True)

    @property
    def broken(self) -> bool:
        """Whether the row is a call that the signature does not allow."""
        return any(isinstance(outcome, Violated) for outcome in self.solution.rules)

    def source(self, name: str) -> Node | None:
        """The row's node that gives a name its value."""
        is_tensor = isinstance(self.values.get(name), Tensor)
        return self.row.value(f"{name}_shape" if is_tensor else name) if name in self.given else None


def per_entry(function: Callable[[OpEntry], T]) -> Callable[[OpEntry], T]:
    """Let a function of an entry compute its result once, for all the rules that ask for it."""
    results: WeakKeyDictionary[OpEntry, T] = WeakKeyDictionary()

    @wraps(function)
    def once(entry: OpEntry) -> T:
        if entry not in results:
            results[entry] = function(entry)
        return results[entry]

    return once


def parsed(text: str) -> Expression | None:
    """The expression; None where it does not parse."""
    try:
        return parse_expression(text)
    except ExpressionSyntaxError:
        return None


def written(text: str) -> str:
    """A solved expression, or a name in one, as its author writes it."""
    return text.replace(_DIMENSION, "")


def is_dimension(stated: Statement, name: str) -> bool:
    """Whether a tensor's name is that of a dimension too."""
    return name + _DIMENSION in stated.symbols


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
        if key.kind == "scalar" and isinstance(text, str):
            yield key, value, text


@per_entry
def shape_rules(entry: OpEntry) -> tuple[tuple[Rule, Expression], ...]:
    """The entry's shape rules that parse."""
    pairs = [(item, parsed(item.text)) for item in entry.shape_rules]
    return tuple((item, expression) for item, expression in pairs if expression is not None)


@per_entry
def is_complete(entry: OpEntry) -> bool:
    """Whether every name that the signature declares is known: no part of it is malformed or merged in."""
    sections = (entry.get("signature", name) for name in ("inputs", "outputs", "params", "static_dims"))
    for node in sections:
        if node is not None and not _is_readable(entry, node):
            return False
    shapes = (tensor.shape for tensor in entry.tensors if tensor.attribute("shape") is not None)
    if any(text is None or parse_shape(text).problems for text in shapes):
        return False
    return len(shape_rules(entry)) == len(entry.shape_rules)


def _is_readable(entry: OpEntry, section: Node) -> bool:
    values = [entry.file.document.follow(value) for _, value in section.pairs()]
    merged = any(key.value == "<<" for key, _ in section.pairs())
    empty = section.kind == "scalar" and entry.data_of(section) is None
    return empty or (section.is_mapping and not merged and not any(value.is_sequence for value in values))


@lru_cache(maxsize=2048)
def bound_names(expression: Expression) -> frozenset[str]:
    """Names that an equation in ``expression`` can give a value: a side of it, an entry of a tuple, or sums of them."""
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
    """What the entry says about shapes."""
    tensors = tensor_names(entry)
    declarations = dict(_declarations(entry))
    rules = (Equation("rule", expression, item.node) for item, expression in shape_rules(entry))
    equations = (*_shape_equations(entry, declarations), *_static_equations(entry), *rules)
    names = {use.name for equation in equations for use in equation.expression.names()}
    params = {param.name: param for param in entry.params if param.name not in tensors}
    optional = entry.inputs if entry.manifest.spec.knows("optional") else []
    return Statement(
        equations,
        declarations,
        frozenset(names.difference(tensors, params)),
        tuple(tensors),
        frozenset(tensor.name for tensor in optional if tensor.optional),
        params,
        {name: value for name, param in params.items() for value in _values(param, param.default) if param.has_default},
    )


def _declarations(entry: OpEntry) -> Iterator[tuple[str, ShapeDeclaration]]:
    names = frozenset(tensor_names(entry))
    for tensor in entry.tensors:
        text = tensor.shape
        if text is not None:
            yield tensor.name, _apart(text, names)


def _shape_equations(entry: OpEntry, declarations: Mapping[str, ShapeDeclaration]) -> Iterator[Equation]:
    for tensor in entry.tensors:
        node = tensor.attribute("shape")
        rule = declarations[tensor.name].as_rule(tensor.name) if tensor.name in declarations else None
        if node is not None and rule is not None:
            yield Equation("shape", rule, entry.file.document.follow(node), tensor.name)


@lru_cache(maxsize=2048)
def _apart(text: str, tensors: frozenset[str]) -> ShapeDeclaration:
    """A declared shape; a dimension in it called like a tensor is marked, for the two have nothing in common."""
    declaration = parse_shape(text)
    clashes = [symbol.span.end for symbol in declaration.symbols if symbol.name in tensors]
    for end in reversed(clashes):
        text = text[:end] + _DIMENSION + text[end:]
    return parse_shape(text) if clashes else declaration


def _static_equations(entry: OpEntry) -> Iterator[Equation]:
    for key, node, text in static_dims(entry):
        rule = parsed(f"{key.value} == {text}") if STATIC_DIM.fullmatch(text) and key.value.isidentifier() else None
        if rule is not None:
            yield Equation("static-dim", rule, node, key.value)


@per_entry
def bound_rows(entry: OpEntry) -> tuple[BoundRow, ...]:
    """Every workload row that is a mapping, bound and solved."""
    return tuple(_bind(entry, row) for row in entry.rows)


def _bind(entry: OpEntry, row: Row) -> BoundRow:
    stated = statement(entry)
    given = dict(_given(row, stated))
    known: dict[str, Value] = {
        name: None if name in stated.omittable else Tensor(None, name) for name in stated.tensors
    }
    known.update((name, value) for name, value in stated.defaults.items() if name not in row.data)
    known.update(given)
    equations = tuple(item for item in stated.equations if item.kind != "shape" or known[item.name] is not None)
    solution = solve([item.expression for item in equations], known, unknown=stated.params)
    return BoundRow(row, frozenset(given), equations, solution)


def _given(row: Row, stated: Statement) -> Iterator[tuple[str, Value]]:
    """Names and values that a row gives."""
    for key, data in row.data.items():
        tensor = key.removesuffix("_shape")
        if key in stated.params:
            yield from ((key, value) for value in _values(stated.params[key], data))
        elif tensor != key and tensor in stated.tensors:
            yield tensor, Tensor(_sizes(data), tensor)
        elif key in stated.symbols and key not in RESERVED_KEYS and type(data) is int:
            yield key, data


def _sizes(data: Data) -> tuple[int, ...] | None:
    """A shape as a row writes it; None for anything else."""
    if not isinstance(data, list):
        return None
    sizes = tuple(item for item in data if type(item) is int and item >= 0)
    return sizes if len(sizes) == len(data) else None


def _values(param: ParamDecl, data: Data) -> Iterator[Value]:
    """The value that a call passes for ``data``; nothing where the declared type leaves that open."""
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
