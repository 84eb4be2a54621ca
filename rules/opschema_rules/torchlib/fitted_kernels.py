"""Kernels that are called with inputs of an operator: for those that TileLang compiles, with the shapes that they require."""

from __future__ import annotations

import msgspec

from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Unresolved
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.passing import pairs
from opschema_rules.torchlib.shape_inputs import Input
from opschema_rules.torchlib.tilelang import TileLang


def called(
    executor: Executor, schema: OperatorSchema, body: Body, item: Input, made: dict[str, object] | None = None
) -> Outcome:
    """The outcome of calling a function as the dispatcher does; ``made`` gets its arguments."""
    taken = pairs(schema, body.params)
    arguments = {argument.name: item.argument(argument) for argument, _ in taken}
    named = {param.name: arguments[argument.name] for argument, param in taken if argument.kwarg_only}
    if any(param.kind == "vararg" for param in body.params):
        arguments = {argument.name: item.argument(argument) for argument in schema.arguments}
    by_position = [argument.name for argument in schema.arguments if not argument.kwarg_only]
    positional = [arguments[name] for name in by_position if name in arguments]
    if made is not None:
        made.update(arguments)
    return executor.call(body, named, positional)


class _Run(msgspec.Struct, frozen=True):
    """The outcome for a fitted input; ``strict`` if no kernel of TileLang would have refused its shapes."""

    outcome: Outcome
    strict: bool


class FittedKernel:
    """The kernel of an operator. ``fitted`` are the tensors that it passes to a kernel of TileLang, which requires their shapes."""

    def __init__(self, executor: Executor, schema: OperatorSchema, body: Body, tilelang: TileLang | None) -> None:
        self.executor = executor
        self.schema = schema
        self.body = body
        self.tilelang = tilelang if "tilelang" in body.file.source.text else None
        self.fitted: frozenset[str] = frozenset()
        self._runs: dict[object, _Run] = {}

    def fit(self, item: Input, most_steps: int) -> Input:
        """Return the input with the shapes that a TileLang kernel requires, if the input is passed on to it."""
        tilelang = self.tilelang
        if tilelang is None or item.key in self._runs:
            return item
        tilelang.passed = []
        tilelang.lenient, tilelang.refused = True, False
        arguments: dict[str, object] = {}
        with self.executor.at_most(most_steps):
            outcome = called(self.executor, self.schema, self.body, item, arguments)
        tilelang.lenient = False
        declared = {
            name: param
            for name, value in arguments.items()
            for given, param in tilelang.passed
            if given is value and all(isinstance(size, int) for size in param.shape)
        }
        # A run that raises before it calls a kernel shows nothing about what the kernel requires.
        if tilelang.passed or not isinstance(outcome, Raised):
            self.tilelang = tilelang if tilelang.passed else None
            self.fitted = frozenset(declared)
        shapes = {name: declared[name].shape if name in declared else shape for name, shape in item.shapes.items()}
        dtypes = {
            name: (declared[name].dtype if name in declared else None) or dtype for name, dtype in item.dtypes.items()
        }
        made = Input(shapes, dtypes, item.values)  # type: ignore[arg-type]
        is_strict = made.key == item.key and not tilelang.refused and not isinstance(outcome, Unresolved)
        self._runs[made.key] = _Run(outcome, is_strict)
        return made

    def outcome(self, item: Input, *, strict: bool = True) -> Outcome:
        """The outcome for an input; unless ``strict``, that of the run in which it was fitted, where no shapes are refused."""
        known = self._runs.get(item.key)
        if known is not None and (known.strict or not strict):
            return known.outcome
        return called(self.executor, self.schema, self.body, item)
