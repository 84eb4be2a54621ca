"""Changes of lists and dictionaries after they are bound to a name: by writes to items, and by methods."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.changes import changes_in
from opschema_cli.evaluation.conditions import doubts, runs
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.reaching import loops
from opschema_cli.evaluation.values import UNKNOWN, BoundArgument, Frame, Items, Plain, Table, Value, Values
from opschema_cli.source.python import Assign
from opschema_cli.source.text import Span


def changed(evaluator: Evaluator, frame: Frame, item: Assign, value: Value, at: int | None) -> Value:
    """Return a container bound to a name as a use at ``at`` may see it; it is ``open`` after changes that are not followed."""
    if not isinstance(value, Items | Table):
        return value
    changes = changes_in(frame.body.file)
    if item.target in changes.inner:
        value = _without_inner(value)
    if isinstance(value, Items):
        if value.kind == "tuple":
            return value
        doubtful = item.target in changes.by_methods or changes.by_items[item.target] > 0
        return Items(value.elements, value.kind, True) if doubtful else value
    entries = dict(value.entries)
    entries.update(_written(evaluator, frame, item, value, at))
    written = sum(write.target == item.target for write in frame.body.scope.items)
    elsewhere, removed = changes.by_items[item.target] > written, changes.removed.get(item.target, set())
    by_methods = item.target in changes.by_methods
    unknown = changes.overwritten.get(item.target, set()) | removed
    of_any = elsewhere or (by_methods and not removed)  # `update` and writes to computed keys
    entries.update((key, BoundArgument(frame, None, UNKNOWN)) for key in [*entries] if of_any or key in unknown)
    return Table(tuple(entries.items()), value.open or by_methods or elsewhere)


def changed_attribute(frame: Frame, name: str, value: Value) -> Value:
    """Return a container that code of a frame assigns to an attribute; ``open`` if the file changes it at any time."""
    if not isinstance(value, Items | Table):
        return value
    changes, holder = changes_in(frame.body.file), f".{name}"
    if name not in changes.attributes or (isinstance(value, Items) and value.kind == "tuple"):
        return value
    if holder in changes.inner:
        value = _without_inner(value)
    if holder not in changes.by_methods and not changes.by_items[holder]:
        return value
    if isinstance(value, Items):
        return Items(value.elements, value.kind, True)
    entries = tuple((key, BoundArgument(part.frame, part.expr, UNKNOWN)) for key, part in value.entries)
    return Table(entries, True)


def _without_inner(value: Items | Table) -> Items | Table:
    """Return a container whose nested containers are changed, with these unknown."""

    def kept(part: BoundArgument) -> BoundArgument:
        known = part.expr is not None and part.expr.kind in _NO_CONTAINERS
        return part if known else BoundArgument(part.frame, part.expr, UNKNOWN)

    if isinstance(value, Items):
        return Items(tuple(map(kept, value.elements)), value.kind, value.open)
    return Table(tuple((key, kept(part)) for key, part in value.entries), value.open)


_NO_CONTAINERS = ("const", "literal", "fstring", "lambda")


def _written(
    evaluator: Evaluator, frame: Frame, item: Assign, table: Table, at: int | None
) -> Iterator[tuple[str, BoundArgument]]:
    """Yield the writes of the body to items of a dictionary before ``at``; a missing item counts as None. A loop that is not
    also around the use may not run.
    """
    scope = frame.body.scope
    around = set(loops(scope, at)) if at is not None else set[Span]()
    for write in scope.items:
        before = at is None or write.value.start < at
        if write.target == item.target and before and runs(evaluator, frame, write.value.span):
            values: Values = ()
            skipped = not around.issuperset(loops(scope, write.value.start))
            if skipped or doubts(evaluator, frame, write.value.start):
                other = evaluator.values(dict(table.entries).get(write.key)) or (Plain(None),)
                values = (*evaluator.evaluate(frame, write.value), *other)
            yield write.key, BoundArgument(frame, write.value, values)
