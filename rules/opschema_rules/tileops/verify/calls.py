"""One call of an op as an entry and a row describe it: inputs, params, and the expected results."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import msgspec

from opschema_cli.schema.dtypes import canonical
from opschema_cli.schema.evaluate import Tensor as Bound
from opschema_cli.schema.outcomes import Violated
from opschema_cli.source.yaml import Data
from opschema_cli.verify.model import Call, Input, Output
from opschema_rules.tileops.bindings import BoundRow, bind_row
from opschema_rules.tileops.constraints import excluded_sizes
from opschema_rules.tileops.entry_parts import Row, Tensor
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.param_types import admits_dtypes, is_tuple_only
from opschema_rules.tileops.signature import static_dims
from opschema_rules.tileops.verify.dtypes import Assignment


class Passed(msgspec.Struct, frozen=True):
    """A bound row and the arguments of a call by it: shapes of inputs by name, and the omitted inputs."""

    bound: BoundRow
    shapes: dict[str, tuple[int, ...]]
    omitted: tuple[str, ...]

    def elements(self, entry: OpEntry) -> tuple[int, str]:
        """The size of the largest tensor that a call passes or returns, and its name."""
        outputs = {item.name: shape_of(self.bound, item.name) for item in entry.outputs}
        shapes = [*self.shapes.items(), *outputs.items()]
        sizes = [(math.prod(shape), name) for name, shape in shapes if shape is not None]
        return max(sizes, key=lambda item: item[0], default=(0, ""))


def shape_of(bound: BoundRow, name: str) -> tuple[int, ...] | None:
    """The shape of a tensor in a bound row, where it is known."""
    value = bound.values.get(name)
    return value.shape if isinstance(value, Bound) else None


def passed_inputs(entry: OpEntry, row: Row, carriers: Collection[str]) -> Passed | str:
    """Inputs that a call by a row passes; else why they are not known or not allowed. Carriers are not arguments of a call."""
    repeated = sorted(row.repeated)
    if repeated:
        return f"the row gives `{repeated[0]}` twice"
    bound = bind_row(entry, row)
    return broken_rule(entry, bound) or passed_by(entry, bound, carriers)


def passed_by(entry: OpEntry, bound: BoundRow, carriers: Collection[str]) -> Passed | str:
    """Return the arguments for a bound row that violates no rule."""
    given = bound.row.data
    absent = (item for item in entry.inputs if item.optional and f"{item.name}_shape" not in given)
    omitted = [item.name for item in absent]
    inputs = [item.name for item in entry.inputs if item.name not in carriers and item.name not in omitted]
    shapes = {name: shape_of(bound, name) for name in inputs}
    known = {name: shape for name, shape in shapes.items() if shape is not None}
    unknown = [f"`{name}`" for name in inputs if name not in known]
    if unknown:
        return f"the row gives no shape of {', '.join(unknown)}, and no rule gives it"
    return Passed(bound, known, tuple(omitted))


def broken_rule(entry: OpEntry, bound: BoundRow) -> str:
    """Return the rule that a bound row violates, as text; empty if there is none."""
    for equation, outcome in bound.outcomes:
        if isinstance(outcome, Violated):
            return f"the row breaks `{equation.expression.snippet}`"
    for item in excluded_sizes(entry, bound):
        return f"the row gives `{item.dimension}` of `{item.tensor}` the size {item.size}, which a constraint excludes"
    return ""


def make_call(entry: OpEntry, passed: Passed, assignment: Assignment, dtype: str) -> Call | str:
    """The call by a row with these dtypes; else why it is not known. ``dtype`` is the row's."""
    params = _params(entry, passed, assignment, dtype)
    if isinstance(params, str):
        return params
    inputs = [item for item in entry.inputs if item.name in passed.shapes]
    written = {item.name for item in inputs if item.mutated}
    return Call(
        inputs=tuple(_input(item, passed, assignment) for item in inputs),
        params=params,
        tuples=tuple(param.name for param in entry.params if is_tuple_only(param.type)),
        defaults=_defaults(entry, params),
        static_dims=tuple(key.value for key, _, _ in static_dims(entry)),
        outputs=tuple(_outputs(entry, passed, assignment)),
        omitted=passed.omitted,
        aliases={item.name: item.name for item in entry.outputs if item.name in written},
    )


def _input(tensor: Tensor, passed: Passed, assignment: Assignment) -> Input:
    name = tensor.name
    return Input(name=name, shape=passed.shapes[name], dtype=assignment.dtypes[name], mutated=tensor.mutated)


def _outputs(entry: OpEntry, passed: Passed, assignment: Assignment) -> Iterator[Output]:
    inputs = {item.name for item in entry.inputs}
    for tensor in entry.outputs:
        key = tensor.name + "'" if tensor.name in inputs else tensor.name
        yield Output(name=tensor.name, shape=shape_of(passed.bound, tensor.name), dtype=assignment.dtypes.get(key))


def _params(entry: OpEntry, passed: Passed, assignment: Assignment, dtype: str) -> dict[str, Data] | str:
    """Values of params by name: those of the row, static dimensions, and the row's dtype where nothing else carries it.

    What has a default that the row leaves alone is left to the code.
    """
    given = passed.bound.row.data
    found: dict[str, Data] = {}
    for name in (key.value for key, _, _ in static_dims(entry)):
        size = passed.bound.values.get(name)
        if type(size) is not int:
            return f"the static dimension `{name}` is not known"
        found[name] = size
    alone = [param for param in entry.params if admits_dtypes(param.type) and param.name not in given]
    for param in entry.params:
        if param.name in given:
            found[param.name] = _dtype_name(given[param.name]) if admits_dtypes(param.type) else given[param.name]
        elif alone == [param] and not (assignment.carried and param.has_default):
            found[param.name] = _dtype_name(dtype)
        elif not param.has_default:
            return f"the row gives no value of `{param.name}`, which has no default"
    strange = next((name for name, value in found.items() if not _is_plain(value)), None)
    return f"the value of `{strange}` cannot be passed on" if strange is not None else found


def _defaults(entry: OpEntry, params: dict[str, Data]) -> dict[str, Data]:
    """Return the declared defaults of params that a call does not pass; None usually means a function's own default."""
    own = [param for param in entry.params if param.has_default and param.name not in params]
    values = {item.name: _dtype_name(item.default) if admits_dtypes(item.type) else item.default for item in own}
    return {name: value for name, value in values.items() if value is not None and _is_plain(value)}


def _dtype_name(value: Data) -> Data:
    """Return a dtype by its torch name, which identifies it as one: ``torch.float16``."""
    return f"torch.{canonical(value.removeprefix('torch.'))}" if isinstance(value, str) else value


def _is_plain(value: Data) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return type(value) is not int or -(1 << 63) <= value < 1 << 63
