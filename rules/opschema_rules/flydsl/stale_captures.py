"""Stale captures: captured values that a compiled function depends on, and that its cache key does not determine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.evaluation.closures import Capture, Cell
from opschema_cli.evaluation.data_flow import comes_from, flows_of, names_in, roots, variables
from opschema_cli.evaluation.statements import is_variable
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Use
from opschema_rules.flydsl.alternatives import alternatives
from opschema_rules.flydsl.helpers import is_compiled
from opschema_rules.flydsl.key import has_computed_key
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.uncached_captures import Captures, UncachedCapture

_WRITES = frozenset({"append", "extend", "add", "update", "insert", "clear"})


_FIXED = frozenset({"const", "dict", "list", "set", "tuple", "unary"})
"""Expression kinds that are constants, or collections of constants."""


class StaleCapture(msgspec.Struct, frozen=True):
    """A captured variable of the kind ``uncached`` that varies with the parameter ``root``, which is not in the key of ``traced``.

    ``body`` and ``use`` are the first read of it, and ``attribute`` is the attribute that is read, if it is not the variable.
    """

    traced: Traced
    cell: Cell
    uncached: UncachedCapture
    root: Cell
    body: Body
    use: Use
    attribute: str = ""


def stale_captures(tree: FlyTree) -> Iterator[StaleCapture]:
    """Yield the stale captures of the tree's functions, each variable once."""
    found: set[Cell] = set()
    kinds = Captures(tree)
    for traced in _keyed(tree, kinds) if has_computed_key(tree) else ():
        for item in _of(tree, kinds, traced):
            if item.cell not in found:
                found.add(item.cell)
                yield item


def _keyed(tree: FlyTree, kinds: Captures) -> Iterator[Traced]:
    """Yield the nested functions with their own cache key that no other function captures."""
    inner = [item for item in tree.traced if item.kind == "jit" and item.factory is not None]
    outer = [item for item in inner if is_compiled(tree, item)]
    around = {body for item in outer for body in item.body.outward() if body is not item.body and body.function}
    missing = {body for body in around if _may_miss(tree, kinds, body)}
    kept = [item for item in outer if not missing.isdisjoint(item.body.outward())]
    reached = {
        function
        for item in kept
        for capture in tree.closures.captured(item.body)
        if (function := tree.closures.function_of(capture.cell)) is not None
    }
    return (item for item in kept if item.body not in reached)


def _may_miss(tree: FlyTree, kinds: Captures, body: Body) -> bool:
    """Whether a nested function reads a variable of the enclosing function whose kind is never part of a key."""
    read = {
        use.name.partition(".")[0]
        for inner in tree.bodies.inside(body)
        if inner is not body
        for use in inner.scope.uses
    }
    bound = {item.name for item in body.params} | {item.target for item in body.scope.assigns}
    return any(kinds.cell(Cell(body, name)) is not None for name in read & bound)


def _of(tree: FlyTree, kinds: Captures, traced: Traced) -> Iterator[StaleCapture]:
    captures = tree.closures.captured(traced.body)
    found = {cell: kinds.cell(cell) for cell in {item.cell for item in captures}}
    missed = {cell: kind for cell, kind in found.items() if kind is not None}
    varying = {cell: _varying(tree, cell, kind) for cell, kind in missed.items()}
    seen = [cell for cell in found if cell not in missed]
    known = _determined(tree, kinds, {*seen, *_besides(tree, traced, captures)}) if any(varying.values()) else None
    for cell in sorted(missed, key=lambda item: item.name) if known is not None else ():
        reads = [pair for item in captures if item.cell == cell for pair in tree.closures.reads(item)]
        if all(use.name.rpartition(".")[2] in _WRITES for _, use in reads):
            continue
        for root in varying[cell]:
            parts = known.get(root, set()) if known is not None else {""}
            first = _unread(tree, missed[cell], parts if root == cell or not parts else {""}, reads)
            if first is not None:
                yield StaleCapture(traced, cell, missed[cell], root, *first)
                break


def _determined(tree: FlyTree, kinds: Captures, seen: set[Cell]) -> dict[Cell, set[str]] | None:
    """Return the variables that the key may determine: all sources of these variables, and the captures of functions among them."""
    reached: set[Body] = set()
    while True:
        known = comes_from(seen)
        functions = {body for cell in known or () for body in tree.bodies.functions_within(cell.binder, cell.name)}
        if functions <= reached:
            return known
        inner = {cell for body in functions - reached for cell in tree.closures.cells(body)}
        seen = seen | {cell for cell in inner if kinds.cell(cell) is None}
        reached |= functions


