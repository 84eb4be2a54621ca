"""Assignments, calls and uses of one body by what they are of, so that many are found in one pass."""

from __future__ import annotations

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Use
from opschema_cli.source.text import Span


class BodyIndex:
    """The index of a body.

    ``targets`` has the variables that are given a value by its span, ``methods`` the calls of methods of a variable by its name,
    ``chained`` the calls of methods of an expression by its span, and ``uses`` those of a name by its first word.
    """

    def __init__(self, body: Body) -> None:
        self.targets: dict[Span, list[str]] = {}
        self.methods: dict[str, list[Expr]] = {}
        self.chained: dict[Span, list[Expr]] = {}
        self.uses: dict[str, list[Use]] = {}
        for item in body.scope.assigns:
            if item.value is not None and "." not in item.target:
                self.targets.setdefault(item.value.span, []).append(item.target)
        for call in body.scope.calls:
            callee = call.items[0]
            if callee.kind == "attribute":
                self.chained.setdefault(callee.items[0].span, []).append(call)
            elif callee.kind == "name" and callee.text.count(".") == 1:
                self.methods.setdefault(callee.text.partition(".")[0], []).append(call)
        for use in body.scope.uses:
            self.uses.setdefault(use.name.partition(".")[0], []).append(use)


@cached_on_argument
def index_of(body: Body) -> BodyIndex:
    """The index of a body."""
    return BodyIndex(body)
