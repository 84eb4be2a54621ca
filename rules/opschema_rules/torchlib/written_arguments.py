"""Parameters of methods that an operator writes: the method passes them on to it, or to another method that does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from opschema_cli.evaluation.binding import arguments_of
from opschema_cli.evaluation.values import BoundArgument, Frame, Func, Partial, Value
from opschema_cli.lint.diagnostic import Place
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassKey
from opschema_rules.torchlib.graph import Graph
from opschema_rules.torchlib.model import Definition, Operator
from opschema_rules.torchlib.shared import Write

MAX_METHODS = 3
"""Maximum length of a chain of methods of one object to follow to a call of an operator."""


class Writes:
    """The parameters of methods that the operators of one graph write."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.evaluator = graph.evaluator
        self._index = {operator: index for index, operator in enumerate(graph.tree.operators)}

    def of_classes(self, method: str) -> Iterator[tuple[ClassRef, tuple[Write, ...]]]:
        """The writes of a method, for every class whose objects hold or call an operator that writes an argument."""
        for ref in self._classes() if self._words else ():
            frame = self._frame(ref, method)
            writes = tuple(dict.fromkeys(self._in_method(frame))) if frame is not None else ()
            if writes:
                yield ref, writes

    @cached_property
    def _writing(self) -> list[Operator]:
        return [operator for operator in self.graph.tree.operators if operator.mutated]

    def _classes(self) -> Iterable[ClassRef]:
        """Classes on which such an operator is put, those in whose methods one is called, and those that inherit from these; but
        not those that have an operator only where a class below them does.
        """
        holders = {key for key, _ in self._held}
        calling = (call.body.owner for operator in self._writing for call in operator.calls)
        having = (ref for refs in self._attributes.values() for ref in refs)
        found: dict[ClassRef, None] = {}
        for ref in filter(None, (*map(self.graph.class_of, sorted(holders)), *calling, *having)):
            found.update(dict.fromkeys((ref, *self._below(ref))))
        return [ref for ref in found if ref.key in holders or not any(item.key in holders for item in self._below(ref))]

    def _below(self, ref: ClassRef) -> list[ClassRef]:
        family = self.evaluator.bodies.family(ref)
        return [item for item in family if item != ref and ref in self.evaluator.program.lineage(item)]

    def _frame(self, ref: ClassRef, name: str) -> Frame | None:
        """The frame of a method, called of an object of the class."""
        member = self.evaluator.program.member(ref, name)
        body = self.evaluator.bodies.function(member) if isinstance(member, FunctionRef) else None
        return self.graph.frame(body, ref) if body is not None else None

    @cached_property
    def _words(self) -> frozenset[str]:
        """The names of functions, attributes and operators by which an operator is called that writes an argument."""
        return self._own_words | self._attributes.keys() | {name for _, name in self._held}

    @cached_property
    def _own_words(self) -> frozenset[str]:
        functions = (operator.definition.function for operator in self._writing)
        words = {body.function.name for body in functions if body is not None and body.function is not None}
        names = (name for operator in self._writing for name in operator.names or ())
        return frozenset(words | {name.partition("::")[2].partition(".")[0] for name in names})

    @cached_property
    def _held(self) -> set[tuple[ClassKey, str]]:
        """The attributes of classes to which code outside them writes such an operator."""
        return {attribute for operator in self._writing for attribute in self.graph.holders.get(operator, ())}

    @cached_property
    def _attributes(self) -> dict[str, list[ClassRef]]:
        """The attributes with such an operator that classes themselves define."""
        found: dict[str, list[ClassRef]] = {}
        for ref in self.evaluator.bodies.classes:
            for item in ref.cls.body.assigns:
                names = item.value.walk() if item.value is not None else ()
                if any(name.text.rpartition(".")[2] in self._own_words for name in names):
                    found.setdefault(item.target, []).append(ref)
        return found

    def _in_method(self, root: Frame) -> Iterator[Write]:
        for frame in self._methods(root, MAX_METHODS):
            for call in frame.body.scope.calls:
                for operator in self.graph.operators_in(frame, call.items[0]) or ():
                    yield from self._of_call(root, frame, call, operator)

    def _of_call(self, root: Frame, frame: Frame, call: Expr, operator: Operator) -> Iterator[Write]:
        mutated, arguments = operator.mutated or frozenset(), arguments_of(self.evaluator, frame, call)
        passed = arguments.by_name(parameter_names(operator.definition)) if mutated and not arguments.open else {}
        for name in sorted(mutated & passed.keys()):
            parameter = parameter_of(root, passed[name])
            if parameter:
                yield Write(parameter, self._index[operator], stated_place(operator.definition, name))

    def _methods(self, frame: Frame, hops: int) -> Iterator[Frame]:
        """A method, and the methods of the same object that it calls, those alone in which one of the words occurs."""
        if hops <= 0 or frame.body.function is None:
            return
        if self._speaks(frame):
            yield frame
        this = f"{frame.body.this}."
        for call in frame.body.scope.calls:
            if call.callee.startswith(this) and call.callee.count(".") == 1:
                for value in self.evaluator.evaluate(frame, call.items[0]):
                    entered = self._entered(frame, call, value)
                    if entered is not None:
                        yield from self._methods(entered, hops - 1)

    def _speaks(self, frame: Frame) -> bool:
        function, text = frame.body.function, frame.body.file.source.text
        return function is not None and any(text.find(word, *function.outer) >= 0 for word in self._words)

    def _entered(self, frame: Frame, call: Expr, value: Value) -> Frame | None:
        if not isinstance(value, Partial) or not isinstance(value.target, Func):
            return None
        arguments = value.arguments.joined(arguments_of(self.evaluator, frame, call))
        return self.evaluator.frames.entered(value.target, arguments)


def parameter_of(root: Frame, argument: BoundArgument) -> str:
    """The parameter of the method ``root`` that an argument is, passed on unchanged, or the attribute of its object (``self.x``);
    empty for anything else.
    """
    while argument.expr is not None and argument.expr.kind == "name" and "." not in argument.expr.text:
        frame, name = argument.frame, argument.expr.text
        assigned = any(item.target == name for item in frame.body.scope.assigns)
        if name not in frame.bindings or assigned or name in frame.body.scope.deleted:
            return ""
        if frame is root:
            return name
        argument = frame.bindings[name]
    if argument.expr is None or argument.expr.kind != "name":
        return ""
    owner, _, attribute = argument.expr.text.partition(".")
    this = argument.frame.body.this
    own = bool(this) and owner == this and this not in {item.target for item in argument.frame.body.scope.assigns}
    return f"self.{attribute}" if own and attribute and "." not in attribute else ""


def parameter_names(definition: Definition) -> tuple[str, ...]:
    """The names of an operator's arguments, in their order; empty when they are not known."""
    if isinstance(definition.schema, OperatorSchema):
        return tuple(item.name for item in definition.schema.arguments)
    return tuple(item.name for item in definition.function.params) if definition.function is not None else ()


def stated_place(definition: Definition, name: str) -> Place:
    """The place where a definition states that it writes an argument."""
    listed = definition.call.keyword("mutates_args") if definition.call is not None else None
    items = listed.items if listed is not None else ()
    item = next((item for item in items if item.value == name), None)
    return definition.body.at(item) if item is not None and definition.body is not None else list_place(definition)


def list_place(definition: Definition) -> Place:
    """The place where a definition states all arguments that it writes."""
    return definition.mutates_place or definition.written
