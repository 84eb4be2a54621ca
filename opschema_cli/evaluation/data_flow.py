"""Must- and may-data-flow of local variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

import msgspec

from opschema_cli.evaluation.closures import Cell
from opschema_cli.evaluation.limits import MAX_FLOW
from opschema_cli.evaluation.statements import is_variable
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement

_COPIES = frozenset({"list", "tuple", "dict", "set", "frozenset", "sorted", "reversed", "range", "enumerate", "zip"})
"""Functions that make a container from their arguments."""

_GROWS = frozenset({"append", "extend", "add", "update", "insert"})
"""Methods that add their arguments to their container."""

_IMMUTABLE = frozenset({"int", "float", "bool", "str"})
_COMPREHENSIONS = frozenset({"listcomp", "setcomp", "dictcomp"})


class Flow(msgspec.Struct, frozen=True):
    """A write to a variable, or a call that may change it (``changes``, and ``grows`` if it always does): the dotted names that the
    value comes from, and the tests that decide on it.

    ``value`` is the assigned value, None for any other write.
    """

    sources: frozenset[str]
    controls: tuple[Expr, ...] = ()
    value: Expr | None = None
    changes: bool = False
    grows: tuple[Expr, ...] = ()


Flows: TypeAlias = "dict[str, list[Flow]]"


# May


def comes_from(cells: Iterable[Cell]) -> dict[Cell, set[str]] | None:
    """Return all variables that the values of ``cells`` may come from, including ``cells``, each with the attributes read from it
    (empty for the variable itself); None if something cannot be read.

    A variable that only its length is taken of is not followed.
    """
    found: dict[Cell, set[str]] = {}
    waiting = [(cell, "") for cell in cells]
    while waiting:
        cell, attribute = waiting.pop()
        if attribute in found.setdefault(cell, set()):
            continue
        first = not found[cell]
        found[cell].add(attribute)
        flows = flows_of(cell.binder)
        if flows is None or _is_shared(cell):
            return None
        for flow in flows.get(cell.name, ()) if first else ():
            if not (flow.changes and _is_immutable(cell, flows[cell.name])):
                waiting += variables(cell.binder, flow.sources | names_in(flow.controls))
    return found


def variables(body: Body, names: Iterable[str]) -> list[tuple[Cell, str]]:
    """Return the function variables among the dotted names that a body reads, each with the attribute."""
    found: list[tuple[Cell, str]] = []
    for full in sorted(names):
        name, _, rest = full.partition(".")
        binder = body.binder(name)
        if binder is not None:
            found.append((Cell(binder, name), rest.partition(".")[0]))
    return found


def _is_immutable(cell: Cell, flows: list[Flow]) -> bool:
    """Whether a variable is clearly a number or a string, which no call changes."""
    if cell.is_parameter:
        param = next(item for item in cell.binder.params if item.name == cell.name)
        default = param.default
        known = default is not None and default.kind == "const" and default.value is not None
        return known or (param.annotation is not None and param.annotation.text in _IMMUTABLE)
    values = [item.value for item in flows if not item.changes]
    return bool(values) and all(item is not None and _is_plain(item) for item in values)


def _is_plain(expr: Expr) -> bool:
    """Whether an expression evaluates to a number or a string."""
    if expr.kind == "binary":
        return expr.text != "+" and all(is_variable(item) or _is_plain(item) for item in expr.items)
    return expr.kind in ("const", "literal", "compare", "fstring", "unary")


# Must


def roots(cell: Cell, depth: int = MAX_FLOW) -> frozenset[Cell]:
    """Return the parameters that the value of a variable is known to vary with."""
    flows = flows_of(cell.binder)
    if flows is None or depth <= 0 or _is_shared(cell):
        return frozenset()
    written = flows.get(cell.name, [])
    if cell.is_parameter:
        return frozenset() if any(not item.changes for item in written) else frozenset({cell})
    values = [item.value for item in written if item.value is not None]
    if len(values) == 1:
        parts = [*values, *(part for item in written for part in item.grows)]
        return _union(varying(cell.binder, item, depth) for item in parts)
    differ = len({_form(item) for item in values}) == len(values)
    tests = [test for item in written for test in item.controls if differ]
    return _union(_deciding(cell.binder, item, depth) for item in tests)


def varying(body: Body, expr: Expr, depth: int = MAX_FLOW) -> frozenset[Cell]:
    """Return the parameters that an expression is known to vary with."""
    if depth <= 0:
        return frozenset()
    if expr.kind == "name":
        first = expr.text.partition(".")[0]
        return _union(roots(item, depth - 1) for item, _ in variables(body, [first]))
    if expr.kind == "compare":
        return _deciding(body, expr, depth)
    if expr.kind == "ifexp":
        test, *values = expr.items
        decided = _deciding(body, test, depth) if _form(values[0]) != _form(values[1]) else frozenset[Cell]()
        return decided | _union(varying(body, item, depth - 1) for item in values)
    return _union(varying(body, item, depth - 1) for item in _parts(expr))


def _deciding(body: Body, test: Expr, depth: int) -> frozenset[Cell]:
    """Return the parameters that are known to decide a test, one way or the other: numbers and strings, and those compared with a
    constant.
    """
    if test.kind == "unary" and test.text == "not":
        return _deciding(body, test.items[0], depth)
    if test.kind == "compare" and len(test.items) == 2 and is_variable(test.items[0]):
        return varying(body, test.items[0], depth - 1) if _is_fixed(test.items[1]) else frozenset()
    if is_variable(test):
        return frozenset(item for item in varying(body, test, depth - 1) if _is_immutable(item, []))
    return frozenset()


def _is_fixed(expr: Expr) -> bool:
    """Whether an expression is a constant, or an attribute of a name such as an enumeration member."""
    if expr.kind == "const":
        return expr.value is not None
    return expr.kind == "literal" or (expr.kind == "name" and "." in expr.text)


def _parts(expr: Expr) -> Iterable[Expr]:
    """Return the parts of an expression that its value varies with."""
    if expr.kind in ("binary", "unary", "starred", "attribute", "subscript", "list", "tuple", "set"):
        return expr.items
    if expr.kind == "dict":
        return expr.items[1::2]
    if expr.kind == "call":
        return _kept(expr)
    if expr.kind == "fstring":
        return [item.items[0] for item in expr.items if item.kind == "field"]
    if expr.kind in _COMPREHENSIONS:
        return [item.items[1] for item in expr.items if item.kind == "for"]
    return ()


def _kept(call: Expr) -> tuple[Expr, ...]:
    """Return the arguments that the result of a call keeps: those of copies, instances and partial functions."""
    name = call.callee.rpartition(".")[2]
    if name == "partial":
        return call.items[2:]
    return call.items[1:] if name in _COPIES or name[:1].isupper() else ()


_Form: TypeAlias = tuple[object, ...]


def _form(expr: Expr) -> _Form:
    """Return an expression without its place, for comparison."""
    value = repr(expr.value) if expr.kind == "const" else ""
    return expr.kind, expr.text, value, expr.keywords, *map(_form, expr.items)


def _union(parts: Iterable[frozenset[Cell]]) -> frozenset[Cell]:
    return frozenset[Cell]().union(*parts)


def _is_shared(cell: Cell) -> bool:
    """Whether a variable is deleted, or a nested function may rebind it."""
    return any(cell.name in scope.deleted for scope in cell.binder.scope.walk())


# Writes


@lru_cache(maxsize=64)
def flows_of(body: Body) -> Flows | None:
    """Return the writes to the variables of a function; None if a part of it is nested too deeply."""
    found: Flows = {}
    if body.function is None:
        return None
    waiting: list[tuple[Statement, tuple[Expr, ...]]] = [(item, ()) for item in reversed(body.function.statements)]
    while waiting:
        item, controls = waiting.pop()
        if item.kind == "other" or any(part.kind == "other" for expr in item.exprs for part in expr.walk()):
            return None
        for name, flow in _of_statement(item, controls):
            found.setdefault(name, []).append(flow)
        inner = (*controls, *_deciders(item))
        waiting += ((part, inner) for block in reversed(item.blocks) for part in reversed(block))
    return found


def _of_statement(item: Statement, controls: tuple[Expr, ...]) -> Iterator[tuple[str, Flow]]:
    for expr in item.exprs:
        for part in expr.walk():
            if part.kind == "walrus":
                yield part.items[0].text, Flow(names_in(part.items[1:]), controls, part.items[1])
            elif part.kind == "call":
                yield from _of_call(part, controls)
    yield from _assigned(item, controls)
    for case in item.blocks[0] if item.kind == "match" else ():
        yield from ((name, Flow(names_in(item.exprs), controls)) for name in case.names)


def _assigned(item: Statement, controls: tuple[Expr, ...]) -> Iterator[tuple[str, Flow]]:
    if item.kind == "assign":
        value = item.exprs[-1]
        for target in item.exprs[:-1]:
            yield from _set(target, value, controls)
    elif item.kind == "annassign" and len(item.exprs) == 3:
        plain = item.exprs[2] if is_variable(item.exprs[0]) else None
        yield from _writes(item.exprs[0], Flow(names_in(item.exprs[2:]), controls, plain))
    elif item.kind in ("augassign", "for"):
        yield from _writes(item.exprs[0], Flow(names_in(item.exprs[1:2]), controls))
    elif item.kind == "with":
        for context, target in zip(item.exprs[::2], item.exprs[1::2], strict=True):
            yield from _writes(target, Flow(names_in([context]), controls))


def _set(target: Expr, value: Expr, controls: tuple[Expr, ...]) -> Iterator[tuple[str, Flow]]:
    is_item = target.kind == "subscript"
    sources = names_in([value, *(target.items[1:] if is_item else ())])
    plain = value if is_variable(target) else None
    yield from _writes(target, Flow(sources, controls, plain, is_item, (value,) if is_item else ()))


def _writes(target: Expr, flow: Flow) -> Iterator[tuple[str, Flow]]:
    return ((name, flow) for name in _written(target))


def _written(target: Expr) -> Iterator[str]:
    """Yield the variables that an assignment to a target binds or changes."""
    if target.kind in ("tuple", "list"):
        for item in target.items:
            yield from _written(item)
        return
    while target.kind in ("attribute", "subscript", "starred"):
        target = target.items[0]
    if target.kind == "name":
        yield target.text.partition(".")[0]


def _of_call(call: Expr, controls: tuple[Expr, ...]) -> Iterator[tuple[str, Flow]]:
    """Yield the changes that a call may make to its object and its arguments."""
    arguments = call.items[1:]
    owner, method = _owner(call.items[0])
    if owner is not None:
        grows = arguments if method in _GROWS else ()
        yield from _writes(owner, Flow(names_in(arguments), controls, None, changes=True, grows=grows))
    parts = (*arguments, *([owner] if owner is not None else ()))
    if len(parts) > 1:
        for target in (item for word, item in call.args if word != "*" and is_variable(item)):
            yield target.text, Flow(names_in(parts), controls, None, changes=True)


def _owner(callee: Expr) -> tuple[Expr | None, str]:
    """Return the object whose method is called, and the method."""
    if callee.kind == "attribute":
        return callee.items[0], callee.text
    owner, _, method = callee.text.rpartition(".")
    if callee.kind == "name" and owner:
        return Expr("name", callee.start, callee.start + len(owner), owner), method
    return None, ""


def _deciders(item: Statement) -> tuple[Expr, ...]:
    """Return the expressions that decide how often the blocks of a statement run."""
    if item.kind in ("if", "while", "match"):
        return item.exprs[:1]
    return item.exprs[1:2] if item.kind == "for" else ()


def names_in(exprs: Iterable[Expr]) -> frozenset[str]:
    """Return the dotted names in expressions, except those that are only passed to ``len()``."""
    found: set[str] = set()
    waiting = list(exprs)
    while waiting:
        expr = waiting.pop()
        if expr.kind == "name":
            found.add(expr.text)
        elif expr.callee != "len":
            waiting += expr.items if expr.kind != "lambda" else expr.items[-1:]
    return frozenset(found)
