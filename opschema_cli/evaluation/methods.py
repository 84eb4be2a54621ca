"""Methods of strings and containers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opschema_cli.evaluation.containers import constant, elements, made, pairs
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_ALTERNATIVES
from opschema_cli.evaluation.strings import formatted, joined, mapped
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    Items,
    Plain,
    Table,
    Text,
    Unknown,
    Value,
    ValueMethod,
    known,
)
from opschema_cli.source.python import Constant


def call_method(evaluator: Evaluator, method: ValueMethod, arguments: Arguments) -> Iterator[Value]:
    """Yield the possible results of a method of a string or container."""
    receiver, name = method.receiver, method.name
    if isinstance(receiver, Text):
        yield from _of_text(evaluator, receiver, name, arguments)
    elif isinstance(receiver, Table):
        yield from _of_table(evaluator, receiver, name, arguments)
    elif name == "copy":
        yield receiver
    else:
        yield Unknown(f"it is what `{name}` returns")


_MAPPED: dict[str, Callable[..., str]] = {
    name: getattr(str, name)
    for name in (
        *("lower", "upper", "title", "capitalize", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix"),
        *("replace", "casefold", "swapcase"),
    )
}
_TESTED: dict[str, Callable[..., bool]] = {
    name: getattr(str, name) for name in ("startswith", "endswith", "isidentifier")
}


def _of_text(evaluator: Evaluator, text: Text, name: str, arguments: Arguments) -> Iterator[Value]:
    if name == "format":
        yield _format(evaluator, text, arguments)
    elif name == "join":
        yield _join(evaluator, text, arguments)
    else:
        words = _constants(evaluator, arguments)
        if words is None or text.names is None or not all(isinstance(word, str) for word in words):
            yield Text(None) if name in _MAPPED else Unknown()
        else:
            yield from _computed(text, name, words, arguments)


def _constants(evaluator: Evaluator, arguments: Arguments) -> list[Constant] | None:
    """Return the positional arguments of a call that only passes constants; None for any other call."""
    values = [evaluator.values(item) for item in arguments.positional]
    found = [constant(item[0]) if len(item) == 1 else None for item in values]
    plain = [item[0] for item in found if item is not None]
    return None if arguments.open or arguments.keywords or len(plain) != len(found) else plain


def _computed(text: Text, name: str, words: list[Constant], arguments: Arguments) -> Iterator[Value]:
    """Yield the string or boolean that a method of `str` returns for constants."""
    longest = max(map(len, text.names or ()), default=0) * max([len(str(word)) for word in words], default=1)
    try:
        if longest > 100_000:
            yield Unknown()
        elif name in _MAPPED:
            yield mapped(text, lambda item: _MAPPED[name](item, *words))
        elif name in _TESTED:
            yield from {Plain(_TESTED[name](item, *words)) for item in text.names or ()}
        elif name in ("split", "splitlines", "partition", "rpartition", "rsplit") and len(text.names or ()) == 1:
            parts: list[str] = getattr(min(text.names or ()), name)(*words)
            yield Items(
                made(arguments.frame, [known(part) for part in parts]), "tuple" if "partition" in name else "list"
            )
        else:
            yield Unknown()
    except (TypeError, ValueError):
        yield Unknown()


def _join(evaluator: Evaluator, text: Text, arguments: Arguments) -> Value:
    values = evaluator.values(arguments.positional[0]) if len(arguments.positional) == 1 else UNKNOWN
    found = elements(evaluator, arguments.frame, values[0]) if len(values) == 1 else None
    parts = [evaluator.values(item) for item in found or ()]
    if found is None or any(len(part) != 1 or not isinstance(part[0], Text) for part in parts):
        return Text(None)
    between = [item for part in parts for item in (text, part[0])]
    return joined([Text(frozenset({""})), *between[1:]])


def _format(evaluator: Evaluator, text: Text, arguments: Arguments) -> Value:
    """Return the result of formatting simple fields (``{}``, ``{0}``, ``{name}``) with one value each."""
    from string import Formatter  # not at the top: it is rarely needed

    if text.names is None or len(text.names) != 1 or arguments.open:
        return Text(None)
    parts: list[Value] = [Text(frozenset({""}))]
    try:
        fields = list(Formatter().parse(min(text.names)))
    except ValueError:
        return Text(None)
    for count, (before, field, spec, conversion) in enumerate(fields):
        parts.append(Text(frozenset({before})))
        if field is not None:
            place = field or str(sum(item[1] is not None for item in fields[:count]))
            index = int(place) if place.isdecimal() and len(place) < 4 else -1
            plain = arguments.positional[index] if 0 <= index < len(arguments.positional) else None
            values = evaluator.values(plain or arguments.keywords.get(place)) or UNKNOWN
            parts.append(formatted(values[0], conversion or "", spec or "") if len(values) == 1 else Unknown())
    return joined(parts)


def _of_table(evaluator: Evaluator, table: Table, name: str, arguments: Arguments) -> Iterator[Value]:
    if name == "items":
        yield pairs(arguments.frame, table)
    elif name == "keys":
        yield Items(made(arguments.frame, [known(key) for key, _ in table.entries]), "list", table.open)
    elif name == "values":
        yield Items(tuple(item for _, item in table.entries), "list", table.open)
    elif name == "copy":
        yield table
    elif name == "get" and 0 < len(arguments.positional) < 3:
        yield from _get(evaluator, table, arguments)
    else:
        yield Unknown(f"it is what `{name}` returns")


def _get(evaluator: Evaluator, table: Table, arguments: Arguments) -> Iterator[Value]:
    default = evaluator.values(arguments.positional[1]) if len(arguments.positional) == 2 else (Plain(None),)
    keys = evaluator.values(arguments.positional[0])
    if len(keys) > MAX_ALTERNATIVES:
        keys = UNKNOWN
    for key in keys:
        word = constant(key)
        found = dict(table.entries).get(word[0]) if word is not None else None
        if found is not None:
            yield from evaluator.values(found)
        elif word is None or table.open:
            yield Unknown()
        else:
            yield from default
