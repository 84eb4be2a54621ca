"""Where the values of a function's variables come from: surely, and at most."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from opschema_cli.source.bodies import Body
from opschema_rules.flydsl.captures import Cell, definition, dotted

MAX_DEPTH = 12
"""Longest chain of assignments that is followed."""

_COPIES = frozenset({"list", "tuple", "dict", "set", "frozenset", "sorted", "reversed", "range", "enumerate", "zip"})
"""Functions that make a container of what they are given."""


_GROWS = frozenset({"append", "extend", "add", "update", "insert"})
"""Methods that put what they are given into their container."""

_IMMUTABLE = frozenset({"int", "float", "bool", "str"})


class Flow(msgspec.Struct, frozen=True):
    """A write to a variable, or a call that may change it (``changes``, and ``grows`` where it surely does): the dotted names
    that it comes from, and the tests that decide on it.

    ``value`` is what is assigned, None for any other write.
    """

    sources: frozenset[str]
    controls: tuple[ast.AST, ...] = ()
    value: ast.expr | None = None
    changes: bool = False
    grows: tuple[ast.expr, ...] = ()


class _Flows(msgspec.Struct):
    found: dict[str, list[Flow]] = msgspec.field(default_factory=dict)

    def add(self, target: ast.AST | None, flow: Flow) -> None:
        for name in _written(target):
            self.found.setdefault(name, []).append(flow)


def comes_from(cells: Iterable[Cell]) -> dict[Cell, set[str]] | None:
    """All variables that the values of ``cells`` may come from, themselves too, each with the attributes that are read of it
    (empty for the whole); None when something cannot be read.

    What only the length of a variable goes into does not come from it.
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
                waiting += resolved(cell.binder, flow.sources | names(flow.controls))
    return found


def resolved(body: Body, names: Iterable[str]) -> list[tuple[Cell, str]]:
    """The variables of functions among dotted names that a body reads, each with the attribute."""
    found: list[tuple[Cell, str]] = []
    for full in sorted(names):
        name, _, rest = full.partition(".")
        binder = body.binder(name)
        if binder is not None:
            found.append((Cell(binder, name), rest.partition(".")[0]))
    return found


def _is_immutable(cell: Cell, flows: list[Flow]) -> bool:
    """Whether a variable is plainly a number or a string, which no call changes."""
    if cell.is_parameter:
        param = next(item for item in cell.binder.params if item.name == cell.name)
        default = param.default
        known = default is not None and default.kind == "const" and default.value is not None
        return known or (param.annotation is not None and param.annotation.text in _IMMUTABLE)
    values = [item.value for item in flows if not item.changes]
    return bool(values) and all(item is not None and _is_plain(item) for item in values)


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression gives a number or a string."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return not isinstance(node.op, ast.Add) and all(isinstance(item, ast.Name) or _is_plain(item) for item in sides)
    return isinstance(node, ast.Constant | ast.Compare | ast.JoinedStr | ast.UnaryOp)


def roots(cell: Cell, depth: int = MAX_DEPTH) -> frozenset[Cell]:
    """The parameters that the value of a variable surely varies with."""
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
    differ = len({ast.dump(item) for item in values}) == len(values)
    tests = [test for item in written for test in item.controls if differ]
    return _union(_deciding(cell.binder, item, depth) for item in tests)


def varying(body: Body, node: ast.AST, depth: int = MAX_DEPTH) -> frozenset[Cell]:
    """The parameters that an expression surely varies with."""
    if depth <= 0:
        return frozenset()
    if isinstance(node, ast.Name):
        return _union(roots(item, depth - 1) for item, _ in resolved(body, [node.id]))
    if isinstance(node, ast.Compare):
        return _deciding(body, node, depth)
    if isinstance(node, ast.IfExp):
        differ = ast.dump(node.body) != ast.dump(node.orelse)
        decided = _deciding(body, node.test, depth) if differ else frozenset()
        return decided | _union(varying(body, item, depth - 1) for item in (node.body, node.orelse))
    return _union(varying(body, item, depth - 1) for item in _parts(node))


def _deciding(body: Body, test: ast.AST, depth: int) -> frozenset[Cell]:
    """The parameters that surely decide on a test, one way or the other: numbers and strings, and what is compared with a
    constant.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return _deciding(body, part, depth)
        case ast.Compare(left=ast.Name() as name, comparators=[ast.Constant() | ast.Attribute() as other]):
            plain = dotted(other) if isinstance(other, ast.Attribute) else other.value is not None
            return varying(body, name, depth - 1) if plain else frozenset()
        case ast.Name():
            return frozenset(item for item in varying(body, test, depth - 1) if _is_immutable(item, []))
    return frozenset()


def _parts(node: ast.AST) -> list[ast.AST]:
    """The parts of an expression that its value varies with."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=part) | ast.Starred(value=part) | ast.Attribute(value=part):
            return [part]
        case ast.Subscript(value=part, slice=index):
            return [part, index]
        case ast.Call():
            return _kept(node)
    return _items(node)


