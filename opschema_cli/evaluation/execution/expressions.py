"""Evaluates expressions, by kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from opschema_cli.evaluation.execution.binding import arguments_of
from opschema_cli.evaluation.execution.calls import taint_all
from opschema_cli.evaluation.execution.comparisons import compared, negated
from opschema_cli.evaluation.execution.comprehensions import comprehension
from opschema_cli.evaluation.execution.formats import limited, text_of
from opschema_cli.evaluation.execution.functions import lambda_of
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.methods import mapping_of, set_of
from opschema_cli.evaluation.execution.operations import binary, unary
from opschema_cli.evaluation.execution.plain import is_hashable
from opschema_cli.evaluation.execution.scopes import bind_name, find
from opschema_cli.evaluation.execution.signals import UnknownElementsError
from opschema_cli.evaluation.execution.subscripts import index_of, item_of
from opschema_cli.evaluation.execution.supers import super_of
from opschema_cli.evaluation.execution.values import Environment, Opaque
from opschema_cli.evaluation.limits import MAX_ELEMENTS
from opschema_cli.evaluation.values import ExternalName
from opschema_cli.source.python import Expr


def value_of(machine: Machine, scope: Environment, expr: Expr) -> object:
    """Return the value of an expression."""
    machine.steps += 1
    if machine.steps > machine.steps_left:
        machine.spend(0)
    kind = expr.kind
    if kind == "name":
        name = expr.text
        return scope.variables[name] if name in scope.variables else _name(machine, scope, expr)
    if kind == "const":
        return expr.value
    read = _READ.get(kind)
    if read is None:
        machine.at(scope.body, expr)
        return machine.opaque(f"`{kind}` is not followed" if kind != "other" else "it nests too deeply")
    found = read(machine, scope, expr)
    if type(found) is Opaque and kind in _COMPUTED and found.negates is None:
        return Opaque(found.reason, found.place)
    return found


_COMPUTED = frozenset(
    {"call", "binary", "subscript", "fstring", "listcomp", "setcomp", "dictcomp", "generator", "tuple", "list"}
)
"""Expression kinds that create new values, even if the reason why one is unknown comes from a part."""


def _literal(machine: Machine, scope: Environment, expr: Expr) -> object:
    return ... if expr.text == "..." else machine.opaque("a constant that is not kept")


def _name(machine: Machine, scope: Environment, expr: Expr) -> object:
    first, rest = _words(expr.text)
    machine.at(scope.body, expr)
    value = scope.variables[first] if first in scope.variables else find(machine, scope, first)
    for word in rest:
        machine.at(scope.body, expr)
        value = _member(machine, value, word)
    return value


@lru_cache(maxsize=4096)
def _words(dotted: str) -> tuple[str, tuple[str, ...]]:
    """Return the first word of a dotted name, and the others."""
    first, *rest = dotted.split(".")
    return first, tuple(rest)


def _attribute(machine: Machine, scope: Environment, expr: Expr) -> object:
    value = machine.evaluate(scope, expr.items[0])
    machine.at(scope.body, expr)
    return _member(machine, value, expr.text)


def _member(machine: Machine, value: object, name: str) -> object:
    """Return an attribute; an unknown value has an unknown attribute, which is the same each time."""
    if machine.guarded and isinstance(value, Opaque | ExternalName):
        machine.may_miss(value, name)
    return machine.derived(value, name) if isinstance(value, Opaque) else machine.attribute(value, name)


def _call(machine: Machine, scope: Environment, expr: Expr) -> object:
    callee = expr.items[0]
    function = _callee(machine, scope, callee) if machine.guarded else machine.evaluate(scope, callee)
    if len(expr.items) == 1 and isinstance(function, ExternalName) and function.name == "super":
        return super_of(machine, scope)
    arguments = arguments_of(machine, scope, expr)
    machine.at(scope.body, expr)
    if isinstance(arguments, Opaque):
        if isinstance(function, Opaque | ExternalName):
            return machine.call(arguments, (), {})
        machine.stop(arguments.reason)
    return machine.call(function, *arguments)


def _callee(machine: Machine, scope: Environment, expr: Expr) -> object:
    """Return the callee of a call; an exception from reading a name is left to the call."""
    if expr.kind != "name":
        return machine.evaluate(scope, expr)
    guarded, machine.guarded = machine.guarded, 0
    found = machine.evaluate(scope, expr)
    machine.guarded = guarded
    return found


def _display(machine: Machine, scope: Environment, expr: Expr) -> object:
    found: list[object] = []
    for item in expr.items:
        if item.kind != "starred":
            found.append(machine.evaluate(scope, item))
            continue
        value = machine.evaluate(scope, item.items[0])
        if isinstance(value, Opaque):
            return value
        machine.at(scope.body, item)
        try:
            found.extend(machine.iterate(value))
        except UnknownElementsError as unknown:
            return machine.opaque(unknown.reason)
        machine.spend(len(found) // 10)
        if len(found) > MAX_ELEMENTS:
            machine.stop("a large container")
    if expr.kind == "set":
        return set_of(machine, found)
    return tuple(found) if expr.kind == "tuple" else found


def _dictionary(machine: Machine, scope: Environment, expr: Expr) -> object:
    found: dict[object, object] = {}
    lost: Opaque | None = None
    for key, item in zip(expr.items[::2], expr.items[1::2], strict=True):
        if key.kind == "absent":
            pairs = mapping_of(machine, machine.evaluate(scope, item))
            if isinstance(pairs, Opaque):
                lost = lost or pairs
            else:
                found.update(pairs)
            continue
        name, value = machine.evaluate(scope, key), machine.evaluate(scope, item)
        hashable = is_hashable(machine, name)
        if isinstance(hashable, Opaque):
            lost = lost or hashable
        elif not hashable:
            machine.throw("TypeError", f"unhashable type: '{type(name).__name__}'")
        else:
            found[name] = value
    if lost is not None:
        machine.taint(found)
    return found


def _unary(machine: Machine, scope: Environment, expr: Expr) -> object:
    value = machine.evaluate(scope, expr.items[0])
    machine.at(scope.body, expr)
    if expr.text != "not":
        return unary(machine, expr.text, value)
    return negated(machine, value if isinstance(value, Opaque) else machine.truth(value))


def _binary(machine: Machine, scope: Environment, expr: Expr) -> object:
    left = machine.evaluate(scope, expr.items[0])
    right = machine.evaluate(scope, expr.items[1])
    machine.at(scope.body, expr)
    return binary(machine, expr.text, left, right)


def _either(machine: Machine, scope: Environment, expr: Expr) -> object:
    value: object = None
    for index, item in enumerate(expr.items):
        value = machine.evaluate(scope, item)
        if index < len(expr.items) - 1 and machine.truth(value) is (expr.text == "or"):
            return value
    return value


def _compare(machine: Machine, scope: Environment, expr: Expr) -> object:
    words = expr.text.split()
    left = machine.evaluate(scope, expr.items[0])
    if len(words) == 1:
        right = machine.evaluate(scope, expr.items[1])
        machine.at(scope.body, expr)
        return compared(machine, words[0], left, right)
    found: object = True
    for index, (word, pair) in enumerate(zip(words, pairwise(expr.items), strict=True)):
        right = machine.evaluate(scope, pair[1])
        machine.at(scope.body, expr)
        found = compared(machine, word, left, right)
        if index < len(words) - 1 and not machine.truth(found):
            return found if not isinstance(found, Opaque) else False
        left = right
    return found


def _subscript(machine: Machine, scope: Environment, expr: Expr) -> object:
    holder = machine.evaluate(scope, expr.items[0])
    index = index_of(machine, scope, expr)
    found = item_of(machine, holder, index)
    if isinstance(found, Opaque) and found is not index and machine.guarded:
        machine.may_raise(found.reason)
    return found


def _slice(machine: Machine, scope: Environment, expr: Expr) -> object:
    parts = [None if item.kind == "absent" else machine.evaluate(scope, item) for item in expr.items]
    return slice(*parts)


def _conditional(machine: Machine, scope: Environment, expr: Expr) -> object:
    test, body, orelse = expr.items
    holds = machine.truth(machine.evaluate(scope, test))
    return machine.evaluate(scope, body if holds else orelse)


def _formatted(machine: Machine, scope: Environment, expr: Expr) -> object:
    found: list[str] = []
    lost: Opaque | None = None
    for item in expr.items:
        text = _part(machine, scope, item)
        if isinstance(text, Opaque):
            lost = lost or text
        else:
            found.append(text)
    return lost if lost is not None else limited(machine, "".join(found))


def _part(machine: Machine, scope: Environment, expr: Expr) -> str | Opaque:
    if expr.kind != "field":
        return str(expr.value) if expr.kind == "const" else machine.opaque("a constant that is not kept")
    value = machine.evaluate(scope, expr.items[0])
    spec = _formatted(machine, scope, expr.items[1]) if len(expr.items) > 1 else ""
    machine.at(scope.body, expr)
    return text_of(machine, value, expr.text, spec) if isinstance(spec, str) else machine.opaque("a format")


def _walrus(machine: Machine, scope: Environment, expr: Expr) -> object:
    value = machine.evaluate(scope, expr.items[1])
    bind_name(machine, scope, expr.items[0].text, value)
    return value


def _awaited(machine: Machine, scope: Environment, expr: Expr) -> object:
    taint_all(machine, [machine.evaluate(scope, expr.items[0])])
    return machine.opaque("an asynchronous result")


def _yielded(machine: Machine, scope: Environment, expr: Expr) -> object:
    machine.at(scope.body, expr)
    machine.stop("a `yield` inside an expression")


_READ: dict[str, Callable[[Machine, Environment, Expr], object]] = {
    "literal": _literal,
    "attribute": _attribute,
    "call": _call,
    **dict.fromkeys(("tuple", "list", "set"), _display),
    "dict": _dictionary,
    "unary": _unary,
    "binary": _binary,
    "boolop": _either,
    "compare": _compare,
    "subscript": _subscript,
    "slice": _slice,
    "ifexp": _conditional,
    "fstring": _formatted,
    **dict.fromkeys(("listcomp", "setcomp", "dictcomp", "generator"), comprehension),
    "lambda": lambda_of,
    "walrus": _walrus,
    "await": _awaited,
    **dict.fromkeys(("yield", "yield-from"), _yielded),
}
