"""Registering calls: whether they are complete, and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opschema_cli.evaluation.values import (
    Arguments,
    BoundArgument,
    ExternalName,
    Frame,
    Func,
    Partial,
    Text,
    Unknown,
    Value,
)
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.ended_libraries import ended_libraries
from opschema_rules.torchlib.values import Handle, HandleKey, LibraryValue, Method, Waiting

if TYPE_CHECKING:
    from opschema_cli.evaluation.evaluator import Evaluator


def registration(evaluator: Evaluator, callee: Value, arguments: Arguments) -> Waiting | None:
    """Return the registering call that a call completes; None if it is not one, or still lacks its function."""
    if isinstance(callee, Partial):
        return registration(evaluator, callee.target, callee.arguments.joined(arguments))
    if isinstance(callee, Waiting):
        return _completed(callee, arguments)
    api = api_of(callee) if isinstance(callee, Method) else None
    if isinstance(callee, ExternalName):
        api = apis.api_of(callee.name)
    if api is None:
        return None
    waiting = _waiting(evaluator, api, callee.receiver if isinstance(callee, Method) else None, arguments)
    return waiting if _is_complete(evaluator, waiting) else None


def _completed(waiting: Waiting, arguments: Arguments) -> Waiting:
    """A decorator with the function that it is applied to."""
    call = waiting.arguments
    words = {**call.keywords, waiting.api.function: arguments.positional[0]} if arguments.positional else {}
    passed = Arguments(arguments.frame, call.call, call.positional, words, call.open)
    return Waiting(waiting.api, waiting.receiver, passed, late=_function_given(waiting) is None)


def api_of(method: Method) -> apis.Api:
    """Return the API of a method of a library or a custom op."""
    return (apis.HANDLE if isinstance(method.receiver, Handle) else apis.LIBRARY)[method.name]


def _waiting(evaluator: Evaluator, api: apis.Api, receiver: Value | None, arguments: Arguments) -> Waiting:
    """Return the call, read as a library's if its first argument is one, and as one with a schema if it gets one."""
    if receiver is None and api.name in apis.LIBRARY_FUNCTIONS and _takes_library(evaluator, api, arguments):
        api = apis.LIBRARY_FUNCTIONS[api.name]
    given = arguments.by_name(api.params) if api is apis.OF_FUNCTION_OR_SCHEMA else {}
    if evaluator.text(given.get(api.function)) is not None:
        api = apis.OF_SCHEMA
    return Waiting(api, receiver, arguments)


def _takes_library(evaluator: Evaluator, api: apis.Api, arguments: Arguments) -> bool:
    """Whether the first argument is a library, or an unknown value that must be one, judging by the arguments after it."""
    first, *others = arguments.positional or (None,)
    values = evaluator.values(first)
    if not values or any(not isinstance(item, LibraryValue | ExternalName | Unknown) for item in values):
        return False
    if all(isinstance(item, LibraryValue) for item in values):
        return True
    texts = [evaluator.text(item) for item in others]
    if api.defines is not None:  # `define(lib, "name(...) -> ...")`, not `define(name, "(...) -> ...")`
        return bool(texts and texts[0]) and not str(texts[0]).lstrip().startswith("(")
    return len(texts) == 2 and None not in texts  # `impl(lib, name, key)`: a function is no string


def _function_given(waiting: Waiting) -> BoundArgument | None:
    return waiting.arguments.by_name(waiting.api.params).get(waiting.api.function)


def _is_complete(evaluator: Evaluator, waiting: Waiting) -> bool:
    return not waiting.api.function or bool(evaluator.not_none(_function_given(waiting)))


def registered(
    evaluator: Evaluator, api: apis.Api, receiver: Value | None, arguments: Arguments, *, legacy: bool = False
) -> Value:
    """The value of a registering call: a decorator while it lacks its function."""
    waiting = _waiting(evaluator, api, receiver, arguments)
    if not _is_complete(evaluator, waiting):
        return waiting
    found = evaluator.not_none(_function_given(waiting))
    return result(evaluator, waiting, found[0] if len(found) == 1 else Unknown(), legacy=legacy)


def result(evaluator: Evaluator, waiting: Waiting, function: Value, *, legacy: bool = False) -> Value:
    """Return the value of a complete registering call: the handle of a custom op; for the others, the function that it got."""
    if waiting.api.defines not in ("custom_op", "triton_op"):
        return function
    names = evaluator.strings(waiting.arguments.by_name(waiting.api.params).get(waiting.api.op))
    return Handle(handle_key(waiting.arguments, function, names), names, function, legacy)


def handle_key(arguments: Arguments, function: Value, names: Text) -> HandleKey:
    """Return the key that identifies a custom op: place and function, and the name or, if that is not known, the calls that lead
    to it.
    """
    body = id(function.body) if isinstance(function, Func) else 0
    which = names.names if names.names is not None else call_path(arguments.frame)
    return arguments.frame.body.file.path, arguments.call.start, body, which


def call_path(frame: Frame) -> tuple[tuple[str, int], ...]:
    """The places of the calls through which a frame was entered, innermost first."""
    sites = (item.site for item in frame.callers())
    return tuple((site.frame.body.file.path, site.call.start) for site in sites if site is not None)


def library(evaluator: Evaluator, arguments: Arguments, *, scoped: bool) -> LibraryValue:
    """The value of ``Library(ns, kind, dispatch_key)``, or of ``_scoped_library`` with the same arguments."""
    given = arguments.by_name(("ns", "kind", "dispatch_key"))
    key = evaluator.text(given.get("dispatch_key")) if "dispatch_key" in given else ""
    ends = scoped or may_end(arguments.frame.body, arguments.call)
    return LibraryValue(evaluator.text(given.get("ns")), key, ends)


def may_end(body: Body, made: Expr) -> bool:
    """Whether the file may destroy the library that a call makes, or deletes its name."""
    ended = ended_libraries(body.file)
    names = {item.target for item in body.scope.assigns if item.value is not None and item.value.start == made.start}
    return "_destroy" in ended or not names.isdisjoint(ended)


def is_scoped(evaluator: Evaluator, waiting: Waiting) -> bool:
    """Whether a call registers in a library that may end before the process does."""
    held = (waiting.receiver, *evaluator.values(waiting.arguments.by_name(waiting.api.params).get("lib")))
    return any(isinstance(item, LibraryValue) and item.scoped for item in held)
