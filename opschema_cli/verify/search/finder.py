"""The calls of an operator to run: samples that it accepts, else what a bounded search finds; then other values and dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.verify.model import Call
from opschema_cli.verify.search.candidates import (
    Accepts,
    FinalRefusal,
    candidates,
    completed,
    unlike_calls,
    unmakable,
    with_dtypes,
    with_values,
)
from opschema_cli.verify.search.choices import Hints
from opschema_cli.verify.search.refusal_counts import RefusalCounts

MOST_TRIED = 400
"""Calls that are tried before the search gives up."""

_ALIKE = 40
"""Refusals of one single kind after which calls as different as possible are tried."""

_NO_FARTHER = 200
"""Refusals since the last of a new kind after which the search gives up."""

_FURTHER = 150
_RANKS = 3
_VALUES = 4


class FoundCall(msgspec.Struct, frozen=True):
    """An accepted call; ``row`` is its label."""

    row: str
    dtype: str
    call: Call


class Found(msgspec.Struct, frozen=True):
    """The accepted calls, and why there is none; ``refused`` are samples that were refused, with the reason."""

    calls: tuple[FoundCall, ...] = ()
    reason: str = ""
    refused: dict[str, str] = {}


def find_calls(
    schema: OperatorSchema,
    samples: Mapping[str, Call],
    accepts: Accepts,
    accepted_before: Accepts | None = None,
    *,
    hints: Hints = {},  # noqa: B006
    only_samples: bool = False,
) -> Found:
    """The calls of an operator with this schema: samples that it accepts, else, unless there are to be no others, what is found.

    A sample, another value or another dtype is also taken if it was ``accepted_before``, by the operator of the tree before. So
    are calls that are found, if there is none which is accepted now: to refuse what was computed may be a fault.
    """
    either = accepted_by_either(accepts, accepted_before)
    whole = {label: completed(schema, call) for label, call in samples.items()}
    refused = {label: reason for label, call in whole.items() if (reason := either(call))}
    rows = {label: call for label, call in whole.items() if label not in refused}
    reason = ""
    if not rows and only_samples:
        return Found((), "; ".join(f"`{label}` is refused: {why}" for label, why in refused.items()), refused)
    if not rows:
        reason = next(filter(None, map(unmakable, schema.arguments)), "")
        if not reason:
            found, reason = _searched(schema, accepts, hints)
            if not found and accepted_before is not None:
                found, _ = _searched(schema, accepted_before, hints)
            rows = {f"call-{number}": call for number, call in enumerate(found, 1)}
    if not rows:
        return Found((), reason, refused)
    first = next(iter(rows.values()))
    for number, call in enumerate(islice(_accepted(with_values(schema, first, hints), either), _VALUES), 1):
        rows[f"values-{number}"] = call
    calls = [FoundCall(label, _dtype(call), call) for label, call in rows.items()]
    calls += [FoundCall(calls[0].row, _dtype(call), call) for call in _accepted(with_dtypes(first), either)]
    return Found(tuple(calls), "", refused)


def accepted_by_either(accepts: Accepts, accepted_before: Accepts | None) -> Accepts:
    """Returns why a call is refused now, unless it was accepted before."""

    def refusal(call: Call) -> str:
        reason = accepts(call)
        return "" if reason and accepted_before is not None and not accepted_before(call) else reason

    return refusal


def _searched(schema: OperatorSchema, accepts: Accepts, hints: Hints) -> tuple[list[Call], str]:
    """The first call that is accepted and ones with tensors of other ranks; else the most frequent refusal.

    The search stops early where refusals are all alike: an operator that cannot run here refuses every call, in a second each.
    """
    stream = candidates(schema, hints)
    refusals = RefusalCounts()
    for tried, call in enumerate(_with_unlike(islice(stream, MOST_TRIED), unlike_calls(schema, hints), refusals), 1):
        reason = accepts(call)
        if not reason:
            return [call, *_of_other_ranks(stream, call, accepts)], ""
        if isinstance(reason, FinalRefusal):
            return [], f"the search found no call that it accepts; {reason}"
        refusals.add(reason)
        if refusals.since_new >= _NO_FARTHER or tried >= MOST_TRIED:
            break
    if not refusals.kinds:
        return [], "no call can be made from its schema"
    return [], f"the search found no call that it accepts, {refusals.summary()}"


def _with_unlike(stream: Iterator[Call], unlike: Iterator[Call], refusals: RefusalCounts) -> Iterator[Call]:
    """The calls of a search: the likeliest first; then, where all were refused alike, calls that are as different as possible, and
    the others unless these are refused alike by an error that no argument causes.
    """
    yield from islice(stream, _ALIKE)
    if refusals.kinds == 1:
        yield from unlike
    if not (refusals.kinds == 1 and refusals.whatever_is_passed):
        yield from stream


def _of_other_ranks(stream: Iterator[Call], first: Call, accepts: Accepts) -> list[Call]:
    seen, found = {_ranks(first)}, list[Call]()
    for call in islice(stream, _FURTHER):
        if len(found) == _RANKS - 1:
            break
        if _ranks(call) not in seen and _dtype(call) == _dtype(first) and not accepts(call):
            seen.add(_ranks(call))
            found.append(call)
    return found


def _accepted(calls: Iterator[Call], accepts: Accepts) -> Iterator[Call]:
    return (call for call in calls if not accepts(call))


def _ranks(call: Call) -> tuple[tuple[str, int], ...]:
    return tuple((item.name, len(item.shape)) for item in call.inputs)


def _dtype(call: Call) -> str:
    """The dtype of a call: that of its first floating tensor, else of its first tensor."""
    kinds = [item.dtype for item in call.inputs]
    return next((kind for kind in kinds if "float" in kind), kinds[0] if kinds else "none")
