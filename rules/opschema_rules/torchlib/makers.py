"""Finds the fakes of operators: module-level functions, or nested functions that certain calls run."""

from __future__ import annotations

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, ClassValue, ExternalName, Frame, Func, Plain
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.graph import Graph
from opschema_rules.torchlib.shared import (
    FunctionKey,
    SharedCallable,
    SharedMaker,
    SharedName,
    SharedUnknown,
    SharedValue,
)


def fakes_of(graph: Graph) -> dict[str, FunctionKey]:
    """Return the fakes that are module-level functions, by the names of their operators; operators with several are left out."""
    found: dict[str, set[FunctionKey]] = {}
    for item in graph.named_events:
        for value in graph.evaluator.values(item.event.given.get(item.fake)) if item.fake else ():
            key = _key(value.body) if isinstance(value, Func) and not _is_nested(value.body) else None
            if key is not None and not item.event.conditional:
                for name in item.names:
                    found.setdefault(name, set()).add(key)
    return {name: min(keys) for name, keys in sorted(found.items()) if len(keys) == 1}


def makers_of(graph: Graph) -> tuple[SharedMaker, ...]:
    """The calls that define operators inside functions, in their order."""
    found: dict[object, SharedMaker] = {}
    for item in graph.named_events:
        frame = _entered(item.event.frame)
        key = _key(frame.body) if frame is not None else None
        if frame is None or key is None:
            continue
        arguments = {name: _value(graph.evaluator, given) for name, given in frame.bindings.items()}
        call = (key, *arguments.items())
        known = found.get(call)
        names = {*item.names, *(known.names if known is not None else ())}
        found[call] = SharedMaker(tuple(sorted(names)), key, arguments)
    return tuple(found.values())


def _entered(frame: Frame) -> Frame | None:
    """The first of the calls that led to a frame, as the frame that it entered."""
    entered = [item for item in frame.callers() if item.site is not None and item.body.function is not None]
    outer = entered[-1] if entered else None
    return outer if outer is not None and not _is_nested(outer.body) else None


def _is_nested(body: Body) -> bool:
    return body.parent is None or body.parent.function is not None or body.parent.cls is not None


def _key(body: Body) -> FunctionKey | None:
    return (body.file.path, body.function.start) if body.function is not None else None


def _value(evaluator: Evaluator, given: BoundArgument) -> SharedValue:
    text = evaluator.text(given)
    if text is not None:
        return text
    values = evaluator.values(given)
    match values[0] if len(values) == 1 else None:
        case ClassValue(ref=ref, below=False):
            return ref.key
        case ExternalName(name=name):
            return SharedName(name)
        case Func(body=body) if not _is_nested(body) and (key := _key(body)) is not None:
            return SharedCallable(key)
        case Plain(value=value) if isinstance(value, int | float | bool | None):
            return value
    return SharedUnknown()
