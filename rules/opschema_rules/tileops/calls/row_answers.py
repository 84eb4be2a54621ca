"""Answers of an op's class to workloads, of this tree or another: its constructor, `_infer_output_shapes()` and
`_validate_dtypes()` are interpreted with the values of each. Nothing is executed.

`forward()` is not. With the fakes of its operators (:mod:`opschema_rules.tileops.calls.fakes`) 628 of 1,048 calls of TileOPs
return, but some refusals depend on attributes that `dispatch_kernel()` sets at run time, and all rows take three times as long
as reading a side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned
from opschema_cli.evaluation.execution.values import Object, TensorValue
from opschema_cli.operators.answers import RowAnswer
from opschema_cli.operators.model import WorkloadRow
from opschema_cli.source.yaml import Data, YamlSyntaxError
from opschema_cli.source.yaml_compose import compose
from opschema_rules.tileops.bindings import BoundRow, bind_row
from opschema_rules.tileops.calls.code import code_of
from opschema_rules.tileops.calls.described import DescribedCall, Shape
from opschema_rules.tileops.calls.dialect import CALLED_ON, called_on_devices
from opschema_rules.tileops.calls.dtypes import VALIDATE
from opschema_rules.tileops.calls.findings import is_explicit
from opschema_rules.tileops.calls.outcomes import INFER, construct, constructor_arguments, method_outcome
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import Manifest, OpImplementation
from opschema_rules.tileops.verify.dtypes import assignments

_UNKNOWN = RowAnswer()


def row_answers(
    manifests: Sequence[Manifest], rows: Mapping[str, Sequence[WorkloadRow]]
) -> dict[str, tuple[RowAnswer, ...]]:
    """The answers to the rows of each op, in their order; ops without a class that is known are left out."""
    ops = {op.name: op for item in manifests for op in item.implementations if op.entry.implemented}
    return {name: tuple(_Asked(ops[name]).answers(items)) for name, items in rows.items() if name in ops}


class _Asked:
    """An op to which questions are put."""

    def __init__(self, op: OpImplementation) -> None:
        self.code = code_of(op)
        self.op, self.entry = self.code.traced(op), op.entry
        self.made: dict[str, Outcome] = {}

    def answers(self, rows: Sequence[WorkloadRow]) -> Iterator[RowAnswer]:
        """Yield the answers to rows; equal rows are examined once."""
        known: dict[object, RowAnswer] = {}
        for row in rows:
            key = (*sorted(row.values.items()), row.dtypes)
            if key not in known:
                known[key] = self._answer(row)
            yield known[key]

    def _answer(self, row: WorkloadRow) -> RowAnswer:
        bound = self._bound(row)
        if bound is None or any(self.entry.param(name) is None and not _is_shape(name) for name in row.values):
            return _UNKNOWN
        made = self._made(bound)
        if not isinstance(made, Returned) or not isinstance(made.value, Object):
            return self._of(made, "__init__")
        shapes = DescribedCall(bound, "row").shapes(self.entry)
        return self._called(made.value, shapes, row.dtypes)

    def _called(self, this: Object, shapes: Mapping[str, Shape | None], dtypes: Sequence[str]) -> RowAnswer:
        arguments: dict[str, object] = {f"{name}_shape": shape for name, shape in shapes.items()}
        answers = [self._method(this, INFER, arguments)]
        answers += [self._method(this, VALIDATE, tensors) for tensors in self._tensors(shapes, dtypes)]
        refused = next((item for item in answers if item.refused), None)
        return refused or RowAnswer(all(item.accepted for item in answers))

    def _method(self, this: Object, method: str, arguments: dict[str, object]) -> RowAnswer:
        if self.op.method(method) is None:
            return RowAnswer(True)
        found = called_on_devices(
            lambda given: method_outcome(self.code.executor, self.op, this, method, given), arguments
        )
        return self._of(found, method)

    def _of(self, outcome: Outcome, method: str) -> RowAnswer:
        if not isinstance(outcome, Raised):
            return RowAnswer(isinstance(outcome, Returned))
        if not is_explicit(self.entry.manifest, outcome):
            return _UNKNOWN
        text = f": {outcome.message}" if outcome.message else ""
        return RowAnswer(False, f"`{outcome.exception}` in `{method}()`{text}", outcome.place)

    def _made(self, bound: BoundRow) -> Outcome:
        arguments = constructor_arguments(self.op, bound)
        key = repr(sorted(arguments.items()))
        if key not in self.made:
            self.made[key] = construct(self.code.executor, self.op, arguments)
        return self.made[key]

    def _bound(self, row: WorkloadRow) -> BoundRow | None:
        """Return the row with its consequences in this tree; None if it cannot be read or passes a tensor without a shape."""
        text = ", ".join(f"{key}: {value}" for key, value in row.values.items())
        try:
            document = compose(f"{{{text}}}")
            data = document.data()
        except YamlSyntaxError:
            return None
        node = document.root
        if node is None or not isinstance(data, dict):
            return None
        own: dict[str, Data] = {key: value for key, value in data.items() if isinstance(key, str)}
        return bind_row(self.entry, Row(0, node, own))

    def _tensors(self, shapes: Mapping[str, Shape | None], dtypes: Sequence[str]) -> Iterator[dict[str, object]]:
        """The inputs by name, of each dtype of a row."""
        passed = [name for name, shape in shapes.items() if shape is not None]
        for dtype in dtypes:
            found = assignments(self.entry, dtype, passed)
            for item in found[:1] if isinstance(found, list) else ():
                yield {
                    name: TensorValue(shape, item.dtypes[name], CALLED_ON) if shape is not None else None
                    for name, shape in shapes.items()
                }


def _is_shape(key: str) -> bool:
    return key.endswith("_shape")
