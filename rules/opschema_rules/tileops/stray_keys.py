"""The keys of workload rows where they derive from the signature, and the probable meaning of any other key."""

from __future__ import annotations

import msgspec

from opschema_cli.suggestions import nearest
from opschema_rules.tileops.bindings import RESERVED_KEYS
from opschema_rules.tileops.entry_parts import Row, Tensor
from opschema_rules.tileops.model import OpEntry


class RowKeys(msgspec.Struct, frozen=True):
    """Keys of the rows of an op with one tensor input: the key of its shape, and the params; None if these are not all known."""

    input: Tensor
    shape: str
    params: frozenset[str] | None

    def stray(self, row: Row) -> dict[str, str | None]:
        """The keys of a row that nobody reads, each with the key that it was probably meant to be."""
        if self.params is None:
            return {}
        known = {self.shape, *RESERVED_KEYS, *self.params}
        free = known - row.data.keys()
        unknown = [key for key in row.data if key not in known and not key.startswith("__")]
        shapes = [key for key in unknown if key.endswith("_shape")]
        only = shapes[0] if len(shapes) == 1 and self.shape in free else None
        return {key: self.shape if key == only else nearest(key, free, 0.75) for key in unknown}


def row_keys(entry: OpEntry) -> RowKeys | None:
    """Return the keys that rows must have; None if the keys are free."""
    declared = _only_input(entry)
    if declared is None or not entry.manifest.spec.knows("workload-keys"):
        return None
    if not any(key.endswith("_shape") for row in entry.rows for key in row.data):
        return None  # the family sizes its tensors by params alone
    params = frozenset(param.name for param in entry.params) if _all_params_known(entry) else None
    return RowKeys(declared, f"{declared.name}_shape", params)


def misspelt(entry: OpEntry, row: Row) -> set[str]:
    """The keys that a row lacks because it has another one in their place, which `workload-keys` reports."""
    keys = row_keys(entry)
    return {meant for meant in keys.stray(row).values() if meant is not None} if keys is not None else set()


def _only_input(entry: OpEntry) -> Tensor | None:
    owner = entry.get("signature", "inputs")
    single = owner is not None and len(owner.items) == 2 and len(entry.inputs) == 1 and entry.inputs[0].name != "<<"
    return entry.inputs[0] if single else None


def _all_params_known(entry: OpEntry) -> bool:
    owner = entry.get("signature", "params")
    if entry.doubtful("signature", "params"):
        return False
    if owner is None or (owner.kind == "scalar" and entry.data_of(owner) is None):
        return True
    return owner.is_mapping and len(list(owner.pairs())) == len(entry.params) and entry.param("<<") is None
