"""Device values: values in a traced function that are known on the GPU only, so that Python cannot count, index or branch by them.

Each number among the parameters is one, unless it is a ``Constexpr``, and so is all that is computed from it. The variable of a
``for`` over ``range``, which is a GPU loop too, is *raw*: not even a FlyDSL number, and true wherever Python asks. A
plain number that a GPU `if` changes is one behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias, TypeGuard

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, bound_by, is_variable, own_expressions, targets
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Statement
from opschema_cli.source.text import Span
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.candidates import candidate_names
from opschema_rules.flydsl.changed_numbers import Changes, may_change
from opschema_rules.flydsl.key import rewrites_blocks
from opschema_rules.flydsl.model import FlyTree, Kind, Parameter, Traced

DeviceValue: TypeAlias = Literal["", "number", "raw", "either"]
"""Empty for what Python may know."""

DEEPEST = 60
"""Maximum depth of nested expressions, and of names for other names, to follow."""

ORDER = frozenset({"<", "<=", ">", ">=", "==", "!="})
_INDEXES = frozenset({"thread_idx", "block_idx"})
_ARITHMETIC = frozenset({"+", "-", "*", "//", "/", "%", "&", "|", "^"})
_Bound: TypeAlias = "Expr | Statement | None"
"""The value that a name is bound to, the loop that binds it, or None if neither is known. A ``for`` with the span of a
comprehension binds the name in that comprehension only.
"""


class DeviceValues:
    """The device values of one traced function and of the functions inside it."""

    def __init__(self, tree: FlyTree, traced: Traced) -> None:
        self.tree = tree
        self.traced = traced
        self.names = tree.names
        self.bodies = [body for body in tree.within(traced) if tree.around(body) is traced]
        self._shared = {name for body in self.bodies for name in body.scope.deleted}
        self._bound: dict[Body, dict[str, list[_Bound]]] = {}
        self._asked: set[tuple[Body, str]] = set()
        self._changes: dict[Body, Changes] = {}
        self._values: dict[tuple[Body, Span], DeviceValue] = {}
        self._depth = 0
        self._too_deep = False
        self._circles = False
        """Whether an answer rests on a variable that is being asked about."""

    @cached_property
    def candidates(self) -> frozenset[str]:
        """The names that may hold device values, without following any of them."""
        numbers = [item.name for item in self.traced.parameters if item.kind in (Kind.NUMBER, Kind.PYTHON)]
        changed = {name for body in self.bodies for name in may_change(body)} if rewrites_blocks(self.tree) else set()
        return candidate_names(self.bodies, {*numbers, *changed})

    def of(self, body: Body, expr: Expr) -> DeviceValue:
        """Return the device value of an expression in a body; empty for a very deeply nested one."""
        if not self._depth:
            self._too_deep = self._circles = False
        self._depth += 1
        try:
            self._too_deep = self._too_deep or self._depth > DEEPEST
            return self._of(body, expr) if self._depth <= DEEPEST else ""
        finally:
            self._depth -= 1

    def _of(self, body: Body, expr: Expr) -> DeviceValue:
        match expr.kind:
            case "name":
                return self._attribute(body, expr.text) if "." in expr.text else self._name(body, expr.text, expr.start)
            case "binary" if expr.text in _ARITHMETIC:
                formats = expr.text == "%" and not self._is_number(body, expr.items[0])
                return "" if formats else self._joined(body, expr.items)
            case "compare" if ORDER.issuperset(expr.text.split()):
                return self._joined(body, expr.items)
            case "unary":
                found = self.of(body, expr.items[0])
                return found if found == "number" or expr.text != "not" else ""
            case "boolop":
                return "number" if all(self.of(body, item) == "number" for item in expr.items) else ""
            case "ifexp":
                found = self.of(body, expr.items[1])
                return found if found == self.of(body, expr.items[2]) else ""
            case "call":
                return self._call(body, expr)
        return ""

    def _joined(self, body: Body, operands: Iterable[Expr]) -> DeviceValue:
        """Return the device value of an operation; unknown operands count as plain numbers."""
        items = list(operands)
        if any(map(_is_no_number, items)):
            return ""
        found = {self.of(body, item) for item in items} - {""}
        if len(found) > 1:
            return "either"
        return next(iter(found), "")

    def _is_number(self, body: Body, expr: Expr) -> bool:
        return bool(self.of(body, expr)) or is_plain_number(expr)

    def _attribute(self, body: Body, name: str) -> DeviceValue:
        parts = self.names.full(body, name).split(".") if not _INDEXES.isdisjoint(name.split(".")) else []
        return "number" if len(parts) > 2 and parts[-2] in _INDEXES and parts[-1] in ("x", "y", "z") else ""

    def _call(self, body: Body, call: Expr) -> DeviceValue:
        """Return the device value of a FlyDSL number that is converted from another one."""
        name = call.callee
        if not is_number(name.rpartition(".")[2]) or call.keywords != ("",):
            return ""
        return "number" if self.names.full(body, name) and self.of(body, call.items[1]) else ""

    # Names

    def _name(self, body: Body, name: str, at: int) -> DeviceValue:
        if (body, name) in self._asked:
            self._circles = True
            return ""
        if name in self._shared or body not in self.bodies:
            return ""
        bound = self._bindings(body).get(name)
        if any(item.name == name for item in body.params):
            return self._parameter(body, name) if bound is None else ""
        if bound is None:
            return self._name(body.parent, name, at) if body is not self.traced.body and body.parent else ""
        self._asked.add((body, name))
        found = {self._value(body, item, at) for item in _reaching(bound, at)}
        changed = found == {""} and all(map(_is_number_written, bound)) and self._is_changed(body, name, at)
        self._asked.discard((body, name))
        return "number" if changed else found.pop() if len(found) == 1 else ""

    def _is_changed(self, body: Body, name: str, at: int) -> bool:
        """Whether a GPU `if` before a place changes a plain number."""
        if not rewrites_blocks(self.tree):
            return False
        if body not in self._changes:
            self._changes[body] = Changes(body)
        changes = self._changes[body].before(name, at)
        return any(
            self.of(body, item.condition) == "number" and not self._is_once(body, item.counts) for item in changes
        )

    def _is_once(self, body: Body, counts: Sequence[Expr]) -> bool:
        """Whether a loop over a range with these arguments has at most one iteration."""
        found = [self.tree.evaluator.fold(body, item) for item in counts]
        numbers = [item.value for item in found if isinstance(item, Folded) and isinstance(item.value, int)]
        known = bool(counts) and len(numbers) == len(counts) and numbers[2:] != [0]
        return known and len(range(*numbers)) < 2

    def _value(self, body: Body, bound: _Bound, at: int) -> DeviceValue:
        if isinstance(bound, Statement):
            inside = bound.blocks[0][0].start <= at < bound.end
            return "raw" if inside and is_loop(bound) and not stays_python(self.traced.body, body, bound.start) else ""
        if bound is None:
            return ""
        key = (body, bound.span)
        if key in self._values:
            return self._values[key]
        circles, self._circles = self._circles, False
        found = self.of(body, bound)
        if self._too_deep:
            found = ""  # of a part nothing is known
        if not self._circles:
            self._values[key] = found
        self._circles = self._circles or circles
        return found

    def _parameter(self, body: Body, name: str) -> DeviceValue:
        found = self.traced.parameter(name) if body is self.traced.body else None
        if found is None:
            return ""
        if self.traced.kind == "jit":
            return "number" if found.kind is Kind.NUMBER and launches(self.tree, self.traced) else ""
        annotation = found.param.annotation
        number = found.kind is Kind.PYTHON and annotation is not None and annotation.text in ("int", "float", "bool")
        return "number" if found.kind is Kind.NUMBER or number else ""

    def _bindings(self, body: Body) -> dict[str, list[_Bound]]:
        if body not in self._bound:
            found: dict[str, list[_Bound]] = {}
            for name, bound in _bindings(body):
                found.setdefault(name, []).append(bound)
            self._bound[body] = found
        return self._bound[body]

    def bindings(self, body: Body, name: str) -> list[_Bound] | None:
        """Return the bindings of a name, as a body looks it up; None if they are not in the traced function."""
        for item in body.outward():
            if item not in self.bodies:
                return None
            if name in self._bindings(item) or any(param.name == name for param in item.params):
                parameter = any(param.name == name for param in item.params) or name in self._shared
                return [*([None] if parameter else []), *self._bindings(item).get(name, [])]
        return None

    def parameter(self, body: Body, name: str) -> Parameter | None:
        """Return the parameter of the traced function that a name is where a body reads it; None if it is one of a function inside
        it, or code assigns it.
        """
        found = self.traced.parameter(name)
        if found is None or name in self._shared or self.bindings(self.traced.body, name) != [None]:
            return None
        binder = next((item for item in body.outward() if item.function is not None and item.binds(name)), None)
        return found if binder is self.traced.body else None


def _reaching(bound: list[_Bound], at: int) -> list[_Bound]:
    """Return the bindings of a name that a place may see; inside a loop over the name, those of the innermost such loop."""
    bound = [item for item in bound if not _is_comprehension(item) or item.start <= at < item.end]
    around = [item for item in bound if isinstance(item, Statement) and item.blocks[0][0].start <= at < item.end]
    if not around:
        return bound
    loop = max(around, key=lambda item: item.start)
    return [item for item in bound if item is None or loop.start <= item.start < loop.end]


@lru_cache(maxsize=512)
def device_values(tree: FlyTree, traced: Traced) -> DeviceValues:
    """Return the device values of one traced function."""
    return DeviceValues(tree, traced)


def launches(tree: FlyTree, traced: Traced) -> bool:
    """Whether a traced function launches kernels and is only called from the host. The tree then passes it plain numbers only."""
    return traced.body in _launching(tree)


@cached_on_argument
def _launching(tree: FlyTree) -> frozenset[Body]:
    found = (traced for traced in tree.traced if any(_launches_in(body) for body in tree.within(traced)))
    return frozenset(traced.body for traced in found if all(tree.around(call.body) is None for call in traced.calls))


@cached_on_argument
def _launches_in(body: Body) -> bool:
    return any(call.items[0].text.rpartition(".")[2] == "launch" for call in body.scope.calls)


def is_loop(loop: Statement) -> bool:
    """Whether FlyDSL turns a ``for`` into a GPU loop: one over ``range``, under any name that ends in it."""
    target, call = loop.exprs
    return is_variable(target) and call.callee.rpartition(".")[2] == "range" and not any(call.keywords)


def stays_python(traced: Body, body: Body, at: int) -> bool:
    """Whether a place in a traced function is in a `for` over something else, such as a list; FlyDSL leaves loops in it
    unchanged.
    """
    for item in body.outward():
        if any(loop.body.start <= at < loop.body.end and is_pythons(item, loop.iterable) for loop in item.scope.loops):
            return True
        if item is traced or item.function is None:
            return False
        at = item.function.span.start
    return False


def is_pythons(body: Body, iterable: Expr) -> bool:
    """Whether FlyDSL leaves a `for` over an expression unchanged: it searches the words of the expression for ``for_``."""
    known = iterable.callee.rpartition(".")[2] in ("range", "range_constexpr")
    return not known and "for_" not in body.file.text(iterable)


def _is_number_written(bound: _Bound) -> bool:
    return isinstance(bound, Expr) and is_plain_number(bound)


def is_plain_number(expr: Expr) -> bool:
    """Whether an expression is a numeric literal."""
    return expr.kind == "const" and isinstance(expr.value, int | float)


def _is_no_number(expr: Expr) -> bool:
    return expr.kind in ("fstring", "literal") or (expr.kind == "const" and not isinstance(expr.value, int | float))


def statements_of(body: Body) -> Iterable[Statement]:
    """Return the statements of a function, including those in blocks; empty for anything else."""
    return all_statements(body.function.statements) if body.function is not None else ()


def names_bound(statements: Sequence[Statement]) -> set[str]:
    """Return the names that statements and their comprehensions bind."""
    bound = {name for item in statements for name, _ in _stored(item)}
    return bound | {name for item in statements for target in targets(item) for name in bound_by(target)}


def _bindings(body: Body) -> Iterator[tuple[str, _Bound]]:
    """Yield each name that a function's own statements bind, with its binding."""
    for item in statements_of(body):
        yield from _stored(item)
        if item.kind in ("def", "import", "case", "except"):
            yield from ((name, None) for name in item.names)


