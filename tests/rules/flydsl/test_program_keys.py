"""From 0.5.0 on the cache key is the traced program, so no rule reports what a computed key leaves out."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, lint_files
from opschema_rules.flydsl.detection import JIT_ARGUMENT
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

LIST = """\
def build(sizes: list):
    @flyc.kernel
    def scale(A: fx.Tensor):
        tile = sizes[0]

    @flyc.jit
    def launch(A: fx.Tensor):
        scale(A).launch(grid=(1, 1, 1), block=(64, 1, 1))

    return launch
"""
HELPER = """\
from kit.common.math import double


@flyc.kernel
def scale(A: fx.Tensor, n: fx.Int32):
    print(double(n))


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    scale(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""
INSTANCE = """\
class Scale:
    def __init__(self, factor):
        self.factor = factor

    @flyc.kernel
    def kernel(self, A: fx.Tensor):
        print(self.factor)

    @flyc.jit
    def run(self, A: fx.Tensor):
        self.kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""
CHANGED = """\
def build(tile: int):
    stages = [2]

    @flyc.kernel
    def scale(A: fx.Tensor):
        print(tile, stages[0])

    @flyc.jit
    def launch(A: fx.Tensor):
        scale(A).launch(grid=(1, 1, 1), block=(64, 1, 1))

    def run(A, count):
        stages[0] = count
        launch(A)

    return run
"""
CONSTANT = """\
@flyc.jit
def launch(A: fx.Tensor, order: fx.Constexpr[tuple]):
    print(order)


def run(x):
    launch(x, [1, 0])
"""
NOTHING = CONSTANT.replace("[1, 0]", "None")
REPORTED = {
    "FLY204": LIST,
    "FLY205": HELPER,
    "FLY216": CONSTANT,
    "FLY220": INSTANCE,
    "FLY225": CHANGED,
}

OWN = {
    JIT_ARGUMENT: "def from_torch_tensor(tensor): ...\n",
    "flydsl/__init__.py": "",
    "flydsl/compiler/__init__.py": "",
}
CONTRACTS: list[tuple[dict[str, str], bool]] = [
    ({"opschema.toml": '[flydsl]\nversion = "0.1.8"\n'}, True),
    ({"opschema.toml": '[flydsl]\nversion = "0.4.2"\n'}, True),
    ({"requirements.txt": "flydsl==0.3.1\n"}, True),
    ({"requirements.txt": "flydsl>=0.2,<0.5\n"}, True),
    ({**OWN, "flydsl/compiler/jit_function.py": "def _snapshot_refs(refs): ...\n"}, True),
    ({"opschema.toml": '[flydsl]\nversion = "0.5.0"\n'}, False),
    ({"opschema.toml": '[flydsl]\nversion = "99"\n'}, False),
    ({"requirements.txt": "flydsl==0.5.0\n"}, False),
    ({"requirements.txt": "flydsl>=0.4.2\n"}, False),  # a new installation gets 0.5.0 or newer
    ({"requirements.txt": "flydsl\n"}, False),
    ({}, False),
    ({**OWN, "flydsl/compiler/jit_function.py": "def _artifact_cache_key(asm): ...\n"}, False),
    (OWN, False),
]


def lint(files: dict[str, str], text: str, *codes: str) -> Linted:
    helper = {"kit/__init__.py": "", "kit/common/math.py": "def double(x):\n    return x + x\n"}
    return lint_files([PACK], {**helper, **files, KERNELS_PATH: HEAD + text}, codes)


@pytest.mark.parametrize(("files", "reported"), CONTRACTS)
@pytest.mark.parametrize("code", REPORTED)
def test_what_a_computed_key_leaves_out(code: str, files: dict[str, str], reported: bool) -> None:
    assert lint(files, REPORTED[code], code).codes() == [code] * reported


@pytest.mark.parametrize(
    ("version", "found"), [("0.1.8", 0), ("0.2.0", 1), ("0.4.2", 1), ("0.5.0", 0), (">=0.1.8,<0.5", 0)]
)
def test_none_as_a_constant(version: str, found: int) -> None:
    pin = version if version[0] == ">" else f"=={version}"
    assert lint({"requirements.txt": f"flydsl{pin}\n"}, NOTHING, "FLY216").codes() == ["FLY216"] * found


def test_a_kernel_still_takes_no_value_of_run_time_as_a_constant() -> None:
    text = """\
@flyc.kernel
def copy(A: fx.Tensor, steps: fx.Constexpr[int]):
    for i in fx.range_constexpr(steps):
        A[i] = i


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    copy(A, n // 16).launch(grid=(1,), block=(64,), stream=stream)
"""
    assert lint({"requirements.txt": "flydsl==0.5.0\n"}, text, "FLY216").codes() == ["FLY216"]


EXTENT = """\
M, BLOCK = 4096, 128


@flyc.kernel
def scale(A: fx.Tensor):
    print(A)


@flyc.jit
def launch(A: fx.Tensor):
    scale(A).launch(grid=(M // BLOCK, 1, 1), block=(BLOCK, 1, 1))


launch(torch.zeros(M, 16))
"""


@pytest.mark.parametrize(
    ("files", "severity"),
    [
        ({"requirements.txt": "flydsl==0.1.8\n"}, Severity.WARNING),
        ({"requirements.txt": "flydsl==0.4.2\n"}, Severity.INFO),
        ({"requirements.txt": "flydsl==0.5.0\n"}, Severity.INFO),
        ({"requirements.txt": "flydsl>=0.1.8\n"}, Severity.INFO),
        ({**OWN, "flydsl/compiler/jit_function.py": "def _artifact_cache_key(asm): ...\n"}, Severity.INFO),
        ({**OWN, "flydsl/compiler/jit_function.py": "def _snapshot_refs(refs): ...\n"}, Severity.INFO),
        ({**OWN, "flydsl/compiler/jit_function.py": "def _jit_function_cache_key(func): ...\n"}, Severity.WARNING),
    ],
)
def test_an_extent_is_stale_only_before_0_2_0(files: dict[str, str], severity: Severity) -> None:
    (found,) = lint(files, EXTENT, "FLY209").diagnostics
    assert found.severity is severity
    assert ("the artifact of the old size runs" in found.message) is (severity is Severity.WARNING)
