"""Faults are found and rewrites are not, by the harness in this process; see ``tests/verify/variants.py``.

A few cells of some ops here; ``OPSCHEMA_SLOW=1`` runs all variants in all cells.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

from tests.verify.further_variants import ALL
from tests.verify.variants import Op
from tests.verify.workbench import Workbench, check_of, failing, variants

BY_NAME = {op.name: op for op in ALL}
SLOW = bool(os.environ.get("OPSCHEMA_SLOW"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    found = Workbench(tmp_path_factory.mktemp("workbench"))
    yield found
    found.close()


@pytest.mark.parametrize(
    ("op", "fault", "cell", "check"),
    [
        ("silu", "wrong from 8 to 1000", "float16-row-wide", "tolerance"),
        ("gelu", "wrong from 4 to 100", "float16-row-wide", "tolerance"),
        ("silu", "-0.0 becomes 0.0", "float16-row-special", "zero-sign"),
        ("sigmoid", "0 below -4", "float16-row-wide", "tolerance"),
        ("softplus", "infinite from 89 up", "float16-long-large-offset", "inf-mask"),
        ("round", "halves go up", "float16-odd-ties-transposed", "tolerance"),
        ("window_mean", "sums in float16", "float16-long-large-offset", "inf-mask"),
        ("row_sum", "beyond 2048 columns are left out", "float16-long", "tolerance"),
        ("row_sum", "the first row of one column is doubled", "float16-one-column", "tolerance"),
        ("top3", "an index twice", "float16-odd-ties-transposed", "exact"),
        ("shift", "keeps every result", "float16-row", "memory"),
        ("half", "the first call is wrong", "float16-row", "repeat"),
        ("half", "the input is returned if it is all zeros", "float16-row-zeros", "shared-storage"),
        ("strict_scale", "any dtype is taken", "float16-wrong-dtype", "before refused this wrong call (ValueError"),
        (
            "strict_scale",
            "any number of axes is taken",
            "float16-wrong-rank",
            "before refused this wrong call (ValueError",
        ),
    ],
)
def test_a_fault_is_found_in_its_cell(bench: Workbench, op: str, fault: str, cell: str, check: str) -> None:
    found = failing(bench.check(BY_NAME[op], BY_NAME[op].faults[fault], fault, cell))
    assert found is not None
    assert check_of(found) == check


@pytest.mark.parametrize(
    ("op", "rewrite", "cell", "verdict"),
    [
        ("softplus", "-log sigmoid(-x)", "float16-odd-ties-transposed", "unchanged"),
        ("softmax", "by exp2", "float16-zero-columns", "not-checked"),
        ("argmax", "the last of equal ones", "float16-odd-ties-transposed", "within-tolerance"),
        ("rms_norm", "weight first", "bfloat16-row-special", "within-tolerance"),
        ("strict_scale", "other words of the refusal", "float16-wrong-dtype", "unchanged"),
        ("attention", "torch's own", "float16-wrong-rank", "not-checked"),
        ("shift", "by a product", "float16-odd-expanded", "within-tolerance"),
        ("sort", "equal ones in reverse", "float16-row-special", "within-tolerance"),
        ("fir", "a convolution", "float16-odd-ties-transposed", "within-tolerance"),
    ],
)
def test_a_rewrite_is_no_alarm(bench: Workbench, op: str, rewrite: str, cell: str, verdict: str) -> None:
    (found,) = bench.check(BY_NAME[op], BY_NAME[op].rewrites[rewrite], rewrite, cell)
    assert found.verdict == verdict, found.reason


NOISY = Op(
    "neg",
    {"x": "MN"},
    "-x",
    "y = -x.float(); y[:1, :1] += 2.0 ** -9 * (torch.rand((), generator=G) < 0.3); return y.to(x.dtype)",
    {},
    {},
)


def test_identical_code_that_differs_in_30_percent_of_calls_never_regresses(bench: Workbench) -> None:
    results = list(
        bench.check(NOISY, NOISY.sound, "noisy", "row", "odd", "row-wide", "larger", "tail-1", "row-strided")
    )
    assert len(results) > 8
    assert {result.verdict for result in results} <= {"unchanged", "within-tolerance", "wrong-already"}
    assert "wrong-already" in {result.verdict for result in results}


@pytest.mark.skipif(not SLOW, reason="OPSCHEMA_SLOW runs all variants")
@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
def test_all_variants(bench: Workbench, op: Op) -> None:
    if op.kernel and not shutil.which("g++"):
        pytest.skip("g++ is not found")
    # Modules of their own: some faults are of the first calls, which another test has made.
    found = {(kind, name): failing(bench.check(op, text, f"all: {name}")) for kind, name, text in variants(op)}
    assert [key for key, result in found.items() if (result is None) == (key[0] == "fault")] == []


def test_there_are_sixty_of_each() -> None:
    assert sum(len(op.faults) for op in ALL) >= 60
    assert sum(len(op.rewrites) for op in ALL) >= 60
