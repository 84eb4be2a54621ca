"""The verdict of a cell, from the answers of its sides, by these rules.

A side is *faulty* if its call raised, or its worker died or stalled, or if a check or the comparison with the reference found
something. It is *right* if it was compared with a reference and is not faulty; a comparison that decided nothing of an output is
none.

- **unchanged**: after's outputs are before's, bit by bit, with the same strides, and after is not faulty. Where there is no
  reference the reason says so: bits that are the same may be the same mistake.
- **within-tolerance**: the bits differ and after is right. Also: before broke down and after is right; and, if no before was asked
  for, after is right.
- **regression**: after cannot be run where before could; or after is faulty where before was not, or in another way (another check,
  another output), or clearly more (twice the share of wrong elements, or twice the error); or outputs, shapes, dtypes, strides,
  what holds them or whether they require a gradient differ; or bits differ and no reference says that after is right; or after is
  faulty and nothing ran before that would excuse it; or an output is rounded in between that before was rounded once.
- **wrong-already**: after is faulty, and before was in the same way and no less.
- **crashed**: after broke down, and so did before in another way, or before could not be run.
- **not-checked**: neither could be run, or the only side needs a GPU and there is none; or both raised the same, or the same type
  of error in the same function; or a call found by search ended both processes, or the process of the only side if it passes
  integers, which may be invalid indices; or its results have no elements or no finite ones; or before could not be run and after
  is not faulty; or nothing is known of what it computes.

Calls that an op should refuse have rules of their own: :mod:`opschema_cli.verify.refusals`.

Bits that differ only as before differs from itself, or in indices between equal values, are no other result: the verdict is
within-tolerance where nothing else is wrong. An output of before that differs from call to call (``repeat``) also explains findings
on after that depend on it.

*Comparative* findings are no fault of a side by themselves: much hardware flushes denormals by default (``denormals``), and a table
may be kept and handed out each time (``kept-output``), and random numbers are drawn (``state``). They count when after has one
and before has not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opschema_cli.verify.model import (
    COMPARATIVE,
    NOTED,
    UNSTABLE,
    Figures,
    Finding,
    Ran,
    Returned,
    Verdict,
)
from opschema_cli.verify.refusals import judge_refusal

REFUSED_BY_BOTH = "refused by both sides"
"""The beginning of the reason for a cell on which both sides raised the same."""

_WORSE = 2.0
_EMPTY = re.compile(
    r"empty|non-zero size|numel\(\) == 0|no elements|zero-size|out of range|should be positive", re.IGNORECASE
)
"""Words in errors of reductions that have no result for no elements."""
_NEEDS_GPU = re.compile(r"Torch not compiled with CUDA enabled|No CUDA GPUs are available|Found no NVIDIA driver")
_ASKS_FOR_GPU = re.compile(
    r"\b(?:must|should|expect\w*|requires?|needs?|only|not)\b[^\n]*\b(?:CUDA|GPU)\b|\b(?:CUDA|GPU)\b[^\n]*\b(?:required|only|expected)\b",
    re.IGNORECASE,
)
"""Words in errors that ops raise on purpose where tensors are not on a GPU."""
_VALUES = frozenset({"exact", "tolerance"})
"""Findings that the luck of a call of an op that differs from call to call decides."""

_NO_REFERENCE = "not checked against a reference"


class Traits(NamedTuple):
    """Properties of a call that matter to the verdict: whether its inputs lie in order, so that the strides of outputs count; which
    axis of an input has no elements, the ``first`` one or an ``inner`` one; whether the op should refuse it; whether a search found
    it, and whether it is ``doubtful`` because random or large integers may be invalid indices. ``weak`` says why the results of a
    call found by search test little; with ``shows_nothing`` no two kernels could differ in them. ``on_gpu`` says where it ran.
    """

    dense: bool = True
    empty: str = ""
    wrong: bool = False
    found: bool = False
    doubtful: bool = False
    weak: str = ""
    shows_nothing: bool = False
    on_gpu: bool = False


class Compared(NamedTuple):
    """One side against the reference: its findings and the figures of its outputs."""

    findings: tuple[Finding, ...] = ()
    figures: tuple[Figures, ...] = ()


class Judgement(NamedTuple):
    """The verdict, its reason in a sentence, and the findings of both sides that it rests on."""

    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...] = ()


def judge(
    before: Ran | None,
    after: Ran | None,
    reference: Ran | None = None,
    *,
    differences: Sequence[Finding] = (),
    compared: Mapping[str, Compared] | None = None,
    explanation: str = "",
    traits: Traits | None = None,
) -> Judgement:
    """Return the verdict on a cell; see the module. A side is None if it was not requested.

    ``differences`` are after's against before's outputs, if both ran; ``compared`` holds what was compared with the
    reference, by side. ``explanation`` says why other bits are no other result: ties between indices, the spread of before.
    """
    traits = traits or Traits()
    if traits.wrong and after is not None:
        return Judgement(*judge_refusal(before, after, differences), tuple(differences))
    case = _Case(before, after, reference, differences, compared or {}, explanation, traits)
    verdict, reason = case.verdict()
    if traits.weak and verdict in ("unchanged", "within-tolerance"):
        verdict = "not-checked" if traits.shows_nothing else verdict
        reason = "; ".join(filter(None, (f"the call found by search is a weak test: {traits.weak}", reason)))
    return Judgement(verdict, reason, case.findings())


class _Case:
    """The evidence on one cell."""

    def __init__(
        self,
        before: Ran | None,
        after: Ran | None,
        reference: Ran | None,
        differences: Sequence[Finding],
        compared: Mapping[str, Compared],
        explanation: str,
        traits: Traits,
    ) -> None:
        self._empty, self._found, dense = traits.empty, traits.found, traits.dense
        self._doubtful, self._on_gpu = traits.doubtful, traits.on_gpu
        self._explanation = explanation
        self._before, self._after, self._reference = before, after, reference
        self._compared = compared
        self._undecided = _undecided(compared.get("after"))
        self._referenced = "after" in compared and not self._undecided
        self._seen = {"before": _seen(before, compared.get("before")), "after": _seen(after, compared.get("after"))}
        strides = self._strides("strides" if dense else "layout")
        self._differences = (*differences, *self._structure(), *(strides if dense else ()))
        if not dense:
            self._seen["after"] += tuple(strides)

    def verdict(self) -> tuple[Verdict, str]:
        before, after = self._before, self._after
        if after is None:
            return "not-checked", "after was not run"
        if after.status == "refused":
            ran = before is not None and before.status == "ok"
            return (
                "regression" if ran else "not-checked"
            ), f"after cannot be run: {after.detail}{'; before ran' * ran}"
        if after.status != "ok":
            return self._broken(after)
        if before is None or before.status != "ok":
            return self._alone(before)
        return self._both()

    def findings(self) -> tuple[Finding, ...]:
        """The findings of both sides and between them; comparative findings only where they count."""
        counted = [*self._new(), *self._noted()]
        apart = COMPARATIVE | NOTED
        kept = (f for side in ("before", "after") for f in self._seen[side] if f.check not in apart or f in counted)
        return (*kept, *self._differences)

    def _broken(self, after: Ran) -> tuple[Verdict, str]:
        """After raised, died or stalled."""
        what = f"after {after.status}: {after.detail}"
        if self._before is None or self._before.status == "refused":
            if self._doubtful and after.status == "died":
                return "not-checked", f"{self._call}, perhaps with invalid indices, ended the process: {what}"
            return ("not-checked", f"it needs a GPU: {what}") if self._needs_gpu(after) else ("crashed", what)
        if self._before.status == "ok":
            if self._empty == "inner" and after.status == "raised" and _EMPTY.search(after.error):
                return "not-checked", f"after refuses an axis without elements, which before took: {after.detail}"
            return "regression", f"{what}; before ran"
        both = after.status == self._before.status == "raised"
        if both and self._needs_gpu(after) and self._needs_gpu(self._before):
            return "not-checked", f"it needs a GPU: {what}; before raised too"
        if _refused_alike(self._before, after) or (both and self._empty):
            return "not-checked", f"{REFUSED_BY_BOTH}: {after.detail}"
        if (self._found or self._doubtful) and {after.status, self._before.status} <= {"died", "stalled"}:
            return "not-checked", f"{self._call}, perhaps an invalid one, ended both processes: {what}"
        return "crashed", f"{what}; before {self._before.status} too"

    @property
    def _call(self) -> str:
        return "a call found by search" if self._found else "a call with large integers"

    def _needs_gpu(self, ran: Ran) -> bool:
        """Whether a side says that it runs on a GPU only; on purpose, or because PyTorch has none here."""
        if self._on_gpu or ran.status != "raised":
            return False
        return bool(_NEEDS_GPU.search(ran.detail) or (ran.deliberate and _ASKS_FOR_GPU.search(ran.error)))

    def _alone(self, before: Ran | None) -> tuple[Verdict, str]:
        """After ran and there is nothing of before to compare it with."""
        faults = _faults(self._seen["after"])
        broke_down = before is not None and before.status != "refused"
        missing = "no before to compare with" if before is None else f"before {before.status}: {before.detail}"
        if faults:
            return ("wrong-already" if broke_down else "regression"), f"{_named(faults)}; {missing}"
        if not self._referenced:
            return "not-checked", f"{missing}; {self._unreferenced()}"
        if before is not None and not broke_down:
            return "not-checked", f"{missing}; after is right"
        return "within-tolerance", f"after is right; {missing}"

    def _both(self) -> tuple[Verdict, str]:
        new, faults, earlier = self._new(), _faults(self._seen["after"]), _faults(self._seen["before"])
        visible = [difference for difference in self._differences if difference.check != "bits"]
        if new:
            return "regression", f"after: {_named(new)}"
        if visible:
            return "regression", f"differs from before: {_named(visible)}"
        lasting = [fault for fault in faults if not (self._explanation and fault.check in _VALUES)]
        if lasting:
            return self._lasting(lasting)
        if not self._differences:
            return "unchanged", "" if self._referenced else self._unreferenced()
        if self._explanation and (faults or not self._referenced):
            return "within-tolerance", f"bits differ: {self._explanation}"
        if not self._referenced:
            return "regression", f"differs from before, and is {self._unreferenced()}"
        if self._coarser():
            return "regression", f"differs from before: {self._coarser()}"
        noted = self._noted()
        note = f"; but {_named(noted)}" if noted else ""
        reason = f"before was wrong: {_named(earlier)}" if earlier else "bits differ, both are right"
        return "within-tolerance", reason + note

    def _lasting(self, faults: Sequence[Finding]) -> tuple[Verdict, str]:
        """Both sides have the same faults, which excuse other bits only where they are about the values of an output."""
        if self._explanation:
            return "wrong-already", _named(faults)
        if worse := self._worse():
            return "regression", f"worse than before: {worse}"
        varying = {fault.about for fault in faults if fault.check in UNSTABLE | {"repeat"}}
        changed = any(difference.about not in varying for difference in self._differences)
        if changed and not self._referenced:
            return "regression", f"differs from before, and is {self._unreferenced()}; {_named(faults)}"
        if changed and self._coarser():
            return "regression", f"differs from before: {self._coarser()}; {_named(faults)}"
        return "wrong-already", _named(faults)

    def _new(self) -> list[Finding]:
        """The findings of the side after that the side before lacks, if before ran."""
        if self._before is None or self._before.status != "ok":
            return []
        known = {(finding.check, finding.about) for finding in self._seen["before"]}
        varying = {about for check, about in known if check == "repeat"}
        had_gradients = any(output.grad for output in self._before.outputs)
        return [
            finding
            for finding in self._seen["after"]
            if (finding.check, finding.about) not in known and finding.check not in NOTED
            if not (finding.check in UNSTABLE and finding.about in varying)
            if not (finding.check in _VALUES and self._explanation)
            if had_gradients or finding.check != "gradient-raises"
        ]

    def _noted(self) -> list[Finding]:
        """The notes on the side after that do not hold for before."""
        known = {(finding.check, finding.about) for finding in self._seen["before"]}
        notes = (finding for finding in self._seen["after"] if finding.check in NOTED)
        return [finding for finding in notes if (finding.check, finding.about) not in known]

    def _worse(self) -> str:
        """Describe how after is further off than before; empty if it is not."""
        if "before" not in self._compared or not self._referenced:
            return ""
        earlier = {figures.output: figures for figures in self._compared["before"].figures}
        for now in self._compared["after"].figures:
            then = earlier.get(now.output)
            if then is None or not now.beyond:
                continue
            if now.beyond > _WORSE * then.beyond:
                return f"`{now.output}` is wrong at {now.beyond:.3g} of its elements, before at {then.beyond:.3g}"
            if now.worst > _WORSE * then.worst:
                return f"`{now.output}` is off by {now.worst:.3g}, before by {then.worst:.3g}"
        return ""

    def _coarser(self) -> str:
        """Describe an output that only the roundings of the reference excuse, and that before had in full; empty without one."""
        if "before" not in self._compared:
            return ""
        exact = {figures.output for figures in self._compared["before"].figures if not figures.between}
        found = (now.output for now in self._compared["after"].figures if now.rounded and now.output in exact)
        return next((f"`{name}` is rounded in between, where before it was rounded once" for name in found), "")

    def _unreferenced(self) -> str:
        reference = self._reference
        if self._undecided:
            lost = "the reference decides nothing, for float32 is too far from float64 at every element"
            return f"{_NO_REFERENCE}: `{self._undecided}`: {lost}"
        return f"{_NO_REFERENCE}: {reference.detail}" if reference and reference.detail else _NO_REFERENCE

    def _structure(self) -> list[Finding]:
        """Outputs that come in something else than before, or require a gradient where they did not, or the reverse."""
        before, after = self._before, self._after
        if before is None or after is None or before.status != "ok" or after.status != "ok":
            return []
        found: list[Finding] = []
        if before.structure != after.structure:
            message = f"the call returns {after.structure}, before {before.structure}"
            found.append(Finding(check="structure", side="after", message=message))
        earlier = {output.name: output.grad for output in before.outputs}
        for output in after.outputs:
            then = earlier.get(output.name)
            if then is not None and output.grad is not None and then != output.grad:
                says = "requires a gradient" if output.grad else "requires no gradient"
                message = f"`{output.name}` {says} when the inputs do, before it was the reverse"
                found.append(Finding(check="requires-grad", side="after", about=output.name, message=message))
        return found

    def _strides(self, check: str) -> list[Finding]:
        """Outputs that lie otherwise than before, where they have the same shape."""
        if self._before is None or self._after is None:
            return []
        earlier = {output.name: output for output in self._before.outputs}
        told = (output for output in self._after.outputs if output.strides)
        pairs = ((earlier[output.name], output) for output in told if output.name in earlier)
        alike = ((then, now) for then, now in pairs if then.strides and then.shape == now.shape)
        return [_lies(then, now, check) for then, now in alike if _steps(then) != _steps(now)]


def _refused_alike(before: Ran, after: Ran) -> bool:
    """Whether both sides raised the same, or the same type of error in the same function: its words may be others."""
    if not after.error or not before.error:
        return False
    kinds = {error.partition(":")[0] for error in (before.error, after.error)}
    return after.error == before.error or (len(kinds) == 1 and before.place == after.place != "")


def _seen(ran: Ran | None, compared: Compared | None) -> tuple[Finding, ...]:
    if ran is None or ran.status != "ok":
        return ()
    return (*ran.findings, *(compared.findings if compared else ()))


def _undecided(compared: Compared | None) -> str:
    """Return an output without any decided element, or an empty text if there is none."""
    figures = compared.figures if compared else ()
    return next((one.output for one in figures if one.elements and one.undecided == one.elements), "")


def _faults(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.check not in COMPARATIVE | NOTED]


def _named(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{finding.check}: {finding.message}" for finding in findings)


def _steps(output: Returned) -> list[tuple[int, int]]:
    """The strides that matter: those of dimensions with more than one element, if there are elements."""
    if 0 in output.shape:
        return []
    pairs = zip(output.shape, output.strides, strict=True)
    return [(place, stride) for place, (size, stride) in enumerate(pairs) if size > 1]


def _lies(then: Returned, now: Returned, check: str) -> Finding:
    message = f"`{now.name}` has strides {now.strides}, before {then.strides}"
    return Finding(check=check, side="after", about=now.name, message=message)