def _stored(item: Statement) -> Iterator[tuple[str, _Bound]]:
    """Yield the names that a statement and its expressions bind; ``n += 1`` keeps a number what it was."""
    if item.kind == "assign":
        for target in item.exprs[:-1]:
            yield from _pairs(target, item.exprs[-1])
    elif item.kind == "annassign" and len(item.exprs) == 3 and is_variable(item.exprs[0]):
        yield item.exprs[0].text, item.exprs[2]
    elif item.kind == "for" and not item.text and is_variable(item.exprs[0]):
        yield item.exprs[0].text, item
    elif item.kind != "augassign":
        yield from ((name, None) for target in targets(item) for name in bound_by(target))
    for expr in own_expressions(item):
        if expr.kind == "walrus":
            yield expr.items[0].text, expr.items[1]
        for clause in expr.items:
            if clause.kind == "for":
                yield from ((name, Expr("for", expr.start, expr.end)) for name in bound_by(clause.items[0]))


def _is_comprehension(bound: _Bound) -> TypeGuard[Expr]:
    return isinstance(bound, Expr) and bound.kind == "for"


def _pairs(target: Expr, value: Expr) -> Iterator[tuple[str, _Bound]]:
    if is_variable(target):
        yield target.text, value
        return
    left, right = _elements(target), _elements(value)
    if len(left) == len(right) and not any(item.kind == "starred" for item in (*left, *right)):
        for one, other in zip(left, right, strict=True):
            yield from _pairs(one, other)
    else:
        yield from ((name, None) for name in bound_by(target))


def _elements(expr: Expr) -> tuple[Expr, ...]:
    return expr.items if expr.kind in ("tuple", "list") else ()