def _varying(tree: FlyTree, cell: Cell, kind: UncachedCapture) -> list[Cell]:
    """Return the parameters with which the value of a variable varies from call to call."""
    found = (root for root in roots(cell) if _may_vary(root, kind) and not _is_constant(tree, root))
    return sorted(found, key=lambda item: item.name)


def _unread(
    tree: FlyTree, kind: UncachedCapture, known: set[str], reads: list[tuple[Body, Use]]
) -> tuple[Body, Use, str] | None:
    """Return the first read of a variable or field that is not ``known``."""
    if not known:
        return (*reads[0], "")
    fields = _fields(tree, kind)
    if "" in known or not known <= fields:
        return None
    parts = [(body, use, use.name.partition(".")[2].partition(".")[0]) for body, use in reads]
    if not all(part in fields for _, _, part in parts):
        return None
    return next((item for item in parts if item[2] not in known), None)


def _fields(tree: FlyTree, kind: UncachedCapture) -> frozenset[str]:
    """Return the fields of the dataclass instance in a variable."""
    if kind.cls is None:
        return frozenset()
    lines = tree.bodies.program.lineage(kind.cls)
    return frozenset(item.target for ref in lines for item in ref.cls.body.assigns if item.annotation is not None)


def _besides(tree: FlyTree, traced: Traced, captures: list[Capture]) -> Iterator[Cell]:
    """Yield the variables other than captures that the key may determine: those in decorators and defaults of ``jit`` functions,
    those in arguments of enclosing callers, and the functions themselves.
    """
    bodies = {traced.body} | {body for item in captures if (body := tree.closures.function_of(item.cell)) is not None}
    for item in filter(None, map(tree.traced_of, bodies)):
        around = item.factory
        if around is not None:
            yield Cell(around, item.name)
            if item.kind == "jit":
                yield from _named(around, [item.decorator, *(param.default for param in item.function.params)])
        for call in item.calls:
            if item.kind == "jit" and tree.around(call.body) is None:
                yield from _named(call.body, call.expr.items[1:])


def _named(body: Body, exprs: Iterable[Expr | None]) -> list[Cell]:
    return [cell for cell, _ in variables(body, names_in(item for item in exprs if item is not None))]


def _is_constant(tree: FlyTree, root: Cell) -> bool:
    """Whether every caller in the workspace passes the same constant, or none passes anything."""
    calls = tree.bodies.calls_of(root.binder)
    if any(item.name == root.name and not item.by_name for item in root.binder.params):
        texts = {body.file.text(call) for body, call in calls}
        return len(texts) < 2 and all(item.kind == "const" for _, call in calls for item in call.items[1:])
    arguments = [argument_for(call, root.binder.params, root.name) for _, call in calls]
    if not calls or any(word in ("*", "**") for _, call in calls for word in call.keywords):
        return False
    folded = [
        _folded(tree, body, item) if item is not None else None
        for (body, _), item in zip(calls, arguments, strict=True)
    ]
    return all(item == folded[0] and (item is None or isinstance(item, Folded)) for item in folded)


def _folded(tree: FlyTree, body: Body, expr: Expr) -> object:
    """Return the value of an argument: for a loop variable, the one text of all its values; for a local that never changes, its
    assigned value.
    """
    texts = {at.file.text(item) for at, item in alternatives(tree, body, expr)}
    if len(texts) == 1:
        return Folded(texts.pop())
    flows = flows_of(body) if is_variable(expr) else None
    written = flows.get(expr.text, []) if flows is not None else []
    value = written[0].value if len(written) == 1 and not written[0].changes else None
    value = value if value is not None else expr
    is_fixed = all(part.kind in _FIXED for part in value.walk())
    return Folded(body.file.text(value)) if is_fixed else tree.evaluator.fold(body, value)


def _may_vary(root: Cell, kind: UncachedCapture) -> bool:
    """Whether a caching function can be called with a parameter of this kind: it hashes its arguments."""
    function = root.binder.function
    cached = function is not None and any(
        name.rpartition(".")[2] in ("lru_cache", "cache") for name in function.decorator_names
    )
    return not (cached and kind.mutable and root.is_parameter)
