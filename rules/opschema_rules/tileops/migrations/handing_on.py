"""Functions that take inputs under any name and hand them on to a method that takes them by theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Expr
from opschema_rules.tileops.migrations.call_sites import CallSite, CallSites
from opschema_rules.tileops.migrations.sharing import METHODS
from opschema_rules.tileops.model import OpEntry


def takes_any_input(calls: CallSites, target: FunctionRef) -> bool:
    """Whether a function takes inputs by any name: for an op's methods, or as one with ``**inputs`` that it passes to them."""
    unpacked = {param.name for param in target.function.params if param.kind == "kwarg"}
    if target.function.name in METHODS and any(param.kind in ("vararg", "kwarg") for param in target.function.params):
        return True
    body = calls.bodies.function(target) if unpacked else None
    return body is not None and any(_passes(call, body.this, unpacked) for call in body.scope.calls)


def _passes(call: Expr, this: str, unpacked: set[str]) -> bool:
    """Whether a call is of a method in ``METHODS`` on the instance, with all keyword arguments passed on."""
    holder, _, name = call.items[0].text.rpartition(".")
    if not this or holder != this or name not in METHODS:
        return False
    passed = zip(call.keywords, call.items[1:], strict=True)
    return any(keyword == "**" and item.text in unpacked for keyword, item in passed)


def instances(site: CallSite, entries: Iterable[OpEntry]) -> Iterator[OpEntry]:
    """Yield the entries whose op may be the instance on which one of its methods calls another."""
    for entry in entries if site.owner is not None else ():
        ref = entry.op_class
        if isinstance(ref, ClassRef) and site.owner in entry.manifest.program.lineage(ref):
            yield entry
