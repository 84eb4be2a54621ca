"""Binding of a call's arguments to the parameters of a function, and misfits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import msgspec

from opschema_cli.source.bodies import params_for
from opschema_cli.source.python import Expr, Param

Fault = Literal["missing", "surplus", "unknown", "twice", "position-only"]


class Misfit(msgspec.Struct, frozen=True):
    """A mismatch that Python's binding rejects: the parameter's name or the keyword, and the argument, if there is one."""

    fault: Fault
    name: str = ""
    argument: Expr | None = None


def misfits(call: Expr, params: Sequence[Param], also: Collection[str] = ()) -> Iterator[Misfit]:
    """Yield the reasons why a call does not match, without those that ``*`` or ``**`` may hide. ``also`` are further permitted
    keywords.
    """
    if _fits_by_position(call, params):
        return
    starred, mapped = "*" in call.keywords, "**" in call.keywords
    filled: set[str] = set()
    named = {item.name: item for item in reversed(params) if item.kind in ("normal", "kwonly")}
    for (keyword, value), taken in zip(call.args, params_for(call, params), strict=True):
        if keyword in ("*", "**") or keyword in also:
            continue
        param = named.get(keyword) if keyword else taken
        if param is not None and param.name in filled:
            yield Misfit("twice", param.name, value)
        elif param is not None:
            filled.add(param.name)
        elif keyword:
            yield from _unknown(keyword, value, params)
        elif not starred and not _takes(params, "vararg"):
            yield Misfit("surplus", argument=value)
    for param in params:
        if param.name not in filled and _is_needed(param) and not mapped and not (starred and param.kind != "kwonly"):
            yield Misfit("missing", param.name)


def _fits_by_position(call: Expr, params: Sequence[Param]) -> bool:
    """Whether a call passes all required arguments by position, and no others."""
    if any(call.keywords):
        return False
    taken = needed = 0
    for item in params:
        if item.kind == "kwonly" and item.default is None:
            return False
        if item.kind in ("posonly", "normal"):
            taken += 1
            needed += item.default is None
    return needed <= len(call.keywords) <= taken


def _unknown(keyword: str, value: Expr, params: Sequence[Param]) -> Iterator[Misfit]:
    if not _takes(params, "kwarg"):
        posonly = any(item.name == keyword and item.kind == "posonly" for item in params)
        yield Misfit("position-only" if posonly else "unknown", keyword, value)


def _takes(params: Sequence[Param], kind: str) -> bool:
    return any(item.kind == kind for item in params)


def _is_needed(param: Param) -> bool:
    return param.by_name and param.default is None
