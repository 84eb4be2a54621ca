"""Binds declared names to the actual signatures of an op's constructor and call. Does not import torch and has no side effects."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from inspect import Parameter, Signature

import msgspec

from opschema_cli.phrases import quoted

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class UnboundError(Exception):
    """The declaration lacks something that a signature needs, or has something that it does not accept; see the message."""


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of a call."""

    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = msgspec.field(default_factory=dict)


def bind(
    signature: Signature, named: Mapping[str, object], *, where: str, rest: Sequence[object] = (), keep: bool = False
) -> Arguments:
    """Return the arguments that pass ``named`` to a callable, positionally where possible.

    Names that the signature lacks go to its ``**kwargs`` if ``keep``, else they are left out; ``rest`` goes to its ``*args``.

    Raises:
        UnboundError: a required argument is not in ``named``.
    """
    parameters = list(signature.parameters.values())
    for parameter in parameters:
        if _required(parameter) and parameter.name not in named:
            raise UnboundError(f"{where} needs `{parameter.name}`, which the declaration does not give")
    starred = rest and any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters)
    places = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    used = [number for number, parameter in enumerate(places) if parameter.name in named]
    count = len(places) if starred else max(used, default=-1) + 1
    args = [named.get(parameter.name, parameter.default) for parameter in places[:count]]
    keywords = {parameter.name for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY}
    if keep and any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
        keywords |= named.keys() - {parameter.name for parameter in places}
    kwargs = {name: value for name, value in named.items() if name in keywords}
    return Arguments((*args, *(rest if starred else ())), kwargs)


def for_constructor(
    constructor: Signature, call: Signature, *, params: Mapping[str, object], extras: Mapping[str, object]
) -> dict[str, object]:
    """The ``params`` that the constructor takes; its ``**kwargs`` get those that the call does not take either.

    ``extras`` are what it may ask for although no param names it (``dtype``, ``device``).
    """
    taken = {name: value for name, value in {**extras, **params}.items() if takes(constructor, name)}
    if _open(constructor) and not _open(call):
        taken |= {name: value for name, value in params.items() if not takes(call, name)}
    return taken


def for_call(
    call: Signature,
    *,
    inputs: Mapping[str, object],
    params: Mapping[str, object],
    made_with: Collection[str] = (),
    omitted: Collection[str] = (),
) -> Arguments:
    """Bind inputs by name, and params that the op was not ``made_with``, or that the call requires as well.

    An omitted input is None where the call requires it. An input that the call does not take is left out.

    Raises:
        UnboundError: a required argument is missing, or a param has no place.
    """
    given = {name: value for name, value in params.items() if name not in made_with or _needs(call, name)}
    homeless = [name for name in given if not takes(call, name) and not _open(call)]
    if homeless:
        raise UnboundError(f"neither the constructor nor the call takes {quoted(homeless)}")
    given |= {name: None for name in omitted if _needs(call, name)}
    rest = [value for name, value in inputs.items() if not takes(call, name)]
    named = {name: value for name, value in inputs.items() if takes(call, name)} if _starred(call) else inputs
    return bind(call, {**given, **named}, where="the call", rest=rest, keep=True)


def bind_function(function: Signature, *, inputs: Mapping[str, object], params: Mapping[str, object]) -> Arguments:
    """Bind a declared call to a reference function by name. Inputs with other names are passed in order to the required arguments
    without a value, if the numbers match.

    Raises:
        UnboundError: something has no place, or a place nothing to fill it.
    """
    named = {name: value for name, value in {**inputs, **params}.items() if takes(function, name)}
    left = {name: value for name, value in inputs.items() if name not in named}
    starred = _starred(function)
    needed = [parameter.name for parameter in function.parameters.values() if _required(parameter)]
    missing = [name for name in needed if name not in named]
    if left and not starred and len(missing) != len(left):
        raise UnboundError(f"the reference does not take {quoted(left)}")
    homeless = [name for name in params if name not in named and not _open(function)]
    if homeless:
        raise UnboundError(f"the reference does not take {quoted(homeless)}")
    paired = {} if starred else dict(zip(missing, left.values(), strict=True)) if left else {}
    extra = {name: value for name, value in params.items() if name not in named}
    rest = list(left.values()) if starred else ()
    return bind(function, {**named, **paired, **extra}, where="the reference", rest=rest, keep=True)


def call_signature(kind: type) -> Signature:
    """The signature of an op's call: that of ``__call__``, or of ``forward`` where ``__call__`` passes everything on.

    Raises:
        UnboundError: neither says.
    """
    direct = next((vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base)), None)
    forward = getattr(kind, "forward", None)
    if direct is not None:
        signature = without_self(direct)
        if forward is None or not is_open(signature):
            return signature
    if forward is None:
        raise UnboundError(f"a {kind.__name__} has neither `forward` nor `__call__`")
    return without_self(forward)


def without_self(function: object) -> Signature:
    """Return the signature of a method as called on an instance.

    Raises:
        UnboundError: Python reports no signature.
    """
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UnboundError(f"Python cannot determine the signature of {function!r}") from None
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def takes(signature: Signature, name: str) -> bool:
    """Whether a parameter has this name."""
    parameter = signature.parameters.get(name)
    return parameter is not None and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def is_open(signature: Signature) -> bool:
    """Whether a signature does not name its parameters because it has ``*args`` or ``**kwargs``."""
    return _open(signature) or _starred(signature)


def _required(parameter: Parameter) -> bool:
    variable = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return parameter.default is Parameter.empty and not variable


def _needs(signature: Signature, name: str) -> bool:
    return takes(signature, name) and _required(signature.parameters[name])


def _open(signature: Signature) -> bool:
    return any(parameter.kind is Parameter.VAR_KEYWORD for parameter in signature.parameters.values())


def _starred(signature: Signature) -> bool:
    return any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in signature.parameters.values())
