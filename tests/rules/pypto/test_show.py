"""`opschema show` of kernels and entries, and what `--show-settings` tells of a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.examples import CONFIG, SOURCE, example_files
from opschema_rules.pypto.pack import PACK
from tests.tables import show, shown

MIXED = """\
CoreTaskArgs p;
p.add_input(orch_args.tensor(0).ref());
p.add_inout(orch_args.tensor(1).ref());
p.add_scalar(3);
MixedKernels mixed = {0, 1, 1};
rt_submit_task(mixed, p);
CoreTaskArgs q;
q.add_input(orch_args.tensor(0).ref());
fill(q);
rt_submit_aiv_task(1, q);
"""

KERNELS = """\
KERNELS = [
    {
        "func_id": 0,
        "name": "cube",
        "source": str(_ROOT_DIR / "kernels" / "aic" / "cube.cpp"),
        "core_type": "aic",
        "signature": [D.IN, D.OUT],
    },
    {
        "func_id": 1,
        "source": str(_ROOT_DIR / "kernels" / "aiv" / "vector.cpp"),
        "core_type": "aiv",
        "signature": [D.IN, D.INOUT, D.SCALAR],
    },
]
"""


MIX = example_files([("python", KERNELS), ("cpp", MIXED)])


@pytest.mark.parametrize("name", ["0", "add", "KERNELS:0", f"{CONFIG}:add", f"{CONFIG}:KERNELS:0"])
def test_a_kernel_is_found_by_its_id_its_name_and_its_program(name: str) -> None:
    found = shown(PACK, example_files([]), name)
    assert found.title == "kernel 0 (`add`)"
    assert found.parts == [
        ("program", f"{CONFIG}:13"),
        ("kernel", "program/kernels/aiv/add.cpp:1"),
        ("program", "KERNELS"),
        ("signature", f"{CONFIG}:18"),
        ("contract", "widest (the newest runtime is assumed)"),
        ("task", f"{SOURCE}:12"),
    ]
    assert found.rows == [
        ("tensor 0", "IN     18:23", "IN     10:17", ""),
        ("tensor 1", "IN     18:29", "IN     10:20", ""),
        ("tensor 2", "OUT    18:35", "OUT    11:18", ""),
    ]


def test_a_kernel_of_a_mix_shows_what_differs_and_with_whom_it_runs() -> None:
    found = shown(PACK, MIX, "cube")
    assert found.parts[-1] == ("task", f"{SOURCE}:11 with kernel 1 (`vector`)")
    assert [(row[0], row[3]) for row in found.rows] == [("tensor 0", ""), ("tensor 1", "differs")]


def test_what_cannot_be_followed_says_where_the_trail_ends() -> None:
    found = shown(PACK, MIX, "vector")
    (reason,) = [line for _, line in found.parts if "unresolved" in line]
    assert reason == f"{SOURCE}:14 unresolved: `fill()` is not in this file"
    assert [row[0] for row in found.rows] == ["tensor 0", "tensor 1", "scalar"]


def test_a_kernel_without_a_signature_or_a_task() -> None:
    kernels = 'KERNELS = [{"func_id": 7, "source": "a.cpp", "core_type": "aiv"}]\n'
    found = shown(PACK, example_files([("python", kernels)]), "7")
    assert found.title == "kernel 7"
    assert found.parts[1:] == [
        ("kernel", "unresolved: its source is not known"),
        ("program", "KERNELS"),
        ("signature", "none"),
        ("contract", "widest (the newest runtime is assumed)"),
        ("tasks", "none"),
    ]
    assert found.rows == []


def test_turns_of_a_loop_are_one_line_each() -> None:
    turns = "for (int i = 0; i < 2; i++) {\n    CoreTaskArgs p;\n    p.add_input(orch_args.tensor(i).ref());\n"
    found = shown(PACK, example_files([("cpp", turns + "    rt_submit_aiv_task(0, p);\n}\n")]), "0")
    assert [place for what, place in found.parts if what == "task"] == [f"{SOURCE}:9"]


def test_a_source_that_is_not_there_is_told() -> None:
    files = dict(MIX)
    del files["program/kernels/aic/cube.cpp"]
    missing = "program/kernels/aic/cube.cpp"
    assert ("kernel", f"{missing}, unresolved: {missing} is not there") in shown(PACK, files, "0").parts


def test_a_signature_that_is_made_by_a_call_is_unresolved() -> None:
    kernels = 'KERNELS = [{"func_id": 0, "source": "a.cpp", "core_type": "aiv", "signature": made()}]\n'
    found = shown(PACK, example_files([("python", kernels)]), "0")
    assert ("program", f"{CONFIG}:7 unresolved: it is computed") in found.parts
    assert [(row[1], row[2].split()[0]) for row in found.rows] == [
        ("-", "IN"),
        ("-", "IN"),
        ("-", "OUT"),
    ]


def test_an_ambiguous_name_is_answered_with_the_names_that_are_not() -> None:
    other = {path.replace("program/", "other/"): text for path, text in example_files([]).items()}
    assert show(PACK, {**example_files([]), **other}, "add") == [
        "other/kernel_config.py:KERNELS:0",
        "program/kernel_config.py:KERNELS:0",
    ]


@pytest.mark.parametrize(("name", "close"), [("ad", ["add"]), ("quantum", []), ("", []), (":", []), ("::3", [])])
def test_a_wrong_name_is_answered_with_close_ones(name: str, close: list[str]) -> None:
    assert list(show(PACK, example_files([]), name)) == close


ENTRY = """\
import pypto.language as pl
import torch
from golden import TensorSpec, run_jit

@pl.jit
def attend(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INT32], cache: pl.Out[pl.Tensor[[8], pl.FP32]], y):
    ...

run_jit(fn=attend, specs=[
    TensorSpec("x", [8], torch.float32, init_value=torch.randn),
    TensorSpec("cache", [8], torch.float32, init_value=torch.randn, is_output=flag),
    *more,
])
"""


def test_an_entry_shows_its_specs() -> None:
    text = ENTRY.replace("    *more,\n", "")
    found = shown(PACK, {"models/run.py": text}, "attend")
    assert found.title == "attend"
    assert found.parts == [("entry", "models/run.py:6")]
    assert found.rows == [
        ("x", "IN     6:12", "input, initial value  10:5", ""),
        ("n", "SCALAR  6:40", "", ""),
        ("cache", "OUT    6:64", "output or not, initial value  11:5", "has to be `pl.InOut`"),
        ("y", "unresolved  6:104", "", ""),
    ]


def test_describe_tells_contract_limits_and_what_is_read() -> None:
    header = "constexpr int CORE_MAX_TENSOR_ARGS = 16;\nconstexpr int CORE_MAX_SCALAR_ARGS = 32;\n"
    files = {**MIX, "src/arg_direction.h": header, "models/run.py": ENTRY.replace("    *more,\n", "")}
    (found,) = PACK.describe(Project(Workspace(Path("/nowhere"), files)), PyptoOptions(signatures="sum"))
    facts = [(item.name, item.value) for item in found.facts]
    assert facts[:6] == [
        ("signatures", "sum"),
        ("source", "the configuration"),
        ("tensors of a kernel", "16"),
        ("scalars of a kernel", "32"),
        ("tensors of an orchestration", "unknown"),
        ("scalars of an orchestration", "unknown"),
    ]
    assert facts[6:9] == [("programs", "1"), ("kernels", "2"), ("unresolved", SOURCE)]
    assert facts[9:] == [("entries", "1")]
