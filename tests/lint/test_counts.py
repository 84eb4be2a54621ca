"""The counts of a run: operators once, every file that was read, places that were not understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.main import run
from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK as ATEN
from opschema_rules.torchlib.pack import PACK as TORCHLIB

BACKEND = """\
backend: XLA
cpp_namespace: torch_xla
supported: [abs, add.Tensor, expand, view]
autograd: [max_pool2d]
symint: [expand, view]
full_codegen: [cos]
"""
CPP = """\
TORCH_LIBRARY(kit, m) {
  m.def("f(Tensor x) -> Tensor");
  m.def("g(Tensor x) -> Tensor");
  m.impl(name_of(1), &h);
}
"""
PYTHON = """\
import torch


@torch.library.register_fake("kit::f")
def f(x):
    return torch.empty_like(x)
"""


def test_an_operator_in_several_lists_is_one() -> None:
    assert lint_files([ATEN], {"xla.yaml": BACKEND}).outcome.ops == 6


def test_operators_of_several_files_are_one_by_name() -> None:
    native = "- func: abs(Tensor self) -> Tensor\n- func: neg(Tensor self) -> Tensor\n"
    assert lint_files([ATEN], {"xla.yaml": BACKEND, "native_functions.yaml": native}).outcome.ops == 7


def test_files_of_every_language_are_counted() -> None:
    files = {"a.cpp": CPP, "fakes.py": PYTHON, "other.cpp": "int x;\n"}
    assert lint_files([TORCHLIB], files).outcome.files == 2, "the other is not read"
    assert lint_files([TORCHLIB], {"a.cpp": CPP}).outcome.files == 1


@pytest.mark.usefixtures("no_cpp")
def test_files_that_could_not_be_parsed_do_not_count() -> None:
    assert lint_files([TORCHLIB], {"a.cpp": CPP, "fakes.py": PYTHON}).outcome.files == 1


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.cpp").write_text(CPP)
    monkeypatch.chdir(root)

    def lint(*args: str) -> str:
        run(["lint", "--select", "REG306", *args])
        return capfd.readouterr()[0]

    return lint


def test_what_was_not_understood_is_counted_with_the_option_that_lists_it(lint: Callable[..., str]) -> None:
    assert lint("--output-format", "concise").endswith(
        "; 2 ops not fully known: 1 place not understood (`impl` is not understood here; --show-unresolved).\n"
    )
    assert lint("--output-format", "concise", "--show-unresolved").splitlines()[0] == (
        "a.cpp:4:3: unresolved: `impl` is not understood here"
    )
    assert "a.cpp:4:3: unresolved: `impl` is not understood here\n\nAll clean: 2 ops in 1 file" in lint(
        "--show-unresolved"
    )


def test_json_has_the_same_counts(lint: Callable[..., str]) -> None:
    report = json.loads(lint("--output-format", "json"))
    assert {name: report["summary"][name] for name in ("ops", "files", "unresolved", "ops_partly_known")} == {
        "ops": 2,
        "ops_partly_known": 2,
        "files": 1,
        "unresolved": 1,
    }
    assert report["unresolved"] == []
    listed = {"path": "a.cpp", "line": 4, "column": 3, "reason": "`impl` is not understood here"}
    assert json.loads(lint("--output-format", "json", "--show-unresolved"))["unresolved"] == [listed]
