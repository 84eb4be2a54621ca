"""Captured variables that change between two launches: a computed key is computed once, and holds no list, dict or set at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from opschema_cli.evaluation.closures import Cell
from opschema_cli.evaluation.statements import all_statements, bound_by, is_variable, names_read
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.python import Expr, Loop, Statement, Use
from opschema_rules.flydsl.factories import factory_of, making_call
from opschema_rules.flydsl.helpers import is_compiled
from opschema_rules.flydsl.key import has_computed_key
from opschema_rules.flydsl.model import Call, FlyTree, Kind, Traced, nested
from opschema_rules.flydsl.tensors import value_of
from opschema_rules.flydsl.uncached_captures import Captures

_MAKERS = frozenset(f"torch.{name}" for name in ("empty", "ones", "rand", "randn", "zeros"))
_GROWS = frozenset({"append", "extend", "insert", "add"})
_CHANGES = _GROWS | {"update", "setdefault"}
_LOGGED = frozenset(f".{name}" for name in _CHANGES)
_ITEM = re.compile(r"""\[("[^"'\n]*"|'[^"'\n]*'|\d+)\]""")


class ChangedCapture(msgspec.Struct, frozen=True):
    """A variable that ``traced`` captures, and that ``statement`` of ``body`` changes before it calls ``traced``.

    ``varies`` is the parameter of ``body``, or the variable of the loop, with which it changes; empty if it changes between two
    calls that follow each other. ``name`` is its name in ``body``.
    """

    traced: Traced
    name: str
    body: Body
    statement: Statement
    varies: str


class _Held(msgspec.Struct, frozen=True):
    """A variable ``cell`` whose value ``traced`` captures, and which ``body`` can change by its name.

    ``bound`` if it is the captured variable itself, else it only has the same container or instance. ``parts`` are read of it.
    """

    traced: Traced
    cell: Cell
    body: Body
    bound: bool
    parts: frozenset[str]

    @property
    def name(self) -> str:
        """Its name."""
        return self.cell.name


def changed_captures(tree: FlyTree) -> Iterator[ChangedCapture]:
    """The changed captures of the tree's functions, each variable once."""
    kinds = Captures(tree)
    for traced in tree.traced if has_computed_key(tree) else ():
        factory = factory_of(traced)
        if traced.kind == "jit" and factory is not None and is_compiled(tree, traced):
            calls = _calls(tree, traced)
            captured = _captured(tree, traced) if calls else {}
            for cell in sorted(captured, key=lambda item: item.name):
                yield from list(_changed(tree, kinds, traced, cell, captured[cell], calls))[:1]


def _calls(tree: FlyTree, traced: Traced) -> list[Call]:
    """The calls of a function by other functions that are not traced into it."""
    own = set(nested(tree.bodies, traced.body))
    return [call for call in traced.calls if call.body not in own and call.body.function is not None]


def _captured(tree: FlyTree, traced: Traced) -> dict[Cell, frozenset[str]]:
    """The variables that a function captures and reads, with the parts that are read of each."""
    found: dict[Cell, set[str]] = {}
    for capture in tree.closures.captured(traced.body):
        for body, use in tree.closures.reads(capture):
            part = _part(body, use)
            found.setdefault(capture.cell, set()).update([part] if part not in _LOGGED else ())
    return {cell: frozenset(parts) for cell, parts in found.items() if parts}


def _part(body: Body, use: Use) -> str:
    """The part of a variable that is read: ``.tile`` for an attribute, ``['tile']`` for an item; empty for anything else."""
    rest = use.name.partition(".")[2].partition(".")[0]
    item = _ITEM.match(body.file.source.text, use.end) if not rest else None
    return f".{rest}" if rest else f"[{item[1]}]".replace('"', "'") if item is not None else ""


def _changed(
    tree: FlyTree, kinds: Captures, traced: Traced, cell: Cell, parts: frozenset[str], calls: Sequence[Call]
) -> Iterator[ChangedCapture]:
    for call in calls:
        held = _held(tree, kinds, call, cell, parts)
        if held is None or not _names(call.body, held.name):
            continue
        for item, varies in _changes(tree, held, call):
            yield ChangedCapture(traced, held.name, call.body, item, varies)
        earlier = [item for item in calls if item.body is call.body and item.expr.start < call.expr.start]
        for before, after in pairwise([*earlier, call]):
            if after is call and _is_alike(call.body, before.expr, call.expr):
                for item in _changes_between(held, before.expr, call.expr):
                    yield ChangedCapture(traced, held.name, call.body, item, "")


def _names(body: Body, name: str) -> bool:
    """Whether the text of a function names a variable."""
    return body.function is not None and name in body.file.text(body.function.outer)


def _held(tree: FlyTree, kinds: Captures, call: Call, cell: Cell, parts: frozenset[str]) -> _Held | None:
    """The variable by which the body of a call can change what a function captures."""
    body = call.body
    if cell.binder in body.outward():
        inner = body.binder(cell.name) in (cell.binder, body)
        return _Held(call.target, cell, body, bound=True, parts=parts) if inner else None
    factory, made = factory_of(call.target), making_call(tree, call)
    param = _parameter(tree, cell) if cell.binder is factory else ""
    argument = (
        argument_for(made[1], factory.params, param) if factory is not None and made is not None and param else None
    )
    if made is None or argument is None or not is_variable(argument) or _builds_anew(body, made, call.expr):
        return None
    binder = made[0].binder(argument.text) or tree.bodies.module(made[0].file)
    if (body.binder(argument.text) or tree.bodies.module(body.file)) is not binder:
        return None
    kind = kinds.value(made[0], argument) if value_of(tree, made[0], argument.text) is not None else None
    if kind is None or not (kind.mutable or kind.cls is not None):
        return None
    return _Held(call.target, Cell(binder, argument.text), body, bound=False, parts=parts)


def _parameter(tree: FlyTree, cell: Cell) -> str:
    """The parameter whose value a variable of a factory always is."""
    written = [item for item in cell.binder.scope.assigns if item.target == cell.name]
    if cell.is_parameter:
        return "" if written else cell.name
    value = value_of(tree, cell.binder, cell.name)
    return _parameter(tree, Cell(cell.binder, value.text)) if value is not None and is_variable(value) else ""


def _builds_anew(body: Body, made: tuple[Body, Expr], call: Expr) -> bool:
    """Whether the loop around a call makes a new function each time."""
    loop = _loop_around(body, call)
    return made[0] is body and loop is not None and loop.body.start <= made[1].start < loop.body.end


def _changes(tree: FlyTree, held: _Held, call: Call) -> Iterator[tuple[Statement, str]]:
    """The statements that change a variable before a call, with what it varies with from one call to the next."""
    body, cell, expr = held.body, held.cell, call.expr
    statements = list(all_statements(body.statements))
    shared = {name for item in statements if item.kind == "nonlocal" for name in item.names}
    if cell.binder is not body and cell.name not in shared and body.binds(cell.name):
        return
    loop = _loop_around(body, expr) if cell.binder is body else None
    made = making_call(tree, call)
    outside = cell.binder is not body and (made is None or made[0] is not body)
    varying = {item.name for item in body.params} if outside else set(loop.targets) if loop else set[str]()
    for item in statements:
        if item.start > expr.start or (loop is not None and not loop.body.start <= item.start < loop.body.end):
            continue
        written = _written(held, item, rebinds=held.bound and (cell.name in shared or cell.binder is body))
        name = next((name for name in names_read(written) if name in varying), "")
        if name and not _is_passed(tree, held, expr, name):
            yield item, name


def _loop_around(body: Body, call: Expr) -> Loop | None:
    loops = [item for item in body.scope.loops if item.body.start <= call.start < item.body.end]
    return loops[-1] if loops else None


def _changes_between(held: _Held, before: Expr, after: Expr) -> Iterator[Statement]:
    """The statements that surely change a variable of a body between two calls of it that both run."""
    body = held.body
    shared = {name for item in body.statements if item.kind == "nonlocal" for name in item.names}
    own = held.cell.binder is body or held.name in shared
    first, last = (_place_of(body.statements, call) for call in (before, after))
    if first is None or last is None or (not own and body.binds(held.name)):
        return
    values = [item.value for item in held.cell.binder.scope.assigns if item.target == held.name]
    known = {_constant(part) for item in values if item is not None for part in item.walk()}
    for item in body.statements[first + 1 : last]:
        written = _written(held, item, rebinds=held.bound and own)
        grows = item.kind == "expr" and bool(written)
        if grows or any(_constant(part) not in {None, *known} for part in written):
            yield item


def _place_of(statements: Sequence[Statement], call: Expr) -> int | None:
    """The place of the statement that is a call, or that assigns what one returns."""
    found = (
        at
        for at, item in enumerate(statements)
        if item.kind in ("expr", "assign") and item.exprs[-1].start <= call.start and call.end <= item.exprs[-1].end
    )
    return next(found, None)


def _constant(expr: Expr) -> str | None:
    return repr(expr.value) if expr.kind == "const" else None


def _is_alike(body: Body, first: Expr, second: Expr) -> bool:
    """Whether two calls have the same text, with variables that are assigned once."""
    names = names_read(second.items)
    once = all(sum(item.target == name for item in body.scope.assigns) < 2 for name in names)
    return once and body.file.text(first) == body.file.text(second)


def _written(held: _Held, item: Statement, *, rebinds: bool) -> list[Expr]:
    """The values that a statement puts into a variable, or into a part of it that is read."""
    if item.kind in ("assign", "augassign"):
        bound = rebinds and any(is_variable(part) and held.name in bound_by(part) for part in item.exprs[:-1])
        return [item.exprs[-1]] if bound or any(_is_part(held, part) for part in item.exprs[:-1]) else []
    if item.kind == "expr" and item.exprs[0].kind == "call":
        owner, _, method = item.exprs[0].callee.rpartition(".")
        items = all(part.startswith("[") for part in held.parts) and method in ("append", "extend")
        return list(item.exprs[0].items[1:]) if owner == held.name and method in _CHANGES and not items else []
    return []


def _is_part(held: _Held, target: Expr) -> bool:
    """Whether the target of an assignment is a part of a variable that is read."""
    if target.kind == "subscript" and target.items[0].text == held.name:
        index = target.items[1]
        others = any(not part.startswith("[") for part in held.parts)
        return others or index.kind != "const" or f"[{index.value!r}]" in held.parts
    owner, _, attribute = target.text.partition(".")
    return target.kind == "name" and owner == held.name and f".{attribute}" in held.parts


def _is_passed(tree: FlyTree, held: _Held, call: Expr, name: str) -> bool:
    """Whether a call also passes what a variable varies with in a ``Constexpr`` or the type of a tensor, which are in the key."""
    params = [item.param for item in held.traced.call_parameters]
    if any(word in ("*", "**") for word in call.keywords):
        return True
    for item in held.traced.call_parameters:
        argument = argument_for(call, params, item.name)
        if argument is not None and item.kind in (Kind.CONSTEXPR, Kind.TYPE):
            if name in names_read([argument]):
                return True
        elif argument is not None and item.kind is not Kind.NUMBER and _types_vary(tree, held.body, argument, name):
            return True
    return False


def _types_vary(tree: FlyTree, body: Body, tensor: Expr, name: str) -> bool:
    """Whether tensors may be of other types, or wrapped with other sizes, where a variable has another value."""
    value = value_of(tree, body, tensor.text) if is_variable(tensor) and tensor.text != name else tensor
    if value is None or name not in names_read([value]):
        return False
    made = tree.names.external(body, value.callee)
    sizes = value.positional() if made in _MAKERS and "dtype" not in value.keywords else []
    return not sizes or any(name in names_read([item]) for item in value.items[1 + len(sizes) :])
