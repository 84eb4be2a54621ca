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
        (written(core_type=""), "", "CT = 'core_type'\nfor item in KERNELS:\n    item[CT] = 'aiv'\n"),
        (written(core_type=""), "from common import CT\n", "first = found()\nfirst[CT] = 'aiv'\n"),
        (written(core_type=""), "", "import common\ncommon.finish(KERNELS)\n"),
        (written(core_type=""), "", "import common\ncommon.finish(KERNELS[0])\n"),
        (written(core_type=""), "", "for item in KERNELS:\n    finish(item)\n"),
        (written(core_type=""), "", "def finish():\n    every = KERNELS\n"),
        (written(core_type='"AIV"'), "", "for item in KERNELS:\n    item['core_type'] = item['core_type'].lower()\n"),
        (written(func_id='"0"'), "", "for item in KERNELS:\n    item['func_id'] = int(item['func_id'])\n"),
        (written(signature="", signature_doc='"x"'), "", ""),
        (written(signature="", old_signature='"x"'), "", ""),
        (written(func_id="-0"), "", ""),
        (written(func_id="-(-1)"), "", ""),
        (written(core_type='"dsp"'), "", "def test_it():\n    with pytest.raises(ValueError):\n        build()\n"),
        (written(core_type=""), "", "def test_it(self):\n    self.assertRaises(KeyError, build)\n"),
    ],
)
def test_a_field_that_is_or_may_be_right(kernel: str, before: str, after: str) -> None:
    assert found(kernel, before, after) == []


ORCHESTRATION = '{"source": "main.cpp", "signature": [D.IN]}'


@pytest.mark.parametrize(
    "after", ["import common\ncommon.finish(ORCHESTRATION)\n", "ORCHESTRATION.update(function_name='run')\n"]
)
def test_an_orchestration_that_other_code_completes(after: str) -> None:
    files = PACK.example([("python", f"ORCHESTRATION = {ORCHESTRATION}\n{after}")])
    assert lint_files([PACK], files, ["PTO121"]).diagnostics == []


@pytest.mark.parametrize(
    "text",
    [
        "# func_id\nKERNELS = [{'source': 'x.cu', 'name': 'x'}, {'source': 'y.cu'}]\n",
        "# func_id\nKERNELS = [{'source': 'x.cu', 'func_id': 'f'}]\nORCHESTRATION = {'source': 'x'}\n",
        "class X:\n    CALLABLE = {'orchestration': {'source': 'x'}, 'incores': [{'source': 'y', 'func_id': 'f'}]}\n",
    ],
)
def test_descriptions_that_may_be_for_another_runtime(text: str) -> None:
    files = {**PACK.example([]), "program/kernel_config.py": text}
    assert lint_files([PACK], files, ["PTO121"]).diagnostics == []


def test_methods_of_a_case_set_no_fields() -> None:
    text = "import torch\nfrom simpler.task_interface import ArgDirection as D\n\n\nclass Test(SceneTestCase):\n    CALLABLE = {\n"
    text += "        'orchestration': {'source': 'x.cpp', 'function_name': 'run'},\n"
    text += "        'incores': [{'func_id': 0, 'source': 'y.cpp', 'core_typ': 'aiv'}],\n    }\n\n"
    text += "    def compute_golden(self, args, params):\n        for i in range(3):\n            out[i] = 1\n\n"
    text += "    def other(self):\n        %s\n"
    for other, count in (("pass", 1), ("kernels()[0][name] = 'aiv'", 0)):
        files = {**PACK.example([]), "program/test_x.py": text % other}
        assert len(lint_files([PACK], files, ["PTO121"]).diagnostics) == count


def test_a_kernel_beside_a_whole_one_needs_no_import() -> None:
    kernels = "KERNELS = [{'func_id': 0, 'source': 'x.cpp', 'core_type': 'aiv'}, {'func_id': 1, 'source': 'y.cpp'}]\n"
    files = {**PACK.example([]), "program/kernel_config.py": kernels}
    assert len(lint_files([PACK], files, ["PTO121"]).diagnostics) == 1
