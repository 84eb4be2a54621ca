"""Repositories without operators, or with operators that no pack reads: nothing is found in them, soon.

``python -m benchmarks.corpus unrelated`` unpacks them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.corpus import DISTRIBUTIONS, UNRELATED
from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import load_registry
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace

Run = Callable[[str], Outcome]

SECONDS = 1.0
"""Most processor time of a project of Python without operators, beyond the start of the program."""

WITH_OPERATORS = {"vllm-project+vllm-ascend": {"REG117", "REG201", "REG206", "REG402"}}
"""Repositories of these that define operators, and the rules that find something in them."""


@pytest.fixture
def unrelated(corpus: Path) -> Run:
    def lint(name: str) -> Outcome:
        root = corpus / "unrelated" / name
        if not root.is_dir():
            pytest.skip(f"unrelated/{name} is not below OPSCHEMA_CORPUS")
        registry = load_registry()
        return run(Job(registry, resolve_settings(Config(), registry)), Project(Workspace(root), Cache(None)))

    return lint


@pytest.mark.parametrize("name", UNRELATED)
def test_yaml_of_others_is_no_finding(unrelated: Run, name: str) -> None:
    codes = {item.code for item in unrelated(name).diagnostics}
    assert codes <= WITH_OPERATORS.get(name, set())


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_python_without_operators_costs_little(unrelated: Run, name: str) -> None:
    before = sum(os.times()[:4])
    outcome = unrelated(name)
    spent = sum(os.times()[:4]) - before
    assert (outcome.diagnostics, outcome.nothing, outcome.unread) == ([], True, [])
    assert spent < SECONDS, f"{spent:.2f} s"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pytorch+executorch", {"YAML file of ExecuTorch's edge dialect": 1}),
        ("tinygrad+tinygrad", {"kernels of aten operators": 26, "bindings of pybind11 or nanobind": 3}),
        ("flagos-ai+FlagGems", {"rows that name aten operators": 977, "kernel of an aten operator": 1}),
        ("pytorch+helion", {}),
    ],
)
def test_what_no_pack_reads_is_counted(unrelated: Run, name: str, expected: dict[str, int]) -> None:
    assert {item.noun: item.count for item in unrelated(name).unread} == expected
