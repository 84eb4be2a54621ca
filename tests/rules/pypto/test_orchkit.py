"""The fixture `orchkit`: it does what it declares, lint finds nothing in it, and finds each fault that is planted there."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.load import load_programs
from opschema_rules.pypto.model import Program
from opschema_rules.pypto.pack import PACK
from opschema_rules.pypto.task_matching import WORDS, tasks
from tests.command import TILEKIT

ORCHKIT = TILEKIT.with_name("orchkit")

ATTENTION, ATTENTION_CPP = "attention/kernel_config.py", "attention/orchestration/attention.cpp"
MLP, MLP_CPP = "mlp/test_mlp.py", "mlp/kernels/orchestration/mlp_orch.cpp"
POOL, POOL_CPP = "pool/test_pool.py", "pool/kernels/orchestration/pool_orch.cpp"
SCALE, RESCALE = "language/scale.py", "attention/kernels/aiv/rescale.cpp"


@cache
def files() -> Mapping[str, str]:
    workspace = Workspace(ORCHKIT)
    return {path: workspace.source(path).text for path in workspace.files}


@cache
def programs() -> Mapping[str, Program]:
    found = load_programs(Project(Workspace(ORCHKIT)), PyptoOptions())
    return {program.file.path: program for program in found}


# What is declared, against what is submitted

RUNS = {
    ATTENTION: ["1", "2"],
    MLP: ["1 0", "100 1"],
    POOL: ["1 0 2", "1 0 0", "1 1 1", "1 2 0", "0 0 0"],
}
"""The arguments of each run: the size of all tensors, and the scalars; together they go every way."""


@cache
def recorded(path: str) -> set[tuple[tuple[int, ...], tuple[str, ...]]]:
    """The tasks that an orchestration submits in all its runs: the ids of the kernels, the tensors' directions."""
    compiler = next((found for found in map(shutil.which, ("g++", "c++", "clang++")) if found), None)
    if compiler is None:
        pytest.skip("no C++ compiler")
    part = programs()[path].orchestration
    assert part is not None
    assert part.source is not None
    source = part.source
    found = set()
    for lines in _run(compiler, source, RUNS[path]):
        for ids, directions in re.findall(r"^\w+([ \d]+):([ \w]*)$", lines, re.MULTILINE):
            found.add((tuple(map(int, ids.split())), tuple(directions.split())))
    return found


