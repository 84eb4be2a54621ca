"""Faults planted in a kernel are found by the check that is there for them, and sound kernels raise no alarm.

The kernel is rms_norm, played by torch: float32 arithmetic, output in the input's dtype. Each fault is an op of its own that runs
through inputs, checks, comparison and verdict as an op on a device does, with all cells in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.checks import (  # noqa: E402
    changed,
    metadata,
    poisoned,
    repeats,
    returned,
    shared_storage,
    snapshot,
)
from opschema_cli.verify.compare import against, differences  # noqa: E402
from opschema_cli.verify.inputs import dtype_of, make_inputs, place  # noqa: E402
from opschema_cli.verify.judge import Compared, Judgement, judge  # noqa: E402
from opschema_cli.verify.model import Call, Cell, Input, Layout, Output, Ran, Tolerance, Values  # noqa: E402

EPS = 1e-6
BLOCK = 32
SHAPES = {
    "aligned": (64, 256),
    "odd": (67, 251),
    "larger": (96, 512),
    "one-row": (1, 256),
    "tail": (64, 257),
    "zero-rows": (0, 256),
}
KINDS: tuple[tuple[Values, Layout, int], ...] = (
    ("normal", "contiguous", 0),
    ("special", "contiguous", 0),
    ("normal", "strided", 0),
    ("normal", "contiguous", 1),
)
Op = Callable[[Tensor, Tensor], Tensor]


# --- the kernel and its faults


def scaled(x: Tensor, mean: Tensor, weight: Tensor, eps: float = EPS) -> Tensor:
    return x.float() * torch.rsqrt(mean + eps) * weight.float()


def mean_square(x: Tensor) -> Tensor:
    return x.float().pow(2).mean(-1, keepdim=True)


def sound(x: Tensor, weight: Tensor) -> Tensor:
    out = torch.empty(x.shape, dtype=x.dtype)
    return out.copy_(scaled(x, mean_square(x), weight))


class Fault:
    """A faulty op; one is made for each run, so that it can keep what it should not."""

    def __init__(self) -> None:
        self.calls = 0
        self.first: tuple[int, ...] = ()

    def __call__(self, x: Tensor, weight: Tensor) -> Tensor:
        self.calls += 1
        self.first = self.first or tuple(x.shape)
        return self.run(x, weight)

    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError


class OffByOneInLastBlock(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        out = sound(x, weight)
        if x.shape[-1] % BLOCK:
            out[:, -1] = out[:, -2]
        return out


class MissingMaskInReduction(Fault):
    """Reads the last block's elements beyond the row, which belong to the next one or are the last again."""

    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        beyond = -x.shape[-1] % BLOCK
        padded = torch.cat([x, x.roll(-1, 0)[:, :beyond]], -1).float()
        return scaled(x, padded.pow(2).sum(-1, keepdim=True) / x.shape[-1], weight).to(x.dtype)


