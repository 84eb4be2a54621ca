"""Results of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial, singledispatch

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.conditions import equal, reached, runs
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.methods import call_method
from opschema_cli.evaluation.record_fields import Field, fields_of, is_dataclass, is_named_tuple
from opschema_cli.evaluation.standard import called_outside
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    BoundArgument,
    ClassValue,
    ExternalName,
    Frame,
    Func,
    Instance,
    Partial,
    Same,
    Unknown,
    Value,
    ValueMethod,
    Values,
    Wraps,
    distinct,
)
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef


@singledispatch
def applied(callee: object, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    """Yield the possible results of calling a value."""
    yield Unknown("the function that it calls is not known")


@applied.register(ExternalName)
def _outside(callee: ExternalName, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    return called_outside(evaluator, callee.name, arguments)


@applied.register(Partial)
def _partial(callee: Partial, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    return evaluator.apply(callee.target, callee.arguments.joined(arguments))


@applied.register(Func)
def _function(callee: Func, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    read = evaluator.own_call(callee.body)
    if read is not None:
        yield from read(evaluator, arguments)
        return
    frame = evaluator.frames.entered(callee, arguments)
    found = _returned(evaluator, frame) if frame is not None else UNKNOWN
    yield from (Unknown() if _is_restated(value, callee) else value for value in found)


def _is_restated(value: Value, callee: Func) -> bool:
    """Whether a value is a function whose signature the callee that returns it may have changed."""
    return isinstance(value, Func) and _restates(callee.body) and not _restates(value.body)


@cached_on_argument
def _restates(body: Body) -> bool:
    """Whether a function, or one in it, writes the signature, annotations or defaults of another."""
    outer = body.function.outer if body.function is not None else None
    return outer is not None and _RESTATES.search(body.file.source.text, outer.start, outer.end) is not None


SIGNATURE_ATTRIBUTES = ("__signature__", "__annotations__", "__defaults__", "__kwdefaults__")
"""Attributes of a function that change its signature as ``inspect`` shows it."""

_SHOWN = f"(?:{'|'.join(SIGNATURE_ATTRIBUTES)})"
_RESTATES = re.compile(
    rf"\.{_SHOWN}\s*(?:=(?!=)|\[[^\]\n]*\]\s*=(?!=)|\.update\b)|\bsetattr\([^,\n]*,\s*[\"']{_SHOWN}"
    r"|^[ \t]*(?:functools\.)?update_wrapper\(",
    re.MULTILINE,
)


def _returned(evaluator: Evaluator, frame: Frame) -> Values:
    """Return the possible results of a function in a frame."""
    returns = [item for item in frame.body.scope.returns if runs(evaluator, frame, item.span)]
    if len(returns) > 1:
        returns = [item for item in returns if reached(evaluator, frame, item.span)]
    return distinct(value for item in returns for value in evaluator.evaluate(frame, item)) or UNKNOWN


@applied.register(ClassValue)
def _class(callee: ClassValue, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    if evaluator.members(callee.ref):
        yield from _member_of(evaluator, callee.ref, arguments)
        return
    init = next((item for item in evaluator.attribute(callee, "__init__") if isinstance(item, Func)), None)
    if init is None:
        yield Instance(callee.ref, None, tuple(_fields(evaluator, callee.ref, arguments).items()))
        return
    this = BoundArgument(arguments.frame, None, (Instance(callee.ref),))
    positional = (this, *arguments.positional)
    passed = Arguments(arguments.frame, arguments.call, positional, arguments.keywords, arguments.open)
    yield Instance(callee.ref, evaluator.frames.entered(init, passed, callee.ref))


def _fields(evaluator: Evaluator, ref: ClassRef, arguments: Arguments) -> dict[str, BoundArgument]:
    """Return the fields of the dataclass or named tuple that a call makes; a field that methods write is unknown."""
    if arguments.open or not any(map(partial(_is_record, evaluator), evaluator.program.lineage(ref))):
        return {}
    fields = [item for item in fields_of(evaluator.program, ref) or () if item.in_init]
    given = arguments.by_name(tuple(item.name for item in fields if not item.by_name_only))
    given.update({name: value for name, value in arguments.keywords.items() if name not in given})
    written = {name for owner in evaluator.program.lineage(ref) for name in evaluator.program.instance_writes(owner)}
    found = {item.name: given.get(item.name) or _default(evaluator, item) for item in fields}
    return {name: value for name, value in found.items() if name not in written}


def _is_record(evaluator: Evaluator, ref: ClassRef) -> bool:
    return is_dataclass(evaluator.program, ref) or is_named_tuple(evaluator.program, ref)


def _default(evaluator: Evaluator, item: Field) -> BoundArgument:
    """Return the default of a field; unknown if it is created for each object."""
    module = evaluator.frames.module(item.owner.file)
    body = evaluator.bodies.cls(item.owner)
    return BoundArgument(evaluator.frames.of_class(body, module) if body is not None else module, item.default)


def _member_of(evaluator: Evaluator, ref: ClassRef, arguments: Arguments) -> Iterator[Value]:
    """Yield the members of an enumeration with a value."""
    wanted = evaluator.values(arguments.positional[0]) if len(arguments.positional) == 1 else UNKNOWN
    members = evaluator.members(ref)
    held = [(item, equal(wanted, evaluator.values(item.argument))) for item in members]
    sure = [item for item, same in held if same]
    yield from sure or [item for item, same in held if same is None]
    if not sure:
        yield Unknown(f"it may be any member of `{ref.name}`")


@applied.register(ValueMethod)
def _value_method(callee: ValueMethod, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    return call_method(evaluator, callee, arguments)


@applied.register(Instance)
def _object(callee: Instance, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    for method in evaluator.attribute(callee, "__call__"):
        yield from evaluator.apply(method, arguments)


@applied.register(Wraps)
def _wraps(callee: Wraps, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    inner = evaluator.decorated(arguments)
    yield Func(inner.body, inner.frame, callee.function) if isinstance(inner, Func) else Unknown()


@applied.register(Same)
def _same(callee: Same, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield evaluator.decorated(arguments)
