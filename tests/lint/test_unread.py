"""Declarations of operators that no pack reads are counted and named, and nothing else is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from opschema_cli.config import Config
from opschema_cli.lint.registry import load_registry
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.sightings import SIGHTINGS

EDGE = "- func: aten::abs\n  inherits: aten::abs\n  type_constraint:\n  - self: T0\n  type_alias:\n    T0: [Bool]\n"
NAMES_ALONE = "- op: abs.out\n\n- op: add.out\n\n- op: mul.out\n"
TABLE = "rows:\n- aten::add\n- aten::mul\n- aten::sub.Tensor\n"
SCHEMAS = "".join(f"- schema: my::{name}(Tensor x, int n) -> Tensor\n" for name in "abc")
ROWS = (
    'lib = torch.library.Library("aten", "IMPL")\nTABLE = (\n    ("abs", abs),\n    ("add.Tensor", ops.add, "x"),\n)\n'
)
KERNELS = 'registry().impl("aten::abs", f)\n'
BINDINGS = 'PYBIND11_MODULE(ext, m) {\n  m.def("f", &f);\n  m.def("g", &g, py::arg("x"));\n}\n'
HELPER = 'void init(py::module &m) {\n  m.def("f", &f);\n}\n'
CUSTOM = """#define PD_BUILD_STATIC_OP(name) PD_BUILD_OP(static_op_##name)
PD_BUILD_OP(relu).Inputs({"X"}).Outputs({"Out"});
PD_BUILD_GRAD_OP(relu).Inputs({"X"}).Outputs({"Out"});
PD_BUILD_STATIC_OP(gelu)
    .Inputs({"X"});
"""
NATIVE = "- func: f(Tensor x) -> Tensor\n- func: g(Tensor x) -> Tensor\n- func: h(Tensor x) -> Tensor\n"


def lint(root: Path, files: dict[str, str]) -> Outcome:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    registry = load_registry()
    return run(Job(registry, resolve_settings(Config(), registry)), Project(Workspace(root)))


def named(outcome: Outcome) -> list[str]:
    return [f"{item.count} {item.noun}: {item.files} {item.example}" for item in outcome.unread]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/edge.yaml": EDGE * 2}, "1 YAML file of ExecuTorch's edge dialect: 1 a/edge.yaml"),
        ({"table.yaml": TABLE, "s.yaml": SCHEMAS}, "2 YAML files that list operators: 2 s.yaml"),
        ({"kit/__init__.py": ROWS}, "2 rows that name aten operators: 1 kit/__init__.py"),
        ({"a.py": KERNELS, "b.py": KERNELS}, "2 kernels of aten operators: 2 a.py"),
        ({"m.cpp": BINDINGS}, "2 bindings of pybind11 or nanobind: 1 m.cpp"),
        ({"m.cpp": BINDINGS, "b.cu": HELPER}, "3 bindings of pybind11 or nanobind: 2 b.cu"),
        ({"relu.cu": CUSTOM}, "2 custom operators of PaddlePaddle: 1 relu.cu"),
    ],
)
def test_what_no_pack_reads_is_named_once(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    outcome = lint(tmp_path, files)
    assert (named(outcome), outcome.nothing, outcome.diagnostics) == ([expected], True, [])


@pytest.mark.parametrize(
    "files",
    [
        {"patch.yaml": "- op: replace\n  path: /a\n- op: add\n  path: /b\n- op: remove\n  path: /c\n"},
        {"values.yaml": "kernels:\n- name: a\n"},
        {"notes.yaml": "text: it calls aten::add once\n"},
        {"rows.py": '# aten\nTABLE = (\n    ("abs", abs),\n)\n'},
        {"lib.cpp": 'TORCH_LIBRARY_IMPL(aten, CPU, m) {\n}\nvoid f() { x.def("a", 1); }\n'},
        {"relu.cc": "// PD_BUILD_OP(relu)\n#define BUILD PD_BUILD_OP(relu)\n", "test/relu.cc": CUSTOM},
        {"tests/test_a.py": KERNELS, "tests/table.yaml": TABLE},
    ],
)
def test_what_only_looks_like_it_is_not(tmp_path: Path, files: dict[str, str]) -> None:
    assert named(lint(tmp_path, files)) == []


@pytest.mark.parametrize("piece", ["f(", "f(Tensor ", "f(Tensor) ", "aten:: ", "-> ", "f(Tensor) - > "])
def test_long_lines_of_yaml_are_searched_in_linear_time(piece: str) -> None:
    data = ("-> Tensor aten " + piece * (300_000 // len(piece))).encode()
    started = time.process_time()
    SIGHTINGS[0].counts.read(data)
    assert time.process_time() - started < 4


def test_yaml_that_a_pack_reads_is_not_named(tmp_path: Path) -> None:
    outcome = lint(tmp_path, {"native_functions.yaml": NATIVE})
    assert (named(outcome), outcome.nothing) == ([], False)


def test_beside_linted_operators_tables_are_named_and_bindings_are_not(tmp_path: Path) -> None:
    outcome = lint(tmp_path, {"native_functions.yaml": NATIVE, "x/edge.yaml": EDGE, "m.cpp": BINDINGS})
    assert (named(outcome), outcome.nothing) == (["1 YAML file of ExecuTorch's edge dialect: 1 x/edge.yaml"], False)
