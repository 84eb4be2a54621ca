"""The values that a variable of a loop, a parameter of a test, or an item of a display may have, where all of them are written."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.statements import is_variable
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.tensors import value_of

_MOST = 64
"""Most values that are looked at."""

Written = tuple[Body, Expr]
"""An expression and the body that it is written in."""


def alternatives(tree: FlyTree, body: Body, expr: Expr) -> list[Written]:
    """The values of an expression; empty if not all are known."""
    if expr.kind == "subscript" and len(expr.items) == 2:
        return _items(tree, body, expr.items[0])
    if expr.kind == "call" and expr.callee.endswith(".get") and len(expr.items) == 2:
        name = expr.callee.removesuffix(".get")
        return _items(tree, body, Expr("name", expr.start, expr.start + len(name), name))
    return _of_name(tree, body, expr.text) if is_variable(expr) else []


def _of_name(tree: FlyTree, body: Body, name: str) -> list[Written]:
    binder = body.binder(name) or tree.bodies.module(body.file)
    written = [item for item in binder.scope.assigns if item.target == name]
    loops = [item for item in binder.scope.loops if name in item.targets]
    if any(item.name == name for item in binder.params):
        return _of_test(binder, name) if not written else []
    if len(written) != 1 or len(loops) != 1:
        return []
    loop = loops[0]
    whole = len(loop.targets) == 1
    found = [
        (at, value if whole else _part(value, loop.targets.index(name), len(loop.targets)))
        for at, value in _run_over(tree, binder, loop.iterable, whole)
    ]
    return [(at, value) for at, value in found if value is not None] if all(value for _, value in found) else []


def _part(value: Expr, at: int, size: int) -> Expr | None:
    elements = value.elements if value.kind == "tuple" else None
    return elements[at] if elements is not None and len(elements) == size else None


def _run_over(tree: FlyTree, body: Body, iterable: Expr, whole: bool) -> list[Written]:
    """The values that a loop runs over; of ``items()`` tuples, of ``enumerate`` too."""
    method = iterable.callee.rpartition(".")[2] if iterable.kind == "call" else ""
    if method in ("values", "items") and len(iterable.items) == 1:
        name = iterable.callee.removesuffix(f".{method}")
        values = _items(
            tree, body, Expr("name", iterable.start, iterable.start + len(name), name), pairs=method == "items"
        )
        return values if whole == (method == "values") else []
    return _items(tree, body, iterable, sequences=True)


def _items(tree: FlyTree, body: Body, expr: Expr, pairs: bool = False, sequences: bool = False) -> list[Written]:
    """The items of a display, or of the one display that a name holds; ``pairs`` are tuples of a key and its value."""
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


def _of_test(body: Body, name: str) -> list[Written]:
    """The values that ``pytest.mark.parametrize`` lists for a parameter."""
    for call in body.function.decorators if body.function is not None else ():
        given = call.positional() if call.kind == "call" and call.items[0].text.endswith("parametrize") else []
        if len(given) == 2 and isinstance(given[0].value, str) and given[1].kind in ("list", "tuple"):
            names = [item.strip() for item in given[0].value.split(",")]
            values = list(given[1].elements or ())
            if name in names and values:
                parts = values if len(names) == 1 else [_part(item, names.index(name), len(names)) for item in values]
                return [(body.parent or body, item) for item in parts if item] if all(parts) else []
    return []
