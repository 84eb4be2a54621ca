"""Passes the dispatcher's arguments to a Python function: the parameters that a fake, kernel or vmap rule must have.

The dispatcher matches a call against the schema alone. Arguments before ``*`` are passed by position, and those at the end that
equal the schema's defaults are left off, also when the caller wrote them; those after ``*`` are passed by name, each that equals
its default is left off by itself (``parseIValuesToPyArgsKwargs`` of torch; probed on 2.13). So names of arguments before ``*``
never matter, their order and defaults do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.python import Param
from opschema_rules.torchlib.model import Registration

MismatchKind: TypeAlias = Literal[
    "reordered",
    "shifted",
    "fewer",
    "missing",
    "missing-keyword",
    "extra",
    "extra-keyword",
    "renamed-keyword",
    "keyword-only",
    "no-default",
    "by-name",
]
"""``reordered``: different order. ``shifted``: its ``*args`` takes the arguments, but the parameters before it omit some.
``fewer``: it takes fewer positional arguments, and its names do not show which it lacks. ``missing``, ``missing-keyword``: the
function does not accept an argument passed by position or by name. ``extra``, ``extra-keyword``: it requires an argument that is
never passed. ``keyword-only``: it only takes by name what is passed by position. ``no-default``: it requires an argument that is
omitted if it equals the schema's default. ``by-name``: it takes by position what is passed by name.
"""


class Mismatch(msgspec.Struct, frozen=True):
    """Arguments of the schema, or parameters of the function, in which the two differ in one way.

    ``always`` is true when every call goes wrong, not only those that pass, or leave off, one of them.
    """

    kind: MismatchKind
    arguments: tuple[Argument, ...] = ()
    params: tuple[Param, ...] = ()
    always: bool = False


def in_force(registrations: Sequence[Registration]) -> list[Registration]:
    """The registrations of one role that a later one for the same keys, in the same body, does not replace."""
    last = {(id(item.body), item.keys): item for item in registrations if not item.conditional}
    return [item for item in registrations if item.conditional or last[id(item.body), item.keys] is item]


def filled(registration: Registration) -> int:
    """The number of leading parameters of a registered function that take something else than the schema's arguments."""
    if registration.role == "vmap":
        return 2
    keyset = registration.call.keyword("with_keyset") if registration.call is not None else None
    return 0 if keyset is None or keyset.value is False else 1


def pairs(schema: OperatorSchema, params: Sequence[Param], skip: int = 0) -> list[tuple[Argument, Param]]:
    """The arguments and the parameters that take them, for a function without mismatches."""
    named = {item.name: item for item in schema.kwarg_only}
    takers = [item for item in params if item.kind in ("posonly", "normal")][skip:]
    by_position = [item for item in takers if item.name not in named]
    by_name = [(named[item.name], item) for item in params if item.by_name and item.name in named]
    return [*zip(schema.positional, by_position, strict=False), *by_name]


def mismatches(schema: OperatorSchema, params: Sequence[Param], skip: int = 0) -> list[Mismatch]:
    """Return the differences between a function's parameters, after the first ``skip``, and the dispatcher's arguments."""
    return _renamed(list(_Comparison(schema, params, skip).all()))


def _renamed(found: list[Mismatch]) -> list[Mismatch]:
    """Merge one surplus and one missing keyword parameter into a renamed one."""
    lost = next((item for item in found if item.kind == "missing-keyword" and len(item.arguments) == 1), None)
    extra = next((item for item in found if item.kind == "extra-keyword" and len(item.params) == 1), None)
    if lost is None or extra is None:
        return found
    one = Mismatch("renamed-keyword", lost.arguments, extra.params, always=True)
    return [one if item is extra else item for item in found if item is not lost]


