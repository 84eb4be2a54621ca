"""The fixture bindkit: sound, and with each of many faults; and the operators that it shows."""

from __future__ import annotations

import pytest

from opschema_cli.operators.model import Operator
from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.bindings.detection import BindingsOptions
from opschema_rules.bindings.operator_table import operators
from opschema_rules.bindings.pack import PACK
from tests.command import TILEKIT
from tests.rules.bindings.faults import FAULTS, Fault

BINDKIT = TILEKIT.with_name("bindkit")


def texts_of_bindkit() -> dict[str, str]:
    workspace = Workspace(BINDKIT)
    return {path: workspace.source(path).text for path in workspace.files}


def codes_in(texts: dict[str, str]) -> list[str]:
    return lint_files(PACK, texts).codes()


def test_lint_finds_nothing_in_bindkit() -> None:
    assert codes_in(texts_of_bindkit()) == []


@pytest.mark.parametrize("fault", [pytest.param(item, id=item.kind) for item in FAULTS])
def test_a_fault_is_reported(fault: Fault) -> None:
    texts = texts_of_bindkit()
    assert fault.before in texts[fault.path]
    texts[fault.path] = texts[fault.path].replace(fault.before, fault.after, 1)
    found = codes_in(texts)
    assert fault.code in found if fault.code is not None else found == []


def test_most_kinds_of_faults_are_reported() -> None:
    assert len({item.kind for item in FAULTS}) == len(FAULTS) >= 40
    assert sum(item.code is not None for item in FAULTS) >= len(FAULTS) * 9 // 10


@pytest.fixture(scope="module")
def table() -> dict[str, Operator]:
    return {item.name: item for item in operators(Project(Workspace(BINDKIT)), BindingsOptions())}


def test_list(table: dict[str, Operator]) -> None:
    assert sorted(name.removeprefix("bindkit._C.") for name in table) == [
        *("debug.threads", "fill_float", "fill_int", "multiply", "norm", "norm_backward", "numel", "round_to"),
        *("scale", "scale_", "scale_cuda", "shift", "split"),
    ]


def test_show(table: dict[str, Operator]) -> None:
    norm = table["bindkit._C.norm"]
    assert norm.declaration.form == "pybind11"
    found = [(item.name, item.type, item.default) for item in norm.declaration.arguments or ()]
    assert found == [("x", "const at::Tensor&", None), ("eps", "float", "1e-6"), ("keepdim", "bool", "true")]
    (kernel,) = norm.implementations
    assert (kernel.symbol, kernel.place and kernel.place.path) == ("&norm", "csrc/norm.cpp")
    assert [use.text for use in norm.uses] == ["_C.norm(x, eps, keepdim=True)", "_C.norm(x.detach(), keepdim=False)"]
    assert len(table["bindkit._C.shift"].implementations) == 2
    assert table["bindkit._C.scale_cuda"].implementations[0].conditional
