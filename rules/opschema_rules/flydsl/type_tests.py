"""Places of a traced function that may not be reached because an earlier test calls a function that may check a type: ``if
is_host(A):``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import LEAVING, Expr
from opschema_rules.flydsl.api_guards import choices_around, conditions_around
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.device_values import DeviceValues


class TypeTests(msgspec.Struct, frozen=True, dict=True):
    """The places of one traced function and its nested ones that such a test, or a constant condition, may exclude."""

    values: DeviceValues

    def may_leave_out(self, body: Body, at: int) -> bool:
        """Whether a place may not be reached, or is in a helper that only such places name."""
        return body not in self._reached or self._is_left_out(body, at)

    def _is_left_out(self, body: Body, at: int) -> bool:
        return may_pass(self.values.tree, body, at) or any(self._asks(body, test) for test in _tests(body, at))

    @cached_property
    def _reached(self) -> set[Body]:
        """The functions that other places name, and those without a name or with a decorator."""
        named = defaultdict[str, list[Body]](list)
        for item in self.values.bodies:
            is_named = (
                item is not self.values.traced.body and item.function is not None and not item.function.decorators
            )
            named[item.function.name if is_named and item.function is not None else ""].append(item)
        found, waiting = set[Body](), named.pop("", [])
        while waiting:
            body = waiting.pop()
            found.add(body)
            for name in [name for name in index_of(body).uses if name in named]:
                if not all(self._is_left_out(body, use.start) for use in index_of(body).uses[name]):
                    waiting += named.pop(name)
        return found

    def _asks(self, body: Body, test: Expr) -> bool:
        """Whether a condition calls a function, which may check a type, or reads a variable with the result of a call."""
        names = [part.text for part in test.walk() if part.kind == "name" and "." not in part.text]
        given = (item for name in names for item in self.values.bindings(body, name) or ())
        values = (test, *(item for item in given if isinstance(item, Expr)))
        calls = (part for value in values for part in value.walk() if part.kind == "call")
        return not all(self.values.names.called(body, call) for call in calls)


def _tests(body: Body, at: int) -> Iterator[Expr]:
    """Yield the conditions that decide whether a place of a body is reached."""
    yield from (item.expr for item in conditions_around(body, at))
    yield from choices_around(body, at)
    yield from (test for end, test in _exits(body) if end <= at)


@cached_on_argument
def _exits(body: Body) -> list[tuple[int, Expr]]:
    """The conditions of branches that leave a function, each with the end of its statement."""
    found = [item for item in all_statements(body.statements) if item.kind == "if"]
    return [
        (item.end, item.exprs[0])
        for item in found
        if any(part.kind in LEAVING for block in item.blocks for part in all_statements(block))
    ]
