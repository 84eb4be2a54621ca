"""Captured values that a compiled function depends on and its cache key does not tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Use
from opschema_rules.flydsl.captures import Capture, Cell, captured, cells, function_of, uses
from opschema_rules.flydsl.flows import comes_from, names, resolved, roots
from opschema_rules.flydsl.held import Held, Holder, expression
from opschema_rules.flydsl.helpers import is_compiled
from opschema_rules.flydsl.model import FlyTree, Traced, nested

_WRITES = frozenset({"append", "extend", "add", "update", "insert", "clear"})


class Hole(msgspec.Struct, frozen=True):
    """A captured variable that varies with the parameter ``root``, which nothing in the key of ``traced`` tells.

    ``body`` and ``use`` are the first read of it, and ``attribute`` what is read of it, if not the whole.
    """

    traced: Traced
    cell: Cell
    held: Held
    root: Cell
    body: Body
    use: Use
    attribute: str = ""


def holes(tree: FlyTree) -> Iterator[Hole]:
    """The holes in the keys of the tree's functions, each variable once."""
    found: set[Cell] = set()
    holder = Holder(tree)
    for traced in _keyed(tree, holder):
        for hole in _readable(tree, holder, traced):
            if hole.cell not in found:
                found.add(hole.cell)
                yield hole


def _readable(tree: FlyTree, holder: Holder, traced: Traced) -> list[Hole]:
    """The holes in the key of one function; none where expressions are nested too deeply to follow."""
    try:
        return list(_of(tree, holder, traced))
    except RecursionError:
        return []


def _keyed(tree: FlyTree, holder: Holder) -> Iterator[Traced]:
    """The functions written in functions that have a cache key of their own, where no other one captures them."""
    inner = [item for item in tree.traced if item.kind == "jit" and item.body.parent and item.body.parent.function]
    outer = [item for item in inner if is_compiled(tree, item)]
    around = {body for item in outer for body in item.body.outward() if body is not item.body and body.function}
    missing = {body for body in around if _may_miss(tree, holder, body)}
    kept = [item for item in outer if not missing.isdisjoint(item.body.outward())]
    reached = {
        function
        for item in kept
        for capture in captured(tree, item.body)
        if (function := function_of(tree, capture.cell)) is not None
    }
    return (item for item in kept if item.body not in reached)


def _may_miss(tree: FlyTree, holder: Holder, body: Body) -> bool:
    """Whether at first sight a function inside another reads a variable of it that holds what no key sees."""
    read = {
        use.name.partition(".")[0]
        for inner in nested(tree.bodies, body)
        if inner is not body
        for use in inner.scope.uses
    }
    bound = {item.name for item in body.params} | {item.target for item in body.scope.assigns}
    return any(holder.cell(Cell(body, name)) is not None for name in read & bound)


def _of(tree: FlyTree, holder: Holder, traced: Traced) -> Iterator[Hole]:
    captures = captured(tree, traced.body)
    kinds = {cell: holder.cell(cell) for cell in {item.cell for item in captures}}
    missed = {cell: held for cell, held in kinds.items() if held is not None}
    varying = {cell: _varying(tree, cell, held) for cell, held in missed.items()}
    seen = [cell for cell in kinds if cell not in missed]
    told = _told(tree, holder, {*seen, *_besides(tree, traced, captures)}) if any(varying.values()) else None
    for cell in sorted(missed, key=lambda item: item.name) if told is not None else ():
        reads = [pair for item in captures if item.cell == cell for pair in uses(tree, item)]
        if all(use.name.rpartition(".")[2] in _WRITES for _, use in reads):
            continue
        for root in varying[cell]:
            known = told.get(root, set()) if told is not None else {""}
            first = _unread(tree, missed[cell], known if root == cell or not known else {""}, reads)
            if first is not None:
                yield Hole(traced, cell, missed[cell], root, *first)
                break


def _told(tree: FlyTree, holder: Holder, seen: set[Cell]) -> dict[Cell, set[str]] | None:
    """What the key may tell: all that these variables come from, and what the functions among them capture in turn."""
    reached: set[Body] = set()
    while True:
        told = comes_from(seen)
        functions = {body for cell in told or () for body in tree.bodies.functions_within(cell.binder, cell.name)}
        if functions <= reached:
            return told
        inner = {cell for body in functions - reached for cell in cells(body)}
        seen = seen | {cell for cell in inner if holder.cell(cell) is None}
        reached |= functions


def _varying(tree: FlyTree, cell: Cell, held: Held) -> list[Cell]:
    """The parameters with which the value of a variable varies from call to call."""
    found = (root for root in roots(cell) if _may_vary(root, held) and not _is_constant(tree, root))
    return sorted(found, key=lambda item: item.name)


def _unread(tree: FlyTree, held: Held, told: set[str], reads: list[tuple[Body, Use]]) -> tuple[Body, Use, str] | None:
    """The first read of a variable, or of a field, that nothing else tells."""
    if not told:
        return (*reads[0], "")
    fields = _fields(tree, held)
    if "" in told or not told <= fields:
        return None
    parts = [(body, use, use.name.partition(".")[2].partition(".")[0]) for body, use in reads]
    if not all(part in fields for _, _, part in parts):
        return None
    return next((item for item in parts if item[2] not in told), None)


def _fields(tree: FlyTree, held: Held) -> frozenset[str]:
    """The fields of the dataclass that a variable holds."""
    if held.cls is None:
        return frozenset()
    lines = tree.bodies.program.lineage(held.cls)
    return frozenset(item.target for ref in lines for item in ref.cls.body.assigns if item.annotation is not None)


def _besides(tree: FlyTree, traced: Traced, captures: list[Capture]) -> Iterator[Cell]:
    """The variables that the key may tell besides those captured: of decorators and defaults of ``jit`` functions, of what
    callers around pass, and what is written on the functions themselves.
    """
    bodies = {traced.body} | {body for item in captures if (body := function_of(tree, item.cell)) is not None}
    for item in filter(None, map(tree.traced_of, bodies)):
        around = item.body.parent
        if around is not None and around.function is not None:
            yield Cell(around, item.name)
            if item.kind == "jit":
                yield from _named(around, [item.decorator, *(param.default for param in item.function.params)])
        for call in item.calls:
            if item.kind == "jit" and tree.around(call.body) is None:
                yield from _named(call.body, call.expr.items[1:])


def _named(body: Body, expressions: Iterable[object]) -> list[Cell]:
    parsed = [expression(body, item) for item in expressions if isinstance(item, Expr)]
    return [cell for cell, _ in resolved(body, names(item for item in parsed if item is not None))]


def _is_constant(tree: FlyTree, root: Cell) -> bool:
    """Whether every caller in the workspace passes the same constant, or none passes anything."""
    calls = tree.bodies.calls_of(root.binder)
    given = [argument_for(call, root.binder.params, root.name) for _, call in calls]
    if not calls or any(word in ("*", "**") for _, call in calls for word in call.keywords):
        return False
    folded = [
        tree.evaluator.fold(body, item) if item is not None else None
        for (body, _), item in zip(calls, given, strict=True)
    ]
    return all(item == folded[0] and (item is None or isinstance(item, Folded)) for item in folded)


def _may_vary(root: Cell, held: Held) -> bool:
    """Whether a function that keeps its results can be called with a parameter: it hashes what it is given."""
    function = root.binder.function
    cached = function is not None and any(
        name.rpartition(".")[2] in ("lru_cache", "cache") for name in function.decorator_names
    )
    return not (cached and held.mutable and root.is_parameter)