class AccumulatesInDtype(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        total = torch.zeros(x.shape[0], dtype=x.dtype)
        for column in x.unbind(-1):
            total = total + column * column
        return scaled(x, total[:, None].float() / x.shape[-1], weight).to(x.dtype)


class IgnoresStrides(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        dense = x.as_strided(x.shape, (x.shape[-1], 1), x.storage_offset())
        return sound(dense, weight)


class StaleLength(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        mean = x.float().pow(2).sum(-1, keepdim=True) / self.first[-1]
        return scaled(x, mean, weight).to(x.dtype)


class StaleRows(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        out = torch.empty_like(x)
        rows = min(self.first[0], x.shape[0])
        out[:rows] = sound(x[:rows], weight)
        return out


class UnwrittenTail(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        out = torch.empty(x.shape, dtype=x.dtype)
        out[:-1] = sound(x[:-1], weight)
        return out


class Race(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        out = sound(x, weight)
        if self.calls % 4 == 0 and out.numel():
            out[-1, 0] += 1
        return out


class NanBecomesZero(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        return sound(x, weight).nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)


class InfClamped(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        largest = torch.finfo(x.dtype).max
        return sound(x.clamp(-largest, largest), weight)


class DenormalsFlushed(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        return sound(x.masked_fill(x.abs() < torch.finfo(x.dtype).smallest_normal, 0), weight)


class ZeroSizeRaises(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        if not x.numel():
            raise RuntimeError("invalid configuration argument")
        return sound(x, weight)


class InputMutated(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        out = sound(x, weight)
        x.mul_(0.5)
        return out


class ReturnsInput(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        return x.copy_(sound(x, weight))


class ZeroesAll(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        weight.zero_()
        return torch.zeros_like(x.zero_())


class WrongDtype(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        return scaled(x, mean_square(x), weight)


class ExtraDimension(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        return sound(x, weight)[None]


class OneElement(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        out = sound(x, weight)
        out[out.shape[0] // 2 :, 7][:1] *= 1.1
        return out


class OneRowZero(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        out = sound(x, weight)
        out[out.shape[0] // 2 :][:1] = 0
        return out


class Bias(Fault):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        return (scaled(x, mean_square(x), weight) * self.factor).to(x.dtype)


class WrongEps(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        return scaled(x, mean_square(x), weight, 1e-3).to(x.dtype)


class Noise(Fault):
    def run(self, x: Tensor, weight: Tensor) -> Tensor:
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        return (scaled(x, mean_square(x), weight) + 1e-3 * noise).to(x.dtype)


FAULTS: dict[str, tuple[Callable[[], Fault], str]] = {
    "off by one in the last block": (OffByOneInLastBlock, "tolerance"),
    "missing mask in the reduction": (MissingMaskInReduction, "tolerance"),
    "accumulates in its dtype": (AccumulatesInDtype, "tolerance"),
    "ignores strides": (IgnoresStrides, "nan-mask"),
    "stale cache: the first row length": (StaleLength, "tolerance"),
    "stale cache: the first count of rows": (StaleRows, "nan-mask"),
    "unwritten tail": (UnwrittenTail, "nan-mask"),
    "race, every fourth call": (Race, "repeat"),
    "NaN becomes 0": (NanBecomesZero, "nan-mask"),
    "infinities clamped": (InfClamped, "nan-mask"),
    "denormals flushed": (DenormalsFlushed, "denormals"),
    "zero-size raises": (ZeroSizeRaises, "raised"),
    "input mutated": (InputMutated, "input-changed"),
    "returns its input's storage": (ReturnsInput, "shared-storage"),
    "zeroes inputs, returns 0": (ZeroesAll, "input-changed"),
    "wrong output dtype": (WrongDtype, "dtype"),
    "extra leading dimension": (ExtraDimension, "shape"),
    "one element 10 % off": (OneElement, "tolerance"),
    "one row zero": (OneRowZero, "tolerance"),
    "bias 0.3 %": (partial(Bias, 1.003), "tolerance"),
    "bias 0.8 %": (partial(Bias, 1.008), "tolerance"),
    "eps 1e-3": (WrongEps, "tolerance"),
    "noise 1e-3": (Noise, "tolerance"),
}
DTYPE = "bfloat16"
"""Of the faults; test_faulty_kernels.py plants them in kernels of every dtype."""
DTYPES = ("float16", "bfloat16", "float32")


# --- the harness around it


def cells() -> Iterator[Cell]:
    """Every shape with every kind of values, then back through the shapes."""
    forward = [cell(DTYPE, name, values, layout, seed) for name in SHAPES for values, layout, seed in KINDS]
    yield from forward
    yield from (
        Cell(op=c.op, row=c.row, dtype=DTYPE, shape=c.shape, values=c.values, seed=c.seed, again=True, call=c.call)
        for c in reversed(forward)
        if c.layout == "contiguous" and c.seed == 0
    )


def cell(dtype: str, shape: str, values: Values = "normal", layout: Layout = "contiguous", seed: int = 0) -> Cell:
    size = SHAPES[shape]
    call = Call(
        inputs=(Input(name="x", shape=size, dtype=dtype), Input(name="weight", shape=size[-1:], dtype=dtype)),
        outputs=(Output(name="y", shape=size, dtype=dtype),),
    )
    return Cell(op="RmsNorm", row="r", dtype=dtype, shape=shape, values=values, layout=layout, seed=seed, call=call)


def ran(op: Op, of: Cell, side: str) -> tuple[Ran, dict[str, Tensor]]:
    """The work of a worker."""
    drawn = make_inputs(of)
    given = place(drawn, "cpu")
    earlier = snapshot(given)
    try:
        with poisoned():
            outputs = {"y": op(**given)}
    except RuntimeError as error:
        return Ran(cell=of.id, status="raised", detail=str(error)), {}
    findings = metadata(outputs, of.call, side) + changed(given, earlier, of.call, side)
    findings += shared_storage(outputs, given, of.call, side)
    kept = {name: y.clone() for name, y in outputs.items()}
    findings += repeats(kept, lambda: {"y": op(**place(drawn, "cpu"))}, side)
    told = tuple(returned(name, y) for name, y in outputs.items())
    return Ran(cell=of.id, status="ok", outputs=told, findings=tuple(findings)), kept


def reference(x: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    wide = x.to(dtype)
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS) * weight.to(dtype)


def compared(outputs: dict[str, Tensor], of: Cell, side: str) -> Compared:
    inputs = make_inputs(of)
    exact, single = reference(**inputs, dtype=torch.float64), reference(**inputs, dtype=torch.float32)
    results = [
        against(y, exact, single, Tolerance(), side=side, output=name, values=of.values) for name, y in outputs.items()
    ]
    return Compared(tuple(f for r in results for f in r.findings), tuple(r.figures for r in results))


@cache
def sound_before(of_id: str) -> tuple[Ran, dict[str, Tensor], Compared]:
    of = next(c for c in cells() if c.id == of_id)
    run, outputs = ran(sound, of, "before")
    return run, outputs, compared(outputs, of, "before")


def judged(op: Op, of: Cell) -> Judgement:
    """The op as after, and the sound kernel as before."""
    before, earlier, right = sound_before(of.id)
    after, outputs = ran(op, of, "after")
    if after.status != "ok":
        return judge(before, after)
    sides = {"before": right, "after": compared(outputs, of, "after")}
    return judge(before, after, differences=differences(earlier, outputs), compared=sides)


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_a_regression_seen_by_its_check(name: str) -> None:
    make, check = FAULTS[name]
    op = make()
    seen: set[str] = set()
    for judgement in (judged(op, of) for of in cells()):
        if judgement.verdict != "regression":
            assert judgement.verdict in ("unchanged", "within-tolerance"), judgement
            continue
        seen |= {finding.check for finding in judgement.findings} | {judgement.reason.split()[1].rstrip(":")}
        if check in seen:
            return
    pytest.fail(f"{check} is not among {seen}")


def test_the_sound_kernel_is_unchanged_in_every_cell() -> None:
    for of in cells():
        judgement = judged(sound, of)
        assert (judgement.verdict, judgement.findings) == ("unchanged", ()), (of.id, judgement)


# --- sound kernels that compute in another order


def in_sequence(terms: Tensor) -> Tensor:
    total = torch.zeros(terms.shape[:-1])
    for term in terms.unbind(-1):
        total = total + term
    return total


def in_blocks(terms: Tensor) -> Tensor:
    return in_sequence(torch.stack([part.sum(-1) for part in terms.split(BLOCK, -1)], -1))


def in_lanes(terms: Tensor) -> Tensor:
    """Each of 8 lanes takes every eighth term (split-K); then the lanes are added."""
    return in_sequence(torch.stack([in_sequence(terms[..., lane::8]) for lane in range(8)], -1))


SUMS: dict[str, Callable[[Tensor], Tensor]] = {"sequence": in_sequence, "blocks": in_blocks, "lanes": in_lanes}


def rms_norm(x: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    mean = total(x.float().pow(2))[..., None] / x.shape[-1]
    return x.float() / torch.sqrt(mean + EPS)


def layer_norm(x: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    """Two passes: the mean, then the squares of what is left."""
    left = x.float() - total(x.float())[..., None] / x.shape[-1]
    return left * torch.rsqrt(total(left * left)[..., None] / x.shape[-1] + EPS)


def softmax(x: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    """By exp2, as kernels do."""
    terms = torch.exp2((x.float() - x.float().amax(-1, keepdim=True)) * 1.4426950408889634)
    return terms / total(terms)[..., None]


def plain_sum(x: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    return total(x.float())


EAGER: dict[str, tuple[Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor], Callable[[Tensor], Tensor]]] = {
    "sum": (plain_sum, lambda x: x.sum(-1)),
    "rms_norm": (rms_norm, lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=EPS)),
    "layer_norm": (layer_norm, lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], eps=EPS)),
    "softmax": (softmax, lambda x: torch.softmax(x, -1)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", EAGER)
@pytest.mark.parametrize("values", ["normal", "special"])
def test_another_order_of_sums_is_no_alarm_over_20_seeds(op: str, dtype: str, values: Values) -> None:
    variant, eager = EAGER[op]
    # All seeds at once: an op is one of rows, whatever else is beside them.
    x = torch.stack([make_inputs(cell(dtype, "odd", values, seed=seed))["x"] for seed in range(20)])
    exact, single = eager(x.double()), eager(x.float())
    for name, total in SUMS.items():
        y = variant(x, total).to(dtype_of(dtype))
        for seed in range(20):
            found = against(y[seed], exact[seed], single[seed], Tolerance(), side="after", output="y", values=values)
            assert found.findings == (), (name, seed, found)
            assert values == "special" or not found.figures.undecided
