"""Enumerates the possible values of a loop variable, a test parameter or a list item, where all of them are written out."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.statements import is_variable
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.tensors import value_of

_MOST = 64
"""Maximum number of values to examine."""

Written = tuple[Body, Expr]
"""An expression and the body that contains it."""


def alternatives(tree: FlyTree, body: Body, expr: Expr) -> list[Written]:
    """Return the possible values of an expression; empty if not all are known."""
    if expr.kind == "subscript" and len(expr.items) == 2:
        return _items(tree, body, expr.items[0])
    if expr.kind == "call" and expr.callee.endswith(".get") and len(expr.items) == 2:
        name = expr.callee.removesuffix(".get")
        return _items(tree, body, Expr("name", expr.start, expr.start + len(name), name))
    return _of_name(tree, body, expr.text) if is_variable(expr) else []


def _of_name(tree: FlyTree, body: Body, name: str) -> list[Written]:
    return [row[name] for row in rows(tree, body, name)]


def rows(tree: FlyTree, body: Body, name: str) -> list[dict[str, Written]]:
    """Return the rows of a loop or test: the values of a name and of all names that change with it; empty if not all are known."""
    binder = body.binder(name) or tree.bodies.module(body.file)
    written = [item for item in binder.scope.assigns if item.target == name]
    loops = [item for item in binder.scope.loops if name in item.targets]
    if any(item.name == name for item in binder.params):
        return _of_test(binder, name) if not written else []
    if len(written) != 1 or len(loops) != 1:
        return []
    names = list(loops[0].targets)
    return _rows(names, _run_over(tree, binder, loops[0].iterable, len(names) == 1))


def _rows(names: list[str], values: list[Written]) -> list[dict[str, Written]]:
    if len(names) == 1:
        return [{names[0]: item} for item in values]
    found = [(at, value.elements if value.kind in ("tuple", "list") else None) for at, value in values]
    if any(parts is None or len(parts) != len(names) for _, parts in found):
        return []
    return [{name: (at, part) for name, part in zip(names, parts or (), strict=True)} for at, parts in found]


def _run_over(tree: FlyTree, body: Body, iterable: Expr, whole: bool) -> list[Written]:
    """Return the values that a loop runs over; for ``items()`` these are tuples."""
    method = iterable.callee.rpartition(".")[2] if iterable.kind == "call" else ""
    if method in ("values", "items") and len(iterable.items) == 1:
        name = iterable.callee.removesuffix(f".{method}")
        values = _items(
            tree, body, Expr("name", iterable.start, iterable.start + len(name), name), pairs=method == "items"
        )
        return values if whole == (method == "values") else []
    return _items(tree, body, iterable, sequences=True)


def _items(tree: FlyTree, body: Body, expr: Expr, pairs: bool = False, sequences: bool = False) -> list[Written]:
    """Return the items of a literal, or of the only literal assigned to a name; ``pairs`` are tuples of a key and its value."""
    if expr.kind == "name":
        value = value_of(tree, body, expr.text) if "." not in expr.text else None
        return (
            _items(tree, body.binder(expr.text) or tree.bodies.module(body.file), value, pairs, sequences)
            if value
            else []
        )
    if expr.kind == "dict" and not sequences and not any(item.kind == "absent" for item in expr.items):
        found = list(_of_dict(expr, pairs))
    elif expr.kind in ("list", "tuple") and not pairs:
        found = list(expr.elements or ())
    else:
        return []
    return [(body, item) for item in found] if len(found) <= _MOST else []


def _of_dict(expr: Expr, pairs: bool) -> Iterator[Expr]:
    for key, value in zip(expr.items[::2], expr.items[1::2], strict=False):
        yield Expr("tuple", key.start, value.end, items=(key, value)) if pairs else value


def _of_test(body: Body, name: str) -> list[dict[str, Written]]:
    """Return the rows of the ``pytest.mark.parametrize`` that lists values for a parameter."""
    for call in body.function.decorators if body.function is not None else ():
        given = call.positional() if call.kind == "call" and call.items[0].text.endswith("parametrize") else []
        if len(given) == 2 and isinstance(given[0].value, str) and given[1].kind in ("list", "tuple"):
            names = [item.strip() for item in given[0].value.split(",")]
            if name in names:
                return _rows(names, [(body.parent or body, item) for item in (given[1].elements or ())[:_MOST]])
    return []
