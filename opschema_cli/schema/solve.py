"""Binding: derives the symbols and shapes that a workload row leaves open from shape rules.

Rules are equations as much as checks: ``q.shape == (B, S, H, D)`` gives four symbols once ``q.shape`` is
known, and ``q.shape`` once the symbols are. What has no value stays *unresolved*; a rule is *violated* only
where no value could still save it.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any

from opschema_cli.schema.describe import describe
from opschema_cli.schema.evaluate import (
    SHAPE_FUNCTIONS,
    EvaluateError,
    EvaluationError,
    Functions,
    Tensor,
    Unbound,
    Value,
    evaluate,
)
from opschema_cli.schema.expression import Expression, parse_expression
from opschema_cli.schema.lines import Line, plus, times
from opschema_cli.schema.outcomes import Failed, Holds, Outcome, Solution, Unresolved, Violated
from opschema_cli.schema.rule_parts import (
    is_equation,
    is_presence_test,
    is_strict,
    links,
    named_sizes,
    uses,
    with_sizes,
)
from opschema_cli.schema.shapes import ShapeDeclaration


def solve(
    rules: Sequence[Expression],
    known: Mapping[str, Value],
    *,
    shapes: Mapping[str, ShapeDeclaration] = MappingProxyType({}),
    unknown: Collection[str] = (),
    functions: Functions = SHAPE_FUNCTIONS,
) -> Solution:
    """Derive values from ``rules`` and declared ``shapes``, and decide each of them.

    ``known`` holds what the row gives: params, symbols, a :class:`Tensor` for each tensor (without shape
    where the row gives none), None for an optional tensor that the row omits. A tensor that only ``shapes``
    names gets a Tensor without shape. ``unknown`` are declared names without a value; they matter where
    one is called like a function or type (``max``), which it hides.

    Where a size of the declared shapes shares its name, ``S``, with a tensor or with a param that is None,
    the size goes by ``S (size)``.
    """
    values = {**{tensor: Tensor(None, tensor) for tensor in shapes}, **known}
    present = {tensor: shape.as_rule(tensor) for tensor, shape in shapes.items() if values[tensor] is not None}
    checks = {tensor: rule for tensor, rule in present.items() if rule is not None}
    sizes = {size.name for shape in shapes.values() for size in shape.symbols}
    both = frozenset(name for name in sizes & values.keys() if isinstance(values[name], (Tensor, NoneType)))
    hidden = {name for name in unknown if name not in values and name in functions}
    solver = _Solver(values, hidden, functions)
    all_rules = [*checks.values(), *rules]
    outcomes = solver.settle_all([with_sizes(rule, both) for rule in all_rules] if both else all_rules)
    of_shapes = dict(zip(checks, outcomes, strict=False))
    of_shapes.update({tensor: Holds() for tensor in shapes if values[tensor] is None})
    ordered = {tensor: of_shapes[tensor] for tensor in shapes if tensor in of_shapes}
    return Solution(solver.values, tuple(outcomes[len(checks) :]), ordered, solver.found_by)


_MAX_TRIES = 50
"""Maximum number of retries of one rule after names in it were found."""


class _Solver:
    """The values found so far. Values are only added, so earlier decisions stay valid."""

    def __init__(self, values: dict[str, Value], hidden: set[str], functions: Functions) -> None:
        self.values = values
        self.hidden = hidden
        self.functions = functions
        self.found_by: dict[str, Expression] = {}

    def settle_all(self, rules: Sequence[Expression]) -> list[Outcome]:
        """Settle each rule, and again whenever a name that it waits for is found."""
        outcomes: list[Outcome] = [Unresolved(())] * len(rules)
        tries = [0] * len(rules)
        waiting: dict[str, list[int]] = {}
        queue = deque(range(len(rules)))
        while queue:
            index = queue.popleft()
            tries[index] += 1
            if not isinstance(outcomes[index], Unresolved) or tries[index] > _MAX_TRIES:
                continue
            found = len(self.found_by)
            outcome = outcomes[index] = self.settle(rules[index], binding=True)
            for name in outcome.names if isinstance(outcome, Unresolved) else ():
                waiting.setdefault(name, []).append(index)
            for name in list(self.found_by)[found:]:
                queue.extend(waiting.pop(name, ()))
        given_up = (index for index, count in enumerate(tries) if count > _MAX_TRIES)
        for index in given_up:
            outcomes[index] = self.judge(rules[index])
        return outcomes

    def settle(self, part: Expression, *, binding: bool) -> Outcome:
        """Decide ``part``. With ``binding`` it must hold, and its consequences become known values."""
        node = part.tree
        if isinstance(node, ast.Compare) and is_equation(node):
            if binding and self.name_sizes(part):
                return Holds()
            if self.is_open(part):
                return self.equate(part, node, binding=binding)
        outcome = self.judge(part)
        if not isinstance(outcome, Unresolved):
            return outcome
        if isinstance(node, ast.BoolOp):
            every = isinstance(node.op, ast.And)
            outcomes = [self.settle(part.part(value), binding=binding and every) for value in node.values]
            possible = [index for index, found in enumerate(outcomes) if not isinstance(found, Violated)]
            if binding and not every and len(possible) == 1:  # so this one holds
                return self.settle(part.part(node.values[possible[0]]), binding=True)
            return _combined(outcomes, Violated if every else Holds, outcome)
        if isinstance(node, ast.IfExp):
            branch = self.branch(part, node)
            return outcome if branch is None else self.settle(branch, binding=binding)
        if isinstance(node, ast.Compare) and is_equation(node):
            return self.equate(part, node, binding=binding)
        return outcome

    def name_sizes(self, part: Expression) -> bool:
        """Settle the commonest rule, ``x.shape == (B, S)``, without ado; False where it does not hold just so."""
        tensor, names = named_sizes(part)
        shape = getattr(self.values.get(tensor), "shape", None)
        if not names or not isinstance(shape, tuple) or len(shape) != len(names):
            return False
        found: dict[str, int] = {}
        for name, size in zip(names, shape, strict=True):
            known = self.values.get(name, found.get(name, size))
            if type(known) is not int or known != size:
                return False
            if name not in self.values:
                found[name] = size
        for name, size in found.items():
            self.learn(name, size, part)
        return True

    def equate(self, part: Expression, node: ast.Compare, *, binding: bool) -> Outcome:
        """Decide ``left == right`` where one side or both have no value yet."""
        trial = _Trial(self)
        try:
            trial.unify(part.part(node.left), part.part(node.comparators[0]))
        except EvaluateError as error:
            return _failed(error)
        if trial.conflict:
            return Violated(part, self.readings(part), trial.conflict)
        if binding:
            for name, value in trial.found.items():
                self.learn(name, value, part)
        return Holds() if binding and trial.exact else self.judge(part)

    def learn(self, name: str, value: Value, rule: Expression) -> None:
        """Give ``name``, or the shape of a tensor (``x.shape``), its value."""
        tensor, dot, _ = name.partition(".")
        self.values[tensor] = Tensor(_shape(value), tensor) if dot else value
        self.hidden.discard(name)
        self.found_by[name] = rule

    def judge(self, part: Expression) -> Outcome:
        """Value of ``part`` with the values so far."""
        try:
            value = self.value(part)
        except EvaluateError as error:
            return _failed(error)
        if value is _OPEN:
            names = tuple(name for name, found in self.reads(part) if found is _OPEN)
            return Unresolved(names)
        if isinstance(value, Tensor):
            return Failed(EvaluationError("a tensor is not a truth value", part.span.start))
        return Holds(value) if value else self.violated(part)

    def value(self, part: Expression) -> Any:
        """The value of ``part``, or :data:`_OPEN`.

        Raises:
            EvaluateError: it has none, whatever the open names are.
        """
        node = part.tree
        if isinstance(node, ast.Name) and node.id not in self.functions:
            return self.values.get(node.id, _OPEN)
        if isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name):
            tensor = self.values.get(node.value.id)
            if isinstance(tensor, Tensor):
                return _OPEN if tensor.shape is None else tensor.shape
        if self.hidden and self.hidden & {use.name for use in (*part.names(), *part.calls())}:
            return _OPEN
        if self.is_open(part):
            return _OPEN
        try:
            return evaluate(part, self.values, functions=self.functions)
        except Unbound:
            return _OPEN

    def reads(self, part: Expression) -> list[tuple[str, Any]]:
        """Names that ``part`` reads, as ``C`` or ``x.shape``, each with its value or :data:`_OPEN`."""
        found: dict[str, Any] = {}
        for name, shape in uses(part):
            value = self.values.get(name, _OPEN)
            if shape and isinstance(value, Tensor):
                found[f"{name}.shape"] = _OPEN if value.shape is None else value.shape
            elif value is not _OPEN or name in self.hidden or name not in self.functions:
                found[name] = value
        return list(found.items())

    def is_open(self, part: Expression) -> bool:
        """Whether ``part`` certainly has no value yet, so that evaluation would be pointless."""
        return is_strict(part) and self.reads_open(part)

    def reads_open(self, part: Expression) -> bool:
        """Whether ``part``, which reads all its names, comes upon an open one before an error."""
        for name, shape in uses(part):
            value = self.values.get(name, _OPEN)
            if value is _OPEN:
                return name not in self.functions
            if shape and (not isinstance(value, Tensor) or value.shape is None):
                return isinstance(value, Tensor)
        return False

    def readings(self, part: Expression) -> dict[str, Value]:
        """The known values that ``part`` reads."""
        return {name: value for name, value in self.reads(part) if value is not _OPEN}

    def violated(self, part: Expression) -> Violated:
        """Blame the narrowest part of a rule that came out false."""
        part = self.blame(part)
        return Violated(part, self.readings(part))

    def blame(self, part: Expression) -> Expression:
        """The part of ``part``, which is false, that makes it so."""
        node = part.tree
        guilty: Expression | None = None
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            guilty = next(value for value in map(part.part, node.values) if not self.value(value))
        elif isinstance(node, ast.BoolOp):
            conditions = [value for value in node.values if not is_presence_test(value)]
            guilty = part.part(conditions[0]) if len(conditions) == 1 else None
        elif isinstance(node, ast.IfExp):
            guilty = self.branch(part, node)
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            return next(link for link in map(part.part, links(node)) if not self.value(link))
        return part if guilty is None else self.blame(guilty)

    def branch(self, part: Expression, node: ast.IfExp) -> Expression | None:
        """The branch that a conditional takes, if that is known."""
        test = self.judge(part.part(node.test))
        if isinstance(test, Holds):
            return part.part(node.body)
        return part.part(node.orelse) if isinstance(test, Violated) else None


class _Trial:
    """A tentative solution of one equation, which is discarded if it contradicts itself.

    ``exact`` says whether ``found`` is all that it takes to make the sides equal.
    """

    def __init__(self, solver: _Solver) -> None:
        self.solver = solver
        self.found: dict[str, Value] = {}
        self.conflict = ""
        self.exact = True

    def unify(self, left: Expression, right: Expression) -> None:
        """Make two expressions equal."""
        value = self.solver.value(left)
        if value is not _OPEN:
            self.match(right, value)
            return
        value = self.solver.value(right)
        if value is not _OPEN:
            self.match(left, value)
        elif isinstance(left.tree, ast.Tuple) and isinstance(right.tree, ast.Tuple):
            if len(left.tree.elts) != len(right.tree.elts):
                self.conflict = f"`{left.snippet}` and `{right.snippet}` differ in length"
                return
            for mine, other in zip(left.tree.elts, right.tree.elts, strict=True):
                self.unify(left.part(mine), right.part(other))
        else:
            self.exact = False

    def match(self, pattern: Expression, wanted: Any) -> None:
        """Make ``pattern`` equal to ``wanted``."""
        node = pattern.tree
        if isinstance(node, ast.Tuple):
            self.match_all(pattern, node.elts, wanted)
            return
        value = self.solver.value(pattern)
        if value is not _OPEN:
            if not _same(value, wanted):
                self.conflict = f"`{pattern.snippet}` is {describe(value)}, not {describe(wanted)}"
        elif isinstance(node, ast.Name):
            self.bind(node.id, wanted)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr == "shape" and _shape(wanted) is not None:
                self.bind(f"{node.value.id}.shape", wanted)
            else:
                self.exact = False
        else:
            self.solve_for(pattern, wanted)

    def match_all(self, pattern: Expression, elements: Sequence[ast.expr], wanted: Any) -> None:
        """Make a tuple equal to ``wanted``, entry by entry."""
        if not isinstance(wanted, tuple):
            self.conflict = f"`{pattern.snippet}` is a tuple, {describe(wanted)} is none"
        elif len(elements) != len(wanted):
            self.conflict = f"`{pattern.snippet}` has {len(elements)} entries, {describe(wanted)} has {len(wanted)}"
        else:
            for element, one in zip(map(pattern.part, elements), wanted, strict=True):
                self.match(element, one)

    def bind(self, name: str, value: Value) -> None:
        """Take ``value`` for ``name``; a tensor is not a value of a symbol."""
        if isinstance(value, Tensor):
            self.exact = False
            return
        if name in self.found and not _same(self.found[name], value):
            self.conflict = f"`{name}` would be both {describe(self.found[name])} and {describe(value)}"
        self.found[name] = value

    def solve_for(self, pattern: Expression, wanted: Any) -> None:
        """Solve ``slope * name + offset == wanted`` if ``pattern`` has this form."""
        line = self.line(pattern) if type(wanted) is int else None
        if line is not None and line.slope and (wanted - line.offset) % line.slope == 0:
            self.bind(line.name, (wanted - line.offset) // line.slope)
        else:
            self.exact = False

    def line(self, pattern: Expression) -> Line | None:
        """Return ``pattern`` as a linear expression in at most one open name."""
        node = pattern.tree
        if isinstance(node, ast.Name) and node.id not in self.solver.values:
            return Line(node.id, 1, 0)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return times(Line("", 0, -1), self.line(pattern.part(node.operand)))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            left, right = self.line(pattern.part(node.left)), self.line(pattern.part(node.right))
            if isinstance(node.op, ast.Mult):
                return times(left, right)
            return plus(left, right if isinstance(node.op, ast.Add) else times(Line("", 0, -1), right))
        value = self.solver.value(pattern)
        return Line("", 0, value) if type(value) is int else None


_OPEN: Any = object()
_EQUAL = parse_expression("left == right")


def _failed(error: EvaluateError) -> Failed:
    """The outcome of an error, which is kept: without the frames that it was raised in, and all that they hold."""
    error.__traceback__ = error.__context__ = None
    return Failed(error)


def _same(left: Value, right: Value) -> bool:
    if (type(left) is int and type(right) is int) or (_is_small(left) and _is_small(right)):
        return left == right
    return bool(evaluate(_EQUAL, {"left": left, "right": right}))


def _is_small(value: Value) -> bool:
    return type(value) is tuple and len(value) <= 16 and all(type(item) is int for item in value)


def _shape(value: Any) -> tuple[int, ...] | None:
    """``value`` if it can be a shape."""
    sizes = isinstance(value, tuple) and all(type(size) is int and size >= 0 for size in value)
    return value if sizes else None


def _combined(outcomes: Sequence[Outcome], decisive: type[Outcome], open_: Unresolved) -> Outcome:
    """Combine outcomes for ``and`` (a violated part decides) or ``or`` (a part that holds decides)."""
    for outcome in outcomes:
        if isinstance(outcome, decisive):
            return outcome
    for outcome in outcomes:
        if isinstance(outcome, (Unresolved, Failed)):
            return outcome if isinstance(outcome, Failed) else open_
    return outcomes[-1]
