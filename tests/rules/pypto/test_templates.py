"""Templates of descriptions, which are read as what they become."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.pypto.pack import PACK

CONFIG, SOURCE, KERNEL = (f"ops/scan/templates/{name}.in" for name in ("kernel_config.py", "entry.cpp", "kernel.cpp"))

FILES = {
    CONFIG: """\
from pathlib import Path
from simpler.task_interface import ArgDirection as _D

_ROOT_DIR = Path(__file__).parent
RUNTIME_CONFIG = {"runtime": "{{runtime}}"}
ORCHESTRATION = {
    "source": str(_ROOT_DIR / "orchestration" / "{{entry}}.cpp"),
    "function_name": "aicpu_orchestration_entry",
    "signature": [_D.IN, _D.OUT],
}
KERNELS = [
    {
        "func_id": 0,
        "name": "{{kernel_name}}",
        "source": str(_ROOT_DIR / "kernels" / "aiv" / "{{kernel_name}}.cpp"),
        "core_type": "aiv",
        "signature": [_D.IN, _D.INOUT],
    },
]
""",
    SOURCE: """\
// Generated from {{package}}.
template <ReduceOp Op, typename T>
void submit(const ChipTaskArgs &orch_args) {
    CoreTaskArgs args;
    args.add_input(orch_args.tensor(0).ref());
    args.add_output(orch_args.tensor(1).ref());
    rt_submit_aiv_task(0, args);
}
extern "C" {
void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) { submit<{{op_cpp}}, {{dtype_cpp}}>(orch_args); }
void {{entry}}(const ChipTaskArgs &orch_args) { aicpu_orchestration_entry(orch_args); }
}
""",
    KERNEL: "using T = {{dtype_cpp}};\nvoid kernel_entry(__gm__ int64_t *args) { (void)args; }\n",
}


def lint(files: dict[str, str]) -> Linted:
    return lint_files([PACK], files)


def test_a_template_is_compared_with_the_one_of_its_orchestration() -> None:
    linted = lint(FILES)
    assert [(item.code, linted.text(item.place)) for item in linted.diagnostics] == [("PTO103", "_D.INOUT")]
    assert [linted.text(side.place) for side in linted.diagnostics[0].related] == ["orch_args.tensor(1).ref()"]


def test_a_fix_keeps_the_placeholders() -> None:
    texts, left = fix_files([PACK], FILES)
    assert texts == {CONFIG: FILES[CONFIG].replace("_D.INOUT", "_D.OUT")}
    assert left.codes() == []


def test_the_kernel_of_a_template_is_read() -> None:
    kernel = FILES[KERNEL].replace("(void)args;", "use(reinterpret_cast<__gm__ ChipTensor *>(args[2]));")
    assert "PTO116" in lint({**FILES, KERNEL: kernel}).codes()


@pytest.mark.parametrize(
    "files",
    [
        {**FILES, CONFIG: FILES[CONFIG].replace('"func_id": 0', '"func_id": {{number}}')},
        {**FILES, CONFIG: FILES[CONFIG] + "\n{{more}} {{still more}}\n"},
        {CONFIG: FILES[CONFIG]},
        {**FILES, SOURCE: "{{everything}}"},
        {
            **FILES,
            "ops/scan/templates/ent.cpp.in": "",
            SOURCE: "",
            "ops/scan/templates/entry_other.cpp.in": FILES[SOURCE],
        },
    ],
)
def test_what_a_template_becomes_is_not_known(files: dict[str, str]) -> None:
    assert lint({"other.py": "x = 1\n", **files}).codes() == []
