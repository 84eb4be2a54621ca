"""JSON Schema of ExecuTorch's operator lists, from the fields that the rules check with."""

from __future__ import annotations

from opschema_rules.aten.schemas import TEXT, list_of, mapping_of, native_fields, schema_of
from opschema_rules.aten.torchgen_table import newest_torchgen
from opschema_rules.executorch.detection import files_of
from opschema_rules.executorch.model import KERNEL_FIELDS, OWN_FIELDS


def list_schema() -> dict[str, object]:
    """The schema of functions.yaml and the like."""
    of_kernel: dict[str, object] = {
        "kernel_name": {**TEXT, "title": "the C++ function"},
        "arg_meta": {"type": ["object", "null"], "title": "the dtypes and dim orders that the kernel takes"},
    }
    fields = {field: of_kernel.get(field, {}) for field in sorted(KERNEL_FIELDS)}
    kernel = mapping_of(fields, required=["kernel_name"])
    known: dict[str, object] = {
        **native_fields(newest_torchgen().vocabulary),
        **{field: {} for field in sorted(OWN_FIELDS)},
        "op": {**TEXT, "title": "name and overload of an operator of ATen", "x-values": "operator"},
        "kernels": {"type": "array", "items": kernel},
    }
    return list_of("an operator list of ExecuTorch", known, oneOf=[{"required": ["op"]}, {"required": ["func"]}])


SCHEMAS = (schema_of("functions", lambda project, options: list_schema(), files_of),)
