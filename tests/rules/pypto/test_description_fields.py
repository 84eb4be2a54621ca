"""The fields of a description: what is missing, misspelled or has another value, and what is right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK

FIELDS = {
    "func_id": "0",
    "source": '"add.cpp"',
    "core_type": '"aiv"',
    "signature": "[D.IN, D.IN, D.OUT]",
}


def found(kernel: str, before: str = "", after: str = "") -> list[tuple[str, str, str]]:
    files = PACK.example([("python", f"{before}KERNELS = [{kernel}]\n{after}")])
    linted = lint_files([PACK], files, ["PTO121"])
    return [(linted.text(item.place), item.severity.value, item.message) for item in linted.diagnostics]


def written(**changed: str) -> str:
    """A kernel with some fields changed; those that are empty left out."""
    return "{" + ", ".join(f'"{key}": {value}' for key, value in {**FIELDS, **changed}.items() if value) + "}"


@pytest.mark.parametrize(
    ("changed", "place", "message"),
    [
        ({"core_type": ""}, "", "kernel 0 has no `core_type`, and cannot be loaded without it"),
        (
            {"core_type": "", "core_typ": '"aiv"'},
            '"core_typ"',
            "kernel 0 has no `core_type`, and cannot be loaded without it: is `core_typ` a misspelling of it?",
        ),
        ({"source": ""}, "", "kernel 0 has no `source`, and cannot be loaded without it"),
        ({"func_id": ""}, "", "a kernel has no `func_id`, and cannot be loaded without it"),
        ({"core_type": '"AIV"'}, '"AIV"', '`core_type` of kernel 0 is "AIV"; did you mean `aiv`?'),
        (
            {"core_type": '"cube"'},
            '"cube"',
            '`core_type` of kernel 0 is "cube"; it has to be `aic` (the cube core) or `aiv` (a vector core)',
        ),
        ({"func_id": '"0"'}, '"0"', '`func_id` of a kernel is "0"; it has to be a number, not below 0'),
        ({"func_id": "-1"}, "-1", "`func_id` of a kernel is -1; it has to be a number, not below 0"),
        (
            {"signature": "[D.IN, D.OUTPUT]"},
            "D.OUTPUT",
            "`D.OUTPUT` in the signature of kernel 0 is not a direction; did you mean `OUT`?",
        ),
        (
            {"signature": '["IN", "OUT"]'},
            '"IN"',
            '`"IN"` and 1 more in the signature of kernel 0 are not directions; did you mean `ArgDirection.IN`?',
        ),
    ],
)
def test_a_field_that_the_runtime_does_not_take(changed: dict[str, str], place: str, message: str) -> None:
    assert found(written(**changed), "# func_id\n") == [(place or written(**changed), "error", message)]


def test_a_signature_that_is_misspelled() -> None:
    message = "`signatures` of kernel 0 is not read; did you mean `signature`?"
    assert found(written(signature="", signatures="[]")) == [('"signatures"', "warning", message)]


def test_an_orchestration_without_a_function() -> None:
    files = PACK.example([("python", 'ORCHESTRATION = {"source": "main.cpp", "signature": [D.IN]}\n')])
    linted = lint_files([PACK], files, ["PTO121"])
    assert [item.message for item in linted.diagnostics] == [
        "the orchestration has no `function_name`, and cannot be loaded without it"
    ]


@pytest.mark.parametrize(
    ("kernel", "before", "after"),
    [
        (written(), "", ""),
        (written(core_type="CORE"), 'CORE = "aiv"\n', ""),
        (written(func_id="FIRST"), "FIRST = 0\n", ""),
        (written(func_id="0x10"), "", ""),
        (written(core_type=""), "", 'for item in KERNELS:\n    item["core_type"] = "aiv"\n'),
        (written(core_type=""), "", 'KERNELS[0].setdefault("core_type", "aiv")\n'),
        ("{" + '"func_id": 0, **COMMON' + "}", "COMMON = {}\n", ""),
        ("dict(func_id=0)", "", ""),
        (written(extra_include_dirs='["inc"]', note='"x"'), "", ""),
        (written(signature="[D.IN, LAST]"), "LAST = D.OUT\n", ""),
        (written(signature="[D.IN, Other.OUTPUT]"), "", ""),
        (written(signature="made()"), "", ""),
    ],
)
def test_a_field_that_is_or_may_be_right(kernel: str, before: str, after: str) -> None:
    assert found(kernel, before, after) == []
