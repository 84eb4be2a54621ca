"""Which parameter of a function an expression shares its storage with, as far as the expression alone tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.function_tree import FunctionTree, dotted
from opschema_rules.torchlib.model import Operator, Registration
from opschema_rules.torchlib.passing import filled, mismatches, pairs

_VIEWS = frozenset(
    {"view", "view_as", "t", "transpose", "permute", "unsqueeze", "squeeze", "expand", "expand_as", "narrow", "select"}
    | {"detach", "diagonal", "unfold", "as_strided", "swapaxes", "swapdims", "movedim", "moveaxis", "unflatten"}
)
"""Methods of a tensor that give a view of it, whatever they are given."""

_VIEW_ATTRIBUTES = frozenset({"T", "mT", "data"})

_OF_METADATA = frozenset(
    {
        "requires_grad_",
        "detach_",
        "share_memory_",
        "squeeze_",
        "unsqueeze_",
        "t_",
        "transpose_",
        "swapaxes_",
        "swapdims_",
    }
    | {"as_strided_", "rename_", "align_as_", "retain_grad_", "set_", "resize_", "resize_as_", "pin_memory_"}
)
"""In-place methods that write no element."""

Tensors = dict[str, Argument]
"""The arguments that are tensors, by the function's own name for each."""


def implementations(operator: Operator) -> Iterator[tuple[Body, Registration | None]]:
    """The Python functions that run as kernels; without registration the one under the decorator."""
    definition = operator.definition
    decorated = definition.api in ("custom_op", "triton_op")
    if definition.function is not None and decorated:
        yield definition.function, None
    for item in operator.of_role("kernel"):
        shown = decorated and item.function is definition.function
        if isinstance(item.function, Body) and not shown:
            yield item.function, item


def tensors_of(operator: Operator, tree: FunctionTree, registration: Registration | None) -> Tensors:
    """The parameters of a kernel that take tensors and never stand for anything else; none when it does not fit the schema."""
    schema, skip = operator.definition.schema, filled(registration) if registration is not None else 0
    if not isinstance(schema, OperatorSchema) or mismatches(schema, tree.body.params, skip):
        return {}
    bound = rebound(tree)
    found = {param.name: argument for argument, param in pairs(schema, tree.body.params, skip)}
    return {name: item for name, item in found.items() if item.type.base == "Tensor" and name not in bound}


def rebound(tree: FunctionTree) -> set[str]:
    """The names that the function gives another meaning somewhere; ``x += 1`` gives a tensor none."""
    return set(_rebound(tree))


@lru_cache(maxsize=128)
def _rebound(tree: FunctionTree) -> frozenset[str]:
    found: set[str] = set()
    augmented = {id(node.target) for node in tree.nodes if isinstance(node, ast.AugAssign)}
    for node in ast.walk(tree.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del) and id(node) not in augmented:
            found.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node is not tree.node:
            found.add(node.name)
    return frozenset(found)


def sharing(node: ast.expr | None, tensors: Tensors) -> str:
    """The tensor that an expression is, or is a view of; empty when it is not sure to be either."""
    if isinstance(node, ast.Name):
        return node.id if node.id in tensors and not tensors[node.id].type.is_list else ""
    if isinstance(node, ast.Attribute) and dotted(node) in tensors:  # a tensor in an object, where the caller names one
        return dotted(node)
    if isinstance(node, ast.Attribute) and node.attr in _VIEW_ATTRIBUTES:
        return sharing(node.value, tensors)
    if isinstance(node, ast.Subscript):
        element = _element(node, tensors)
        return element or (sharing(node.value, tensors) if _is_basic(node.slice) else "")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        gives = (node.func.attr in _VIEWS and not _lacks_arguments(node)) or writes_itself(node.func.attr)
        return sharing(node.func.value, tensors) if gives else ""
    return ""


def gives_itself(method: str) -> bool:
    """Whether a method of a tensor may give the tensor itself, or a view of it."""
    return method in _VIEWS or writes_itself(method)


def writes_itself(method: str) -> bool:
    """Whether a method of a tensor writes its elements: ``add_``, ``copy_``."""
    return method.endswith("_") and not method.endswith("__") and method[:1].isalpha() and method not in _OF_METADATA


def _element(node: ast.Subscript, tensors: Tensors) -> str:
    """The list of tensors that one element is taken of."""
    held = node.value.id if isinstance(node.value, ast.Name) else ""
    is_list = held in tensors and tensors[held].type.is_list
    return held if is_list and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) else ""


def _is_basic(index: ast.expr) -> bool:
    """Whether an index gives a view: numbers, slices, ``...`` and ``None``."""
    if isinstance(index, ast.Tuple):
        return all(map(_is_basic, index.elts))
    if isinstance(index, ast.UnaryOp):
        return _is_basic(index.operand)
    number = isinstance(index, ast.Constant) and not isinstance(index.value, bool | str | float)
    return number or isinstance(index, ast.Slice)


def _lacks_arguments(node: ast.Call) -> bool:
    """Whether a call that needs arguments has none, so that it is of something else than a tensor."""
    needs = isinstance(node.func, ast.Attribute) and node.func.attr in ("view", "expand", "select", "narrow")
    return needs and not node.args and not node.keywords
