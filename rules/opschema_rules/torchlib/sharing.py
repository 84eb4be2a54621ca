"""The operators of a tree as data, for packs that build on this one and may run in another process."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from opschema_cli.evaluation.values import Items, Value
from opschema_cli.project import Project
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassKey
from opschema_rules.torchlib.detection import TorchlibOptions
from opschema_rules.torchlib.graph import Graph, graph_of
from opschema_rules.torchlib.makers import fakes_of, makers_of
from opschema_rules.torchlib.model import Definition, Operator
from opschema_rules.torchlib.rules.effects import undeclared_mutation
from opschema_rules.torchlib.rules.mutates import unused_mutation
from opschema_rules.torchlib.shared import SharedOperator, SharedOperators
from opschema_rules.torchlib.written_arguments import Writes, list_place, parameter_names, stated_place

METHOD = "forward"
"""The method of a class that runs its operators."""


def share(project: Project, options: TorchlibOptions) -> bytes:
    """The operators of a project as data."""
    graph = graph_of(project, options)
    operators = graph.tree.operators
    found = SharedOperators(
        tuple(map(_shared, operators)),
        {ref.key: {METHOD: writes} for ref, writes in Writes(graph).of_classes(METHOD)},
        _written_names(graph),
        any(operator.names is None for operator in operators),
        fakes_of(graph),
        makers_of(graph),
    )
    return msgspec.msgpack.encode(found)


def _shared(operator: Operator) -> SharedOperator:
    definition, mutated = operator.definition, operator.mutated
    known = {name: stated_place(definition, name) for name in sorted(mutated)} if mutated is not None else None
    sound = bool(parameter_names(definition)) and not definition.problems
    judges = (undeclared_mutation, unused_mutation)
    misdeclared = any(True for judge in judges for _ in judge(operator))
    names = tuple(sorted(operator.names or ()))
    return SharedOperator(names, _tensors(definition), known if sound else None, list_place(definition), misdeclared)


def _tensors(definition: Definition) -> tuple[str, ...]:
    """The names of an operator's tensors."""
    if definition.function is None:
        schema = definition.schema
        known = schema.arguments if isinstance(schema, OperatorSchema) else ()
        return tuple(item.name for item in known if item.type.text().startswith("Tensor"))
    annotated = [(item.name, item.annotation) for item in definition.function.params if item.annotation is not None]
    return tuple(name for name, annotation in annotated if any(map(_is_tensor, annotation.walk())))


def _is_tensor(item: Expr) -> bool:
    return item.kind == "name" and item.text.rpartition(".")[2] == "Tensor"


def _written_names(graph: Graph) -> dict[ClassKey, dict[str, tuple[str, ...] | None]]:
    """The strings that code outside classes writes to their attributes."""
    found: dict[ClassKey, dict[str, tuple[str, ...] | None]] = {}
    for (key, name), written in graph.evaluator.written.items():
        values = [value for item in written for value in graph.evaluator.values(item)]
        if any(isinstance(value, Items) for value in values):
            found.setdefault(key, {})[name] = _strings(graph, values)
    return found


def _strings(graph: Graph, values: Iterable[Value]) -> tuple[str, ...] | None:
    texts: list[str | None] = []
    for value in values:
        texts += [graph.evaluator.text(item) for item in value.elements] if isinstance(value, Items) else [None]
        texts += [None] if isinstance(value, Items) and value.open else []
    known = [text for text in texts if text is not None]
    return tuple(dict.fromkeys(known)) if len(known) == len(texts) else None
