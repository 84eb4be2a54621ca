"""Calls of the operators of a tree: through ``torch.ops``, a handle, or the name of the function under the decorator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import ExternalName, Func, Unknown, Value
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Expr, Function, PythonFile, Scope, Unpack
from opschema_cli.source.text import words_in
from opschema_rules.torchlib.mentions import words_of_operators
from opschema_rules.torchlib.model import OpCall, Operator, Through
from opschema_rules.torchlib.operators import Join
from opschema_rules.torchlib.values import Handle, OpName


class CallFinder:
    """Finds the calls in some files of a project."""

    def __init__(self, evaluator: Evaluator, join: Join, operators: Iterable[Operator]) -> None:
        self.evaluator = evaluator
        self.join = join
        self.words = words_of_operators(operators)
        self._assigned: tuple[Body | None, Mapping[tuple[int, int], Unpack | Assign]] = (None, {})

    def find(self, project: Project, files: Sequence[PythonFile]) -> None:
        """Record every call with its operator."""
        known = self.words | {name for _, name in self.evaluator.written}
        told = project.file_readings(_USED, files)
        for file in files:
            self._find_in(file, known, dict(zip(map(id, _outermost(file.body)), told[file.path], strict=True)))

    def _find_in(self, file: PythonFile, known: frozenset[str], used: Mapping[int, str]) -> None:
        """Record the calls in one file; ``known`` maps the identity of its outermost functions to the words that they use."""
        bodies, named = self.evaluator.bodies, _Named(known)
        likely = bodies.of(file, lambda function: named.occurs(used.get(id(function))))
        aliases = {alias for body in likely for alias in _aliases(body.scope, self.words)}
        if not aliases <= known:
            named = _Named(known | aliases)
            likely = bodies.of(file, lambda function: named.occurs(used.get(id(function))))
        for body in likely:
            for call in body.scope.calls:
                for item in call.items:
                    if item.kind in _NAMES and named[item.text]:
                        self._found(body, call, item)

    def _found(self, body: Body, call: Expr, item: Expr) -> None:
        if item is call.items[0]:
            self._note(body, call)
        else:
            self._escape(body, call, item)

    def _escape(self, body: Body, call: Expr, given: Expr) -> None:
        """An operator that is handed to code which is not known may have more registered there."""
        frame = self.evaluator.frames.assumed(body)
        handles = [item for item in self.evaluator.evaluate(frame, given) if isinstance(item, Handle)]
        if handles and any(map(_is_foreign, self.evaluator.evaluate(frame, call.items[0]))):
            for operator in [found for handle in handles for found in self.join.of_value(handle)]:
                operator.complete = False

    def _note(self, body: Body, call: Expr) -> None:
        values = self.evaluator.evaluate(self.evaluator.frames.assumed(body), call.items[0])
        called = {operator for value in values for operator in self.join.of_value(value)}
        if len({operator.names for operator in called}) != 1 or (len(called) > 1 and not _are_one(called)):
            return
        operator = min(called, key=_place)
        if all(isinstance(item, Handle | OpName) or _is_function_of(operator, item) for item in values):
            first = next(item for item in values if isinstance(item, Handle | OpName))
            through: Through = "handle" if isinstance(first, Handle) else "torch.ops"
            taken = self._taken(body).get((call.start, call.end))
            operator.calls.append(OpCall(body.at(call), body, call, through, taken))

    def _taken(self, body: Body) -> Mapping[tuple[int, int], Unpack | Assign]:
        """The assignments of a body, by the places of their values."""
        if self._assigned[0] is not body:
            items: tuple[Unpack | Assign, ...] = (*body.scope.assigns, *body.scope.unpacks)
            valued = ((item.value, item) for item in items)
            found = {(value.start, value.end): item for value, item in valued if value is not None}
            self._assigned = (body, found)
        return self._assigned[1]


def _place(operator: Operator) -> tuple[str, int]:
    return operator.place.path, operator.place.span.start


def _are_one(operators: Iterable[Operator]) -> bool:
    """Whether some operators of the same names are those of one, as builds for different devices define it."""
    return all(operator.definition.api == "cpp" and len(operator.names or ()) == 1 for operator in operators)


def _is_function_of(operator: Operator, value: Value) -> bool:
    """Whether a value is the function from which an operator is made, which a name may also be for an older torch."""
    definition = operator.definition
    return isinstance(value, Func) and value.body is definition.function and not definition.explicit


def _is_foreign(callee: Value) -> bool:
    """Whether the callee may register something, given what is known."""
    if isinstance(callee, ExternalName):
        return "." in callee.name and not callee.name.startswith(("torch.", "functools.", "inspect.", "pytest."))
    return isinstance(callee, Unknown)


_NAMES = ("name", "attribute")


class _Named(dict[str, bool]):
    """Whether a dotted name may be one of some words; cached by name."""

    def __init__(self, words: frozenset[str]) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, name: str) -> bool:
        self[name] = found = not self._words.isdisjoint(_ends(name))
        return found

    def occurs(self, used: str | None) -> bool:
        """Whether one of the words is among those that a function uses; if these are not known it may be."""
        return used is None or not self._words.isdisjoint(used.split())


def _ends(name: str) -> list[str]:
    """The words of a dotted name that may be an operator's, its overload's or its namespace's."""
    return name.split(".")[-3:]


def _aliases(scope: Scope, words: frozenset[str]) -> Iterator[str]:
    """Yield the other names that a scope gives to the objects that the words name."""
    yield from (item.name for item in scope.imports if item.attr in words)
    for assign in scope.assigns:
        value = assign.value
        if value is not None and value.kind in _NAMES and not words.isdisjoint(_ends(value.text)):
            yield assign.target.rpartition(".")[2]


def _outermost(scope: Scope) -> Iterator[Function]:
    """The functions and methods that are written in no other."""
    yield from scope.functions
    for cls in scope.classes:
        yield from _outermost(cls.body)


def _used(file: PythonFile) -> list[str]:
    """The words in the text of each outermost function of a file."""
    text = file.source.text
    spans = (function.outer for function in _outermost(file.body))
    return [" ".join(sorted(words_in(text[start:end]))) for start, end in spans]


_USED = Reading("torchlib words of functions", _used, list[str])
