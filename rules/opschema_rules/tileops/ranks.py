"""Axes that an expression reads and a tensor does not have, by the rank that its declared shape fixes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import msgspec

from opschema_cli.schema.expression import Expression
from opschema_cli.schema.shapes import parse_shape
from opschema_cli.source.text import Span
from opschema_rules.tileops.entry_parts import Tensor
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.presence import tested
from opschema_rules.tileops.signature import per_entry


class BeyondRank(msgspec.Struct, frozen=True):
    """An axis of a tensor that an expression reads, the place of the index, and the tensor's rank."""

    tensor: Tensor
    text: str
    span: Span
    rank: int


@per_entry
def ranks(entry: OpEntry) -> dict[str, tuple[Tensor, int]]:
    """Return the tensors with a rank fixed by their declared shape, by name; repeated names are left out."""
    names = Counter(tensor.name for tensor in entry.tensors)
    found: dict[str, tuple[Tensor, int]] = {}
    for tensor in entry.tensors:
        declared = parse_shape(tensor.shape) if tensor.shape is not None and not tensor.doubtful("shape") else None
        if declared is None or declared.problems or names[tensor.name] > 1:
            continue
        if declared.rank is not None:
            found[tensor.name] = (tensor, declared.rank)
    return found


def beyond_rank(entry: OpEntry, expression: Expression) -> Iterator[BeyondRank]:
    """Yield the axes that no call has. Reads after a condition other than a presence test of an input are left out: the
    condition may be a guard on the rank.
    """
    known = ranks(entry)
    inputs = frozenset(tensor.name for tensor in entry.inputs)
    for node in _always(expression.tree, inputs) if known else ():
        name, axis = _axis(node)
        tensor, rank = known.get(name, (None, 0))
        if tensor is not None and isinstance(node, ast.Subscript) and not -rank <= axis < rank:
            yield BeyondRank(tensor, expression.part(node).snippet, expression.span_of(node.slice), rank)


def _axis(node: ast.expr) -> tuple[str, int]:
    """The tensor and the axis of ``x.shape[2]``; no name for anything else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute) or node.value.attr != "shape":
        return "", 0
    owner, index = node.value.value, node.slice
    negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
    number = index.operand if isinstance(index, ast.UnaryOp) and negative else index
    if not isinstance(owner, ast.Name) or not isinstance(number, ast.Constant) or type(number.value) is not int:
        return "", 0
    return owner.id, -number.value if negative else number.value


def _always(node: ast.expr, inputs: frozenset[str]) -> Iterator[ast.expr]:
    """The parts of an expression that are evaluated whenever it is, tests whether an input is passed aside."""
    yield node
    for part in _evaluated(node, inputs):
        yield from _always(part, inputs)


def _evaluated(node: ast.expr, inputs: frozenset[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield value
            if not _is_presence(value, inputs):
                return
    elif isinstance(node, ast.IfExp):
        yield node.test
        if _is_presence(node.test, inputs):
            yield node.body
            yield node.orelse
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        yield node.generators[0].iter
    elif isinstance(node, ast.Compare):
        yield from (node.left, node.comparators[0])  # a chain stops at the first that does not hold
    elif not isinstance(node, ast.Lambda):
        children = (child.value if isinstance(child, ast.keyword) else child for child in ast.iter_child_nodes(node))
        yield from (child for child in children if isinstance(child, ast.expr))


def _is_presence(node: ast.expr, inputs: frozenset[str]) -> bool:
    name = tested(node)
    return name is not None and name.id in inputs
