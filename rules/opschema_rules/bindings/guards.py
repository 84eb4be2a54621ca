"""Uses of a module that allow for its absence of a name, or for a call that fails."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from opschema_cli.source.bodies import Body
from opschema_cli.source.expected import expects_failure
from opschema_cli.source.guarded_code import is_conditional, is_guarded, is_tried
from opschema_rules.bindings.imports import Extensions, Target

_ASKS = frozenset({"hasattr", "getattr", "setattr", "delattr", "object"})


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
        return is_conditional(body, at) or is_tried(body, at) or expects_failure(self.extensions.bodies, body, at)

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
