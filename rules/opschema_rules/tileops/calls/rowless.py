"""Calls of entries without workload rows: their params without default get values, so that the shapes of inputs can be found."""

from __future__ import annotations

from opschema_cli.source.yaml import Data
from opschema_rules.tileops.bindings import BoundRow, bind_row
from opschema_rules.tileops.calls.witnesses import completed
from opschema_rules.tileops.entry_parts import ParamDecl, Row
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import param_values

_SIZES = (2, 3, 4, 5, 6, 8, 1, 0, -1, 16, 64)
_VALUES: tuple[Data, ...] = (False, 0.5, [3], [2, 3], [2, 3, 4], [160])
"""Values that are tried for a param that takes no integer; the last is a size that is tried for an input."""


def call_without_row(entry: OpEntry) -> BoundRow | None:
    """A call that the signature allows, its params without default distinct if possible; None if none is found."""
    bound = bind_row(entry, Row(0, entry.node, {}))
    for param in entry.params:
        if not param.has_default:
            bound = _with_value(entry, bound, param) or bound
    whole = completed(entry, bound)
    return whole if whole is not None and not whole.broken else None


def _with_value(entry: OpEntry, bound: BoundRow, param: ParamDecl) -> BoundRow | None:
    """The row with a value of a param, for which the shapes of the inputs can be found too."""
    used = [item for item in bound.row.data.values() if isinstance(item, int)]
    values: list[Data] = [*(size for size in _SIZES if size not in used), *_VALUES, *used]
    for value in values:
        if any(True for _ in param_values(param, value)):
            row = bind_row(entry, Row(0, entry.node, {**bound.row.data, param.name: value}))
            if not row.broken and completed(entry, row) is not None:
                return row
    return None
