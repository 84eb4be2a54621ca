"""The tolerance rule: how far a result is from its float64 reference.

A result y is right at an element where ``|y - r| <= ulps * ulp(r) + kappa * max(E, 2**-23 * max|r|)``: r is the float64
reference, ``ulp(r)`` the step of y's dtype at r, and E the largest error that the reference makes when computed in float32,
over the tensor. So rounding of the output and error of the arithmetic are kept apart, and ill-conditioned calls are
measured by what float32 makes of them. NaN and infinities must be where the reference, rounded to the dtype, has them;
where an element depends on the largest numbers or on denormals, one right form of an op may overflow and another not, and an
overflow is only noted. Zeros of the wrong sign count where all zeros of
a sign have the other one, an input is zero at the same place, and the output has negative elements.

What rounds to 16 bits in between is not wrong for that where the reference itself, as torch computes it in the output's 16-bit
dtype, does so: where that is off by more than ``ulp(r) / 2 + kappa * max(E, ...)``, which one rounding is not, an element may also
be off by ``2 * ulps * ulp(r)`` and twice the largest excess of that reference over half an ulp, but for the latter by no more than
16 ulp of max|r|. A reference that rounds once excuses nothing.

Where float32 itself gives up, nobody is judged: elements whose float32 reference is infinite or NaN and whose float64 one is
not (or the reverse) are *undecided*, and so are those where the two are far apart (by more than 2**-8) and only one is beyond
the dtype's largest number. Among special and large values, where one row of huge numbers would excuse every error elsewhere,
the scale is taken from the ordinary elements, huge ones are judged relative to themselves, and all elements where the
references are far apart are undecided, unless both overflow to the same infinity; so are those where the reference in 16 bits is
lost (by more than 2**-4, or in an infinity or NaN).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify.elements import CHUNK, chunks, unravel
from opschema_cli.verify.formats import Format
from opschema_cli.verify.marks import Marks
from opschema_cli.verify.model import COMPARATIVE, NOTED, Figures, Finding, Tolerance, Values

DECADES = range(-12, 4)
"""The histogram's borders: below 1e-12, from there to 1e-11, and so on, and from 1e3 up."""

_SAMPLE = 1 << 16
_HUGE = 64.0
_LOST = 2.0**-8
_LOST_SHORT = 2.0**-4
_SHORT_FACTOR, _SHORT_ULPS = 2.0, 8.0
_NEAR = _FEW_ULPS = 4.0
_NOISE, _CANCELLED = 2.0**-40, 2.0**-27
"""Below the first fraction of the inputs, a reference element has cancelled; then kappa times the second fraction is what four
roundings leave.
"""
_SHORT = (torch.float16, torch.bfloat16)


class Comparison(msgspec.Struct, frozen=True):
    """One output of one side against the reference."""

    figures: Figures
    findings: tuple[Finding, ...] = ()

    @property
    def right(self) -> bool:
        """Whether no finding is wrong by itself."""
        return all(finding.check in COMPARATIVE | NOTED for finding in self.findings)


class _Sums(msgspec.Struct):
    """Sums and maxima gathered over chunks."""

    worst: float = 0.0
    ulps: float = 0.0
    kappa: float = -math.inf
    share: float = 0.0
    at: int = 0
    beyond: int = 0
    rounded: int = 0
    between: int = 0
    nan: int = 0
    inf: int = 0
    masked: int = -1
    undecided: int = 0
    tiny: int = 0
    flushed: int = 0
    zeros: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    signs: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    overflowed: int = 0


class _Scale(NamedTuple):
    """The unit of kappa, and the error that a 16-bit reference justifies: both absolute, or both relative to an element."""

    unit: float
    rounding: float


