"""JSON Schema of the files that list Paddle's operators, from the fields that the rules check with."""

from __future__ import annotations

from collections.abc import Set

from opschema_rules.aten.schemas import TEXT, list_of, mapping_of, schema_of
from opschema_rules.paddle.detection import op_files
from opschema_rules.paddle.model import DATA_TRANSFORM, FIELDS, INFER_META, KERNEL, Tree

_TITLES = {
    "args": "inputs and attributes: `(Tensor x, float factor = 1.0f)`",
    "output": "outputs: `Tensor(out), Tensor[](parts){n}`",
    "forward": "the operator that the gradient belongs to: `scale (Tensor x) -> Tensor(out)`",
    "inplace": "pairs of an input and an output: `(x -> out)`",
    "view": "pairs of an input and an output: `(x -> out)`",
    "optional": "tensors that may be absent",
}
_MAPPINGS = {"infer_meta": INFER_META, "kernel": KERNEL, "data_transform": DATA_TRANSFORM}


def ops_schema(more: Set[str]) -> dict[str, object]:
    """The schema of ops.yaml, backward.yaml and the like; ``more`` are fields that the parser of the tree knows as well."""
    known: dict[str, object] = {field: {} for field in sorted(FIELDS | more)}
    known |= {field: {**TEXT, "title": title} for field, title in _TITLES.items()}
    known |= {field: mapping_of({one: {} for one in sorted(fields | more)}) for field, fields in _MAPPINGS.items()}
    known["output"] = {"type": ["string", "null"], "title": _TITLES["output"]}
    known |= {"op": TEXT, "backward_op": TEXT, "support_dygraph_mode": {"enum": [True, False]}}
    heads = [{"required": ["op"]}, {"required": ["backward_op"]}]
    return list_of("an operator list of PaddlePaddle", known, required=["args", "output"], anyOf=heads)


SCHEMAS = (schema_of("ops", lambda project, options: ops_schema(Tree(project, options).keys), op_files),)
