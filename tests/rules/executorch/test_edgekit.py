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

EDGEKIT, BROKEN = TILEKIT.with_name("edgekit"), TILEKIT.with_name("edgekit_broken")


def found_in(fixture: Path) -> list[str]:
    workspace = Workspace(fixture)
    linted = lint_files([PACK, TORCHLIB], {path: workspace.source(path).text for path in workspace.files})
    return [
        f"{item.place.path}:{position.line}:{position.column}: {item.name}"
        for item in linted.diagnostics
        for position in [linted.position(item.place)]
    ]


def test_lint_finds_nothing_in_edgekit() -> None:
    assert found_in(EDGEKIT) == []


def test_lint_finds_each_fault_of_edgekit_broken() -> None:
    assert found_in(BROKEN) == [
        "CMakeLists.txt:6:39: unknown-selected-operator",
        "kernels/cpu/op_custom.cpp:10:5: runtime-kernel-signature",
        "kernels/cpu/op_shapes.cpp:31:9: runtime-kernel-signature",
        "kernels/cpu/op_shapes.cpp:41:5: runtime-kernel-signature",
        "kernels/custom.yaml:3:38: declared-differently",
        "kernels/custom.yaml:9:66: func-schema",
        "kernels/custom.yaml:16:3: unknown-entry-field",
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
