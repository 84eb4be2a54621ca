"""The comparison with a reference: bits, ULPs, the tolerance rule, NaN and infinities, exact outputs."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.checks import digest  # noqa: E402
from opschema_cli.verify.compare import against, differences, differing  # noqa: E402
from opschema_cli.verify.formats import Format  # noqa: E402
from opschema_cli.verify.inputs import make_inputs  # noqa: E402
from opschema_cli.verify.measure import Comparison  # noqa: E402
from opschema_cli.verify.model import Call, Cell, Input, Tolerance, Values  # noqa: E402
from opschema_cli.verify.results_file import named  # noqa: E402

Function = Callable[[Tensor], Tensor]

INF, NAN = math.inf, math.nan
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def compare(actual: Tensor, exact: Tensor, single: Tensor | None = None, *, values: Values = "normal",
            kappa: float = 32.0, ulps: float = 1.0) -> Comparison:  # fmt: skip
    rule = Tolerance(kappa=kappa, ulps=ulps, reason="a test")
    return against(actual, exact, single, rule, side="after", output="y", values=values)


def checks(found: Comparison) -> list[str]:
    return [finding.check for finding in found.findings]


# --- bits


def test_bits() -> None:
    x = torch.tensor([0.0, NAN, 1.0, INF])
    other_nan = x.clone()
    other_nan.view(torch.int32)[1] += 1
    assert differing(x, other_nan) == (0, ())
    assert differing(x, torch.tensor([-0.0, NAN, 1.0, INF])) == (1, (0,))
    assert differing(x, torch.tensor([0.0, 0.0, 2.0, -INF])) == (3, (1,))
    assert differing(torch.zeros(0, 3), torch.zeros(0, 3)) == (0, ())


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int64", "bool", "complex64"])
def test_one_differing_element_of_many_is_found_at_its_place(dtype: str) -> None:
    x = torch.zeros(300, 400).to(getattr(torch, dtype))
    y = x.clone()
    y[299, 7] = 1
    assert differing(x, x.clone()) == (0, ())
    assert differing(x, y)[0] == 1
    if dtype != "complex64":
        assert differing(x.t(), y.t())[1] == (7, 299)


def test_differences_between_sides() -> None:
    x = torch.ones(2)
    found = differences(
        {"same": x, "bits": x, "shape": x, "dtype": x, "gone": x},
        {"same": x, "bits": -x, "shape": x[None], "dtype": x.half(), "new": x},
    )
    assert [(finding.check, finding.about) for finding in found] == [
        ("bits", "bits"), ("shape", "shape"), ("dtype", "dtype"), ("outputs", "gone"), ("outputs", "new"),
    ]  # fmt: skip


# --- ULPs


def neighbour(value: float, dtype: str) -> float:
    """The next number of a dtype above a positive one, by counting up its bits."""
    tensor = torch.tensor(value, dtype=torch.float64).to(getattr(torch, dtype))
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return float((tensor.view(integers) + 1).view(tensor.dtype).double())


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_ulp_is_the_distance_to_the_next_number(dtype: str) -> None:
    info = torch.finfo(getattr(torch, dtype))
    least = info.smallest_normal * info.eps
    below_two = 2 - info.eps
    for value in (0.0, least, info.smallest_normal - least, info.smallest_normal, 1.0, below_two, 2.0, info.max / 4):
        assert float(Format(info_dtype(dtype)).ulp(doubles(value))[0]) == neighbour(value, dtype) - value, value
        assert Format(info_dtype(dtype)).ulp(doubles(-value)) == Format(info_dtype(dtype)).ulp(doubles(value))


def info_dtype(dtype: str) -> torch.dtype:
    found = getattr(torch, dtype)
    assert isinstance(found, torch.dtype)
    return found


def test_the_ulp_of_numbers_beyond_the_largest_is_that_of_the_largest() -> None:
    assert float(Format(torch.float16).ulp(doubles(1e9))[0]) == 32.0
    assert float(Format(torch.float32).ulp(doubles(1e-300))[0]) == struct.unpack("<f", b"\1\0\0\0")[0]


# --- the rule


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_sixteen_and_eight_bits_may_be_one_ulp_off_and_no_more(dtype: str) -> None:
    exact = torch.full((100,), 1.5, dtype=torch.float64)
    step = float(Format(info_dtype(dtype)).ulp(exact[:1])[0])
    for steps, right in ((0, True), (1, True), (-1, True), (2, False), (-2, False)):
        actual = exact.clone()
        actual[41] += steps * step
        found = compare(actual.to(info_dtype(dtype)), exact, exact)
        assert found.right is right
        assert found.figures.ulps == abs(steps)
        assert found.figures.worst == abs(steps) * step
        assert right or found.figures.at == (41,)
        assert found.figures.share == pytest.approx(abs(steps), rel=0.01)
        assert found.figures.beyond == (0 if right else 0.01)
    assert compare((exact + 2 * step).to(info_dtype(dtype)), exact, exact, ulps=2).right


def test_kappa_scales_the_error_of_float32() -> None:
    exact = torch.ones(10, dtype=torch.float64)
    single = exact + 2.0**-12
    for error, needed, right in ((16.0, 16, True), (32.0, 32, True), (33.0, 33, False)):
        found = compare((exact + error * 2.0**-12).float(), exact, single)
        assert found.right is right
        assert found.figures.kappa == pytest.approx(needed, rel=1e-3)
    assert not compare((exact + 2.0**-8).float(), exact, single, kappa=8).right


def test_without_a_float32_reference_the_floor_is_the_precision_of_float32() -> None:
    exact = doubles(1.0, 8.0)
    assert compare((exact + doubles(32 * 2.0**-20, 0)).float(), exact).right
    assert not compare((exact + doubles(34 * 2.0**-20, 0)).float(), exact).right


def test_float64_outputs_are_held_to_float64() -> None:
    exact = torch.linspace(1, 2, 50, dtype=torch.float64)
    assert compare(exact * (1 + 2.0**-50), exact, exact.float()).right
    assert checks(compare(exact * (1 + 2.0**-40), exact, exact.float())) == ["tolerance"]


def test_one_zeroed_element_among_many_is_seen() -> None:
    exact = torch.randn(257, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 4
    actual = exact.half()
    actual[200, 3] = 0
    found = compare(actual, exact, exact.float())
    assert checks(found) == ["tolerance"]
    assert found.figures.at == (200, 3)
    assert found.figures.beyond == 1 / 257000


# --- compositions that round in between


def drawn(dtype: str, seed: int, values: Values) -> Tensor:
    spec = Input(name="x", shape=(16, 67), dtype=dtype)
    return make_inputs(Cell(op="Op", row="r", dtype=dtype, seed=seed, values=values, call=Call(inputs=(spec,))))["x"]


def judged(
    op: Function, reference: Function, x: Tensor, values: Values = "normal", *, short: bool = True
) -> Comparison:
    singles = reference(x.double()), reference(x.float())
    low = reference(x) if short else None
    return against(op(x), *singles, Tolerance(), side="after", output="y", values=values, short=low)


COMPOSITIONS: dict[str, Function] = {
    "normalize": lambda x: x / x.norm(dim=-1, keepdim=True),
    "gate": lambda x: torch.nn.functional.silu(x) * x,
    "log_softmax": lambda x: x.log_softmax(-1),
    "center": lambda x: x - x.mean(-1, keepdim=True),
    "standardize": lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_composition_of_torch_s_own_operators_is_right(name: str, dtype: str) -> None:
    op = COMPOSITIONS[name]
    strict = 0
    for seed in range(20):
        x = drawn(dtype, seed, "normal")
        found = judged(op, op, x)
        assert found.findings == (), found
        strict += bool(judged(op, op, x, short=False).findings)
        assert (found.figures.rounded > 0) is bool(judged(op, op, x, short=False).findings)
        special = judged(op, op, drawn(dtype, seed, "special"), "special")
        assert special.right, special
    assert (strict > 0) is (dtype != "float32"), "it is the reference in 16 bits that makes it right"


OTHERWISE: dict[str, Function] = {
    "normalize": lambda x: x * x.norm(dim=-1, keepdim=True).reciprocal(),
    "gate": lambda x: x * (x * x.sigmoid()),
    "center": lambda x: -(x.mean(-1, keepdim=True) - x),
}
"""Other ways to compute some of them, with as many roundings or one more."""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", OTHERWISE)
def test_the_same_computed_otherwise_is_right(name: str, dtype: str) -> None:
    for seed in range(20):
        found = judged(OTHERWISE[name], COMPOSITIONS[name], drawn(dtype, seed, "normal"))
        assert found.findings == (), (seed, found.findings)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_faults_of_a_composition_are_found_all_the_same(name: str, dtype: str) -> None:
    op = COMPOSITIONS[name]
    x = drawn(dtype, 0, "normal")
    more = 1 + 8 * torch.finfo(x.dtype).eps
    faults: list[Function] = [
        lambda x: op(x) * more,
        lambda x: op(x[:, :-1]).new_zeros(x.shape).copy_(torch.nn.functional.pad(op(x[:, :-1]), (0, 1))),
        lambda x: op(x).index_fill(0, torch.tensor(3), 0),
    ]
    for fault in faults:
        assert checks(judged(fault, op, x)) == ["tolerance"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_reference_that_rounds_once_excuses_nothing(dtype: str) -> None:
    def rounds_between(x: Tensor) -> Tensor:
        return x.exp() / x.exp().cumsum(-1)[:, -1:]

    x = drawn(dtype, 0, "normal")
    assert judged(lambda x: x.softmax(-1), lambda x: x.softmax(-1), x).findings == ()
    assert checks(judged(rounds_between, lambda x: x.softmax(-1), x)) == ["tolerance"]


def test_a_reference_that_is_lost_in_16_bits_excuses_little() -> None:
    exact = torch.linspace(1, 2, 64, dtype=torch.float64)
    low = torch.zeros(64).half()
    actual = (exact * 1.05).half()
    found = against(actual, exact, exact.float(), Tolerance(), side="after", output="y", short=low)
    assert checks(found) == ["tolerance"]


# --- NaN and infinities


@pytest.mark.parametrize(
    ("exact", "actual", "expected"),
    [
        (NAN, NAN, []),
        (NAN, 1.0, ["nan-mask"]),
        (NAN, INF, ["nan-mask"]),
        (1.0, NAN, ["nan-mask"]),
        (INF, NAN, ["nan-mask"]),
        (INF, INF, []),
        (INF, -INF, ["inf-mask"]),
        (INF, 65504.0, ["inf-mask"]),
        (1.0, INF, ["inf-mask"]),
        (-1e6, -INF, []),
        (1e6, -INF, ["inf-mask"]),
        (1e6, 65504.0, ["tolerance"]),
        (65504.0, 65504.0, []),
        (65504.0, INF, ["inf-mask"]),
        (65519.0, 65504.0, []),
        (65520.0, INF, []),
        (0.0, -0.0, []),
    ],
)
def test_nan_and_infinities_are_where_the_rounded_reference_has_them(
    exact: float, actual: float, expected: list[str]
) -> None:
    found = compare(torch.tensor([1.0, actual]).half(), doubles(1.0, exact), torch.tensor([1.0, exact]))
    assert checks(found) == expected
    assert math.isfinite(found.figures.worst + found.figures.ulps + found.figures.kappa)
    if "mask" in "".join(expected):
        assert found.figures.at == (1,)
        assert found.figures.beyond == 0.5


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bits_may_saturate_or_overflow(dtype: str) -> None:
    largest = torch.finfo(info_dtype(dtype)).max
    exact = doubles(1e9, -1e9, 1.0)
    for high in (largest, NAN) if dtype == "float8_e4m3fn" else (largest, NAN, INF):
        actual = doubles(high, -high, 1.0).to(info_dtype(dtype))
        assert compare(actual, exact, exact.float()).findings == ()
    wrong = doubles(-largest, -largest, NAN).to(info_dtype(dtype))
    assert checks(compare(wrong, exact, exact.float())) == ["nan-mask", "tolerance"]


@pytest.mark.parametrize("single", [NAN, INF])
@pytest.mark.parametrize("actual", [NAN, INF, 0.0])
def test_where_float32_itself_gives_up_nobody_is_judged(single: float, actual: float) -> None:
    found = compare(torch.tensor([1.0, actual]), doubles(1.0, 3.0), torch.tensor([1.0, single]))
    assert found.findings == ()
    assert found.figures.undecided == 1


@pytest.mark.parametrize("values", ["normal", "special"])
@pytest.mark.parametrize(
    ("exact", "single", "actual", "undecided"),
    [
        (80632.0, 10747.0, 3740.0, 1),  # an eps of each precision's own: rms_norm of a row of small numbers
        (-80632.0, -10747.0, 3740.0, 1),
        (10747.0, 80632.0, INF, 1),
        (80632.0, 90632.0, INF, 0),
        (80632.0, INF, INF, 0),
        (65500.0, 65600.0, INF, 0),
        (65500.0, 65600.0, 65504.0, 0),
    ],
)
def test_where_float32_overflows_otherwise_nobody_is_judged(
    exact: float, single: float, actual: float, undecided: int, values: Values
) -> None:
    x = torch.linspace(1, 2, 50, dtype=torch.float64)
    references = torch.cat([x, doubles(exact)]), torch.cat([x, doubles(single)])
    found = compare(torch.cat([x, doubles(actual)]).half(), references[0], references[1].float(), values=values)
    assert (checks(found), found.figures.undecided, found.figures.elements) == ([], undecided, 51)


def test_overflows_of_another_sign_are_undecided_among_special_values() -> None:
    exact, single = doubles(1, 1, 1, 80632), doubles(1, 1, 1, -80632)
    found = compare(doubles(1, 1, 1, INF).half(), exact, single.float(), values="special")
    assert (checks(found), found.figures.undecided) == ([], 1)


@pytest.mark.parametrize("values", ["normal", "special"])
@pytest.mark.parametrize(("actual", "check"), [(3740.0, "tolerance"), (-INF, "inf-mask"), (NAN, "nan-mask")])
def test_an_overflow_that_both_references_see_is_judged(actual: float, check: str, values: Values) -> None:
    x = torch.linspace(1, 2, 50, dtype=torch.float64)
    exact, single = torch.cat([x, doubles(80632)]), torch.cat([x, doubles(80640)])
    found = compare(torch.cat([x, doubles(actual)]).half(), exact, single.float(), values=values)
    assert (checks(found), found.figures.undecided) == ([check], 0)


def test_a_huge_element_excuses_nothing_elsewhere_among_special_values() -> None:
    exact = torch.ones(64, dtype=torch.float64)
    exact[3] = 3e38
    actual = exact.float()
    assert compare(actual, exact, exact.float(), values="special").right
    actual[40] = 1.001
    assert checks(compare(actual, exact, exact.float(), values="special")) == ["tolerance"]
    actual[40] = 1
    actual[3] *= 1.001
    assert checks(compare(actual, exact, exact.float(), values="special")) == ["tolerance"]


def test_flushed_denormals_are_told() -> None:
    exact = torch.linspace(1, 2, 64, dtype=torch.float64)
    exact[:8] = 1e-39
    flushed = exact.clone()
    flushed[:8] = 0
    found = compare(flushed.bfloat16(), exact, exact.float(), values="special")
    assert checks(found) == ["denormals"]
    assert found.right
    assert compare(exact.bfloat16(), exact, exact.float(), values="special").findings == ()


# --- the rest


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_outputs_that_are_no_floats_are_exact(dtype: str) -> None:
    exact = torch.tensor([[0, 1], [1, 1]]).to(info_dtype(dtype))
    assert compare(exact.clone(), exact).findings == ()
    assert compare(exact.clone(), exact.double()).findings == ()
    actual = exact.clone()
    actual[1, 0] = 0
    found = compare(actual, exact)
    assert checks(found) == ["exact"]
    assert (found.figures.at, found.figures.beyond, found.figures.worst) == ((1, 0), 0.25, 1.0)


def test_large_integers_are_exact_too() -> None:
    assert checks(compare(torch.tensor([2**60 + 1]), torch.tensor([2**60]))) == ["exact"]


def test_another_shape_than_the_reference() -> None:
    assert checks(compare(torch.ones(1, 3), torch.ones(3, dtype=torch.float64))) == ["shape"]


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize("values", ["normal", "special"])
def test_nothing_is_right(dtype: str, values: Values) -> None:
    actual = torch.zeros(0, 5).to(info_dtype(dtype))
    found = compare(actual, actual.double(), actual.float(), values=values)
    assert (found.findings, found.figures.beyond, found.figures.at) == ((), 0.0, ())


def test_a_scalar() -> None:
    found = compare(torch.tensor(1.5), torch.tensor(1.0, dtype=torch.float64))
    assert (found.figures.worst, found.figures.at) == (0.5, ())


def test_the_histogram_counts_decades() -> None:
    exact = torch.zeros(8, dtype=torch.float64)
    actual = doubles(0, 2e-13, 2e-12, 3e-12, 2e-3, 0.5, 20, 2e5)
    histogram = compare(actual, exact).figures.histogram
    assert [(place, count) for place, count in enumerate(histogram) if count] == [
        (0, 2), (1, 2), (10, 1), (12, 1), (14, 1), (16, 1),
    ]  # fmt: skip


def test_chunks_make_no_difference() -> None:
    exact = torch.randn(200_001, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    actual = exact.float()
    actual[[5, 199_999]] += doubles(0.25, 0.5).float()
    found = compare(actual, exact, exact.float())
    assert (found.figures.at, found.figures.beyond) == ((199_999,), 2 / 200_001)
    assert sum(found.figures.histogram) == 200_001


@pytest.mark.parametrize(("error", "explained"), [(50, True), (100, True), (300, False)])
def test_a_kappa_that_is_exceeded_by_little_is_explained(error: int, explained: bool) -> None:
    exact = torch.ones(64, dtype=torch.float64)
    actual = exact.clone()
    actual[3] += error * 2.0**-23
    (found,) = compare(actual.float(), exact, exact.float()).findings
    enough = 2 ** math.ceil(math.log2(error))
    assert (f"its recipe says `Tolerance(kappa={enough}, reason=...)`" in found.message) is explained


@pytest.mark.parametrize(("steps", "explained"), [(2, True), (4, True), (6, False)])
def test_a_result_that_is_rounded_in_between_is_explained(steps: int, explained: bool) -> None:
    exact = torch.full((64,), 1 + 0.7 * 2.0**-7, dtype=torch.float64)
    actual = exact.to(torch.bfloat16)
    actual[3] = 1 + steps * 2.0**-7
    (found,) = compare(actual, exact, exact.float()).findings
    says = f"It is {steps - 0.7:.3g} ulp off, and a value that is rounded once is at most 0.5 ulp off: the op rounds in between."
    assert (says in found.message) is explained
    assert (f"`Tolerance(ulps={steps}, reason=...)`" in found.message) is explained


# --- complex numbers


def complexes(*values: complex, dtype: torch.dtype = torch.complex64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def test_both_parts_of_complex_numbers_are_measured() -> None:
    exact = torch.polar(doubles(1, 2, 3), doubles(0.1, 1, 2))
    right = exact.to(torch.complex64)
    assert checks(compare(right, exact, right)) == []
    assert checks(compare(right.real.sin() + 1j * right.imag, exact, right)) == ["tolerance"]
    assert checks(compare(right.conj().resolve_conj(), exact, right)) == ["tolerance"]
    assert checks(compare(right * 1.001, exact, right)) == ["tolerance"]
    other = right.clone()
    torch.view_as_real(other).view(torch.int32)[1, 1] += 1
    assert differing(right, other) == (1, (1,))
    assert checks(compare(other, exact, right)) == []


def test_a_complex_number_is_finite_or_not() -> None:
    """Which part of a product with an infinity is NaN depends on the formula."""
    exact = complexes(complex(INF, NAN), complex(NAN, 0), 1j, dtype=torch.complex128)
    assert checks(compare(complexes(complex(NAN, -INF), complex(0, NAN), 1j), exact)) == []
    assert checks(compare(complexes(1, complex(0, NAN), 1j), exact)) == ["nan-mask"]
    assert checks(compare(complexes(complex(NAN, -INF), complex(0, NAN), complex(0, INF)), exact)) == ["nan-mask"]
    one, other = complexes(complex(NAN, 1)), complexes(complex(-NAN, 1))
    assert differing(one, other) == (0, ())
    assert differing(one, complexes(complex(NAN, 2))) == (1, (0,))


def test_a_complex_output_may_have_a_real_reference() -> None:
    assert checks(compare(complexes(1, 2), doubles(1, 2))) == []
    assert checks(compare(complexes(1, 2 + 1j), doubles(1, 2))) == ["tolerance"]


def test_lazy_views_are_what_they_stand_for() -> None:
    z = torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 1.0]))
    result = (z.conj(), z.conj().imag)
    found = named(result, Call(inputs=()))
    assert differing(found["output0"], z.conj_physical()) == (0, ())
    assert differing(found["output1"], -z.imag) == (0, ())
    assert digest(found["output0"]) == digest(z.conj_physical()) != digest(z)
