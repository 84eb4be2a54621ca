"""Differences between a manifest's declaration of its ops' calls and the code, one for each cause.

Ops that inherit one method and all differ from their entries are one cause, which lies in the method; where some of its ops agree
with their entries, it lies in the entries of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from opschema_cli.evaluation.execution.outcomes import Raised
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.source.program import FunctionRef
from opschema_rules.tileops.calls.described import DescribedCall
from opschema_rules.tileops.model import Manifest, OpImplementation

SHOWN_ROWS = 3
"""Maximum number of rows that a finding about several of them points to."""


_RAISING = ("raise", "assert", "torch._check")


class Difference(msgspec.Struct, frozen=True):
    """One difference of an op: its description, its place in the manifest, its place in the code, and further places."""

    op: OpImplementation
    method: FunctionRef
    message: str
    declared: Place
    observed: Place
    declared_note: str
    observed_note: str
    others: tuple[Related, ...] = ()


def is_explicit(manifest: Manifest, raised: Raised) -> bool:
    """Whether code raises with a statement of its own, to reject a call; an unimplemented method does not count."""
    if raised.exception == "NotImplementedError":
        return False
    file = manifest.project.python(raised.place.path) if raised.place is not None else None
    return (
        file is not None and raised.place is not None and file.source.text.startswith(_RAISING, raised.place.span.start)
    )


_ERRORS = frozenset({"AttributeError", "NameError", "TypeError", "UnboundLocalError"})


def is_error(manifest: Manifest, call: DescribedCall, raised: Raised) -> bool:
    """Whether Python itself ends a call because of inconsistent code; sizes that no row gives may lack a key."""
    known = raised.exception in _ERRORS or (raised.exception == "KeyError" and call.origin == "row")
    known = known or (raised.exception == "ValueError" and "values to unpack" in (raised.message or ""))
    return known and raised.place is not None and not is_explicit(manifest, raised)


def settled(compared: Iterable[tuple[FunctionRef | tuple[str, int], Difference | None]]) -> Iterator[Diagnostic]:
    """Yield the findings of methods, or functions by file and place, that were compared with the entries of their ops, each with
    its difference; None if they agree.
    """
    by_method: dict[tuple[str, int], list[Difference | None]] = {}
    for method, difference in compared:
        key = (method.file.path, method.function.start) if isinstance(method, FunctionRef) else method
        by_method.setdefault(key, []).append(difference)
    for outcomes in by_method.values():
        found = [item for item in outcomes if item is not None]
        if len(found) < len(outcomes):
            yield from map(_at_entry, found)
        else:
            yield _at_code(found)


def _at_entry(item: Difference) -> Diagnostic:
    related = (Related(item.observed, item.observed_note), *item.others)
    return Diagnostic(item.message, item.declared, related, ops=(item.op.name,))


def _at_code(found: Sequence[Difference]) -> Diagnostic:
    first = found[0]
    declared = tuple(Related(item.declared, item.declared_note) for item in found)
    ops = tuple(item.op.name for item in found)
    return Diagnostic(first.message, first.observed, (*declared, *first.others), ops=ops)
