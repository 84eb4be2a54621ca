"""The verdicts, case by case."""

from __future__ import annotations

import msgspec
import pytest

from opschema_cli.verify.judge import Compared, Traits, judge
from opschema_cli.verify.model import Figures, Finding, Ran, Returned

OK = Ran(cell="c", status="ok")
REFUSED = Ran(cell="c", status="refused", detail="no argument `n`")
RAISED = Ran(cell="c", status="raised", detail="ValueError: no")
DIED = Ran(cell="c", status="died", detail="signal 11")
STALLED = Ran(cell="c", status="stalled", detail="60 s")
NO_REFERENCE = Ran(cell="c", status="refused", detail="no recipe")
BITS = Finding(check="bits", side="after", about="y", message="1 of 2 elements differ")
RIGHT = Compared()


def finding(check: str = "tolerance", side: str = "after", about: str = "y") -> Finding:
    return Finding(check=check, side=side, about=about, message="is off")


def wrong(side: str = "after", check: str = "tolerance", *, beyond: float = 0.1, worst: float = 1.0) -> Compared:
    return Compared((finding(check, side),), (Figures(side=side, output="y", beyond=beyond, worst=worst),))


def saw(*checks: str, side: str = "after") -> Ran:
    return Ran(cell="c", status="ok", findings=tuple(finding(check, side) for check in checks))


def lying(*strides: int, shape: tuple[int, ...] = (2, 3)) -> Ran:
    return Ran(cell="c", status="ok", outputs=(Returned(name="y", shape=shape, dtype="float16", strides=strides),))


def refusing(what: str, place: str = "", kind: str = "ValueError") -> Ran:
    detail = f"{kind}: {what}"
    return Ran(cell="c", status="raised", detail=f"{detail}\na.py:3", error=detail, place=place)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        (OK, None, "not-checked", "after was not run"),
        (OK, REFUSED, "regression", "after cannot be run: no argument `n`; before ran"),
        (REFUSED, REFUSED, "not-checked", "after cannot be run: no argument `n`"),
        (RAISED, REFUSED, "not-checked", "after cannot be run: no argument `n`"),
        (None, REFUSED, "not-checked", "after cannot be run: no argument `n`"),
        (OK, RAISED, "regression", "after raised: ValueError: no; before ran"),
        (OK, DIED, "regression", "after died: signal 11; before ran"),
        (OK, STALLED, "regression", "after stalled: 60 s; before ran"),
        (RAISED, RAISED, "crashed", "after raised: ValueError: no; before raised too"),
        (DIED, RAISED, "crashed", "after raised: ValueError: no; before died too"),
        (refusing("no"), refusing("no"), "not-checked", "refused by both sides: ValueError: no\na.py:3"),
        (refusing("no"), refusing("never"), "crashed", "after raised: ValueError: never\na.py:3; before raised too"),
        (OK, refusing("no"), "regression", "after raised: ValueError: no\na.py:3; before ran"),
        (None, refusing("no"), "crashed", "after raised: ValueError: no\na.py:3"),
        (None, DIED, "crashed", "after died: signal 11"),
        (REFUSED, DIED, "crashed", "after died: signal 11"),
    ],
)
def test_sides_that_did_not_run(before: Ran | None, after: Ran | None, verdict: str, reason: str) -> None:
    judgement = judge(before, after)
    assert (judgement.verdict, judgement.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("before", "verdict", "reason"),
    [
        (None, "within-tolerance", "after is right; no before to compare with"),
        (REFUSED, "not-checked", "before refused: no argument `n`; after is right"),
        (RAISED, "within-tolerance", "after is right; before raised: ValueError: no"),
    ],
)
def test_after_is_right_and_before_did_not_run(before: Ran | None, verdict: str, reason: str) -> None:
    judgement = judge(before, OK, OK, compared={"after": RIGHT})
    assert (judgement.verdict, judgement.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("check", "about", "compared", "verdict"),
    [
        ("fake-missing", "", {}, "regression"),
        ("repeat", "y", {}, "wrong-already"),
        ("repeat", "z", {}, "regression"),
        ("fake-missing", "", {"before": RIGHT, "after": RIGHT}, "wrong-already"),
    ],
)
def test_a_fault_of_both_sides_does_not_hide_other_bits(
    check: str, about: str, compared: dict[str, Compared], verdict: str
) -> None:
    before, after = (
        Ran(cell="c", status="ok", findings=(finding(check, side, about),)) for side in ("before", "after")
    )
    reference = OK if compared else NO_REFERENCE
    judgement = judge(before, after, reference, differences=(BITS,), compared=compared)
    assert judgement.verdict == verdict, judgement
    assert check in judgement.reason


