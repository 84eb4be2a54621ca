"""FLY233, FLY236 and FLY238: faults of every release under conditions that are not known, and under those that ask."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

KERNEL = """\
from elsewhere import WIDTH, installed


{before}


@flyc.kernel
def scale(A: fx.Tensor, n: fx.Int32):
    total = fx.Vector.filled(4, 0.0, fx.Float32)
    if fx.const_expr({condition}):
        {line}
"""

FAULTS = [
    ("A[0] = total.max()", "FLY233"),
    ("A[0] = total.reduce(fx.ReductionOp.SUM)", "FLY233"),
    ("A[0] = fx.Float32(n) << 1", "FLY238"),
]


def codes(line: str, condition: str, before: str = "") -> list[str]:
    text = HEAD + KERNEL.format(line=line, condition=condition, before=before)
    return lint_files([PACK], {**BASE_FILES, KERNELS_PATH: text}, ["FLY233", "FLY236", "FLY238"]).codes()


@pytest.mark.parametrize(("line", "code"), FAULTS)
@pytest.mark.parametrize("condition", ["WIDTH > 4", "installed()", "WIDTH == 'max'"])
def test_a_condition_that_is_not_known_makes_no_difference(line: str, code: str, condition: str) -> None:
    assert codes(line, condition) == [code]


@pytest.mark.parametrize(("line", "code"), FAULTS)
@pytest.mark.parametrize(
    "condition",
    ["hasattr(total, 'max')", "FLYDSL_VERSION > (0, 5)", "fx.__version__ == '1.0'", "NEW"],
)
def test_conditions_that_ask_which_flydsl_runs(line: str, code: str, condition: str) -> None:
    before = "FLYDSL_VERSION = (0, 5)\nNEW = hasattr(fx, 'Vector2')\n"
    assert codes(line, condition, before) == []


def test_attributes_that_a_file_asks_for_or_sets() -> None:
    line = "A[0] = total.max()"
    assert codes(line, "WIDTH", "def has(value):\n    return hasattr(value, 'max')\n") == []
    assert codes(line, "WIDTH", "NAMES = ('max', 'min')\n\n\ndef take(v, i):\n    return getattr(v, NAMES[i])\n") == []
    assert codes(line, "WIDTH", "def mark(value):\n    value.max = 1\n") == []
    assert codes(line, "WIDTH", "def say():\n    return print('max')\n") == ["FLY233"]
