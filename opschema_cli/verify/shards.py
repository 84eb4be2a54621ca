"""Splits a run into shards of entire ops, so that each op library is imported in few places; the same split every time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import Plan

_SHARD = re.compile(r"(\d+)/(\d+)")


def parse_shard(text: str) -> tuple[int, int]:
    """``i/N`` as numbers, counted from 1.

    Raises:
        OpschemaError: it is no such pair.
    """
    match = _SHARD.fullmatch(text.strip())
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise OpschemaError(f"`{text}` is not a shard; write for example 1/4 for the first of four")
    return number, count


def shard_of(plans: Sequence[Plan], number: int, count: int) -> list[Plan]:
    """The plans of shard ``number`` of ``count``: the largest first, each to the shard that has the fewest cells so far."""
    sizes = [0] * count
    chosen: set[str] = set()
    for plan in sorted(plans, key=lambda plan: (-len(plan.cells), plan.op)):
        least = sizes.index(min(sizes))
        sizes[least] += len(plan.cells) + 1
        if least == number - 1:
            chosen.add(plan.op)
    return [plan for plan in plans if plan.op in chosen]
