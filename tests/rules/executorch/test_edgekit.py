"""The fixture edgekit: sound, and with faults; and the operators that it shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from opschema_cli.operators.model import Operator
from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.executorch.detection import ExecutorchOptions
from opschema_rules.executorch.operator_table import operators
from opschema_rules.executorch.pack import PACK
from opschema_rules.torchlib.pack import PACK as TORCHLIB
from tests.command import TILEKIT
from tests.rules.executorch.faults import KINDS, missed

EDGEKIT = TILEKIT.with_name("edgekit")

FAULTS = {
    "kernels/functions.yaml": [
        ("op: sum.IntList_out", "op: sum.dim_out"),
        ("edgekit::add_out", "edgekit::native::add_out"),
        ("- op: abs.out", "- op: add.out"),
        ("edgekit::expand_copy_out", "edgekit::expand_out"),
        ("other: [T0, D0]", "other: [T1, D0]"),
        ("self: [T0, D0]", "input: [T0, D0]"),
    ],
    "kernels/custom.yaml": [
        ("bool periodic, *, ", "bool periodic,*, "),
        ("float factor", "int factor"),
        ("variants: function", "variant: function"),
    ],
    "kernels/cpu/op_shapes.cpp": [
        ("int64_t dim,", "int dim,"),
        (
            "KernelRuntimeContext& ctx,\n    const Tensor& in,\n    ArrayRef<optional",
            "const Tensor& in,\n    ArrayRef<optional",
        ),
    ],
    "CMakeLists.txt": [("edgekit::window.out", "edgekit::windows.out")],
}
"""A person's changes to the files."""


def texts_of_edgekit() -> dict[str, str]:
    workspace = Workspace(EDGEKIT)
    return {path: workspace.source(path).text for path in workspace.files}


def with_faults() -> dict[str, str]:
    texts = texts_of_edgekit()
    for path, faults in FAULTS.items():
        for before, after in faults:
            assert before in texts[path], before
            texts[path] = texts[path].replace(before, after, 1)
    return texts


def found_in(texts: dict[str, str]) -> list[str]:
    linted = lint_files([PACK, TORCHLIB], texts)
    return [
        f"{item.place.path}:{position.line}:{position.column}: {item.name}"
        for item in linted.diagnostics
        for position in [linted.position(item.place)]
    ]


def test_lint_finds_nothing_in_edgekit() -> None:
    assert found_in(texts_of_edgekit()) == []


def test_lint_finds_each_fault() -> None:
    assert found_in(with_faults()) == [
        "CMakeLists.txt:6:39: unknown-selected-operator",
        "kernels/cpu/op_custom.cpp:10:5: runtime-kernel-signature",
        "kernels/cpu/op_shapes.cpp:31:9: runtime-kernel-signature",
        "kernels/cpu/op_shapes.cpp:41:5: runtime-kernel-signature",
        "kernels/custom.yaml:3:38: declared-differently",
        "kernels/custom.yaml:4:3: unknown-entry-field",
        "kernels/custom.yaml:9:66: func-schema",
        "kernels/functions.yaml:6:20: runtime-kernel-namespace",
        "kernels/functions.yaml:8:7: unknown-aten-operator",
        "kernels/functions.yaml:18:7: listed-twice",
        "kernels/functions.yaml:27:20: missing-runtime-kernel",
        "kernels/functions.yaml:47:9: meta-argument",
        "kernels/functions.yaml:48:17: undefined-alias",
    ]


def test_faults_that_are_put_into_edgekit_are_reported(tmp_path: Path) -> None:
    total, lost = missed(Workspace(Path(shutil.copytree(EDGEKIT, tmp_path / "edgekit"))), 1)
    assert (total >= 9, lost) == (True, [])
    assert len(KINDS) == 20


@pytest.fixture(scope="module")
def table() -> dict[str, Operator]:
    return {item.name: item for item in operators(Project(Workspace(EDGEKIT)), ExecutorchOptions())}


@pytest.mark.parametrize(
    ("name", "form", "schema", "kernel"),
    [
        ("edgekit::scale.out", "declared", "(Tensor x, float factor, ", "edgekit::native::scale_out"),
        ("aten::add.out", "listed", "(Tensor self, Tensor other, ", "edgekit::native::add_out"),
    ],
)
def test_show(table: dict[str, Operator], name: str, form: str, schema: str, kernel: str) -> None:
    found = table[name]
    assert (found.declaration.form, schema in found.declaration.schema) == (form, True)
    (implementation,) = found.implementations
    assert implementation.symbol == kernel
    assert implementation.place is not None
    assert implementation.place.path.endswith(".cpp")