def _items(node: ast.AST) -> list[ast.AST]:
    """The parts of a display that its value varies with."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return [*parts]
        case ast.JoinedStr(values=values):
            return [item.value for item in values if isinstance(item, ast.FormattedValue)]
        case ast.ListComp(generators=made) | ast.SetComp(generators=made) | ast.DictComp(generators=made):
            return [item.iter for item in made]
    return []


def _kept(call: ast.Call) -> list[ast.AST]:
    """What the value that a call gives holds of its arguments: those of copies, of instances and of partial functions."""
    given = [*call.args, *(item.value for item in call.keywords)]
    name = dotted(call.func).rpartition(".")[2]
    if name == "partial":
        return [*given[1:]]
    return [*given] if name in _COPIES or name[:1].isupper() else []


def _union(parts: Iterable[frozenset[Cell]]) -> frozenset[Cell]:
    return frozenset().union(*parts)


def _is_shared(cell: Cell) -> bool:
    """Whether functions inside the one that binds a variable may bind it anew, or it is deleted."""
    return any(cell.name in scope.deleted for scope in cell.binder.scope.walk())


@lru_cache(maxsize=64)
def flows_of(body: Body) -> dict[str, list[Flow]] | None:
    """What writes the variables of a function; None when it cannot be read."""
    node = definition(body)
    return _collect(node) if node is not None else None


def _collect(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[Flow]]:
    flows = _Flows()
    _statements(node.body, (), flows)
    return flows.found


def _statements(nodes: Iterable[ast.stmt], controls: tuple[ast.AST, ...], flows: _Flows) -> None:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner = (*controls, *_head(node))
        for part in _expressions(node):
            _within(part, controls, flows)
        _assigned(node, controls, flows)
        for block in _blocks(node):
            _statements(block, inner, flows)


def _assigned(node: ast.stmt, controls: tuple[ast.AST, ...], flows: _Flows) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                plain = value if isinstance(target, ast.Name) else None
                parts = [value, *_indices(target)]
                grows = (value,) if isinstance(target, ast.Subscript) else ()
                flows.add(
                    target, Flow(names(parts), controls, plain, changes=plain is None and bool(grows), grows=grows)
                )
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            flows.add(target, Flow(names([value]), controls, value if isinstance(target, ast.Name) else None))
        case ast.AugAssign(target=target, value=source) | ast.For(target=target, iter=source):
            flows.add(target, Flow(names([source]), controls))
        case ast.With(items=items):
            for item in (found for found in items if found.optional_vars is not None):
                flows.add(item.optional_vars, Flow(names([item.context_expr]), controls))
        case ast.Match(subject=subject, cases=cases):
            for name in _bound(cases):
                flows.add(ast.Name(name), Flow(names([subject]), controls))


def _bound(cases: list[ast.match_case]) -> Iterator[str]:
    """The names that patterns bind."""
    for part in (found for case in cases for found in ast.walk(case.pattern)):
        name = getattr(part, "name", None) or getattr(part, "rest", None)
        if isinstance(name, str):
            yield name


def _within(node: ast.AST, controls: tuple[ast.AST, ...], flows: _Flows) -> None:
    """What an expression writes: by ``:=``, or by calling what may change its owner or what it is given."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr):
            flows.add(part.target, Flow(names([part.value]), controls, part.value))
        elif isinstance(part, ast.Call):
            _called(part, controls, flows)


def _called(call: ast.Call, controls: tuple[ast.AST, ...], flows: _Flows) -> None:
    given = [*call.args, *(item.value for item in call.keywords)]
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    for target in owner:
        grows = tuple(given) if isinstance(call.func, ast.Attribute) and call.func.attr in _GROWS else ()
        flows.add(target, Flow(names(given), controls, None, changes=True, grows=grows))
    if len(given) + len(owner) > 1:
        for target in (item for item in given if isinstance(item, ast.Name)):
            flows.add(target, Flow(names([*given, *owner]), controls, None, changes=True))


def _head(node: ast.stmt) -> list[ast.AST]:
    """The expressions that decide how often the blocks of a statement run."""
    match node:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(iter=iterable):
            return [iterable]
        case ast.Match(subject=subject):
            return [subject]
    return []


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement itself."""
    return [item for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr)] + [
        item.context_expr for item in getattr(node, "items", []) if isinstance(item, ast.withitem)
    ]


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        yield part.body


def _written(target: ast.AST | None) -> list[str]:
    """The variables that an assignment to a target writes or changes."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for item in target.elts for name in _written(item)]
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    return [target.id] if isinstance(target, ast.Name) else []


def _indices(target: ast.AST) -> list[ast.AST]:
    return [target.slice] if isinstance(target, ast.Subscript) else []


def names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The dotted names in expressions, but for those of which they take the length only."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        name = dotted(node)
        if name:
            found.add(name)
        elif not _is_length(node):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def _is_length(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
