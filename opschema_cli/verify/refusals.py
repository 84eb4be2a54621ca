"""Calls that an op should refuse, because the declaration does not allow them, and their verdicts.

Nothing says which errors an op must raise, so the side before decides: what it refuses, by a statement of its own or in an
operator, after must refuse, in whatever words. What before computed, or failed in by accident, after may compute or refuse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.verify.model import WRONG, Call, Finding, Input, Output, Ran, Verdict

WRONG_DEVICE = WRONG + "device"
"""The shape of a call with its first input on the CPU instead of a GPU."""

_OTHER_DTYPES = {"int64": "float64", "int32": "float32", "int16": "float16"}
_BROKE_DOWN = ("died", "stalled")


def wrong_calls(call: Call) -> dict[str, Call]:
    """Calls made wrong in one respect, by the names of their shapes. Wrong tensors are never smaller than those of the call: an op
    that does not check them shall not read beyond their memory.
    """
    changed = {WRONG + name: inputs for name, inputs in _wrong_inputs(call.inputs)}
    outputs = tuple(Output(name=output.name, optional=output.optional) for output in call.outputs)
    return {name: msgspec.structs.replace(call, inputs=inputs, outputs=outputs) for name, inputs in changed.items()}


def _wrong_inputs(inputs: Sequence[Input]) -> Iterator[tuple[str, tuple[Input, ...]]]:
    if not inputs:
        return
    main = max(inputs, key=lambda item: math.prod(item.shape))
    yield "dtype", _with(inputs, main, dtype=_other_dtype(main.dtype))
    yield "rank", _with(inputs, main, shape=(1, *main.shape))
    others = [item for item in inputs if item is not main and item.shape]
    if others:
        yield "size", _with(inputs, others[0], shape=(*others[0].shape[:-1], others[0].shape[-1] + 1))
    yield "device", tuple(inputs)


def _with(inputs: Sequence[Input], one: Input, **changes: object) -> tuple[Input, ...]:
    return tuple(msgspec.structs.replace(item, **changes) if item is one else item for item in inputs)


def _other_dtype(dtype: str) -> str:
    if dtype in _OTHER_DTYPES:
        return _OTHER_DTYPES[dtype]
    return "int64" if "float" in dtype else "float32"


def judge_refusal(before: Ran | None, after: Ran, differences: Sequence[Finding]) -> tuple[Verdict, str]:
    """Return the verdict on an invalid call, and the reason. ``before`` is None if that side was not called."""
    for side, ran in (("after", after), ("before", before)):
        if ran is not None and ran.status == "refused":
            return (
                "not-checked",
                f"{side} cannot be run: {ran.detail}" if ran.unimported else f"a wrong call: {ran.detail}",
            )
    if after.status == "raised":
        return _refused(before, after)
    what = "computes it" if after.status == "ok" else f"{after.status}: {after.detail}"
    if before is None:
        return "not-checked", f"a wrong call, and no before to compare with: after {what}"
    if before.status == "raised" and after.status == "ok" and not before.deliberate:
        return "not-checked", f"a wrong call: after computes it, before failed ({before.error.partition(chr(10))[0]})"
    if before.status == "raised":
        return "regression", f"before refused this wrong call ({before.error.partition(chr(10))[0]}), after {what}"
    if before.status in _BROKE_DOWN:
        return "not-checked", f"a wrong call: before {before.status}, after {what}"
    if after.status in _BROKE_DOWN:
        return "regression", f"a wrong call: after {what}; before ran"
    if differences:
        return "not-checked", f"a wrong call that neither side refuses: {differences[0].message}"
    return "unchanged", "a wrong call that neither side refuses"


def _refused(before: Ran | None, after: Ran) -> tuple[Verdict, str]:
    says = after.error.partition("\n")[0]
    if before is None:
        return "within-tolerance", f"a wrong call is refused ({says}); no before to compare with"
    if before.status == "ok":
        return "not-checked", f"a wrong call is refused ({says}); before computed it"
    return "unchanged", f"a wrong call is refused ({says})"
