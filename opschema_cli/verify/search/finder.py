"""Calls of an operator to run: samples that it accepts, or the results of a bounded search, then variants with other values and
dtypes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import get_args

import msgspec

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.verify.model import SHOWS_NOTHING, Call, Weakness
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
from opschema_cli.verify.search.neighbours import neighbours
from opschema_cli.verify.search.refusal_counts import RefusalCounts

MOST_TRIED = 400
"""Number of calls that are tried before the search gives up."""

_ALIKE = 40
"""Refusals of one single kind after which calls as different as possible are tried."""

_NO_FARTHER = 200
"""Number of refusals without a new kind after which the search gives up."""

_STRONGER = 120
"""Calls that are tried after one whose results say little, to find a better one."""

_NEARBY = 8
"""Refused calls near which others are tried at the same time."""

_FURTHER = 150
_RANKS = 3
_VALUES = 4


_WEAKNESSES = get_args(Weakness)

Worth = Callable[[Call], Weakness | None]
"""Returns why the results of an accepted call test little, or None."""


class FoundCall(msgspec.Struct, frozen=True):
    """An accepted call; ``row`` is its label."""

    row: str
    dtype: str
    call: Call


class Found(msgspec.Struct, frozen=True):
    """The accepted calls, or the reason why there are none; ``refused`` are rejected samples with their reasons."""

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
    worth: Worth | None = None,
) -> Found:
    """Return calls of an operator with this schema: samples that it accepts, or else the results of a search unless only samples
    are allowed.

    A sample, another value or another dtype is also taken if it was ``accepted_before``, by the operator of the tree before. So
    are calls that are found, if there is none which is accepted now: to refuse what was computed may be a fault. Of calls that are
    found, one whose results have no weakness, as ``worth`` says, is preferred.
    """
    worth = worth or _worth_enough
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
            found, reason = _Search(schema, accepts, hints, worth).run()
            if not found and accepted_before is not None:
                found, _ = _Search(schema, accepted_before, hints, _worth_enough).run()
            rows = {f"call-{number}": call for number, call in enumerate(found, 1)}
    if not rows:
        return Found((), reason, refused)
    first = next(iter(rows.values()))
    further = (
        call for call in _accepted(with_values(schema, first, hints), either) if worth(call) not in SHOWS_NOTHING
    )
    for number, call in enumerate(islice(further, _VALUES), 1):
        rows[f"values-{number}"] = call
    calls = [FoundCall(label, _dtype(call), call) for label, call in rows.items()]
    calls += [FoundCall(calls[0].row, _dtype(call), call) for call in _accepted(with_dtypes(first), either)]
    return Found(tuple(calls), "", refused)


def _worth_enough(call: Call) -> None:
    """No result is worth little."""


def accepted_by_either(accepts: Accepts, accepted_before: Accepts | None) -> Accepts:
    """Returns why a call is refused now, unless it was accepted before."""

    def refusal(call: Call) -> str:
        reason = accepts(call)
        return "" if reason and accepted_before is not None and not accepted_before(call) else reason

    return refusal


class _Search:
    """One search for a call, with the information from the calls that it has tried.

    Where a call is refused in a new way, it may have passed a check that others failed: calls that differ from it in one respect
    are tried in turn with the likeliest ones.
    """

    def __init__(self, schema: OperatorSchema, accepts: Accepts, hints: Hints, worth: Worth) -> None:
        self._schema, self._hints = schema, hints
        self._accepts, self._worth = accepts, worth
        self._refusals = RefusalCounts()
        self._nearby: deque[Iterator[Call]] = deque()
        self._new: list[Iterator[Call]] = []
        self._weak: list[tuple[int, Call]] = []

    def run(self) -> tuple[list[Call], str]:
        """Return the first accepted call, preferably one with meaningful results, and calls with tensors of other ranks, or else
        the most frequent refusal. The search stops early if all refusals are alike, because an operator that cannot run here
        rejects every call, and each takes a second.
        """
        stream = candidates(self._schema, self._hints)
        ended = ""
        left = MOST_TRIED
        for call in self._calls(stream):
            left = min(left, _STRONGER) if self._weak else left
            if not left:
                break
            left -= 1
            reason = self._accepts(call)
            if isinstance(reason, FinalRefusal):
                ended = f"the search found no call that it accepts; {reason}"
                break
            if reason:
                self._refused(call, reason)
                if self._refusals.since_new >= _NO_FARTHER:
                    break
            elif not (weakness := self._worth(call)):
                return [call, *_of_other_ranks(stream, call, self._accepts)], ""
            else:
                self._accepted(call, weakness)
        if self._weak:
            call = min(self._weak, key=lambda item: item[0])[1]
            return [call, *_of_other_ranks(stream, call, self._accepts)], ""
        if ended or not self._refusals.kinds:
            return [], ended or "no call can be made from its schema"
        return [], f"the search found no call that it accepts, {self._refusals.summary()}"

    def _refused(self, call: Call, reason: str) -> None:
        if not self._refusals.add(reason):
            return
        self._new.append(neighbours(self._schema, call, self._hints, reason))
        if self._refusals.kinds > 1:
            self._nearby = deque([*self._nearby, *self._new], _NEARBY)
            self._new = []

    def _accepted(self, call: Call, weakness: Weakness) -> None:
        """Keep a call whose results say little; calls near it are tried first."""
        if not self._weak:
            self._nearby.clear()
        if all(rank > _WEAKNESSES.index(weakness) for rank, _ in self._weak):
            self._nearby.append(neighbours(self._schema, call, self._hints, ""))
        self._weak.append((_WEAKNESSES.index(weakness), call))

    def _calls(self, stream: Iterator[Call]) -> Iterator[Call]:
        """Yield the calls to try: the most likely ones, alternating with calls similar to those that were rejected in a new way."""
        seen: set[bytes] = set()
        for call in self._with_unlike(stream):
            for nearby in [None, *range(1 + 2 * bool(self._weak))]:
                other = call if nearby is None else self._next_nearby()
                key = msgspec.msgpack.encode(other)
                if other is not None and key not in seen:
                    seen.add(key)
                    yield other

    def _next_nearby(self) -> Call | None:
        """Return a call similar to one that was rejected in a new way, in turn for each of those."""
        while self._nearby:
            source = self._nearby.popleft()
            call = next(source, None)
            if call is not None:
                self._nearby.append(source)
                return call
        return None

    def _with_unlike(self, stream: Iterator[Call]) -> Iterator[Call]:
        """The calls of a search: the likeliest first; then, where all were refused alike, calls that are as different as possible,
        and the others unless these are refused alike by an error that no argument causes.
        """
        refusals = self._refusals
        yield from islice(stream, _ALIKE)
        if refusals.kinds == 1 and not self._weak:
            yield from unlike_calls(self._schema, self._hints)
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