class _Comparison:
    def __init__(self, schema: OperatorSchema, params: Sequence[Param], skip: int) -> None:
        plain = [item for item in params if item.kind in ("posonly", "normal")]
        self.arguments = list(schema.positional)
        self.named = {item.name: item for item in schema.kwarg_only}
        self.takers = plain[skip:]
        self.keywords = {item.name: item for item in params if item.kind == "kwonly"}
        self.any_place = any(item.kind == "vararg" for item in params)
        self.any_name = any(item.kind == "kwarg" for item in params)
        # A parameter that can be filled by its name takes an argument that is passed by name.
        self.by_name = {item.name: item for item in plain[skip:] if item.kind == "normal"} | self.keywords

    def all(self) -> Iterator[Mismatch]:
        # Parameters at the end that take arguments by name do not take any by position.
        while self.takers and self._waits(self.takers[-1]):
            self.takers.pop()
        yield from self._named_between()
        yield from self._reordered()
        yield from self._missing()
        yield from self._extra()
        yield from self._defaults()
        yield from self._by_name()

    def _waits(self, param: Param) -> bool:
        return param.kind == "normal" and param.name in self.named

    def _named_between(self) -> Iterator[Mismatch]:
        # Behind as many parameters as there are arguments by position, none of these fills it.
        found = [item for item in self.takers[: len(self.arguments)] if self._waits(item)]
        if found:
            arguments = tuple(self.named[item.name] for item in found)
            yield Mismatch("by-name", arguments, tuple(found))
        self.takers = [item for item in self.takers if not self._waits(item)]

    def _reordered(self) -> Iterator[Mismatch]:
        pairs = list(zip(self.arguments, self.takers, strict=False))
        other = [(argument, param) for argument, param in pairs if argument.name != param.name]
        if other and sorted(a.name for a, _ in other) == sorted(p.name for _, p in other):
            yield Mismatch("reordered", tuple(a for a, _ in other), tuple(p for _, p in other), always=True)

    def _missing(self) -> Iterator[Mismatch]:
        missing = len(self.arguments) - len(self.takers)
        if self.any_place:
            yield from self._shifted()
        if self.any_place or missing <= 0:
            return
        taken = {item.name for item in self.takers}
        absent = [item for item in self.arguments if item.name not in taken]
        known = len(absent) == missing
        if not known:  # under other names: what is passed last finds no place
            absent = self.arguments[len(self.takers) :]
        forced = [item for item in absent if item.name in self.keywords]
        if len(forced) == len(absent):
            params = tuple(self.keywords[item.name] for item in absent)
            yield Mismatch("keyword-only", tuple(absent), params, any(item.default is None for item in absent))
        else:
            kind: MismatchKind = "missing" if known or taken.isdisjoint(item.name for item in absent) else "fewer"
            yield Mismatch(kind, tuple(absent), (), len(self.takers) < self._always_passed)

    def _shifted(self) -> Iterator[Mismatch]:
        names = [item.name for item in self.arguments]
        taken = [item.name for item in self.takers]
        if not taken or taken[-1] not in names or [name for name in names if name in taken] != taken:
            return
        before = self.arguments[: names.index(taken[-1])]
        absent = tuple(item for item in before if item.name not in taken)
        if absent:
            after = [item for item in self.takers if names.index(item.name) > names.index(absent[0].name)]
            yield Mismatch("shifted", absent, (after[0],), always=True)

    @property
    def _always_passed(self) -> int:
        """The number of arguments that every call passes by position."""
        required = [place for place, item in enumerate(self.arguments) if item.default is None]
        return required[-1] + 1 if required else 0

    def _extra(self) -> Iterator[Mismatch]:
        known = {item.name for item in self.arguments}
        count = len(self.takers) - len(self.arguments)
        if count > 0:
            extra = [item for item in self.takers if item.name not in known]
            extra = extra if len(extra) == count else self.takers[len(self.arguments) :]
            needed = [item for item in extra if item.default is None]
            if needed:
                yield Mismatch("extra", (), tuple(needed), always=True)
        unfilled = [item for item in self.keywords.values() if item.default is None and item.name not in self.named]
        unfilled = [item for item in unfilled if item.name not in known]
        if unfilled:
            yield Mismatch("extra-keyword", (), tuple(unfilled), always=True)

    def _defaults(self) -> Iterator[Mismatch]:
        more = len(self.takers) > len(self.arguments) and next(self._extra(), None) is None
        if len(self.takers) == len(self.arguments) or more or self._aligned_ahead:
            always = self._always_passed
            pairs = [
                (argument, param)
                for place, (argument, param) in enumerate(zip(self.arguments, self.takers, strict=False))
                if place >= always and param.default is None
            ]
            if pairs:
                yield Mismatch("no-default", tuple(a for a, _ in pairs), tuple(p for _, p in pairs))
        lacking = [
            (argument, self.by_name[name])
            for name, argument in self.named.items()
            if argument.default is not None and name in self.by_name and self.by_name[name].default is None
        ]
        if lacking:
            yield Mismatch("no-default", tuple(a for a, _ in lacking), tuple(p for _, p in lacking))

    @property
    def _aligned_ahead(self) -> bool:
        """Whether the names that both sides share are at the same positions."""
        pairs = zip(self.arguments, self.takers, strict=False)
        return all(argument.name == param.name for argument, param in pairs)

    def _by_name(self) -> Iterator[Mismatch]:
        if self.any_name:
            return
        lost = [item for name, item in self.named.items() if name not in self.by_name]
        if lost:
            yield Mismatch("missing-keyword", tuple(lost), (), any(item.default is None for item in lost))
