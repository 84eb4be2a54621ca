"""Built-in functions on constants and containers, and well-known constants of other packages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from opschema_cli.evaluation.containers import constant, elements, kind_of, made
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_STRINGS
from opschema_cli.evaluation.strings import formatted
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    BoundArgument,
    ExternalName,
    Items,
    Plain,
    Table,
    Text,
    Unknown,
    Value,
    Values,
    known,
)
from opschema_cli.source.python import Constant

NUMBERS: dict[str, float] = {
    **{f"{module}.inf": math.inf for module in ("math", "torch", "numpy")},
    **{f"{module}.nan": math.nan for module in ("math", "torch", "numpy")},
    **{f"{module}.pi": math.pi for module in ("math", "torch", "numpy")},
    "math.e": math.e, "math.tau": math.tau, "torch.e": math.e, "numpy.e": math.e,
}  # fmt: skip
"""Well-known constants of other packages."""


def _values(evaluator: Evaluator, arguments: Arguments) -> Values:
    """Return the values of a call's only argument."""
    one = len(arguments.positional) == 1 and not arguments.keywords and not arguments.open
    return evaluator.values(arguments.positional[0]) if one else UNKNOWN


def _constants(evaluator: Evaluator, arguments: Arguments) -> list[Constant] | None:
    """Return the arguments of a call that only passes constants; None for any other call."""
    values = [evaluator.values(item) for item in arguments.positional]
    found = [constant(item[0]) if len(item) == 1 else None for item in values]
    plain = [item[0] for item in found if item is not None]
    return None if arguments.open or arguments.keywords or len(plain) != len(found) else plain


def _iterated(evaluator: Evaluator, arguments: Arguments) -> list[tuple[BoundArgument, ...]] | None:
    """Return the elements of each argument; None if those of one are not known."""
    values = [evaluator.values(item) for item in arguments.positional]
    found = [elements(evaluator, arguments.frame, item[0]) if len(item) == 1 else None for item in values]
    sure = [item for item in found if item is not None]
    return sure if len(sure) == len(found) and not arguments.open else None


def _len(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    for value in _values(evaluator, arguments):
        found = elements(evaluator, arguments.frame, value)
        distinct = isinstance(value, Items) and value.kind == "set"
        yield Plain(len(found)) if found is not None and not distinct else Unknown()


def _range(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    found = _constants(evaluator, arguments) or []
    ends = [end for end in found if isinstance(end, int)]
    if len(ends) != len(found) or not 0 < len(ends) < 4 or 0 in ends[2:] or len(range(*ends)) > MAX_STRINGS:
        yield Unknown()
    else:
        yield Items(made(arguments.frame, [Plain(number) for number in range(*ends)]))


def _enumerate(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    found = _iterated(evaluator, Arguments(arguments.frame, arguments.call, arguments.positional[:1]))
    if found is None or len(found) != 1 or len(arguments.positional) > 1 or arguments.keywords:
        yield Unknown()
        return
    pairs = [Items((*made(arguments.frame, (Plain(index),)), item)) for index, item in enumerate(found[0])]
    yield Items(made(arguments.frame, pairs), "list")


def _zip(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    found = _iterated(evaluator, arguments)
    rows: Sequence[Value] = [Items(row) for row in zip(*found, strict=False)] if found else ()
    yield Items(made(arguments.frame, rows), "list") if found else Unknown()


def _container(word: str, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    if not arguments.positional and not arguments.open:
        yield Items((), kind_of(word))
        return
    for value in _values(evaluator, arguments):
        found = elements(evaluator, arguments.frame, value)
        held = value.elements if isinstance(value, Items) else ()
        yield Items(found if found is not None else held, kind_of(word), found is None)


def _dict(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    words = tuple(arguments.keywords.items())
    held = _values(evaluator, Arguments(arguments.frame, arguments.call, arguments.positional))
    first = held[0] if len(held) == 1 and isinstance(held[0], Table) else Table((), bool(arguments.positional))
    yield Table(tuple(dict((*first.entries, *words)).items()), first.open or arguments.open)


def _reversed(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    found = _iterated(evaluator, arguments)
    yield Items(found[0][::-1], "list") if found is not None and len(found) == 1 else Unknown()


def _str(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    for value in _values(evaluator, arguments):
        yield formatted(value) if isinstance(value, Text | Plain) else value


def _type_name(value: Value) -> str:
    """Return the name of a value's built-in type; empty if it is not known."""
    if isinstance(value, Plain):
        return type(value.value).__name__
    return "str" if isinstance(value, Text) else "dict" if isinstance(value, Table) else _kind(value)


def _kind(value: Value) -> str:
    return value.kind if isinstance(value, Items) else ""


_BUILT_IN = frozenset({"str", "list", "tuple", "set", "dict", "int", "float", "bool", "bytes"})


def _isinstance(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    """Yield whether a value is an instance of a built-in type; a boolean is an integer."""
    if len(arguments.positional) != 2 or arguments.keywords or arguments.open:
        yield Unknown()
        return
    found, asked = (evaluator.values(item) for item in arguments.positional)
    classes = asked[0].elements if len(asked) == 1 and isinstance(asked[0], Items) else None
    given = [evaluator.values(item) for item in classes] if classes is not None else [asked]
    names = {item[0].name if len(item) == 1 and isinstance(item[0], ExternalName) else "" for item in given}
    types = {_type_name(value) for value in found}
    if "" in types or len(types) != 1 or not names <= _BUILT_IN:
        yield Unknown()
    else:
        yield Plain(bool(names & (types | ({"int"} if types == {"bool"} else set()))))


def _computed(function: Callable[..., Constant], evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    """Yield the result of a function without side effects for constants."""
    found = _constants(evaluator, arguments)
    too_long = any(isinstance(item, str) and len(item) > 100 for item in found or ())
    try:
        yield known(function(*found)) if found and not too_long else Unknown()
    except (TypeError, ValueError, ArithmeticError):
        yield Unknown()


def _computing(function: Callable[..., Constant]) -> Callable[[Evaluator, Arguments], Iterator[Value]]:
    return lambda evaluator, arguments: _computed(function, evaluator, arguments)


def _making(word: str) -> Callable[[Evaluator, Arguments], Iterator[Value]]:
    return lambda evaluator, arguments: _container(word, evaluator, arguments)


BUILTINS: dict[str, Callable[[Evaluator, Arguments], Iterator[Value]]] = {
    "len": _len,
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "reversed": _reversed,
    "dict": _dict,
    "str": _str,
    "isinstance": _isinstance,
    **{word: _making(word) for word in ("tuple", "list", "set")},
    "frozenset": _making("set"),
    **{function.__name__: _computing(function) for function in (int, float, bool, abs, round, min, max)},
}