@pytest.mark.parametrize(
    ("before", "verdict"), [(None, "regression"), (REFUSED, "regression"), (DIED, "wrong-already")]
)
def test_after_is_wrong_and_before_did_not_run(before: Ran | None, verdict: str) -> None:
    assert judge(before, OK, OK, compared={"after": wrong()}).verdict == verdict
    assert judge(before, saw("input-changed")).verdict == verdict


@pytest.mark.parametrize("before", [None, REFUSED, RAISED])
def test_nothing_is_known_of_what_after_computes(before: Ran | None) -> None:
    judgement = judge(before, OK, NO_REFERENCE)
    assert judgement.verdict == "not-checked"
    assert judgement.reason.endswith("not checked against a reference: no recipe")


def test_unchanged() -> None:
    assert judge(OK, OK, OK, compared={"before": RIGHT, "after": RIGHT}) == ("unchanged", "", ())


def test_unchanged_without_a_reference_says_so() -> None:
    assert judge(OK, OK, NO_REFERENCE) == ("unchanged", "not checked against a reference: no recipe", ())
    assert judge(OK, OK) == ("unchanged", "not checked against a reference", ())


@pytest.mark.parametrize("check", ["tolerance", "nan-mask", "inf-mask", "exact", "shape", "denormals"])
def test_the_same_bits_are_no_regression(check: str) -> None:
    both = {side: wrong(side, check) for side in ("before", "after")}
    expected = "unchanged" if check == "denormals" else "wrong-already"
    assert judge(OK, OK, OK, compared=both).verdict == expected


def test_the_same_bits_may_be_the_same_poison() -> None:
    both = {"before": wrong("before", "nan-mask"), "after": wrong("after", "nan-mask")}
    assert judge(OK, OK, OK, compared=both).verdict == "wrong-already"
    assert judge(saw("poison", side="before"), saw("poison"), NO_REFERENCE).verdict == "wrong-already"


def test_other_bits_that_are_right() -> None:
    judgement = judge(OK, OK, OK, differences=[BITS], compared={"before": RIGHT, "after": RIGHT})
    assert judgement == ("within-tolerance", "bits differ, both are right", (BITS,))


@pytest.mark.parametrize(
    ("between", "rounded", "verdict"),
    [(0.0, 0.1, "regression"), (0.1, 0.1, "within-tolerance"), (0.0, 0.0, "within-tolerance")],
)
def test_what_was_rounded_once_is_not_rounded_in_between(between: float, rounded: float, verdict: str) -> None:
    before = Compared(figures=(Figures(side="before", output="y", between=between),))
    after = Compared(figures=(Figures(side="after", output="y", between=0.1, rounded=rounded),))
    compared = {"before": before, "after": after}
    assert judge(OK, OK, OK, differences=[BITS], compared=compared).verdict == verdict
    assert judge(OK, OK, OK, compared=compared).verdict == "unchanged"


def test_other_bits_and_no_reference() -> None:
    judgement = judge(OK, OK, NO_REFERENCE, differences=[BITS])
    assert judgement.verdict == "regression"
    assert judgement.reason == "differs from before, and is not checked against a reference: no recipe"


