"""Tensors that a call of a Triton kernel writes: ``kernel[grid](x, y)``, also below ``wrap_triton``.

Only stores that always run are counted, to a pointer that surely begins at a parameter of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.evaluation.statements import own_expressions
from opschema_cli.source.bodies import Bodies, Body, arguments_for
from opschema_cli.source.python import Expr, Statement

_JIT = ("triton.jit", "triton.runtime.jit.jit")
_STORES = ("store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_and", "atomic_or", "atomic_xor")
_LANGUAGE = "triton.language."
_STEPS = 5
"""The most names on the way from a pointer to its parameter."""


def passed_for_writing(bodies: Bodies, function: Body, call: Expr) -> Iterator[Expr]:
    """The values that a call passes for the parameters to which a Triton kernel stores."""
    launched = call.items[0]
    if launched.kind != "subscript" or any(word in ("*", "**") for word in call.keywords):
        return
    kernel = launched.items[0]
    if kernel.kind == "call" and kernel.items[0].member in ("wrap_triton", "capture_triton"):
        kernel = kernel.items[1] if len(kernel.items) == 2 else kernel
    body = bodies.called(function, kernel.text) if kernel.kind == "name" else None
    if body is not None and body.function is not None:
        given = arguments_for(call, body.params)
        yield from (given[name] for name in sorted(written_parameters(bodies, body)) if name in given)


@lru_cache(maxsize=256)
def written_parameters(bodies: Bodies, kernel: Body) -> frozenset[str]:
    """Return the parameters that a Triton kernel always stores to; empty for anything but a Triton kernel."""
    decorators = kernel.function.decorators if kernel.function is not None else ()
    named = (item.items[0].text if item.kind == "call" else item.text for item in decorators)
    outer = kernel.parent or kernel
    if not any(bodies.external(outer, name) in _JIT for name in named if name):
        return frozenset()
    found: set[str] = set()
    for item in _always(kernel.statements):
        for expr in own_expressions(item):
            external = bodies.external(kernel, expr.callee) if expr.kind == "call" and expr.callee else ""
            if external.startswith(_LANGUAGE) and external.removeprefix(_LANGUAGE) in _STORES and expr.positional():
                found.add(_parameter(kernel, expr.positional()[0]))
    return frozenset(found - {""})


def _always(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """The statements of a block that run whenever it does, up to the first that may leave it."""
    for item in block:
        if item.kind in ("for", "with"):
            yield from _always(item.blocks[0])
        elif item.kind in ("expr", "assign", "annassign", "augassign"):
            yield item
        elif item.kind in ("return", "if") and _leaves(item):
            return


def _leaves(item: Statement) -> bool:
    return item.kind == "return" or any(_leaves(inner) for block in item.blocks for inner in block)


def _parameter(kernel: Body, pointer: Expr) -> str:
    """The parameter at which a pointer begins: the first operand of sums; empty if it is not certain."""
    names = {item.name for item in kernel.params}
    for _ in range(_STEPS):
        first = _first(pointer)
        values = [item.value for item in kernel.scope.assigns if item.target == first]
        if first in names:
            own = all(value is None or _first(value) == first for value in values)
            return first if own else ""
        if len(values) != 1 or values[0] is None:
            return ""
        pointer = values[0]
    return ""


def _first(value: Expr) -> str:
    while value.kind == "binary" and value.text in ("+", "-"):
        value = value.items[0]
    return value.text if value.kind == "name" and "." not in value.text else ""
