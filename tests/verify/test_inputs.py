"""The contents of inputs: the same bits everywhere, with the values and layouts of the cell."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.cells import Case  # noqa: E402
from opschema_cli.verify.checks import digest  # noqa: E402
from opschema_cli.verify.inputs import OFFSET, make_inputs, place, storage_bytes  # noqa: E402
from opschema_cli.verify.model import Call, Cell, Input, Layout, Values  # noqa: E402

FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
BITS = [-0.4199039041996002, -0.17477495968341827, 1.6565431356430054, -1.0372060537338257]
DIGEST = "d7524673ff8a51099b1d3f44145455ec"
SHAPES = [(9, 40), (7, 5), (2, 3), (3, 1), (1, 9), (40,), (1,), (), (0, 4), (4, 0), (2, 3, 4)]


def cell(*specs: Input, values: Values = "normal", layout: Layout = "contiguous", seed: int = 0) -> Cell:
    return Cell(op="Op", row="r", dtype="any", values=values, layout=layout, seed=seed, call=Call(inputs=specs))


def one(shape: tuple[int, ...], dtype: str = "float16", *, low: float | None = None, high: float | None = None,
        values: Values = "normal", layout: Layout = "contiguous", seed: int = 0) -> Tensor:  # fmt: skip
    spec = Input(name="x", shape=shape, dtype=dtype, low=low, high=high)
    return make_inputs(cell(spec, values=values, layout=layout, seed=seed))["x"]


def test_the_bits_are_these() -> None:
    """Written down, so that another machine, torch or thread count that draws others shows."""
    assert one((4,), "float32").tolist() == BITS
    assert digest(one((300, 257))) == DIGEST


def test_another_process_draws_the_same() -> None:
    code = (
        "from opschema_cli.verify.checks import digest; from opschema_cli.verify.inputs import make_inputs;"
        "from opschema_cli.verify.model import *; import torch; torch.manual_seed(7); torch.set_num_threads(1);"
        "spec = Input(name='x', shape=(300, 257), dtype='float16');"
        "print(digest(make_inputs(Cell(op='Op', row='r', dtype='any', call=Call(inputs=(spec,))))['x']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == digest(one((300, 257)))


def test_an_input_does_not_depend_on_the_others() -> None:
    x, other = Input(name="x", shape=(8,), dtype="float32"), Input(name="other", shape=(8,), dtype="float32")
    both = make_inputs(cell(other, x))
    assert torch.equal(both["x"], make_inputs(cell(x))["x"])
    assert not torch.equal(both["x"], both["other"])


def test_seeds_differ_and_a_repetition_does_not() -> None:
    spec = Input(name="x", shape=(64,), dtype="float32")
    first = cell(spec)
    again = Cell(op="Op", row="r", dtype="any", again=True, call=first.call)
    assert torch.equal(make_inputs(first)["x"], make_inputs(again)["x"])
    assert not torch.equal(make_inputs(first)["x"], make_inputs(cell(spec, seed=1))["x"])


def drawn(*specs: Input) -> dict[str, Tensor]:
    return make_inputs(cell(*specs))


def spec(name: str, shape: tuple[int, ...], dtype: str, **more: float) -> Input:
    return Input(name=name, shape=shape, dtype=dtype, **more)


@pytest.mark.parametrize("shape", [(5, 7), (100, 3), (1, 9), (0, 9), (), (64, 64)])
def test_an_integer_beside_floats_may_be_an_index(shape: tuple[int, ...]) -> None:
    index = drawn(spec("x", shape, "float16"), spec("index", (500,), "int64"))["index"]
    most = min([16, *(size for size in shape if size)])
    assert (int(index.min()), int(index.max())) == (0, most - 1)


def test_integers_of_one_dtype_and_with_bounds_are_no_indices() -> None:
    alone = drawn(spec("x", (500,), "int32"), spec("y", (500,), "int32"))
    assert all(int(tensor.min()) == -8 for tensor in alone.values())
    bounded = drawn(spec("x", (2,), "float16"), spec("y", (500,), "int32", low=30, high=40))["y"]
    assert (int(bounded.min()), int(bounded.max())) == (30, 39)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_numbers_are_moderate(dtype: str) -> None:
    x = one((100, 300), dtype).double()
    assert abs(float(x.mean())) < 0.03
    assert 0.95 < float(x.std()) < 1.05
    assert float(x.abs().max()) < 4


def test_float32_uses_all_of_its_bits() -> None:
    """Inputs that TF32 can hold would hide a product in TF32."""
    bits = one((1000,), "float32").view(torch.int32)
    assert ((bits & 0x1FFF) != 0).float().mean() > 0.95


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", ["normal", "special", "zeros"])
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_every_shape_can_be_drawn(shape: tuple[int, ...], dtype: str, values: Values, layout: Layout) -> None:
    x = one(shape, dtype, values=values, layout=layout)
    assert tuple(x.shape) == shape
    assert str(x.dtype) == f"torch.{dtype}"
    if values == "zeros":
        assert not x.double().count_nonzero()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_special_rows(dtype: str) -> None:
    x = one((20, 40), dtype, values="special")
    info = torch.finfo(x.dtype)
    wide = x.double()
    zeros = (wide == 0).all(-1)
    assert zeros.sum() == 1
    assert wide[zeros].signbit().any()
    assert not wide[zeros].signbit().all()
    assert wide.isnan().any(-1).sum() == 1
    assert (wide == torch.inf).any(-1).sum() == 1
    assert (wide == -torch.inf).any(-1).sum() == 1
    assert (wide == info.max).any(-1).sum() == 1
    denormal = (wide != 0) & (wide.abs() < info.smallest_normal)
    assert denormal.all(-1).sum() == 1
    assert ((wide.abs() < 0.01).all(-1) & ~zeros & ~denormal.all(-1)).sum() == 1
    assert wide.isfinite().all(-1).sum() == 17


@pytest.mark.parametrize("shape", [(2, 12), (3, 12), (4, 12), (7, 12)])
def test_few_rows_hold_all_special_values_and_a_row_of_zeros(shape: tuple[int, int]) -> None:
    x = one(shape, values="special").double()
    assert (x == 0).all(-1).sum() == 1
    for value in (torch.inf, -torch.inf, torch.finfo(torch.float16).max):
        assert (x == value).any()
    assert x.isnan().any()


def test_one_row_holds_all_special_values_beside_normal_ones() -> None:
    x = one((50,), values="special").double()
    assert (x.isnan().sum(), x.isinf().sum(), (x == 0).sum()) == (1, 2, 1)
    assert x.isfinite().sum() == 47


def test_integers_and_bools_hold_nothing_special() -> None:
    assert one((100,), "int32", values="special").abs().max() <= 8
    assert set(one((100,), "bool", values="special").tolist()) == {True, False}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_small_by_default(dtype: str) -> None:
    x = one((500,), dtype).to(torch.int64)
    least = 0 if dtype.startswith("u") else -8
    assert (int(x.min()), int(x.max())) == (least, least + 15)


@pytest.mark.parametrize(
    ("low", "high", "least", "most"), [(3, 6, 3, 5), (5, None, 5, 20), (None, 4, -12, 3), (-1000, 1000, -128, 127)]
)
def test_integers_lie_within_their_bounds(low: float | None, high: float | None, least: int, most: int) -> None:
    x = one((5000,), "int8", low=low, high=high)
    assert (int(x.min()), int(x.max())) == (least, most)


@pytest.mark.parametrize("values", ["normal", "special", "zeros"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.5, None), (None, -2.0), (-1.0, 2.0)])
def test_floats_lie_within_their_bounds_also_when_special(
    low: float | None, high: float | None, values: Values
) -> None:
    x = one((20, 50), "float32", low=low, high=high, values=values)
    assert x.isfinite().all()
    assert low is None or x.min() >= low
    assert high is None or x.max() <= high


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Input(name="x", shape=(1,), dtype="float17"), "has no dtype `float17`"),
        (Input(name="x", shape=(1,), dtype="nn"), "has no dtype `nn`"),
        (Input(name="x", shape=(1,), dtype="complex64"), "cannot be drawn"),
        (Input(name="x", shape=(1,), dtype="int32", low=3, high=3), "no int32 lies in"),
        (Input(name="x", shape=(1,), dtype="float32", low=3, high=1), "nothing lies in"),
    ],
)
def test_what_cannot_be_drawn_is_said(spec: Input, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_inputs(cell(spec))


@pytest.mark.parametrize("dtype", ["float16", "float8_e5m2", "int32", "bool"])
def test_strided_inputs_lie_at_every_second_element_with_poison_between(dtype: str) -> None:
    x = one((4, 6), dtype, layout="strided")
    assert (x.stride(), x.storage_offset()) == ((12, 2), OFFSET)
    between = torch.as_strided(x, (4, 6), x.stride(), OFFSET + 1).double()
    if dtype.startswith("float"):
        assert between.isnan().all()
    else:
        assert (between == (1 if dtype == "bool" else 2**31 - 1)).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_placed_copy_lies_as_its_original_in_memory_of_its_own(shape: tuple[int, ...]) -> None:
    x = one(shape, layout="strided", values="special")
    copy = place({"x": x}, "cpu")["x"]
    assert (copy.shape, copy.stride(), copy.storage_offset()) == (x.shape, x.stride(), x.storage_offset())
    assert torch.equal(storage_bytes(copy), storage_bytes(x))
    assert storage_bytes(copy).data_ptr() != storage_bytes(x).data_ptr()


@pytest.mark.parametrize("dtype", FLOATS)
def test_wide_and_large_numbers_reach_the_ranges_where_functions_turn(dtype: str) -> None:
    wide, large = (one((64, 100), dtype, values=values).double() for values in ("wide", "large"))
    top = min(float(torch.finfo(getattr(torch, dtype)).max), 2.0**20)
    for low, high in ((4, 10), (10, 40)):
        assert (
            min(int(((wide.sign() == sign) & (wide.abs() > low) & (wide.abs() < high)).sum()) for sign in (-1, 1)) > 50
        )
    assert bool(large.isfinite().all())
    assert float(large[0].sum()) > top / 4  # of numbers of one sign
    assert float(large.min()) < -top / 64
    assert float(large.abs().amax(1).min()) < 2**7


def test_only_the_largest_input_is_large() -> None:
    cell_ = cell(spec("weight", (9,), "float32"), spec("x", (4, 9), "float32"), values="large")
    inputs = make_inputs(cell_)
    assert float(inputs["x"].max()) > 1e4
    assert float(inputs["weight"].abs().max()) < 4


def test_ties_are_halves_with_zeros_of_both_signs() -> None:
    x = one((64, 9), "bfloat16", values="ties").double()
    assert torch.equal(x, x.mul(2).round().div(2))
    assert {float(zero) for zero in x[x == 0].signbit()} == {0.0, 1.0}


def test_bounds_hold_for_wide_and_large_numbers() -> None:
    for values in ("wide", "large", "ties"):
        assert float(one((64, 9), "float32", low=2.0, values=values).min()) >= 2.0
        assert float(one((64, 9), "float32", low=2.0, high=3.0, values=values).max()) <= 3.0


LAYOUTS: dict[Layout, tuple[tuple[int, ...], int]] = {
    "sliced": ((32, 8, 1), OFFSET),
    "transposed": ((20, 1, 4), OFFSET),
    "offset": ((20, 5, 1), 1),
    "expanded": ((0, 5, 1), 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_layouts_hold_the_same_values(layout: Layout) -> None:
    x, y = (make_inputs(cell(spec("x", (3, 4, 5), "float16"), layout=kind))["x"] for kind in (layout, layout))
    assert (x.stride(), x.storage_offset()) == LAYOUTS[layout]
    assert torch.equal(place({"x": x}, "cpu")["x"], y)
    assert bool(x.isfinite().all())
    flat = [make_inputs(cell(spec("x", shape, "float16"), layout=layout))["x"] for shape in ((), (0, 3), (4, 0), (6,))]
    assert [tuple(one.shape) for one in flat] == [(), (0, 3), (4, 0), (6,)]


def test_what_a_call_changes_is_not_expanded() -> None:
    mutated = Input(name="x", shape=(3, 4), dtype="float16", mutated=True)
    assert make_inputs(cell(mutated, layout="expanded"))["x"].stride() == (4, 1)


@pytest.mark.parametrize("shape", [(33,), (32, 9), (1,), (0,)])
def test_ascending_integers_are_ends_of_parts(shape: tuple[int, ...]) -> None:
    offsets = Input(name="indptr", shape=shape, dtype="int64", ascending=True)
    x = Input(name="x", shape=(32, 64), dtype="float32")
    drawn = make_inputs(cell(offsets, x))["indptr"]
    assert bool((drawn.diff(dim=-1) >= 0).all())
    if drawn.shape[-1] > 1:
        assert set(drawn[..., 0].flatten().tolist()) == {0}
        assert set(drawn[..., -1].flatten().tolist()) == {x.shape[drawn.dim() - 1]}
    bounded = Input(name="indptr", shape=(5,), dtype="int32", low=3, high=10, ascending=True)
    assert make_inputs(cell(bounded))["indptr"][[0, -1]].tolist() == [3, 9]


def test_an_index_lies_within_the_others_whatever_their_dtype() -> None:
    index = Input(name="index", shape=(500,), dtype="int64", index=True)
    x = Input(name="x", shape=(5, 7), dtype="int64")
    assert set(make_inputs(cell(index, x))["index"].tolist()) == set(range(5))


def test_integers_that_are_numbers_may_be_wide() -> None:
    """Beyond what float32 and 16 bits hold; whatever may be an index, a shift or an exponent stays small."""
    x, y = (Input(name=name, shape=(24, 64), dtype="int32") for name in "xy")
    found = make_inputs(cell(x, y, values="wide"))
    assert 2**24 < int(found["x"].max()) <= 2**25
    assert -(2**25) <= int(found["x"].min()) < -(2**24)
    assert int(found["y"].abs().max()) <= 8
    small = one((24, 64), "int8", values="wide")
    assert (int(small.min()), int(small.max())) == (-95, 95)
    assert int(one((24, 64), "uint8", values="wide").max()) == 191
    bounded = msgspec.structs.replace(x, low=0, high=5)
    other = Input(name="z", shape=(64,), dtype="int32")
    assert int(one((24, 64), "int32", values="wide").max()) > 2**24
    ids = msgspec.structs.replace(x, name="topk_ids")
    assert int(make_inputs(cell(ids, values="wide"))["topk_ids"].abs().max()) <= 8
    for specs in ((bounded,), (x, other), (x, msgspec.structs.replace(y, dtype="int64"))):
        assert int(make_inputs(cell(*specs, values="wide"))["x"].abs().max()) <= 15


@pytest.mark.parametrize(
    ("dtypes", "found", "wide"),
    [
        (("int32",), False, True),
        (("int32",), True, False),
        (("int32", "int64"), False, False),
        (("bool",), False, False),
    ],
)
def test_which_calls_have_wide_integers(dtypes: tuple[str, ...], found: bool, wide: bool) -> None:
    inputs = tuple(Input(name=f"x{place}", shape=(24, 64), dtype=dtype) for place, dtype in enumerate(dtypes))
    case = Case("Op", "r", "int32", "row", Call(inputs=inputs), dict, found=found)
    assert any(kind.values == "wide" for kind in case.values()) is wide