def test_a_cure_is_within_tolerance() -> None:
    judgement = judge(OK, OK, OK, differences=[BITS], compared={"before": wrong("before"), "after": RIGHT})
    assert (judgement.verdict, judgement.reason) == ("within-tolerance", "before was wrong: tolerance: is off")


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (RIGHT, wrong(), "regression"),
        (wrong("before"), wrong(), "wrong-already"),
        (wrong("before"), wrong(beyond=0.15, worst=1.5), "wrong-already"),
        (wrong("before"), wrong(beyond=0.01), "wrong-already"),
        (wrong("before"), wrong(beyond=0.3), "regression"),
        (wrong("before"), wrong(worst=3.0), "regression"),
        (wrong("before", "nan-mask"), wrong(), "regression"),
    ],
)
def test_wrong_results(before: Compared, after: Compared, verdict: str) -> None:
    judgement = judge(OK, OK, OK, differences=[BITS], compared={"before": before, "after": after})
    assert judgement.verdict == verdict


def test_what_a_side_tells_alone_counts_although_the_bits_are_the_same() -> None:
    compared = {"before": RIGHT, "after": RIGHT}
    judgement = judge(OK, saw("input-changed"), OK, compared=compared)
    assert (judgement.verdict, judgement.reason) == ("regression", "after: input-changed: is off")
    assert judge(saw("input-changed"), saw("input-changed"), OK, compared=compared).verdict == "wrong-already"
    assert judge(saw("input-changed"), saw("input-changed", "repeat"), OK, compared=compared).verdict == "regression"
    assert judge(saw("input-changed"), OK, OK, compared=compared).verdict == "unchanged"


def test_the_same_check_on_another_input_is_new() -> None:
    before = Ran(cell="c", status="ok", findings=(finding("input-changed", "before", "x"),))
    after = Ran(cell="c", status="ok", findings=(finding("input-changed", "after", "weight"),))
    assert judge(before, after).verdict == "regression"


@pytest.mark.parametrize("check", ["outputs", "shape", "dtype"])
def test_other_metadata_than_before_is_a_regression_even_if_right(check: str) -> None:
    compared = {"before": RIGHT, "after": RIGHT}
    assert judge(OK, OK, OK, differences=[finding(check)], compared=compared).verdict == "regression"


def test_other_strides_are_a_regression() -> None:
    judgement = judge(lying(3, 1), lying(1, 2), OK, compared={"before": RIGHT, "after": RIGHT})
    assert judgement.verdict == "regression"
    assert judgement.reason == "differs from before: strides: `y` has strides (1, 2), before (3, 1)"


@pytest.mark.parametrize("shape", [(1, 3), (0, 3)])
def test_strides_that_place_nothing_do_not_count(shape: tuple[int, int]) -> None:
    assert judge(lying(3, 1, shape=shape), lying(77, 1, shape=shape)).verdict == "unchanged"


def test_flushed_denormals_count_where_they_are_new() -> None:
    flushed = {side: wrong(side, "denormals", beyond=0.0) for side in ("before", "after")}
    assert judge(OK, OK, OK, compared=flushed) == ("unchanged", "", ())
    assert judge(None, OK, OK, compared={"after": flushed["after"]}).verdict == "within-tolerance"
    judgement = judge(OK, OK, OK, differences=[BITS], compared={"before": RIGHT, "after": flushed["after"]})
    assert judgement.verdict == "regression"
    assert judgement.findings == (*flushed["after"].findings, BITS)


def test_a_tensor_that_is_kept_counts_where_it_is_new() -> None:
    old, new = saw("kept-output", side="before"), saw("kept-output")
    assert judge(old, new).verdict == "unchanged"
    assert judge(OK, new).verdict == "regression"
    assert judge(None, new, OK, compared={"after": RIGHT}).verdict == "within-tolerance"


def test_a_state_that_is_left_changed_counts_where_it_is_new() -> None:
    old, new = saw("state", side="before"), saw("state")
    assert judge(old, new).verdict == judge(old, OK).verdict == "unchanged"
    assert judge(OK, new).verdict == "regression"


