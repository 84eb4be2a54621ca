"""Differences in shape and type between a body's plain result and one of its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.evaluation.statements import all_statements
from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Leaf
from opschema_rules.torchlib.storage import only_value, rebound

_SCALAR = frozenset({"sum", "mean", "prod", "max", "min", "amax", "amin", "std", "var", "norm", "median", "logsumexp"})
"""Reductions to one value if the tensor is the only argument."""

_INDICES = frozenset({"argmax", "argmin", "argsort", "nonzero", "bincount"})
_BOOLEAN = frozenset({"isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge"})
_KEEPS_SOME_TYPE = frozenset({"argsort", "eq", "ne", "==", "!="})
"""Operations whose result has the type and shape of some operands: of a permutation, of truth values."""

_SQUARING = frozenset({"matmul", "mm", "bmm", "linear", "addmm", "einsum"})
"""Products that have the shape of one factor if the other is square."""

_PRODUCTS = _SQUARING | {"mv", "outer"}
_TURNED = frozenset({"H", "T", "mH", "mT", "adjoint", "permute", "swapaxes", "swapdims", "t", "transpose"})
_TYPED = frozenset({"bfloat16", "clone", "contiguous", "detach", "double", "float", "half", "to", "type", "type_as"})
_JOINED = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})
_MORE_DIMENSIONS = frozenset({"unsqueeze", "stack", "one_hot"})
_RESHAPED = frozenset(
    {"view", "reshape", "flatten", "squeeze", "transpose", "permute", "t", "repeat", "expand", "repeat_interleave"}
)
_KEEPING = frozenset({"clone", "contiguous", "detach"})


class Difference(msgspec.Struct, frozen=True):
    """A returned value that differs from the tensor ``like``; ``sure`` if it always does, except for unusual shapes."""

    place: Place
    words: str
    like: Leaf
    sure: bool


def difference(op: MagiOp, likes: Sequence[Leaf]) -> Iterator[Difference]:
    """Differences between the returned values and those tensors, one for each output."""
    unlike = _Unlike(op, rebound(op.body))
    for item in all_statements(op.body.statements):
        value = item.exprs[0] if item.kind == "return" and item.exprs else None
        if value is not None:
            parts = value.items if value.kind == "tuple" and len(likes) > 1 else (value,)
            for part, like in zip(parts, likes, strict=True) if len(parts) == len(likes) else ():
                found = unlike.told(_followed(op.body, part), ".".join(like.path))
                if found is not None:
                    yield Difference(op.body.at(part), found[0], like, found[1])


def _followed(body: Body, value: Expr) -> Expr:
    """Return the value of a name that is assigned once, at the top level of the function."""
    if value.kind != "name" or any(item.name == value.text for item in body.params):
        return value
    return only_value(body, value.text) or value


class _Unlike:
    """Describes values that an operation makes from a tensor, by the outermost operation."""

    def __init__(self, op: MagiOp, bound: frozenset[str]) -> None:
        self.op = op
        leaves = [leaf for leaf in op.lowering.leaves if leaf.path[0] not in bound]
        self.given = {".".join(leaf.path) for leaf in leaves}
        self.tensors = {".".join(leaf.path) for leaf in leaves if leaf.is_tensor}

    def told(self, value: Expr, like: str) -> tuple[str, bool] | None:
        """Describe a value that is made from the tensor ``like``, and whether it is known to differ from it."""
        if value.kind == "compare" and len(value.items) == 2 and self._is_among(value.items, like):
            plain = value.text not in ("is", "is-not", "in", "not-in")
            return ("a comparison, which is of truth values", value.text not in _KEEPS_SOME_TYPE) if plain else None
        if value.kind == "binary" and value.text == "@" and self._is_among(value.items, like):
            return ("a product of matrices", False) if all(map(self._is_given, value.items)) else None
        if value.kind == "subscript" and self._is_among(value.items[:1], like) and _takes_one(value.items[1:]):
            return "a tensor indexed by an integer, which has one dimension less", True
        if value.kind == "call" and value.items[0].owner is not None:
            return self._called(value, value.items[0].owner, value.items[0].member, like)
        return None

    def _called(self, call: Expr, owner: Expr, name: str, like: str) -> tuple[str, bool] | None:
        method = owner.kind == "name" and owner.text in self.tensors
        if name in _KEEPING and not method and owner.kind in ("call", "binary", "compare", "subscript"):
            return self.told(owner, like)
        is_torch = self.op.tree.bodies.external(self.op.body, call.callee).startswith("torch.")
        if not self._is_among([owner, *_operands(call)] if method else _operands(call) if is_torch else [], like):
            return None
        more = len(call.args) - (0 if method else 1)
        if name in _SCALAR and _drops_dimension(call, more):
            return f"`{name}()` over a dimension, which has one less", True
        if name in _SQUARING and not all(map(self._is_given, call.items[1:])):
            return None
        return _named(name, more)

    def _is_among(self, operands: Sequence[Expr], like: str) -> bool:
        return like in self.tensors and any(item.kind == "name" and item.text == like for item in operands)

    def _is_given(self, value: Expr) -> bool:
        """Whether an operand is a constant or an input, which may be transposed or of another type: a factor that is computed
        may be square, so that the product keeps the shape of the other one.
        """
        value = _followed(self.op.body, value)
        callee = value.items[0] if value.kind == "call" else value
        while callee.owner is not None and callee.member in _TURNED | _TYPED:
            value = callee.owner
            callee = value.items[0] if value.kind == "call" else value
        return value.kind == "const" or (value.kind == "name" and value.text in self.given)


def _operands(call: Expr) -> Sequence[Expr]:
    """The arguments of a function of torch, or the tensors in a list that is its first one."""
    given = call.positional()
    return given[0].items if given and given[0].kind in ("list", "tuple") else given


def _named(name: str, more: int) -> tuple[str, bool] | None:
    """The result of an operation, by its name and the number of its arguments besides its tensor."""
    sure = name not in _KEEPS_SOME_TYPE
    if name in _SCALAR and more == 0:
        return f"`{name}()` of all elements, which is one value", True
    if name in _INDICES:
        return f"`{name}()`, which is of indices", sure
    if name in _BOOLEAN:
        return f"`{name}()`, which is of truth values", sure
    if name in _MORE_DIMENSIONS:
        return f"`{name}()`, which has a dimension more", True
    if name in _PRODUCTS:
        return f"`{name}()`, a product of matrices", False
    if name in _JOINED:
        return f"`{name}()` of tensors", False
    return (f"`{name}()`, which has a shape of its own", False) if name in _RESHAPED else None


def _takes_one(index: Sequence[Expr]) -> bool:
    """Whether an index takes one element of a dimension, and parts of the others."""
    items = [part for item in index for part in (item.items if item.kind == "tuple" else [item])]
    parts = [item.items[0] if item.kind == "unary" else item for item in items]
    numbers = [type(part.value) is int for part in parts]
    plain = [part.kind == "slice" or (part.kind == "literal" and part.text == "...") for part in parts]
    return any(numbers) and all(map(max, numbers, plain))


def _drops_dimension(call: Expr, more: int) -> bool:
    """Whether a reduction gets one dimension, and nothing else."""
    named = next((keyword for keyword in call.keywords if keyword not in ("", "*")), "")
    last = call.items[-1]
    value = last.items[0] if last.kind == "unary" else last
    reduction = call.items[0].member not in ("max", "min", "median", "norm")
    return more == 1 and reduction and (named in ("dim", "axis") or (not named and type(value.value) is int))
