"""Names of arguments for operators whose schema torch infers from a C++ function, and which are called `_0` and `_1` there.

The search chooses shapes and values by names, so it reads them in the function's definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

from opschema_cli.operators.model import Operator
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.cpp_text import without_comments
from opschema_cli.verify.model import Call
from opschema_cli.verify.search.finder import FoundCall
from opschema_cli.workspace import Workspace

T = TypeVar("T")

_MOST_TEXT = 4_000
_INFERRED = re.compile(r"_\d+")
_PARAMETER = re.compile(r"([A-Za-z_]\w*)\s*(?:=.*)?$", re.DOTALL)
_OPENING, _CLOSING = "([{<", ")]}>"


def argument_names(operator: Operator, workspace: Workspace) -> tuple[str, ...]:
    """The names of the parameters of the operator's C++ kernel, where it is defined in a file that registers it; else none."""
    for item in operator.implementations:
        place = item.place or item.registered
        symbol = item.symbol.rpartition("::")[2].lstrip("&") if item.symbol else ""
        if place is None or place.is_foreign or place.path.endswith(".py") or not symbol.isidentifier():
            continue
        text = workspace.source(place.path).text
        for match in re.finditer(rf"\b{symbol}\s*\(", text):
            if names := _parameters(text, match.end()):
                return names
    return ()


class Names:
    """A schema with the names of parameters in the place of inferred ones, and calls in either names."""

    def __init__(self, schema: OperatorSchema, names: tuple[str, ...]) -> None:
        inferred = [item.name for item in schema.arguments]
        fits = len(set(names)) == len(inferred) and all(map(_INFERRED.fullmatch, inferred))
        self._names = dict(zip(inferred, names, strict=True)) if fits else {}
        arguments = (
            msgspec.structs.replace(item, name=self._names.get(item.name, item.name)) for item in schema.arguments
        )
        self.schema = msgspec.structs.replace(schema, arguments=tuple(arguments)) if fits else schema

    def forth(self, calls: Mapping[str, Call]) -> dict[str, Call]:
        """Calls with the names of parameters."""
        return {label: _renamed(call, self._names) for label, call in calls.items()}

    def back(self, found: FoundCall) -> FoundCall:
        """A call with the names of the schema, for one with those of parameters."""
        return msgspec.structs.replace(found, call=self._inferred(found.call))

    def asked(self, function: Callable[[Call], T]) -> Callable[[Call], T]:
        """A function of calls with the names of parameters, for one of calls with those of the schema."""
        return lambda call: function(self._inferred(call))

    def _inferred(self, call: Call) -> Call:
        return _renamed(call, {name: inferred for inferred, name in self._names.items()})


def _renamed(call: Call, names: Mapping[str, str]) -> Call:
    """The call with other names of arguments."""
    if not names:
        return call

    def of(name: str) -> str:
        base, dot, place = name.partition(".")
        return f"{names.get(base, base)}{dot}{place}"

    return msgspec.structs.replace(
        call,
        inputs=tuple(msgspec.structs.replace(item, name=of(item.name)) for item in call.inputs),
        params={of(name): value for name, value in call.params.items()},
        lists={of(name): tuple(map(of, items)) for name, items in call.lists.items()},
        aliases={output: of(name) for output, name in call.aliases.items()},
    )


def _parameters(text: str, start: int) -> tuple[str, ...]:
    """Return the parameter names of a definition whose list begins at ``start``, or none if it is not a definition."""
    depth = 1
    for place in range(start, min(start + _MOST_TEXT, len(text))):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            break
    else:
        return ()
    if not re.match(r"\s*(?:const\s*)?(?:noexcept\s*)?\{", text[place + 1 : place + 80]):
        return ()
    found = [_PARAMETER.search(part.strip()) for part in _split(without_comments(text[start:place]))]
    return tuple(match[1] for match in found if match) if all(found) else ()


def _split(text: str) -> Iterator[str]:
    """The parts between commas that are in no brackets."""
    depth, start = 0, 0
    for place, char in enumerate(text):
        depth += (char in _OPENING) - (char in _CLOSING)
        if char == "," and not depth:
            yield text[start:place]
            start = place + 1
    yield text[start:]
