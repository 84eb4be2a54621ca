"""Indexes the assignments, calls and uses of a body, so that many of them are found in one pass."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Expr, Unpack, Use
from opschema_cli.source.text import NestedSpans, Span, SpanSet
from opschema_rules.flydsl.deciding import is_in_word

_FOR = re.compile(r"for\b")


class BodyIndex:
    """The index of a body.

    ``targets`` has the variables that are given a value by its span, ``methods`` the calls of methods of a variable by its name,
    ``chained`` the calls of methods of an expression by its span, and ``uses`` those of a name by its first word.
    """

    def __init__(self, body: Body) -> None:
        self._body = body
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

    @cached_property
    def arguments(self) -> frozenset[Span]:
        """The arguments of its calls."""
        return frozenset(item.span for call in self._body.scope.calls for item in call.items[1:])

    @cached_property
    def unpacked(self) -> dict[Span, Unpack]:
        """The assignments with several targets, by their values."""
        return {item.value.span: item for item in self._body.scope.unpacks}

    @cached_property
    def lambdas(self) -> SpanSet:
        """The lambdas of the body."""
        return SpanSet(item.span for item in self._body.scope.lambdas)

    def value_before(self, name: str, at: int) -> Expr | None:
        """Return the value that a variable of a function has at a place, if the last binding before it determines the value."""
        bound, body = self._bound.get(name), self._body
        if not bound or len(bound) != len(body.scope.named.get(name, ())):
            return None
        if name in body.file.rebound or at in self.lambdas or name in self.walruses:
            return None
        number = bisect_left(bound, at, key=lambda item: item.statement.end)
        last = bound[number - 1] if number else None
        around, above = set(self._guards.around(at)), set(self._guards.around(last.start) if last is not None else ())
        repeated = max((span.end for span in around - above), default=at)  # perhaps, and then what follows comes before
        again = number < len(bound) and bound[number].start < repeated
        sure = last is not None and above <= around and not again and at not in self._generators
        return last.value if last is not None and sure else None

    @cached_property
    def _bound(self) -> dict[str, list[Assign]]:
        found: dict[str, list[Assign]] = {}
        for item in sorted(self._body.scope.assigns, key=lambda item: item.statement.end):
            found.setdefault(item.target, []).append(item)
        return found if self._body.function is not None else {}

    @cached_property
    def _generators(self) -> SpanSet:
        """The generator expressions of the body, which may run after names have changed."""
        return SpanSet(part.span for part in self._parts if part.kind == "generator")

    @cached_property
    def walruses(self) -> frozenset[str]:
        """The names that expressions of the body bind, also in comprehensions."""
        return frozenset(part.items[0].text for part in self._parts if part.kind == "walrus")

    @cached_property
    def _parts(self) -> list[Expr]:
        if not binds_inside(self._body, ":="):
            return []
        exprs = (part for item in all_statements(self._body.statements) for part in own_expressions(item))
        return [part for part in exprs if part.kind in ("generator", "walrus")]

    @cached_property
    def _guards(self) -> NestedSpans:
        """The stretches of the body that may not run, may not run to their end, or run several times."""
        contexts = (item.span for item in all_statements(self._body.statements) if item.kind == "with")
        return NestedSpans([*self._body.scope.guarded, *(item.body for item in self._body.scope.loops), *contexts])


@cached_on_argument
def _may_comprehend(body: Body) -> bool:
    """Whether a function may have comprehensions or lambdas, by its text alone; its statements are not decoded."""
    if body.function is None:
        return True
    text, (start, end) = body.file.source.text, body.function.outer
    if text.find("lambda", start, end) >= 0:
        return True
    for match in _FOR.finditer(text, start, end):
        if is_in_word(text, match.start()):
            continue
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        line_end = text.find("\n", match.end(), end)
        line = text[match.end() : line_end if line_end >= 0 else end]
        is_loop = before in ("", "async") and line.rstrip().endswith(":")
        if not is_loop and not before.startswith("#"):
            return True
    return False


def binds_inside(body: Body, *words: str) -> bool:
    """Whether expressions of a function may bind names: comprehensions, lambdas, and any text with one of these words."""
    if _may_comprehend(body):
        return True
    text, (start, end) = body.file.source.text, body.function.outer if body.function is not None else (0, 0)
    return any(text.find(word, start, end) >= 0 for word in words)


@cached_on_argument
def index_of(body: Body) -> BodyIndex:
    """The index of a body."""
    return BodyIndex(body)
