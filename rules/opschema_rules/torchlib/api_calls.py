"""Calls of the functions of ``torch.library``: which function each calls, and the keywords that it passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Place
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.model import ApiCall
from opschema_rules.torchlib.registrations import Event
from opschema_rules.torchlib.values import Handle, LibraryValue, Waiting


def api_calls(events: Iterable[Event]) -> Iterator[ApiCall]:
    """Yield the calls that always take place: those under a condition may be for another release."""
    for event in events:
        name = "" if event.conditional or not event.sole else _name(event.waiting)
        if name:
            arguments, body = event.waiting.arguments, event.frame.body
            call = arguments.call
            callee = call.items[0] if call.kind == "call" and call.items else call
            yield ApiCall(name, body, body.at(callee), tuple(_keywords(event)))


def _name(waiting: Waiting) -> str:
    """Return the full name of the function; empty for one that is not in the table."""
    api, receiver = waiting.api, waiting.receiver
    if isinstance(receiver, LibraryValue):
        return f"torch.library.Library.{api.name}"
    if isinstance(receiver, Handle):
        return "" if receiver.legacy else f"torch.library.CustomOpDef.{api.name}"
    return f"torch.library.{api.name}" if receiver is None and apis.FUNCTIONS.get(api.name) is api else ""


def _keywords(event: Event) -> Iterator[tuple[str, Place]]:
    for name, given in event.waiting.arguments.keywords.items():
        if given.place is not None and not (name == event.api.function and event.waiting.late):
            yield name, given.place