def test_another_structure_is_a_regression() -> None:
    one, other = (Ran(cell="c", status="ok", structure=kind) for kind in ("Tensor", "list of 1"))
    assert judge(one, one).verdict == "unchanged"
    judgement = judge(one, other, OK, compared={"before": RIGHT, "after": RIGHT})
    assert judgement.verdict == "regression"
    assert judgement.reason == "differs from before: structure: the call returns list of 1, before Tensor"


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (True, True, "unchanged"),
        (True, False, "regression"),
        (False, True, "regression"),
        (None, True, "unchanged"),
        (True, None, "unchanged"),
    ],
)
def test_whether_a_gradient_is_required(before: bool | None, after: bool | None, verdict: str) -> None:
    sides = [
        Ran(cell="c", status="ok", outputs=(Returned(name="y", shape=(), dtype="float16", grad=grad),))
        for grad in (before, after)
    ]
    assert judge(*sides).verdict == verdict


ALL_LOST = Compared(figures=(Figures(side="after", output="y", elements=6, undecided=6),))
MOST_LOST = Compared(figures=(Figures(side="after", output="y", elements=6, undecided=5),))
LOST = "not checked against a reference: `y`: the reference decides nothing, for float32 is too far from float64"


@pytest.mark.parametrize(("grad", "verdict"), [(None, "unchanged"), (True, "regression")])
def test_a_backward_that_raises(grad: bool | None, verdict: str) -> None:
    """An op that took no inputs with gradients before loses nothing."""
    before, after = (
        Ran(cell="c", status="ok", outputs=(Returned(name="y", shape=(), dtype="float16", grad=found),))
        for found in (grad, True)
    )
    after = msgspec.structs.replace(after, findings=(finding("gradient-raises"),))
    assert judge(before, after, compared={"before": RIGHT, "after": RIGHT}).verdict == verdict


@pytest.mark.parametrize(("compared", "verdict"), [(ALL_LOST, "not-checked"), (MOST_LOST, "within-tolerance")])
def test_a_comparison_that_decided_nothing_does_not_count_as_right(compared: Compared, verdict: str) -> None:
    judgement = judge(None, OK, OK, compared={"after": compared})
    assert judgement.verdict == verdict
    assert (LOST in judgement.reason) is (compared is ALL_LOST)


def test_where_nothing_was_decided_only_equal_bits_are_unchanged() -> None:
    sides = {"before": ALL_LOST, "after": ALL_LOST}
    same, other = judge(OK, OK, OK, compared=sides), judge(OK, OK, OK, differences=[BITS], compared=sides)
    assert (same.verdict, other.verdict) == ("unchanged", "regression")
    assert LOST in same.reason
    assert LOST in other.reason


def test_an_empty_output_is_decided() -> None:
    empty = Compared(figures=(Figures(side="after", output="y"),))
    assert judge(None, OK, OK, compared={"after": empty}).verdict == "within-tolerance"


def test_a_refusal_counts_by_its_type_and_place() -> None:
    before = refusing("n must be even", "forward")
    assert judge(before, refusing("n is odd", "forward")).verdict == "not-checked"
    assert judge(before, refusing("n must be even", "check")).verdict == "not-checked"
    assert judge(before, refusing("n is odd", "check")).verdict == "crashed"
    assert judge(before, refusing("n is odd", "forward", "TypeError")).verdict == "crashed"


def test_an_axis_without_elements_may_be_refused() -> None:
    """Unless it is the first one: an op takes no rows, if before did."""
    inner, first = Traits(empty="inner"), Traits(empty="first")
    empty = refusing("Expected reduction dim -1 to have non-zero size.", kind="IndexError")
    assert judge(OK, empty, traits=inner).verdict == "not-checked"
    assert judge(OK, empty, traits=first).verdict == "regression"
    assert judge(OK, refusing("division by zero", kind="ZeroDivisionError"), traits=inner).verdict == "regression"
    assert judge(RAISED, empty, traits=inner).verdict == "not-checked"


