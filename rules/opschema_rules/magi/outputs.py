"""How the shape and type of what a body plainly returns differ from those of one of its tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.function_tree import FunctionTree, dotted, function_tree
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Leaf
from opschema_rules.torchlib.storage import rebound

_SCALAR = frozenset({"sum", "mean", "prod", "max", "min", "amax", "amin", "std", "var", "norm", "median", "logsumexp"})
"""Reductions: to one value when they are given nothing but the tensor."""

_INDICES = frozenset({"argmax", "argmin", "argsort", "nonzero", "bincount"})
_BOOLEAN = frozenset(
    {"isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "eq", "ne", "lt", "le", "gt", "ge"}
)
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "mv", "linear", "outer", "addmm", "einsum"})
_JOINED = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})
_MORE_DIMENSIONS = frozenset({"unsqueeze", "stack", "one_hot"})
_RESHAPED = frozenset(
    {"view", "reshape", "flatten", "squeeze", "transpose", "permute", "t", "repeat", "expand", "repeat_interleave"}
)
_KEEPING = frozenset({"clone", "contiguous", "detach"})


class Difference(msgspec.Struct, frozen=True):
    """A returned value that is unlike the tensor ``like``; ``sure`` when it always is, but for odd shapes."""

    place: Place
    words: str
    like: Leaf
    sure: bool


def difference(op: MagiOp, likes: Sequence[Leaf]) -> Iterator[Difference]:
    """Where the returned values differ from those tensors, one for each output."""
    tree = function_tree(op.body)
    bound = rebound(tree) if tree is not None else set()
    for node in tree.walk() if tree is not None else ():
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) and len(likes) > 1 else [node.value]
            for part, like in zip(parts, likes, strict=True) if len(parts) == len(likes) else ():
                found = _Unlike(op, bound).told(_followed(tree, part))
                if found is not None and tree is not None:
                    yield Difference(tree.place(part), found[0], like, found[1])


def _followed(tree: FunctionTree | None, node: ast.expr) -> ast.expr:
    """What a name stands for that is given a value once, at the top of the function."""
    if tree is None or not isinstance(node, ast.Name) or any(item.name == node.id for item in tree.body.params):
        return node
    writes = [item for item in ast.walk(tree.node) if isinstance(item, ast.Name) and item.id == node.id]
    stores = [item for item in writes if not isinstance(item.ctx, ast.Load)]
    assigns = [item for item in tree.node.body if isinstance(item, ast.Assign) and item.targets == stores]
    return assigns[0].value if len(assigns) == 1 and len(stores) == 1 else node


class _Unlike:
    """Tells what a value is, by the outermost operation that makes it."""

    def __init__(self, op: MagiOp, bound: set[str]) -> None:
        self.op = op
        self.tensors = {
            ".".join(leaf.path) for leaf in op.lowering.leaves if leaf.is_tensor and leaf.path[0] not in bound
        }

    def told(self, node: ast.expr) -> tuple[str, bool] | None:
        """What the value is, and whether that is surely unlike any tensor that goes in."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and self._is_tensor(node.left):
            plain = not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn)
            return ("a comparison, which is of truth values", True) if plain else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and self._is_tensor(node.left):
            return "a product of matrices", False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._called(node, node.func)
        return None

    def _called(self, node: ast.Call, func: ast.Attribute) -> tuple[str, bool] | None:
        method = self._is_tensor(func.value)
        external = self.op.tree.bodies.external(self.op.body, dotted(func))
        is_torch = external.startswith("torch.")
        if func.attr in _KEEPING and not method and isinstance(func.value, ast.Call | ast.BinOp | ast.Compare):
            return self.told(func.value)
        if not method and not is_torch:
            return None
        more = len(node.args) + len(node.keywords) - (0 if method else 1)
        if func.attr in _SCALAR and (method or self._takes_tensor(node)) and _drops_dimension(node, more):
            return f"`{func.attr}()` over a dimension, which has one less", True
        return self._named(func.attr, more, method=method or self._takes_tensor(node))

    def _named(self, name: str, more: int, *, method: bool) -> tuple[str, bool] | None:
        """What an operation gives, by its name and how many arguments it has besides its tensor."""
        if not method:
            return None
        if name in _SCALAR and more == 0:
            return f"`{name}()` of all elements, which is one value", True
        if name in _INDICES:
            return f"`{name}()`, which is of indices", True
        if name in _BOOLEAN:
            return f"`{name}()`, which is of truth values", True
        if name in _MORE_DIMENSIONS:
            return f"`{name}()`, which has a dimension more", True
        if name in _PRODUCTS:
            return f"`{name}()`, a product of matrices", False
        if name in _JOINED:
            return f"`{name}()` of tensors", False
        return (f"`{name}()`, which has a shape of its own", False) if name in _RESHAPED else None

    def _is_tensor(self, node: ast.expr) -> bool:
        return dotted(node) in self.tensors

    def _takes_tensor(self, node: ast.Call) -> bool:
        first = node.args[0] if node.args else None
        if isinstance(first, ast.List | ast.Tuple):
            return any(self._is_tensor(item) for item in first.elts)
        return first is not None and (self._is_tensor(first) or any(map(self._is_tensor, node.args)))


def _drops_dimension(node: ast.Call, more: int) -> bool:
    """Whether a reduction is given one dimension, and nothing besides."""
    last = node.keywords[0] if node.keywords else node.args[-1] if node.args else None
    named = isinstance(last, ast.keyword) and last.arg in ("dim", "axis")
    value = last.operand if isinstance(last, ast.UnaryOp) else last
    number = isinstance(value, ast.Constant) and type(value.value) is int
    reduction = dotted(node.func).rpartition(".")[2] not in ("max", "min", "median", "norm")
    return more == 1 and reduction and (named or number)
