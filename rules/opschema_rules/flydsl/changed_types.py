"""Variables that change their kind of value in a GPU block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

import msgspec

from opschema_cli.evaluation.statements import all_statements, is_variable, own_expressions, targets
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import LEAVING, Expr, Statement
from opschema_rules.flydsl.device_values import DeviceValues
from opschema_rules.flydsl.number_types import FLOAT, I32_MAX, INT, NumberTypes
from opschema_rules.flydsl.value_types import is_float, machine_type, written

_GROWING = frozenset({"append", "extend", "insert"})
_SHRINKING = frozenset({"pop", "remove", "clear"})
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_FEW = 8
"""Maximum number of names to search for one by one in a text."""


class Change(msgspec.Struct, frozen=True):
    """A statement of a GPU block that gives a variable a different kind of value than ``first``, and the reason."""

    name: str
    first: Expr
    statement: Statement
    block: Statement
    why: str


def changes(values: DeviceValues, body: Body, is_block: Callable[[Statement], bool]) -> Iterator[Change]:
    """Yield the changes in the blocks of a function that ``is_block`` selects. Only variables that the same list of statements
    assigns before, and that no other function shares, are followed.
    """
    statements = list(all_statements(body.statements)) if _may_change(body) else []
    changing = {id(item): changed for item in statements if (changed := _changed_in(item)) and is_block(item)}
    if changing:
        names = set().union(*changing.values()) - _left_alone(body, statements)
        yield from _Finder(values, NumberTypes(values), body, changing.keys(), names).of(body.statements)


def _entered(item: Statement) -> Sequence[Sequence[Statement]]:
    """Return the blocks of a statement that FlyDSL may turn into functions."""
    return item.blocks if item.kind == "if" else item.blocks[:1] if item.kind in ("for", "while") else ()


def _changed_in(item: Statement) -> set[str]:
    """Return the variables that these blocks change themselves."""
    return {name for block in _entered(item) for part in block for name, _ in _changes(part)}


def _left_alone(body: Body, statements: Iterable[Statement]) -> set[str]:
    """Return the variables to ignore: shared with other functions, deleted, or of unknown length."""
    calls = (call.callee.rpartition(".") for call in body.scope.calls)
    shrunk = {name for name, _, method in calls if method in _SHRINKING}
    cut = {name for item in statements for name in cut_by(item)}
    return {*body.scope.deleted, *shrunk, *cut}  # declared `global` and `nonlocal` count as deleted


def _may_change(body: Body) -> bool:
    """Whether a body has blocks, and a variable that is assigned twice or changed by a method, by facts alone."""
    if not body.scope.guarded and not body.scope.loops:
        return False
    assigned: set[str] = set()
    for item in body.scope.assigns:
        if item.target in assigned and not item.sure:
            return True
        assigned.add(item.target)
    grown = (call.callee.rpartition(".") for call in body.scope.calls)
    return any(method in _GROWING and name in assigned for name, _, method in grown)


def unlike(values: DeviceValues, body: Body, choice: Expr) -> str:
    """Return why the two values of ``a if c else b`` have different types; empty if they do not, or if that is not known."""
    types, (first, second) = NumberTypes(values), choice.items[1:]
    for item in (first, second):
        if item.kind == "const" and (item.value is None or isinstance(item.value, str)):
            return f"`{body.file.text(item)}` is not a GPU value"
    kinds = types.of(body, first), types.of(body, second)
    one, other = map(machine_type, kinds)
    small = all(kind != INT or is_small(types, body, item) for kind, item in zip(kinds, (first, second), strict=True))
    return f"one is {written(kinds[0])} and one {written(kinds[1])}" if one and other and one != other and small else ""


def is_small(types: NumberTypes, body: Body, expr: Expr) -> bool:
    """Whether a plain number is known to fit in 32 bits."""
    found = types.tree.evaluator.fold(body, expr)
    return isinstance(found, Folded) and isinstance(found.value, int) and abs(found.value) <= I32_MAX


class _Finder(msgspec.Struct, frozen=True):
    """Follows what the statements of a function assign to ``names``, one list of statements at a time; ``blocks`` maps ``id`` to
    the statements with GPU blocks.
    """

    values: DeviceValues
    types: NumberTypes
    body: Body
    blocks: Container[int]
    names: set[str]
    _bound_by: dict[tuple[int, int], frozenset[str]] = msgspec.field(default_factory=dict)

    def of(self, statements: Sequence[Statement]) -> Iterator[Change]:
        """Yield the changes in a list of statements and in nested ones."""
        known: dict[str, Expr] = {}
        for item in statements:
            if id(item) in self.blocks:
                yield from self._in_block(item, known)
            for block in item.blocks:
                yield from self.of(block)
            if self._may_bind(item, known):
                for name in self._bound(item):
                    known.pop(name, None)
            if item.kind == "assign":
                assigned = ((target, value) for target, value in _pairs(item) if is_variable(target))
                known.update((target.text, value) for target, value in assigned if target.text in self.names)

    def _may_bind(self, item: Statement, known: Collection[str]) -> bool:
        """Whether a statement may bind one of some names: its text contains one, or there are too many to search for."""
        text = self.body.file.source.text
        return len(known) > _FEW or any(text.find(name, item.start, item.end) >= 0 for name in known)

    def _in_block(self, item: Statement, known: dict[str, Expr]) -> Iterator[Change]:
        """Yield the changes of variables that a block of a statement assigns once, outside nested blocks."""
        for block in _entered(item):
            nested = {name for part in block if part.blocks for name in self._bound(part)}
            if any(part.kind in LEAVING for part in all_statements(block)):
                continue
            found = [(name, part, value) for part in block for name, value in _changes(part) if name not in nested]
            counts = Counter(name for name, _, _ in found)
            for name, part, value in found:
                if name in known and counts[name] == 1:
                    why = self._why(name, known[name], part, value)
                    if why:
                        yield Change(name, known[name], part, item, why)

    def _bound(self, item: Statement) -> frozenset[str]:
        """Return the names that a statement and nested ones bind or change by a method; nested blocks are searched once."""
        key = (item.start, item.end)
        if key not in self._bound_by:
            inner = (self._bound(part) for block in item.blocks for part in block)
            self._bound_by[key] = frozenset(_bound_alone(item)).union(*inner)
        return self._bound_by[key]

    def _why(self, name: str, first: Expr, change: Statement, value: Expr) -> str:
        """Return why a value does not fit the previous one; empty if it does, or if that is not known."""
        if first.kind == "const" and first.value is None:
            return "is `None` before" if change.kind != "expr" else ""
        if change.kind == "expr" or (change.kind == "augassign" and first.kind == "list"):
            longer = first.kind == "list" and (change.kind == "expr" or bool(value.kind == "list" and value.items))
            return "is a list that gets longer" if longer else ""
        if first.kind == "const" and isinstance(first.value, str):
            return "is a string before"
        if first.kind == "tuple" and _lengthens(name, change, value):
            return "is a tuple that gets longer"
        if first.kind in ("list", "tuple") and value.kind == first.kind and change.kind == "assign":
            plain = all(item.kind != "starred" for item in (*first.items, *value.items))
            return (
                f"is a {first.kind} that changes its length" if plain and len(first.items) != len(value.items) else ""
            )
        return self._other_number(name, first, change, value)

    def _other_number(self, name: str, first: Expr, change: Statement, value: Expr) -> str:
        before, after = self.types.of(self.body, first), self._type(name, first, change, value)
        one, other = machine_type(before), machine_type(after)
        plain = [item for kind, item in ((before, first), (after, value)) if kind == INT]
        if not all(is_small(self.types, self.body, item) for item in plain):
            return ""
        return f"is {written(before)} before and becomes {written(after)}" if one and other and one != other else ""

    def _type(self, name: str, first: Expr, change: Statement, value: Expr) -> str:
        """Return the type of a new value, including ``x = x * 0.5`` for an integer ``x``."""
        known = self.types.of(self.body, value) if change.kind == "assign" else ""
        if known:
            return known
        operator = change.text if change.kind == "augassign" else value.text if value.kind == "binary" else ""
        if change.kind == "assign" and not any(part.text == name for part in value.walk() if part.kind == "name"):
            return ""
        operands = [value] if change.kind == "augassign" else [item for item in value.items if item.text != name]
        kind = self.types.of(self.body, operands[0]) if len(operands) == 1 and operator in _ARITHMETIC else ""
        if self.types.of(self.body, first) not in (INT, "Int32"):
            return ""
        if is_float(kind) or machine_type(kind) == "i64":
            return kind
        return FLOAT if operator == "/" and kind else ""


def cut_by(item: Statement) -> Iterator[str]:
    """Yield the lists of unknown length after a statement that deletes items or replaces a slice."""
    for target in targets(item):
        cuts = item.kind == "delete" or any(part.kind == "slice" for part in target.items[1:])
        if target.kind == "subscript" and cuts:
            yield target.items[0].text


def _lengthens(name: str, change: Statement, value: Expr) -> bool:
    """Whether a statement adds items to a tuple: ``s += (x,)`` or ``s = s + (x,)``."""
    if change.kind == "assign" and value.kind == "binary" and value.text == "+" and value.items[0].text == name:
        value = value.items[1]
    elif change.kind != "augassign":
        return False
    return value.kind == "tuple" and bool(value.elements)


def _bound_alone(item: Statement) -> Iterator[str]:
    """Yield the names that a statement, without nested ones, binds or changes by a method."""
    yield from (part.text for target in targets(item) for part in target.walk() if part.kind == "name")
    yield from item.names
    for expr in own_expressions(item):
        if expr.kind == "walrus":
            yield expr.items[0].text
        elif expr.kind == "call" and expr.callee.count(".") == 1:
            yield expr.callee.partition(".")[0]


def _pairs(item: Statement) -> Iterator[tuple[Expr, Expr]]:
    """Yield the targets of an assignment, each with its value."""
    value = item.exprs[-1]
    for target in item.exprs[:-1]:
        left, right = target.elements, value.elements if value.kind == "tuple" else None
        if left is not None and right is not None and len(left) == len(right):
            yield from zip(left, right, strict=True)
        else:
            yield target, value


def _changes(item: Statement) -> Iterator[tuple[str, Expr]]:
    """Yield the variables that a statement changes, each with the assigned or added value."""
    if item.kind == "assign":
        yield from ((target.text, value) for target, value in _pairs(item) if is_variable(target))
    elif item.kind == "augassign" and is_variable(item.exprs[0]):
        yield item.exprs[0].text, item.exprs[1]
    elif item.kind == "expr" and item.exprs[0].kind == "call":
        name, _, method = item.exprs[0].callee.rpartition(".")
        if method in _GROWING:
            yield name, item.exprs[0]
