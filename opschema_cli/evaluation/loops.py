"""Loops, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.containers import elements
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_TURNS
from opschema_cli.evaluation.values import BoundArgument, Frame, Items, Text
from opschema_cli.source.python import Expr, Loop


class Turns:
    """The iterations of the loops of one tree."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._turns: dict[tuple[Frame, int], list[Frame]] = {}

    def at(self, frame: Frame, at: int) -> list[Frame]:
        """Return a frame for each iteration of the loops around a place, with the values of their targets; the frame itself if
        that is not known.
        """
        turns = [frame]
        for index, loop in enumerate(frame.body.scope.loops):
            if loop.body.start <= at < loop.body.end:
                inner: list[Frame] = []
                for turn in turns:
                    inner += self._of(turn, index, loop)
                    if len(inner) > MAX_TURNS:
                        return [frame]
                turns = inner
        return turns

    def _of(self, frame: Frame, index: int, loop: Loop) -> list[Frame]:
        key = (frame, index)
        if key not in self._turns:
            bound = [self._targets(frame, loop.target, item) for item in self._elements(frame, loop.iterable)]
            known = bound and len(bound) <= MAX_TURNS
            self._turns[key] = [frame.binding(item) for item in bound] if known else [frame]
        return self._turns[key]

    def _elements(self, frame: Frame, iterable: Expr) -> Iterator[BoundArgument]:
        values = self.evaluator.evaluate(frame, iterable)
        for value in values:
            # A string or a list of them: code that takes either puts the string into a list before the loop.
            if isinstance(value, Text) and len(values) > 1:
                continue
            # A list that may hold more: the known elements are iterations all the same, and one more stands for the others.
            known = value.elements if isinstance(value, Items) else elements(self.evaluator, frame, value)
            yield from known or ()
            if known and isinstance(value, Items) and value.open:
                yield BoundArgument(frame)

    def _targets(self, frame: Frame, target: Expr, element: BoundArgument) -> dict[str, BoundArgument]:
        """Bind the names of a target to the parts of an element; unknown if the parts are not known."""
        parts = target.elements
        if parts is None:
            return {target.text: element} if target.kind == "name" else _unknown(frame, target)
        found = self.evaluator.values(element)
        items = found[0].elements if len(found) == 1 and isinstance(found[0], Items) else ()
        if len(items) != len(parts):
            return _unknown(frame, target)
        bound = [self._targets(frame, part, item) for part, item in zip(parts, items, strict=True)]
        return {name: value for item in bound for name, value in item.items()}


def _unknown(frame: Frame, target: Expr) -> dict[str, BoundArgument]:
    return {item.text: BoundArgument(frame) for item in target.walk() if item.kind == "name"}
