"""A validator's exceptions for ops that take no tensor.

Such a carve-out is told by what it tests: that ``ref_api`` is ``"none"`` and that ``forward()`` has no arguments. It
counts only where a check is skipped for it. Demands for an input are in :mod:`opschema_rules.tileops.demands`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.source.bodies import Bodies, Body, argument_for
from opschema_cli.source.program import Program
from opschema_cli.source.python import Condition, Expr, Param, PythonFile
from opschema_cli.source.text import Span, is_found
from opschema_rules.tileops.conditions import COMPUTED, emptiness, inside, is_nothing, reference_test, skips


class CarveOut(msgspec.Struct, frozen=True, eq=False):
    """An exception for ops without tensor inputs.

    ``test`` is the expression that tells such an op, ``flag`` the name bound to it (empty if none), ``params`` the
    parameters that pass it on, ``guards`` the conditions that skip a check by it.
    """

    body: Body
    test: Expr
    flag: str
    params: tuple[tuple[Body, Param], ...]
    guards: tuple[tuple[Body, Condition], ...]


class _Sense(msgspec.Struct, frozen=True):
    """The meaning of a condition about an op: its ``ref_api``, its arguments, or both; and whether the condition holds then.

    ``origins`` are the places of the expressions that tell both, ``params`` those that carried it here.
    """

    kind: str
    holds: bool
    origins: frozenset[Span] = frozenset()
    params: frozenset[Span] = frozenset()

    def negated(self) -> _Sense:
        return replace(self, holds=not self.holds)


MAX_STEPS = MAX_CALLS + 2
"""Maximum length of a path from an expression to the ``forward`` whose arguments it is computed from, including names and
parameters.
"""

_COMPARED = re.compile(
    r"""(?:[=!]=|\bin|\bis|\bnot)\s*[(\[{]?\s*["']none["']|["']none["']\s*[=!]=|\bin\s*[(\[{][^)\]}\n]{0,80}["']none["']"""
)
_REACH = 200
"""Maximum number of characters of a comparison besides the compared value."""

_COLLECTORS = frozenset({"list", "tuple", "set", "frozenset", "dict", "sorted", "keys", "values", "items"})


def may_carve_out(text: str) -> bool:
    """Whether a script compares a ``ref_api`` with ``"none"``, by its text: a validator is large, and parsing it is not cheap."""
    return "ref_api" in text and is_found(_COMPARED, text, ('"none"', "'none'"), _REACH)


def carve_outs(program: Program, file: PythonFile) -> list[CarveOut]:
    """Every exception for ops without tensor inputs that a script makes, by place."""
    return _Reader(program, file).carve_outs()


def unguarding(program: Program, file: PythonFile) -> list[tuple[Body, Expr]]:
    """Return every expression that identifies such an op, although it is not known to skip a check."""
    return list(_Reader(program, file).unguarding())


class _Reader:
    """One script, read for its exceptions."""

    def __init__(self, program: Program, file: PythonFile) -> None:
        self.bodies = Bodies(program, [file.path])
        self.file = file
        self.known: dict[tuple[int, str], _Sense | None] = {}

    def carve_outs(self) -> list[CarveOut]:
        if not any(reference_test(test) for _, test, _ in self._tests()):
            return []
        guards: dict[Span, list[tuple[Body, Condition]]] = {}
        passed: dict[Span, set[Span]] = {}
        for body, condition, sense in self._guards():
            for origin in sense.origins:
                guards.setdefault(origin, []).append((body, condition))
                passed.setdefault(origin, set()).update(sense.params)
        params = {item.span: (body, item) for body in self.bodies.of(self.file) for item in body.params}
        found = []
        for body, test, flag in self._tests():
            if test.span in guards:
                carried = tuple(params[span] for span in sorted(passed[test.span]))
                found.append(CarveOut(body, test, flag, carried, tuple(guards[test.span])))
        return sorted(found, key=lambda item: item.test.start)

    def unguarding(self) -> Iterator[tuple[Body, Expr]]:
        guarding = {origin for _, _, sense in self._guards() for origin in sense.origins}
        for body, test, _ in self._tests():
            sense = self._sense(body, test, MAX_CALLS) if test.span not in guarding else None
            if sense is not None and sense.origins == {test.span}:
                yield body, test

    def _guards(self) -> Iterator[tuple[Body, Condition, _Sense]]:
        """Conditions that skip a check for an op without tensor inputs, or run one for the others only."""
        for body in self.bodies.of(self.file):
            conditions = [item for item in body.scope.conditions if item.kind == "if"]
            senses = [(item, self._sense(body, item.expr, MAX_CALLS)) for item in conditions]
            for condition, sense in senses:
                whole = sense if sense is not None and sense.kind == "both" else None
                if sense is not None and sense.kind in ("ref", "args") and sense.holds:
                    around = (other for item, other in senses if inside(condition.expr.span, item.body) and other)
                    if any({sense.kind, other.kind} == {"ref", "args"} and other.holds for other in around):
                        whole = _Sense("both", True, frozenset({condition.expr.span}), sense.params)
                if whole is not None and (not whole.holds or skips(body, condition)):
                    yield body, condition, whole

    def _tests(self) -> Iterator[tuple[Body, Expr, str]]:
        """Yield every expression that may identify such an op, with the name it is bound to."""
        for body in self.bodies.of(self.file):
            for assign in body.scope.assigns:
                if assign.value is not None:
                    yield from ((body, item, assign.target) for item in assign.value.walk())
            for expr in (*(item.expr for item in body.scope.conditions), *body.scope.returns):
                yield from ((body, item, "") for item in expr.walk())

    def _sense(self, body: Body, expr: Expr, hops: int) -> _Sense | None:
        if expr.kind == "boolop":
            return self._joined(body, expr, hops)
        if expr.kind == "unary" and expr.text == "not":
            inner = self._sense(body, expr.items[0], hops)
            return inner.negated() if inner is not None else None
        if expr.kind == "name" and "." not in expr.text:
            return self._named(body, expr.text, hops - 1) if hops > 0 else None
        of = reference_test(expr)
        if of is not None and self._reads_reference(body, of[0], hops):
            return _Sense("ref", of[1])
        helper = self.bodies.called(body, expr.callee) if expr.kind == "call" and hops > 0 else None
        known = [self._sense(helper, item, hops - 1) for item in helper.scope.returns] if helper is not None else []
        whole = next((item for item in known if item is not None and item.kind == "both"), None)
        measured = emptiness(expr)
        if whole is not None or measured is None or not self._is_arguments(body, measured[0], MAX_STEPS):
            return whole
        sized = measured[0] is not expr or self._is_collection(body, expr, hops)
        return _Sense("args", measured[1]) if sized else None

    def _joined(self, body: Body, expr: Expr, hops: int) -> _Sense | None:
        """``and`` means both where one operand means each; ``or`` the same of the opposites."""
        senses = [item for item in (self._sense(body, part, hops) for part in expr.items) if item is not None]
        whole = next((item for item in senses if item.kind == "both"), None)
        holds = expr.text == "and"
        if whole is None and {"ref", "args"} <= {item.kind for item in senses if item.holds is holds}:
            params = frozenset[Span]().union(*(item.params for item in senses))
            return _Sense("both", holds, frozenset({expr.span}), params)
        if whole is None and len(senses) == 1 and sum(map(is_nothing, expr.items)) == len(expr.items) - 1:
            return senses[0] if not holds else None  # `names or []`
        return whole

    def _named(self, body: Body, name: str, hops: int) -> _Sense | None:
        """The meaning of a local name or a parameter."""
        binder = body.binder(name)
        if binder is None:
            return None
        key = (id(binder), name)
        if key not in self.known:
            self.known[key] = None
            self.known[key] = self._bound(binder, name, hops)
        return self.known[key]

    def _bound(self, binder: Body, name: str, hops: int) -> _Sense | None:
        param = next((item for item in binder.params if item.name == name), None)
        known = [self._sense(at, value, hops) for at, value in self._values(binder, name)]
        sense = next((item for item in known if item is not None), None)
        return replace(sense, params=sense.params | {param.span}) if sense is not None and param is not None else sense

    def _values(self, binder: Body, name: str) -> Iterable[tuple[Body, Expr]]:
        """Values of a name: those assigned to it, or those that the callers pass."""
        if any(item.name == name for item in binder.params):
            calls = [(body, argument_for(call, binder.params, name)) for body, call in self.bodies.calls_of(binder)]
            return [(body, value) for body, value in calls if value is not None]
        return [(binder, value) for value in binder.values(name) or ()]

    def _reads_reference(self, body: Body, expr: Expr, hops: int) -> bool:
        """Whether an expression reads an entry's ``ref_api``."""
        if any(item.value == "ref_api" or item.text.rpartition(".")[2] == "ref_api" for item in expr.walk()):
            return True
        binder = body.binder(expr.text) if expr.kind == "name" and hops > 0 else None
        values = self._values(binder, expr.text) if binder is not None else ()
        return any(self._reads_reference(at, value, hops - 1) for at, value in values)

    def _is_arguments(self, body: Body, expr: Expr, hops: int) -> bool:
        """Whether an expression is computed from the arguments of some ``forward``."""
        if expr.value == "forward" or expr.text.endswith(".forward"):
            return True
        if hops <= 0 or expr.kind in ("const", "compare", "unary"):
            return False
        if expr.kind == "name":
            first = expr.text.partition(".")[0]
            binder = body.binder(first)
            values = self._values(binder, first) if binder is not None else ()
            return any(self._is_arguments(at, value, hops - 1) for at, value in values)
        helper = self.bodies.called(body, expr.callee) if expr.callee else None
        if helper is not None:
            return any(self._is_arguments(helper, value, hops - 1) for value in helper.scope.returns)
        parts: Iterable[Expr] = expr.items
        if expr.kind in COMPUTED:
            parts = [item for item in expr.walk() if item.kind == "name"]
        return any(self._is_arguments(body, part, hops) for part in parts)

    def _is_collection(self, body: Body, expr: Expr, hops: int) -> bool:
        """Whether an expression is something that may be empty, and no yes or no."""
        if expr.kind in ("list", "tuple", "set", "dict", "subscript", "attribute", *COMPUTED):
            return True
        if expr.kind == "const":
            return expr.value is None
        if expr.kind == "boolop":
            return all(self._is_collection(body, item, hops) for item in expr.items)
        if expr.kind != "call":
            return False
        if expr.callee.rpartition(".")[2] in _COLLECTORS:
            return True
        helper = self.bodies.called(body, expr.callee) if hops > 0 else None
        returned = helper.scope.returns if helper is not None else []
        return helper is not None and all(self._is_collection(helper, item, hops - 1) for item in returned)
