"""Ops that differ from call to call: what is excused, and what is not."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.judge import Compared, Judgement, judge  # noqa: E402
from opschema_cli.verify.model import Figures, Finding, Ran  # noqa: E402
from opschema_cli.verify.spread import HIGH, LOW, comparable_as, measure, within  # noqa: E402

X = torch.linspace(1.0, 2.0, 64)
BITS = Finding(check="bits", side="after", about="y", message="1 of 64 elements differ")
OK = Ran(cell="c", status="ok")


class Atomics:
    """Adds its terms in any order: in some calls the last bit of an element is another."""

    def __init__(self, share: float) -> None:
        self.random = random.Random(7)
        self.share = share

    def __call__(self) -> dict[str, Tensor]:
        y = X.clone()
        if self.random.random() < self.share:
            y[self.random.randrange(64)] += 2.0**-23
        return {"y": y}


def spread_of(share: float, calls: int = 24) -> dict[str, Tensor]:
    return {"y": X, **measure(Atomics(share), calls).tensors()}


def test_what_varies_is_a_finding_and_has_bounds() -> None:
    found = measure(Atomics(0.3), 24)
    assert [(finding.check, finding.about) for finding in found.findings("before")] == [("repeat", "y")]
    assert sorted(found.tensors()) == ["high:y", "low:y"]
    assert bool((found.low["y"] <= found.high["y"]).all())
    steady = measure(Atomics(0.0), 24)
    assert (steady.findings("before"), steady.tensors()) == ([], {})


@pytest.mark.parametrize(
    ("error", "excused"), [(2.0**-23, True), (3 * 2.0**-23, True), (1e-5, False), (float("nan"), False)]
)
def test_a_difference_is_excused_as_far_as_before_differs_from_itself(error: float, excused: bool) -> None:
    after = X.clone()
    after[5] += error
    assert bool(within(spread_of(0.3), {"y": after}, {"y"})) is excused
    assert not within(spread_of(0.0), {"y": after}, {"y"})


def verdict(before: Ran, after: Ran, explanation: str = "", compared: dict[str, Compared] | None = None) -> Judgement:
    return judge(before, after, OK, differences=[BITS], compared=compared, explanation=explanation)


def ran(*checks: str) -> Ran:
    return Ran(
        cell="c", status="ok", findings=tuple(Finding(check=check, side="", about="y", message="") for check in checks)
    )


def test_the_same_code_does_not_regress_by_luck() -> None:
    """Before was found to vary when it was called more often; its first calls did not show it."""
    for luck in ("repeat", "poison", "changes-with-history"):
        assert verdict(ran(), ran(luck)).verdict == "regression"
        assert verdict(ran("repeat"), ran(luck)).verdict == "wrong-already"
    assert verdict(ran("repeat"), ran("repeat", "input-changed")).verdict == "regression"


def test_other_bits_within_the_spread_need_no_reference() -> None:
    assert verdict(ran(), ran()).verdict == "regression"
    assert verdict(ran(), ran(), "before differs from itself")[:2] == (
        "within-tolerance",
        "bits differ: before differs from itself",
    )


def test_values_within_the_spread_are_not_wrong() -> None:
    wrong = Finding(check="tolerance", side="after", about="y", message="")
    off = Compared((wrong,), (Figures(side="after", output="y", beyond=0.5),))
    both = {"before": Compared(figures=(Figures(side="before", output="y"),)), "after": off}
    assert verdict(ran(), ran(), "", both).verdict == "regression"
    assert verdict(ran(), ran(), "before differs from itself", both).verdict == "within-tolerance"


def test_complex_results_have_bounds_in_each_part() -> None:
    calls = iter([1 + 2j, 2 + 1j, 1 + 1j])
    spread = measure(lambda: {"y": torch.tensor([next(calls)])}, 3)
    found = spread.tensors()
    low, high = (comparable_as(found[kind + "y"], torch.zeros(1, dtype=torch.complex64)) for kind in (LOW, HIGH))
    assert (low.item(), high.item()) == (1 + 1j, 2 + 2j)
    assert within(found, {"y": torch.tensor([1.5 + 1.5j])}, {"y"})
    assert not within(found, {"y": torch.tensor([1.5 + 9j])}, {"y"})