class Measure:
    """One output against its reference: a pass for the scale, then a pass for the errors, chunk by chunk."""

    def __init__(
        self,
        actual: Tensor,
        exact: Tensor,
        single: Tensor | None,
        rule: Tolerance,
        values: Values,
        short: Tensor | None = None,
        marks: Marks = Marks(),  # noqa: B008
    ) -> None:
        self._marks = marks
        self._signed = marks.zero is not None and bool((exact < 0).any())
        self._actual, self._exact, self._single, self._rule = actual, exact, single, rule
        self._short = short if actual.dtype in _SHORT and short is not None and short.dtype is actual.dtype else None
        self._format = Format(actual.dtype)
        self._special = values in ("special", "large")
        self._denormals = values == "special"
        self._sums = _Sums()
        self._histogram = torch.zeros(len(DECADES) + 1, dtype=torch.int64)
        self._typical = self._median() if self._special else math.inf
        self._ordinary, self._huge = self._scales()
        for start, (y, r, f, low) in self._parts():
            self._add(start, y, r, f, low)

    def comparison(self, side: str, output: str) -> Comparison:
        """Return the figures and the findings that follow from them."""
        sums, count = self._sums, max(self._actual.numel(), 1)
        at = sums.masked if sums.masked >= 0 else sums.at
        figures = Figures(
            side=side,
            output=output,
            worst=sums.worst,
            ulps=sums.ulps,
            kappa=max(sums.kappa, 0.0),
            share=sums.share,
            beyond=(sums.beyond + sums.nan + sums.inf) / count,
            rounded=sums.rounded / count,
            between=sums.between / count,
            at=unravel(at, self._actual.shape) if self._actual.numel() else (),
            histogram=tuple(self._histogram.tolist()),
            undecided=sums.undecided,
            elements=self._actual.numel(),
        )
        findings = tuple(
            finding(check, f"`{output}`: {message}", side=side, output=output)
            for check, message in self._faults(figures)
        )
        return Comparison(figures, findings)

    def _faults(self, figures: Figures) -> Iterator[tuple[str, str]]:
        sums, rule, count = self._sums, self._rule, self._actual.numel()
        if sums.nan:
            yield "nan-mask", f"{sums.nan} of {count} elements are NaN where the reference is not, or the reverse"
        if sums.inf:
            yield "inf-mask", f"{sums.inf} of {count} elements are infinite where the reference is not, or the reverse"
        if sums.beyond:
            at = list(unravel(sums.at, self._actual.shape))
            yield (
                "tolerance",
                f"{sums.beyond} of {count} elements are beyond {rule.ulps:g} ulp + {rule.kappa:g} E{self._also()}; the worst, at "
                f"{at}, would need {figures.kappa:.4g} E; largest error {figures.worst:.3g}{self._near(figures)}",
            )
        lost = [count for count, wrong in zip(sums.zeros, sums.signs, strict=True) if 1 < count == wrong]
        if lost:
            yield "zero-sign", f"{sum(lost)} zeros, where an input is zero too, have another sign than the reference's"
        if sums.overflowed:
            yield (
                "overflow",
                f"{sums.overflowed} elements that depend on extreme inputs overflow, the reference's do not",
            )
        if self._denormals and sums.tiny > 1 and 2 * sums.flushed >= sums.tiny:
            yield "denormals", f"{sums.flushed} of {sums.tiny} tiny elements are 0 where the reference is not"

    def _near(self, figures: Figures) -> str:
        """Explain a slightly exceeded limit by the roundings of the output, or by kappa."""
        kappa = self._rule.kappa
        if self._rule.ulps < figures.ulps <= _FEW_ULPS and 0 < kappa < figures.kappa:
            return (
                f". It is {figures.ulps:.3g} ulp off, and a value that is rounded once is at most 0.5 ulp off: the op rounds in "
                "between. "
                f"If it may, its recipe says `Tolerance(ulps={math.ceil(figures.ulps)}, reason=...)`"
            )
        if not 0 < kappa < figures.kappa <= _NEAR * kappa:
            return ""
        enough = 2 ** math.ceil(math.log2(figures.kappa))
        return (
            f". E is the largest error of the reference in float32; sums in another order need up to 16 E. If the op may lose "
            f"more, its recipe says `Tolerance(kappa={enough}, reason=...)`"
        )

    def _also(self) -> str:
        excused = self._ordinary.rounding or self._huge.rounding
        return ", and more than the rounding errors of the 16-bit reference explain" if excused else ""

    def _parts(self) -> Iterator[tuple[int, tuple[Tensor, Tensor, Tensor | None, Tensor | None]]]:
        for start, (r, f, low) in self._references():
            yield start, (self._actual.reshape(-1)[start : start + CHUNK].to(torch.float64), r, f, low)

    def _median(self) -> float:
        """The median magnitude of the reference, zeros left out, from evenly spread elements."""
        flat = self._exact.reshape(-1)
        sample = flat[:: max(flat.numel() // _SAMPLE, 1)].abs()
        sample = sample[(sample > 0) & (sample <= self._format.largest)]
        return float(sample.median()) if sample.numel() else 0.0

    def _scales(self) -> tuple[_Scale, _Scale]:
        """The tolerance scales of ordinary elements (absolute) and of huge ones (relative)."""
        largest = 0.0
        errors, roundings = [0.0, 0.0], [0.0, 0.0]
        for _, (r, f, low) in self._references():
            a = r.abs()
            off = torch.zeros_like(a) if f is None else (f - r).abs_()
            skip = (a > self._format.largest).logical_or_(off.isfinite().logical_not_())
            huge = a > _HUGE * self._typical
            if self._special:
                skip |= off > _LOST * a.clamp(min=self._typical)
            excess = torch.zeros_like(a) if low is None else self._excess(a, r, low)
            for kind, ones, unit in ((0, ~huge & ~skip, 1.0), (1, huge & ~skip, a)):
                errors[kind] = max(errors[kind], float((off / unit).masked_fill_(~ones, 0.0).max()))
                roundings[kind] = max(roundings[kind], float((excess / unit).masked_fill_(~ones, 0.0).max()))
            largest = max(largest, float(a.masked_fill_(skip | huge, 0.0).max()))
        precision = 2.0**-28 if self._format.double else 1.0
        most = _SHORT_ULPS * self._format.eps
        cancelled = _CANCELLED * self._marks.scale if largest <= _NOISE * self._marks.scale else 0.0
        ordinary = max(errors[0], 2.0**-23 * largest, cancelled, 2.0**-149) * precision
        relative = max(errors[1], 2.0**-23) * precision
        return self._scale(ordinary, roundings[0], most * largest), self._scale(relative, roundings[1], most)

    def _scale(self, unit: float, rounding: float, most: float) -> _Scale:
        between = rounding > self._rule.kappa * unit
        return _Scale(unit, _SHORT_FACTOR * min(rounding, most) if between else 0.0)

    def _excess(self, magnitude: Tensor, r: Tensor, low: Tensor) -> Tensor:
        """The error of the 16-bit reference beyond one rounding; 0 where it is lost."""
        off = (low - r).abs_()
        lost = off.isfinite().logical_not_()
        if self._special:
            lost |= off > _LOST_SHORT * magnitude.clamp(min=self._typical)
        steps = self._format.ulp(r.nan_to_num(0.0, 0.0, 0.0))
        return off.sub_(steps, alpha=0.5).clamp_(min=0.0).masked_fill_(lost, 0.0)

    def _references(self) -> Iterator[tuple[int, tuple[Tensor, Tensor | None, Tensor | None]]]:
        for start, (r,) in chunks(self._exact):
            others = (None if x is None else x.reshape(-1)[start : start + CHUNK] for x in (self._single, self._short))
            f, low = (None if x is None else x.to(torch.float64) for x in others)
            yield start, (r, f, low)

    def _add(self, start: int, y: Tensor, r: Tensor, f: Tensor | None, low: Tensor | None) -> None:
        error, magnitude = (y - r).abs_(), r.abs()
        unit: float | Tensor = self._ordinary.unit
        rounding: float | Tensor = self._ordinary.rounding
        if self._special:
            huge = magnitude > _HUGE * self._typical
            unit = torch.where(huge, magnitude * self._huge.unit, unit)
            rounding = torch.where(huge, magnitude * self._huge.rounding, rounding)
        held = (
            math.isfinite(float(error.max())) and self._format.holds(magnitude) and (f is None or self._format.holds(f))
        )
        part = _Part(y, r, f, low, error, magnitude, unit, rounding)
        if self._signed:
            self._add_signs(start, part)
        if self._special or self._format.saturates or not held:
            self._settle(start, part)
        self._gather(start, part, self._format.ulp(r.nan_to_num(0.0, 0.0, 0.0)))

    def _gather(self, start: int, part: _Part, steps: Tensor) -> None:
        """Takes the figures of a chunk without infinities; elements that are not measured have error 0."""
        sums, error = self._sums, part.error
        sums.worst = max(sums.worst, float(error.max()))
        sums.ulps = max(sums.ulps, float((error / steps).max()))
        self._histogram += _histogram(error)
        rounding = torch.as_tensor(part.rounding)
        allowed = torch.maximum(
            torch.as_tensor(part.unit) * self._rule.kappa, (rounding + self._rule.ulps * steps) * (rounding > 0)
        )
        sums.share = max(sums.share, float((error / (allowed + self._rule.ulps * steps)).max()))
        once = torch.sub(error, steps, alpha=0.5)
        sums.between += int((once.div_(part.unit) > self._rule.kappa).count_nonzero())
        excess = error.sub_(steps, alpha=self._rule.ulps)
        excused = (excess - self._rule.ulps * steps <= rounding) & (rounding > 0)
        needed = excess.div_(part.unit)
        strict = needed > self._rule.kappa
        beyond = strict & ~excused
        sums.beyond += int(beyond.count_nonzero())
        sums.rounded += int((strict & excused).count_nonzero())
        worst, at = needed.max(0)
        if float(worst) > sums.kappa:
            sums.kappa, sums.at = float(worst), start + int(at)

    def _settle(self, start: int, part: _Part) -> None:
        """Compare NaN and infinities, and exclude elements whose error is not meaningful."""
        sums, format_ = self._sums, self._format
        undecided = part.lost(format_.largest, self._typical if self._special else math.inf)
        nan, inf = part.masks(format_, self._rule.kappa)
        nan, inf = nan & ~undecided, inf & ~undecided
        if self._marks.extreme is not None:
            apart = (nan | inf) & self._chunk(self._marks.extreme, start, part)
            apart &= (part.magnitude <= format_.largest) & ~part.actual.isfinite()
            sums.overflowed += int(apart.count_nonzero())
            nan, inf = nan & ~apart, inf & ~apart
        if self._denormals:
            self._tiny(part)
        masked = nan | inf
        if sums.masked < 0 and bool(masked.any()):
            sums.masked = start + int(masked.to(torch.uint8).argmax())
        sums.nan += int(nan.count_nonzero())
        sums.inf += int(inf.count_nonzero())
        sums.undecided += int(undecided.count_nonzero())
        part.error.masked_fill_(undecided | ~part.error.isfinite(), 0.0)
        if isinstance(part.unit, Tensor):
            part.unit.masked_fill_(~part.unit.isfinite(), 1.0)
        if isinstance(part.rounding, Tensor):
            part.rounding.nan_to_num_(0.0, 0.0)

    def _add_signs(self, start: int, part: _Part) -> None:
        """Count zeros, and those with the wrong sign, if the reference in float32 has the same sign."""
        assert self._marks.zero is not None
        zeros = self._chunk(self._marks.zero, start, part) & (part.actual == 0) & (part.exact == 0)
        if part.single is not None:
            zeros &= (part.single == 0) & (part.single.signbit() == part.exact.signbit())
        for sign, alike in enumerate((~part.exact.signbit(), part.exact.signbit())):
            self._sums.zeros[sign] += int((zeros & alike).count_nonzero())
            self._sums.signs[sign] += int(
                (zeros & alike & (part.actual.signbit() != part.exact.signbit())).count_nonzero()
            )

    def _chunk(self, mask: Tensor, start: int, part: _Part) -> Tensor:
        return mask.reshape(-1)[start : start + part.exact.numel()]

    def _tiny(self, part: _Part) -> None:
        """Count numbers near the smallest normal float32 number, and those that the op flushes to 0."""
        if part.single is None:
            return
        least = self._format.least
        near = least * 2.0**20 if least < 2.0**-100 else least
        tiny = (part.magnitude >= least * self._format.eps) & (part.magnitude <= near)
        tiny &= (part.single - part.exact).abs() <= _LOST * part.magnitude
        self._sums.tiny += int(tiny.count_nonzero())
        self._sums.flushed += int((tiny & (part.actual == 0)).count_nonzero())


class _Part(msgspec.Struct):
    """A chunk of an output with its references, all in float64."""

    actual: Tensor
    exact: Tensor
    single: Tensor | None
    short: Tensor | None
    error: Tensor
    magnitude: Tensor
    unit: float | Tensor
    rounding: float | Tensor

    def lost(self, largest: float, typical: float) -> Tensor:
        """Return the elements that float64 can represent and float32 cannot: only one of the references is finite, or they are
        far apart and either only one of them overflows in the dtype, or ``typical`` is finite.
        """
        special = math.isfinite(typical)
        lost = torch.zeros_like(self.exact, dtype=torch.bool)
        if special and self.short is not None:
            lost = self.exact.isfinite() & (self.magnitude <= largest)
            lost &= ~((self.short - self.exact).abs() <= _LOST_SHORT * self.magnitude.clamp(min=typical))
        if self.single is None:
            return lost
        held, single_held = self.magnitude <= largest, self.single.abs() <= largest
        lost |= held & ~self.single.isfinite()
        lost |= self.exact.isinf() & self.single.isfinite() | (self.exact.isnan() != self.single.isnan())
        far = (self.single - self.exact).abs() > _LOST * self.magnitude.clamp(min=typical if special else 0.0)
        overflow_alike = ~held & ~single_held & (self.single.sign() == self.exact.sign())
        return lost | far & (~overflow_alike if special else held != single_held)

    def masks(self, format_: Format, kappa: float) -> tuple[Tensor, Tensor]:
        """Elements whose NaN is wrong, and those whose infinity is. Eight-bit formats may also saturate, or overflow to NaN."""
        over = self.magnitude >= format_.overflow
        nan = self.actual.isnan() != self.exact.isnan()
        reaches = self.magnitude >= format_.overflow - kappa * self.unit
        reaches |= self.magnitude >= format_.overflow - self.rounding
        infinite = self.actual.isinf()
        inf = infinite & ~((self.actual.sign() == self.exact.sign()) & reaches)
        inf |= ~infinite & self.exact.isinf()
        if format_.saturates:
            saturated = self.actual == self.exact.sign() * format_.largest
            accepted = over & (saturated | self.actual.isnan())
            nan &= ~accepted
            inf &= ~accepted
            self.error.masked_fill_(accepted, 0.0)
        return nan, inf & ~nan


def _histogram(error: Tensor) -> Tensor:
    places = error.log10().sub_(DECADES.start).floor_().add_(1).clamp_(0, len(DECADES))
    return torch.bincount(places.to(torch.int64), minlength=len(DECADES) + 1)


def finding(check: str, message: str, *, side: str, output: str) -> Finding:
    """A finding on an output."""
    return Finding(check=check, side=side, about=output, message=message)
