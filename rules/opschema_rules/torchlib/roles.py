"""Registrations of a registering call: role, function and keys."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, ExternalName, Func, Text, Unknown, Value
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Unresolved
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.model import Registration, Role
from opschema_rules.torchlib.options import words_of
from opschema_rules.torchlib.origin import origin
from opschema_rules.torchlib.partials import bound_method, partial_function
from opschema_rules.torchlib.registrations import Event

_FAKE_KEYS = frozenset({"Meta", "meta"})
_OTHER_KEYS = (
    "Autograd",
    "Autocast",
    "ADInplaceOrView",
    "Functionalize",
    "Python",
    "FuncTorch",
    "Batched",
    "BackendSelect",
    "Conjugate",
)


class Part(msgspec.Struct, frozen=True):
    """One thing that a call registers: its role, and the parameters that take function and keys."""

    role: Role
    function: str
    keys: str


def parts_of(evaluator: Evaluator, event: Event) -> Iterator[Part]:
    """Yield the parts that an event registers; vLLM's helper registers a kernel, and possibly a fake."""
    if event.api is apis.DIRECT:
        if evaluator.not_none(event.given.get("fake_impl")):
            yield Part("fake", "fake_impl", "")
        yield Part("kernel", "op_func", "dispatch_key")
    elif event.api.role is not None:
        yield Part(event.api.role, event.api.function, event.api.keys)


def read_part(evaluator: Evaluator, event: Event, part: Part, names: Text) -> Registration:
    """The registration for the operators of some names."""
    value = _one(evaluator, event.given.get(part.function)) if part.function else None
    frame, call = origin(evaluator, event, value if isinstance(value, Func) else None, names)
    keys = _keys(evaluator, event, part.keys)
    given = event.given.get("setup_context")
    setup = _one(evaluator, given) if evaluator.not_none(given) else None
    role = "fallthrough" if _is_fallthrough(value) else role_of(part.role, keys)
    return Registration(
        role, frame.body.at(call), keys, _body(value), _body(setup), frame.body, call,
        event.conditional, refused=event.api.name if event.refused else "", form=event.api.name, helper=event.helper,
        partial=partial_function(value),
    )  # fmt: skip


def _one(evaluator: Evaluator, given: BoundArgument | None) -> Value:
    found = evaluator.not_none(given)
    return found[0] if len(found) == 1 else Unknown("it may be several functions" if found else "it is not known")


def _is_fallthrough(value: Value | None) -> bool:
    return isinstance(value, ExternalName) and value.name.endswith(".fallthrough_kernel")


def _body(value: Value | None) -> Body | Unresolved | None:
    if value is None or isinstance(value, Func):
        return value.body if value is not None else None
    method = bound_method(value)
    if method is not None:
        return method
    outside = f"`{value.name}` lies outside the workspace" if isinstance(value, ExternalName) else ""
    return Unresolved(outside or getattr(value, "reason", "it is not a function"))


def _keys(evaluator: Evaluator, event: Event, word: str) -> frozenset[str] | None:
    """Return the dispatch keys or devices of a registration; if the call has none, those of its library, or the default."""
    keys = words_of(evaluator, event.given.get(word)) if word else frozenset[str]()
    if keys:
        return keys - {""}
    if event.api.default_keys:
        return None if keys is None or event.open else event.api.default_keys
    library = event.waiting.receiver
    values = evaluator.values(event.given.get("lib")) if event.api in apis.LIBRARY_FUNCTIONS.values() else ()
    own = getattr(library or (values[0] if values else None), "key", "")
    if own is None or keys is None or not isinstance(own, str):
        return keys
    return frozenset({own} - {""})


def role_of(role: Role, keys: frozenset[str] | None) -> Role:
    """Return the role: a kernel for the key ``Meta`` is a fake; one for a key that is not a backend has its own role."""
    if role != "kernel" or not keys:
        return role
    if keys <= _FAKE_KEYS:
        return "fake"
    return "other" if any(key.startswith(_OTHER_KEYS) for key in keys) else role
