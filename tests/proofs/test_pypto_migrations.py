"""The migrations of the pack `pypto`, proved by running the descriptions and orchestrations that they change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from opschema_cli.migrate.migration import Migration
from opschema_cli.proof import Files, Observation, judge
from opschema_cli.testing import migrate_files
from opschema_rules.pypto import proofs
from opschema_rules.pypto.examples import example_files
from opschema_rules.pypto.pack import PACK
from tests.proofs.pypto_oracle import observe
from tests.rules.pypto.programs import ALONE, MIXED, THREE, kernels, program, signed

MIGRATIONS = {item.name: item for item in PACK.all_migrations()}

PROOFS = {
    "derive-signatures": proofs.RECORDED,
    "orchestration-directions": proofs.RECORDED,
    "arg-index": proofs.RECORDED,
    "wrap-outputs": proofs.SPECS,
    "kernel-config-to-callable": proofs.DESCRIBED,
}

TENSOR = "const ChipTensor &c = orch_args.tensor(2).ref();\n"
READ = "CoreTaskArgs r;\nr.add_input(c);\nrt_submit_aiv_task(0, r);\n"
FILL = "CoreTaskArgs f;\nf.add_output(c);\nrt_submit_aiv_task(0, f);\n"
ADD = "for (int k = 0; k < 4; k++) {\nCoreTaskArgs p;\np.add_inout(c.view(k));\nrt_submit_aiv_task(0, p);\n}\n"
WRITTEN = "CoreTaskArgs w;\nw.add_output(orch_args.tensor(1).ref());\nrt_submit_aiv_task(0, w);\n"
NO_DEP = "CoreTaskArgs p;\np.add_input(orch_args.tensor(0).ref());\np.add_no_dep(orch_args.tensor(1).ref());\n"
SUBMIT = "rt_submit_aiv_task(0, p);\n"
LONGER = THREE + SUBMIT + "p.add_inout(orch_args.tensor(2).ref());\n" + SUBMIT

SPECS = """\
import pypto.language as pl
import torch
from golden import TensorSpec, run_jit


@pl.jit
def attend(
    x: pl.Tensor[[8], pl.FP32],
    cache: pl.Tensor[[8], pl.FP32],  # the history
    state: pl.Out[pl.Tensor[[8], pl.FP32]],
    y: pl.Tensor[
        [8],
        pl.FP32,
    ],
): ...


SPECS = [
    TensorSpec("x", [8], torch.float32, init_value=torch.randn),
    TensorSpec("cache", [8], torch.float32, init_value=torch.randn, is_output=True),
    TensorSpec("state", [8], torch.float32, init_value=torch.randn),
    TensorSpec("y", [8], torch.float32, is_output=True),
]
run_jit(fn=attend, specs=SPECS)
"""

GOLDEN = """\
import torch

__outputs__ = ["c"]

ALL_CASES = {"Small": {"n": 16}, "Large": {"n": 32}}

DEFAULT_CASE = "Small"


def generate_inputs(params: dict) -> list:
    return [(name, torch.ones(params["n"])) for name in "abc"]


def compute_golden(tensors, params):
    tensors["c"][:] = tensors["a"] + tensors["b"]
"""


@dataclass(frozen=True)
class Example:
    """A migration of a small program; ``cures`` says that something must have become right."""

    name: str
    files: Files
    options: tuple[str, ...] = ()
    cures: bool = True


def _old_test() -> Files:
    """A program as the migration finds it, with its golden file."""
    files = {path.replace("program/", "st/add/kernels/"): text for path, text in example_files([]).items()}
    path = "st/add/kernels/kernel_config.py"
    config = files[path].replace('"aicpu_thread_num": 4', '"aicpu_thread_num": 4, "block_dim": 3')
    return {**files, path: config, "st/add/golden.py": GOLDEN}


def _derived(body: str, *lists: str) -> Example:
    return Example("derive-signatures", program(signed(*lists), body))


def _directed(body: str, *options: str) -> Example:
    return Example("orchestration-directions", program("", TENSOR + body), options)


INDEXED = kernels(', "signature": [D.IN, D.IN, D.OUT], "arg_index": [0, 1, 2]')

EXAMPLES = (
    _derived(ALONE, "-"),
    _derived(ALONE, ""),
    _derived(ALONE, "IN, OUT"),
    _derived(ALONE, "IN, IN, INOUT"),
    _derived(ALONE, "IN, SCALAR, OUT"),
    _derived(MIXED, "-", "-", "-"),
    _derived(MIXED, "-", "IN, IN", "IN"),
    _derived(NO_DEP + SUBMIT, "INOUT, OUT"),
    _derived(LONGER, "IN, IN, OUT"),
    _directed(READ),
    _directed(READ + FILL),
    _directed(ADD),
    _directed(WRITTEN, "written=true"),
    Example("arg-index", program(signed("IN, IN, OUT")), ("action=add",), cures=False),
    Example("arg-index", program(signed("IN", "IN", "OUT"), MIXED), ("action=add",)),
    Example("arg-index", program(INDEXED), ("action=drop",), cures=False),
    Example("wrap-outputs", {"run.py": SPECS}),
    Example("kernel-config-to-callable", _old_test(), ("platforms=a2a3sim,a2a3",), cures=False),
)


@cache
def _observed() -> list[tuple[Files, Files, Observation, Observation]]:
    pairs = [(item.files, migrate_files(PACK, item.name, item.files, item.options).files) for item in EXAMPLES]
    seen = observe([files for pair in pairs for files in pair])
    return [(*pair, before, after) for pair, before, after in zip(pairs, seen[::2], seen[1::2], strict=True)]


@pytest.mark.parametrize("migration", MIGRATIONS.values(), ids=lambda item: item.name)
def test_every_migration_names_its_proof(migration: Migration) -> None:
    assert migration.proof == PROOFS[migration.name]
    assert migration.name in {item.name for item in EXAMPLES}


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=lambda number: EXAMPLES[number].name)
def test_migrations_are_proved(number: int) -> None:
    before, after, seen, now = _observed()[number]
    assert before != after, "the migration changes nothing"
    assert all(item.level == "right" for probe, item in now.items() if "task" not in probe and "tensor" not in probe)
    assert list(judge(seen, now, cures=EXAMPLES[number].cures)) == []
