"""Calls of the operators of a tree: through ``torch.ops``, a handle, or the name of the function under the decorator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile
from opschema_rules.torchlib.evaluation import Evaluator
from opschema_rules.torchlib.mentions import words_of_operators
from opschema_rules.torchlib.model import OpCall, Operator, Through
from opschema_rules.torchlib.operators import Join
from opschema_rules.torchlib.outlines import last_word
from opschema_rules.torchlib.values import Handle, OpName, Outside, Unknown, Value


class CallFinder:
    """Finds the calls in some files."""

    def __init__(self, evaluator: Evaluator, join: Join, operators: Iterable[Operator]) -> None:
        self.evaluator = evaluator
        self.join = join
        self.words = words_of_operators(operators)

    def find(self, files: Iterable[PythonFile]) -> None:
        """Note every call with its operator."""
        held = frozenset(name for _, name in self.evaluator.written)
        for file in files:
            named = _Named(self.words | held | _aliases(file, self.words))
            for body in self.evaluator.bodies.of(file):
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
        if len(called) == 1 and all(isinstance(item, Handle | OpName) for item in values):
            through: Through = "handle" if isinstance(values[0], Handle) else "torch.ops"
            called.pop().calls.append(OpCall(body.at(call), body, call, through))


def _is_foreign(callee: Value) -> bool:
    """Whether what is called may register something, for all that is known."""
    if isinstance(callee, Outside):
        return "." in callee.name and not callee.name.startswith(("torch.", "functools.", "inspect.", "pytest."))
    return isinstance(callee, Unknown)


_NAMES = ("name", "attribute")


class _Named(dict[str, bool]):
    """Whether a dotted name may be one of some words, by the name; told once for each."""

    def __init__(self, words: frozenset[str]) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, name: str) -> bool:
        self[name] = found = not self._words.isdisjoint(name.split(".")[-3:])
        return found


def _aliases(file: PythonFile, words: frozenset[str]) -> frozenset[str]:
    """Other names that a file gives to what the words name."""
    return frozenset(_aliased(file, words))


def _aliased(file: PythonFile, words: frozenset[str]) -> Iterator[str]:
    named = _Named(words)
    for scope in file.body.walk():
        yield from (item.name for item in scope.imports if item.attr in words)
        for assign in scope.assigns:
            value = assign.value
            if value is not None and (last_word(value) in words or (value.kind in _NAMES and named[value.text])):
                yield assign.target.rpartition(".")[2]