def _run(compiler: str, source: str, runs: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        built = str(Path(folder, "record"))
        command = [
            compiler,
            "-std=c++20",
            "-Wall",
            "-Werror",
            "-I",
            "runtime",
            "runtime/record.cpp",
            source,
            "-o",
            built,
        ]
        subprocess.run(command, cwd=ORCHKIT, check=True)
        return [subprocess.check_output([built, *run.split()], text=True) for run in runs]


@pytest.mark.parametrize("path", RUNS)
def test_kernels_get_what_their_signatures_say(path: str) -> None:
    for ids, directions in recorded(path):
        for number in ids:
            kernel = programs()[path].kernel(number)
            assert kernel is not None
            assert kernel.signature is not None
            assert directions == tuple(slot.direction.value for slot in kernel.signature.slots or ())


@pytest.mark.parametrize("path", RUNS)
def test_what_is_read_is_what_is_submitted(path: str) -> None:
    read = {
        (tuple(kernel.func_id for kernel in task.kernels), tuple(WORDS[slot.kind] for slot in payload.tensors))
        for task in tasks(programs()[path])
        for payload in task.payloads
    }
    assert read == recorded(path)
    assert all(task.payloads and task.whole for task in tasks(programs()[path]))


# Lint


def found_in(texts: Mapping[str, str]) -> list[str]:
    """The findings of the pack `pypto` in some files."""
    linted = lint_files([PACK], texts)
    return [
        f"{item.place.path}:{position.line}:{position.column}: {item.name}"
        for item in linted.diagnostics
        for position in [linted.position(item.place)]
    ]


def test_lint_finds_nothing() -> None:
    assert found_in(files()) == []


MEAN = 'mean.cpp", "core_type": "aiv", "signature": '

FAULTS: dict[str, tuple[str, dict[str, str], str]] = {
    "a kernel without a signature": (
        ATTENTION,
        {', "signature": [_D.IN, _D.IN, _D.OUT]}': "}"},
        "attention/kernel_config.py:19:3: signature-missing",
    ),
    "a signature that is too short": (
        POOL,
        {"[D.IN, D.IN, D.INOUT]": "[D.IN]"},
        "pool/test_pool.py:22:96: signature-short",
    ),
    "a direction of a kernel": (
        ATTENTION,
        {"_D.IN, _D.IN, _D.INOUT, _D.IN, _D.IN, _D.OUT]},\n]": "_D.IN, _D.IN, _D.INOUT, _D.IN, _D.OUT, _D.OUT]},\n]"},
        "attention/kernel_config.py:22:163: signature-direction",
    ),
    "a scalar in a signature": (
        POOL,
        {"[D.IN, D.IN, D.INOUT]": "[D.IN, D.SCALAR, D.IN, D.INOUT]"},
        "pool/test_pool.py:22:103: scalar-position",
    ),
    "a scalar before a tensor": (
        ATTENTION_CPP,
        {
            "softmax_args.add_scalar(block);": "",
            "softmax_args.add_output(": "softmax_args.add_scalar(block);\nsoftmax_args.add_output(",
        },
        "attention/orchestration/attention.cpp:67:25: scalar-position",
    ),
    "more scalars than there is room for": (
        POOL_CPP,
        {"rt_submit_aiv_task(MERGE, args);": "args.add_scalars(nullptr, 17);\nrt_submit_aiv_task(MERGE, args);"},
        "pool/kernels/orchestration/pool_orch.cpp:67:9: arg-limit",
    ),
    "an orchestration's output that is read": (
        ATTENTION,
        {"[_D.IN, _D.IN, _D.IN, _D.IN, _D.OUT]": "[_D.IN, _D.OUT, _D.IN, _D.IN, _D.OUT]"},
        "attention/kernel_config.py:15:23: orch-out-read",
    ),
    "an orchestration's input that is written": (
        ATTENTION,
        {"[_D.IN, _D.IN, _D.IN, _D.IN, _D.OUT]": "[_D.IN, _D.IN, _D.IN, _D.IN, _D.IN]"},
        "attention/kernel_config.py:15:44: orch-in-written",
    ),
    "two kernels of one id": (
        POOL,
        {'"incores": [': '"incores": [{"func_id": 3, "source": "kernels/aiv/mean.cpp", "core_type": "aiv"},'},
        "pool/test_pool.py:23:25: func-id",
    ),
    "an id that no kernel has": (
        MLP_CPP,
        {"FUNC_CLEAR 0": "FUNC_CLEAR 6"},
        "mlp/kernels/orchestration/mlp_orch.cpp:59:24: func-id",
    ),
    "a kernel for the other core": (
        POOL,
        {'mean.cpp", "core_type": "aiv"': 'mean.cpp", "core_type": "aic"'},
        "pool/test_pool.py:20:75: func-id",
    ),
    "a source that is not there": (
        POOL,
        {"aiv/merge.cpp": "aiv/merged.cpp"},
        "pool/test_pool.py:22:38: source-missing",
    ),
    "names that are swapped": (
        ATTENTION,
        {'"name": "scores"': '"name": "values"', '"name": "values"': '"name": "scores"'},
        "attention/kernel_config.py:19:25: name-source",
    ),
    "an entry's output with an initial value": (
        SCALE,
        {
            "is_output=True),\n    ]\n\n\ndef build_acc": "init_value=torch.ones, is_output=True),\n    ]\n\n\ndef build_acc"
        },
        "language/scale.py:13:10: golden-output-direction",
    ),
    "an entry's input that is an output": (
        SCALE,
        {"total: pl.InOut[pl.Tensor[[ROWS, WIDTH], pl.FP32]]": "total: pl.Tensor[[ROWS, WIDTH], pl.FP32]"},
        "language/scale.py:23:12: golden-output-direction",
    ),
    "specs that are exchanged": (
        SCALE,
        {
            'TensorSpec("x", [rows, width], torch.float32, init_value=torch.randn),\n        Scalar': "Scalar",
            'TensorSpec("out", [rows, width], torch.float32, is_output=True)': (
                'TensorSpec("out", [rows, width], torch.float32, is_output=True), TensorSpec("x", [rows, width], torch.float32)'
            ),
        },
        "language/scale.py:35:9: spec-order",
    ),
    "a function that the source does not have": (
        ATTENTION,
        {'"aicpu_orchestration_entry"': '"aicpu_orchestration_enter"'},
        "attention/kernel_config.py:14:19: orchestration-function",
    ),
    "an orchestration's signature that is too short": (
        ATTENTION,
        {"[_D.IN, _D.IN, _D.IN, _D.IN, _D.OUT]": "[_D.IN, _D.IN, _D.IN, _D.IN]"},
        "attention/kernel_config.py:15:15: orchestration-arguments",
    ),
    "an argument that no task passes": (
        "pool/kernels/aiv/publish.cpp",
        {"memory_of(args, 1)": "memory_of(args, 2)"},
        "pool/kernels/aiv/publish.cpp:19:33: kernel-argument",
    ),
    "a scalar that is not used": (
        "mlp/kernels/aiv/row_max.cpp",
        {"    const uint32_t count = static_cast<uint32_t>(args[3]);\n": ""},
        "mlp/kernels/orchestration/mlp_orch.cpp:89:30: argument-unused",
    ),
    "a kernel that no task submits": (
        POOL,
        {'"incores": [': '"incores": [{"func_id": 9, "source": "kernels/aiv/mean.cpp", "core_type": "aiv"},'},
        "pool/test_pool.py:19:33: kernel-unused",
    ),
    "a signature that is wider than its tasks": (
        POOL,
        {f"{MEAN}[D.IN, D.INOUT": f"{MEAN}[D.IN, D.INOUT, D.IN"},
        "pool/test_pool.py:20:95: signature-wide",
    ),
    "a field that is misspelled": (
        POOL,
        {'mean.cpp", "core_type"': 'mean.cpp", "core"'},
        "pool/test_pool.py:20:13: description-field",
    ),
    "an orchestration's output that no task has": (
        POOL,
        {
            "D.IN, D.INOUT, D.OUT],": "D.IN, D.INOUT, D.OUT, D.OUT],",
        },
        "pool/test_pool.py:17:49: orch-tensor-unused",
    ),
    "a kernel under another name": (
        "pool/kernels/aiv/publish.cpp",
        {"kernel_entry": "kernel_publish"},
        "pool/kernels/aiv/publish.cpp:23:28: kernel-entry",
    ),
    "an input that is written": (
        "attention/kernels/aic/scores.cpp",
        {"TSTORE(scores, scoresTile);": "TSTORE(scores, scoresTile);\nTSTORE(keys, scoresTile);"},
        "attention/orchestration/attention.cpp:60:42: kernel-direction",
    ),
    "a kernel that is submitted in two ways": (
        MLP_CPP,
        {
            "FUNC_CLEAR, args);": "FUNC_CLEAR, args);\nargs.reset();\nargs.add_inout(peaks);\n"
            "rt_submit_aiv_task(FUNC_CLEAR, args);"
        },
        "mlp/test_mlp.py:27:31: first-call-wins",
    ),
    "an output that a task does not have": (
        ATTENTION_CPP,
        {"weights.get_ref(2)": "weights.get_ref(3)"},
        "attention/orchestration/attention.cpp:76:38: task-output",
    ),
    "a tensor that a test passes and the signature lacks": (
        MLP,
        {'TensorArg("x",': 'TensorArg("bias", None), TensorArg("x",'},
        "mlp/test_mlp.py:76:13: scene-arguments",
    ),
    "a call that leaves an argument out": (
        SCALE,
        {
            "@pl.jit\ndef accumulate(": "@pl.jit.inline\ndef keep(kept, other):\n    return kept\n\n\n@pl.jit\ndef accumulate(",
            "    return total": "    return keep(total)",
        },
        "language/scale.py:32:12: language-call",
    ),
    "an array that is too short": (
        ATTENTION_CPP,
        {"row_info(row_shape, 1": "row_info(row_shape, 2"},
        "attention/orchestration/attention.cpp:38:31: orchestration-call",
    ),
    "an event that nothing waits for": (
        RESCALE,
        {"    TLOAD(sumsTile, sums);": "    TLOAD(sumsTile, sums);\n    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3);"},
        "attention/kernels/aiv/rescale.cpp:31:5: kernel-event",
    ),
    "a tensor that nothing loads": (
        RESCALE,
        {"    View out(": "    View spare(memory_of(args, 5));\n    View out("},
        "attention/kernels/aiv/rescale.cpp:31:10: kernel-operand",
    ),
    "a spec of another type": (
        SCALE,
        {'"out", [rows, width], torch.float32': '"out", [rows, width], torch.float16'},
        "language/scale.py:37:42: spec-type",
    ),
    "a scalar of another type": (
        ATTENTION_CPP,
        {"softmax_args.add_scalar(block);": "softmax_args.add_scalar(1.0f);"},
        "attention/orchestration/attention.cpp:67:41: scalar-type",
    ),
    "a comparison of an output that there is not": (
        SCALE,
        {"golden_fn=golden_scale)": 'golden_fn=golden_scale, compare_fn={"y": close})'},
        "language/scale.py:62:86: compared-name",
    ),
    "a value of another name": (
        SCALE,
        {'tensors["out"][:]': 'tensors["y"][:]'},
        "language/scale.py:52:13: golden-name",
    ),
}
"""The seeded faults: the file, the replaced text, and the findings."""

OF_THE_RUNTIME = {"orchestration-name", "scene-case", "spec-argument"}
"""Rules that compare a program with the sources of its runtime and its harness, which the fixture does not have."""


def with_fault(path: str, edits: Mapping[str, str]) -> dict[str, str]:
    """The files, with one changed; each text is there once."""
    text = files()[path]
    assert all(text.count(there) == 1 for there in edits)
    pattern = "|".join(map(re.escape, edits))
    return {**files(), path: re.sub(pattern, lambda found: edits[found[0]], text)}


@pytest.mark.parametrize("fault", FAULTS)
def test_lint_finds_a_fault_that_is_planted(fault: str) -> None:
    path, edits, expected = FAULTS[fault]
    assert found_in(with_fault(path, edits)) == [expected]


def test_lint_misses_the_list_that_an_older_runtime_asks_for() -> None:
    found = found_in(with_fault("opschema.toml", {"widest": "arg-index"}))
    assert {item.rpartition(" ")[2] for item in found} == {"arg-index-list"}
    assert len(found) == sum(len(program.kernels) for program in programs().values())


def test_each_rule_finds_a_fault() -> None:
    seen = {expected.rpartition(" ")[2] for *_, expected in FAULTS.values()}
    assert seen | {"arg-index-list"} | OF_THE_RUNTIME == {rule.name for rule in PACK.rules}
