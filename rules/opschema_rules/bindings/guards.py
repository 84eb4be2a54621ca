"""Uses of a module that allow for its absence of a name, or for a call that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import msgspec

from opschema_cli.source.bodies import Body
from opschema_cli.source.expected import expects_failure
from opschema_rules.aten.torch_calls import is_conditional, is_guarded
from opschema_rules.bindings.imports import Extensions, Target

_ASKS = frozenset({"hasattr", "getattr", "setattr", "delattr", "object"})
_CATCHES = re.compile(r"\s*(?:#[^\n]*\s*)*except\b(?:(?!:\s*$).)*:\s*\Z", re.DOTALL)
_ANY = re.compile(r"\bexcept\s*:|\b(?:TypeError|RuntimeError|Exception|BaseException)\b")
_TRY = re.compile(r"\btry\s*:\s*(?:#[^\n]*\s*)*\Z")
_LOOK_BACK = 400


class Guards(msgspec.Struct, frozen=True, eq=False, dict=True):
    """What the Python of a tree asks of its modules, or sets in them."""

    extensions: Extensions

    def allows_absence(self, body: Body, at: int, target: Target) -> bool:
        """Whether a use of a name that a module lacks is meant: it is asked for, set, tried or expected to fail."""
        if any(not names.isdisjoint((target.name, "")) for names in self._names(target, is_set=False)):
            return True
        return is_guarded(body, at) or expects_failure(self.extensions.bodies, body, at)

    def allows_failure(self, body: Body, at: int) -> bool:
        """Whether a call that raises is meant: a handler catches it, a test expects it, or it is for another release."""
        return is_conditional(body, at) or _is_tried(body, at) or expects_failure(self.extensions.bodies, body, at)

    def is_replaced(self, target: Target) -> bool:
        """Whether Python may set a name of a module, so that its binding is not what is called."""
        return any(not names.isdisjoint((target.name, "")) for names in self._names(target, is_set=True))

    def _names(self, target: Target, *, is_set: bool) -> Iterator[set[str]]:
        for module in target.modules:
            yield self._asked.get((id(module), True), set())
            if not is_set:
                yield self._asked.get((id(module), False), set())

    @cached_property
    def _asked(self) -> dict[tuple[int, bool], set[str]]:
        """The names by the ids of modules and whether they are set; an empty one if any name may be set."""
        found: dict[tuple[int, bool], set[str]] = {}
        bodies = self.extensions.bodies
        for body in (body for file in bodies.files for body in bodies.of(file)):
            for holder, name, is_set in _asked_in(body):
                target = self.extensions.meaning(body, holder)
                for module in target.modules if target is not None and not target.name else ():
                    found.setdefault((id(module), is_set), set()).add(name)
        return found


def _asked_in(body: Body) -> Iterator[tuple[str, str, bool]]:
    """Each holder, the name that is asked for or set in it, and whether it is set; the name is empty if it is computed."""
    for call in body.scope.calls:
        last = call.items[0].member
        given = call.positional() if last in _ASKS else []
        if len(given) >= 2 and given[0].kind == "name":
            if isinstance(given[1].value, str):
                yield given[0].text, given[1].value, last in ("setattr", "object")
            elif last == "setattr":
                yield given[0].text, "", True
    for item in body.scope.assigns:
        holder, _, name = item.target.rpartition(".")
        if holder:
            yield holder, name, True


def _is_tried(body: Body, at: int) -> bool:
    """Whether a handler of a ``try`` around a place catches errors of a call."""
    text = body.file.source.text
    for around in body.outward():
        spans = around.scope.guarded
        for index, span in enumerate(spans):
            if not span.start <= at < span.end or not _TRY.search(text[max(0, span.start - _LOOK_BACK) : span.start]):
                continue
            for before, handler in zip(spans[index:], spans[index + 1 :], strict=False):
                clause = text[before.end : handler.start]
                if not _CATCHES.match(clause):
                    break
                if _ANY.search(clause):
                    return True
    return False
