"""The function that a description names, and the tensors that it takes."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK

CONFIG = """\
ORCHESTRATION = {
    "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
    "function_name": "%s",
    "signature": [%s],
}
"""
EXECUTOR = "src/a5/runtime/tensormap_and_ringbuffer/aicpu/aicpu_executor.cpp"
OLD = 'dlsym(handle, "aicpu_orchestration_entry");\n'
NEW = 'constexpr const char *DEFAULT_ORCH_ENTRY_SYMBOL = "aicpu_orchestration_entry";\n'
SOURCE = "program/orchestration/main.cpp"


def found(name: str, signature: str, more: dict[str, str] | None = None) -> list[tuple[str, str, str]]:
    files = {**PACK.example([("python", CONFIG % (name, signature))]), **(more or {})}
    linted = lint_files([PACK], files, ["PTO113", "PTO114"])
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize("more", [{}, {EXECUTOR: NEW}])
def test_a_function_that_is_not_there(more: dict[str, str]) -> None:
    message = f"`{SOURCE}` has no function `aicpu_orchestration_enter`; did you mean `aicpu_orchestration_entry`?"
    assert found("aicpu_orchestration_enter", "D.IN, D.IN, D.OUT", more) == [
        ("PTO113", '"aicpu_orchestration_enter"', message)
    ]


@pytest.mark.parametrize(
    "more",
    [
        {EXECUTOR: OLD},
        {SOURCE: '#include "shared.inc"\nvoid other(const ChipTaskArgs &orch_args) {}\n'},
        {
            SOURCE: "#define ENTRY(name) void name(const ChipTaskArgs &a) {}\nENTRY(run)\nvoid other(const CArgs &b) {}\n"
        },
        {SOURCE: "// generated\n"},
    ],
)
def test_what_may_be_there(more: dict[str, str]) -> None:
    assert found("run", "D.IN, D.IN, D.OUT", more) == []


def test_a_signature_that_is_too_short_is_told_where_it_stands() -> None:
    message = "the signature has 2 entries, and the orchestration takes tensor 2: declare it"
    assert found("aicpu_orchestration_entry", "D.IN, D.IN") == [("PTO114", "[D.IN, D.IN]", message)]


@pytest.mark.parametrize("signature", ["D.IN, D.IN, D.OUT, D.OUT", "*REST", ""])
def test_a_signature_that_may_be_long_enough(signature: str) -> None:
    assert found("aicpu_orchestration_entry", signature) == []