def test_strides_of_outputs_are_noted_where_the_inputs_lie_otherwise() -> None:
    """An op may keep the layout of transposed inputs, or not."""
    before, after = lying(3, 1), lying(1, 2)
    assert judge(before, after, OK, compared={"after": RIGHT}).verdict == "regression"
    judgement = judge(before, after, OK, compared={"after": RIGHT}, traits=Traits(dense=False))
    assert judgement.verdict == "unchanged"
    assert [finding.check for finding in judgement.findings] == ["layout"]


@pytest.mark.parametrize(
    ("before", "after", "found", "verdict"),
    [
        (DIED, DIED, True, "not-checked"),
        (STALLED, DIED, True, "not-checked"),
        (DIED, DIED, False, "crashed"),
        (OK, DIED, True, "regression"),
        (RAISED, DIED, True, "crashed"),
        (None, DIED, True, "crashed"),
    ],
)
def test_a_call_that_a_search_found_may_end_both_processes(
    before: Ran | None, after: Ran, found: bool, verdict: str
) -> None:
    assert judge(before, after, traits=Traits(found=found)).verdict == verdict


def test_a_found_call_whose_results_say_little_reports_it() -> None:
    constant = Traits(found=True, weak="all elements of each output are equal")
    found = judge(OK, OK, compared={"before": RIGHT, "after": RIGHT}, traits=constant)
    assert found[:2] == (
        "unchanged",
        "the call found by search is a weak test: all elements of each output are equal",
    )
    empty = Traits(found=True, weak="its outputs have no elements", shows_nothing=True)
    nothing = judge(OK, OK, NO_REFERENCE, traits=empty)
    assert nothing.verdict == "not-checked"
    assert nothing.reason.endswith("; not checked against a reference: no recipe")
    assert judge(OK, saw("poison"), traits=empty).verdict == "regression"


def test_a_found_call_that_may_pass_wrong_indices_proves_no_crash() -> None:
    doubtful = Traits(found=True, doubtful=True)
    for before in (None, REFUSED):
        assert judge(before, DIED, traits=doubtful).verdict == "not-checked"
        assert judge(before, DIED, traits=Traits(found=True)).verdict == "crashed"
    assert judge(OK, DIED, traits=doubtful).verdict == "regression"
    large = judge(DIED, DIED, traits=Traits(doubtful=True))
    assert large.verdict == "not-checked"
    assert large.reason.startswith("a call with large integers, perhaps an invalid one, ended both processes: ")


def test_an_op_that_asks_for_a_gpu_is_not_checked_without_one() -> None:
    raised = refusing("Torch not compiled with CUDA enabled", kind="AssertionError")
    assert [judge(before, raised).verdict for before in (None, REFUSED)] == ["not-checked"] * 2
    assert judge(OK, raised).verdict == "regression"
    assert judge(raised, raised).verdict == "not-checked"


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        ("q, k and v must be CUDA tensors", "not-checked"),
        ("MyOp expects all inputs to be on CUDA, got device cpu", "not-checked"),
        ("Expected x.is_cuda() to be true, but got false: x must be on a GPU", "not-checked"),
        ("CUDA is required", "not-checked"),
        ("the last axis must be a multiple of 8", "crashed"),
        ("launching the CUDA graph", "crashed"),
    ],
)
def test_an_op_that_refuses_tensors_on_the_cpu_needs_a_gpu(says: str, verdict: str) -> None:
    refusal = refusing(says)
    meant = msgspec.structs.replace(refusal, deliberate=True)
    assert judge(None, meant).verdict == judge(REFUSED, meant).verdict == verdict
    assert judge(None, refusal).verdict == judge(None, meant, traits=Traits(on_gpu=True)).verdict == "crashed"
    assert judge(OK, meant).verdict == "regression"
