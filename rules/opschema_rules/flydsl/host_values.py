"""Recognizes Python values in traced functions: numbers, constants and variables of the code around them."""

from __future__ import annotations

from collections.abc import Collection

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.statements import names_read
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.model import FlyTree, Kind
from opschema_rules.flydsl.rebinding import is_bound_around

_OPERATORS = frozenset({"+", "-", "*", "//", "%", "/", "**", "<<", ">>", "&", "|"})

_NUMBERS = frozenset({"int", "float", "bool", "len", "round", "ord", "max", "min"})
"""Built-in functions that return numbers, or one of their arguments."""


def is_of_host(tree: FlyTree, body: Body, expr: Expr, hops: int = MAX_CALLS) -> bool:
    """Whether an expression in traced code is known to be a Python value: a number, a variable of the module or of the factory
    around a traced function, a ``Constexpr``, the variable of an unrolled loop, or a value computed from these.
    """
    match expr.kind:
        case "const":
            return isinstance(expr.value, int | float)
        case "unary":
            return expr.text == "-" and is_of_host(tree, body, expr.items[0], hops)
        case "binary":
            return expr.text in _OPERATORS and all(is_of_host(tree, body, item, hops) for item in expr.items)
        case "name" if "." not in expr.text and not is_bound_around(body, expr.text, expr.start):
            return _is_outside(tree, body, expr.text) or (hops > 0 and _is_computed(tree, body, expr.text, hops - 1))
    return False


def _is_computed(tree: FlyTree, body: Body, name: str, hops: int) -> bool:
    """Whether a variable of traced code counts an unrolled loop, or has exactly one value, which is a Python value."""
    binder = body.binder(name)
    bound = binder.scope.named.get(name, ()) if binder is not None else ()
    if binder is None or not bound or any(item.name == name for item in binder.params) or name in binder.file.rebound:
        return False
    loops = [item for item in binder.scope.loops if name in item.targets]
    if len(loops) == len(bound):
        return all(item.iterable.callee.rpartition(".")[2] == "range_constexpr" for item in loops)
    values = binder.values(name) if len(bound) == 1 else None
    return bool(values) and all(is_of_host(tree, binder, item, hops) for item in values or ())


def _is_outside(tree: FlyTree, body: Body, name: str) -> bool:
    """Whether a variable is a `Constexpr` of the enclosing traced function, or is assigned before that function is traced."""
    binder, around = body.binder(name), tree.around(body)
    module = tree.bodies.module(body.file)
    if binder is None:
        return not tree.names.full(body, name) and name not in body.file.rebound and name not in _made(module)
    if around is None or binder not in around.body.outward():
        return False
    if binder is around.body:
        found = around.parameter(name)
        constant = found is not None and found.kind is Kind.CONSTEXPR
        return constant and not binder.scope.named.get(name) and name not in binder.scope.deleted
    return tree.around(binder) is None and _is_called_by_host(tree, binder) and name not in _made(binder)


@cached_on_argument
def _made(binder: Body) -> frozenset[str]:
    """The variables whose values may come from a call, and so may be instances of classes with their own operators."""
    values = [(item.target, item.value) for item in binder.scope.assigns if item.value is not None]
    numbers = _NUMBERS.difference(binder.file.body.named)
    waiting = [name for name, value in values if any(_is_making(part, numbers) for part in value.walk())]
    made_of: dict[str, list[str]] = {}
    for name, value in values:
        for read in names_read([value]):
            made_of.setdefault(read, []).append(name)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += made_of.get(name, ())
    return frozenset(found)


def _is_making(part: Expr, numbers: Collection[str]) -> bool:
    return part.kind == "call" and part.callee not in numbers


@cached_on_argument
def _called_while_traced(tree: FlyTree) -> dict[Body, bool]:
    return {}


def _is_called_by_host(tree: FlyTree, factory: Body) -> bool:
    """Whether no traced function calls the factory around a traced one, which might pass it GPU values."""
    known = _called_while_traced(tree)
    if factory not in known:
        known[factory] = any(tree.around(caller) is not None for caller, _ in tree.bodies.calls_of(factory))
    return not known[factory]
