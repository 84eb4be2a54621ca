"""Calls that make a 0-dim tensor."""

from __future__ import annotations

import re

from opschema_cli.source.python import Expr
from opschema_rules.tileops.bodies import Bodies, Body

_CREATION = re.compile(r"\(\s*(?:size\s*=\s*)?(?:\(\s*\)|\[\s*\])|tensor\(|Size\(")
_SIZED = frozenset({"empty", "zeros", "ones", "full", "rand", "randn"})
_VALUED = frozenset({"tensor", "scalar_tensor"})
_NEW = frozenset({"new_empty", "new_zeros", "new_ones", "new_full"})
_KEPT = frozenset({"to", "cuda", "cpu", "contiguous", "detach", "clone", "half", "float", "bfloat16"})


def may_create(text: str) -> bool:
    """Whether a file's text may make a 0-dim tensor; the words are there to be fast."""
    words = ("empty(", "zeros(", "ones(", "full(", "rand(", "randn(", "tensor(")
    return any(word in text for word in words) and _CREATION.search(text) is not None


def creates(bodies: Bodies, body: Body, call: Expr) -> bool:
    """Whether a call makes a 0-dim tensor that takes no part in autograd."""
    callee, grad = call.items[0], call.keyword("requires_grad")
    if grad is not None and grad.value is not False:
        return False
    if callee.kind == "attribute" and callee.text in _KEPT:
        return callee.items[0].kind == "call" and creates(bodies, body, callee.items[0])
    last = call.callee.rpartition(".")[2]
    if last in _NEW:
        return "." in call.callee and _is_empty_size(call)
    if last not in _SIZED and last not in _VALUED:
        return False
    right = _is_empty_size(call) if last in _SIZED else _is_number(call)
    return right and bodies.external(body, call.callee) == f"torch.{last}"


def _is_empty_size(call: Expr) -> bool:
    size = call.keyword("size") or next(iter(call.positional()), None)
    if size is not None and size.kind == "call" and size.callee.rpartition(".")[2] in ("Size", "tuple", "list"):
        size = size.items[1] if len(size.items) > 1 else Expr("tuple", *size.span)
    return size is not None and size.kind in ("tuple", "list") and not size.items


def _is_number(call: Expr) -> bool:
    value = call.keyword("data") or next(iter(call.positional()), None)
    while value is not None and value.kind == "unary":
        value = value.items[0]
    return value is not None and value.kind == "const" and isinstance(value.value, bool | int | float)
