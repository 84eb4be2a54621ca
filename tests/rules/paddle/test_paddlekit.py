"""The fixture paddlekit: sound, and with faults; and the operators that it shows."""

from __future__ import annotations

import pytest

from opschema_cli.operators.model import Operator
from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.paddle.detection import PaddleOptions
from opschema_rules.paddle.operator_table import operators
from opschema_rules.paddle.pack import PACK
from tests.command import TILEKIT

PADDLEKIT = TILEKIT.with_name("paddlekit")
YAML = "paddle/phi/ops/yaml"

FAULTS = {
    "ops.yaml": [
        ("inplace : (x -> out)", "inplace : (x -> output)"),
        ("int axis = 0", "integer axis = 0"),
        ("bool multi_precision = false", "bool multi_precision = False"),
        ("backward : square_grad", "backward : square_gard"),
    ],
    "backward.yaml": [
        ("Scalar min = -1.0f, Scalar max", "float min = -1.0f, Scalar max"),
        ("composite : square_grad(x,", "composite : square_grad(xs,"),
    ],
    "inconsistent/dygraph_ops.yaml": [("int64_t steps = 1", "int steps = 1")],
    "inconsistent/onednn_ops_extra.yaml": [("data_format_tensors : x", "data_format_tensors : input")],
    "op_compat.yaml": [("param_out : ParamOut", "params_out : ParamOut")],
    "op_version.yaml": [("op : clamp", "op : clip")],
    "python_api_info.yaml": [("x : [input]", "y : [input]")],
}
"""A person's changes to the files."""


def texts_of_paddlekit() -> dict[str, str]:
    workspace = Workspace(PADDLEKIT)
    return {path: workspace.source(path).text for path in workspace.files}


def with_faults() -> dict[str, str]:
    texts = texts_of_paddlekit()
    for name, faults in FAULTS.items():
        for before, after in faults:
            path = f"{YAML}/{name}"
            assert before in texts[path], before
            texts[path] = texts[path].replace(before, after, 1)
    return texts


def found_in(texts: dict[str, str]) -> list[str]:
    linted = lint_files([PACK], texts)
    return [
        f"{item.place.path.removeprefix(YAML)[1:]}:{position.line}:{position.column}: {item.name}"
        for item in linted.diagnostics
        for position in [linted.position(item.place)]
    ]


def test_lint_finds_nothing_in_paddlekit() -> None:
    assert found_in(texts_of_paddlekit()) == []


def test_lint_finds_each_fault() -> None:
    assert found_in(with_faults()) == [
        "backward.yaml:3:30: forward-differs",
        "backward.yaml:43:27: unknown-tensor",
        "inconsistent/dygraph_ops.yaml:9:12: cpp-call",
        "inconsistent/onednn_ops_extra.yaml:4:25: unknown-listed-name",
        "op_compat.yaml:22:5: unknown-compat-name",
        "op_version.yaml:2:8: operator-version",
        "ops.yaml:11:19: unknown-tensor",
        "ops.yaml:15:36: operator-syntax",
        "ops.yaml:43:83: default-value-type",
        "ops.yaml:59:14: unpaired-gradient",
        "python_api_info.yaml:5:5: unknown-listed-name",
    ]


@pytest.fixture(scope="module")
def table() -> dict[str, Operator]:
    return {item.name: item for item in operators(Project(Workspace(PADDLEKIT)), PaddleOptions())}


@pytest.mark.parametrize(
    ("name", "form", "related", "implementations"),
    [
        ("square", "op", ["backward square_grad"], ["fake UnchangedInferMeta", "kernel phi::SquareKernel"]),
        (
            "square_grad",
            "backward_op",
            ["backward square_double_grad", "forward square"],
            ["fake UnchangedInferMeta", "kernel phi::SquareGradKernel"],
        ),
        ("pir::shift", "op", [], ["fake UnchangedInferMeta", "kernel phi::ShiftKernel"]),
        ("sparse::square", "op", [], ["fake UnchangedInferMeta"]),
    ],
)
def test_show(table: dict[str, Operator], name: str, form: str, related: list[str], implementations: list[str]) -> None:
    found = table[name]
    assert found.declaration.form == form
    assert [f"{item.relation} {item.name}" for item in found.related] == related
    assert [f"{item.role} {item.symbol}" for item in found.implementations] == implementations


def test_show_arguments(table: dict[str, Operator]) -> None:
    found = table["interleave"]
    arguments = found.declaration.arguments or ()
    assert [(item.name, item.role, item.default, item.optional) for item in arguments] == [
        ("x", "input", None, False),
        ("mask", "input", None, True),
        ("axis", "attribute", "0", False),
        ("strides", "attribute", "{1, 1}", False),
        ("data_format", "attribute", '"NCHW"', False),
    ]
    (kernel,) = (item for item in found.implementations if item.role == "kernel")
    assert [item.name for item in kernel.signatures[0].parameters or ()] == [item.name for item in arguments]
