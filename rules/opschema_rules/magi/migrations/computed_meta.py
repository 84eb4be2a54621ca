"""Meta functions that compute an op's result: a lambda with the only expression of its body, which also works on fake tensors."""

from __future__ import annotations

from opschema_cli.evaluation.statements import all_statements
from opschema_cli.source.python import Expr, Param
from opschema_rules.magi.given import Meta
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.outputs import difference
from opschema_rules.magi.rules.identity_meta import likes_of
from opschema_rules.magi.rules.meta import is_judged

_FUNCTIONS = frozenset(
    {"sum", "mean", "prod", "max", "min", "amax", "amin", "std", "var", "norm", "median", "logsumexp"}
    | {"argmax", "argmin", "argsort", "isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or"}
    | {"eq", "ne", "lt", "le", "gt", "ge", "matmul", "mm", "bmm", "mv", "linear", "outer", "addmm", "cat"}
    | {"concat", "concatenate", "hstack", "vstack", "unsqueeze", "stack", "repeat", "clone", "neg", "relu"}
    | {"sign", "exp", "sigmoid", "tanh", "sqrt", "rsqrt", "sin", "cos", "log", "abs", "silu", "gelu"}
)
"""Functions of torch, and methods of tensors, whose shape does not depend on values."""

_FRESH = _FUNCTIONS - {"unsqueeze"}
"""Functions whose result is never a view of an argument."""

_KINDS = frozenset({"const", "name", "call", "attribute", "binary", "unary", "compare", "tuple", "list"})
_MODULES = ("torch", "torch.nn.functional")


def computed_meta(op: MagiOp) -> str | None:
    """Return the lambda; None if the default meta function may be right, or the body is not one expression of such functions."""
    value, meta = _returned(op), op.meta
    if value is None or not isinstance(meta, Meta) or meta.kind != "identity" or not is_judged(op):
        return None
    likes, params = likes_of(op, meta), [_param(op, item) for item in op.params]
    text = _on_one_line(op.body.file.text(value))
    if None in params or not likes or not text or not any(difference(op, likes)):
        return None
    items = value.items if value.kind == "tuple" else (value,)
    if not all(_is_fresh(op, item) and _is_plain(op, item) for item in items):
        return None
    body = f"({text})" if value.kind == "tuple" and not _is_bracketed(text) else text
    return f"lambda {', '.join(item for item in params if item)}: {body}"


def _is_bracketed(text: str) -> bool:
    """Whether an expression is known to be in its own brackets."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if not depth or character in "\"'":
            return bool(index) and index == len(text) - 1
    return False


def _on_one_line(text: str) -> str:
    """An expression without the line breaks in its brackets; empty where a comment, a string or a backslash needs them."""
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > 1 and any(character in text for character in "#\\\"'"):
        return ""
    found = lines[0]
    for line in lines[1:]:
        found += line if found.endswith(("(", "[")) or line.startswith((")", "]")) else f" {line}"
    return found


def _returned(op: MagiOp) -> Expr | None:
    """The value that a body returns which does nothing else."""
    items = [item for item in all_statements(op.body.statements) if not _is_docstring(item.kind, item.exprs)]
    return items[0].exprs[0] if len(items) == 1 and items[0].kind == "return" and items[0].exprs else None


def _is_docstring(kind: str, exprs: tuple[Expr, ...]) -> bool:
    return kind == "expr" and exprs[0].kind == "const"


def _param(op: MagiOp, item: Param) -> str | None:
    """A parameter of the lambda, with a default that is written out."""
    if item.kind != "normal":
        return None
    if item.default is None:
        return item.name
    return f"{item.name}={op.body.file.text(item.default)}" if item.default.kind == "const" else None


def _is_fresh(op: MagiOp, value: Expr) -> bool:
    """Whether a value is a tensor of its own."""
    if value.kind == "call":
        return value.items[0].member in _FRESH
    return value.kind in ("binary", "compare")


def _is_plain(op: MagiOp, value: Expr) -> bool:
    """Whether an expression is of parameters, constants and functions whose shape does not depend on values."""
    if value.kind not in _KINDS or (value.kind == "compare" and value.text in ("is", "is-not", "in", "not-in")):
        return False
    if value.kind == "name":
        return any(item.name == value.text.partition(".")[0] for item in op.params)
    if value.kind != "call":
        return all(_is_plain(op, item) for item in value.items)
    callee = value.items[0]
    module, _, name = op.tree.bodies.external(op.body, value.callee).rpartition(".")
    known = module in _MODULES and name in _FUNCTIONS
    if not known and (callee.member not in _FUNCTIONS or callee.owner is None or not _is_plain(op, callee.owner)):
        return False
    return not {"*", "**", "out"} & set(value.keywords) and all(_is_plain(op, item) for item in value.items[1:])
