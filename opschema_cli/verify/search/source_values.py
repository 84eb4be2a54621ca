"""Values that an operator's Python functions compare its arguments with, ``quant_type in ("nf4", "fp4")``, and those that their
file assigns to variables and parameters of the same names, ``blocksize: int = 64``.

The search tries them first. They are found in the text alone; nothing is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from opschema_cli.operators.model import Operator
from opschema_cli.workspace import Workspace

_MOST_VALUES = 8
_MOST_TEXT = 20_000
_COMPARED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)[ \t]*(?:==|!=|(?:not[ \t]+)?in\b)[ \t]*")
_LITERAL = re.compile(r"\"[^\"\n\\]{0,80}\"|'[^'\n\\]{0,80}'|-?\d+(?:\.\d+)?\b|[\[({][^\[\](){}]{0,400}[\])}]")
_GIVEN = re.compile(r"(?<![\w.])([A-Za-z_]\w*)[ \t]*(?::[ \t]*[\w.\[\], |]{1,60}?)?[ \t]*=[ \t]*(?![= \t])")
_ENDS = re.compile(r"[ \t]*(?:[,)\r\n#]|$)")
_MOST_FILE = 200_000


def source_values(operator: Operator, workspace: Workspace) -> dict[str, tuple[object, ...]]:
    """Return the values by argument name, at most eight of each, in source order."""
    names = {argument.name for argument in operator.declaration.arguments or ()}
    found: dict[str, dict[str, object]] = {}
    for text in _bodies(operator, workspace) if names else ():
        for name, value in _compared(text, names):
            found.setdefault(name, {}).setdefault(repr(value), value)
    for text in _files(operator, workspace) if names else ():
        for name, value in _given(text, names):
            found.setdefault(name, {}).setdefault(repr(value), value)
    return {name: tuple(values.values())[:_MOST_VALUES] for name, values in found.items()}


def _bodies(operator: Operator, workspace: Workspace) -> Iterator[str]:
    """Yield the texts of the functions that implement an operator, each up to the next line that is not indented further than
    its head.
    """
    for item in operator.implementations:
        place = item.place
        if place is None or place.is_foreign or not place.path.endswith(".py"):
            continue
        text = workspace.source(place.path).text
        start = text.rfind("\n", 0, place.span.start) + 1
        indent = len(text[start:]) - len(text[start:].lstrip(" \t"))
        body = text[place.span.end : place.span.end + _MOST_TEXT]
        end = re.compile(rf"\n[ \t]{{0,{indent}}}(?![ \t)\]}}#\r\n])").search(body)
        yield body[: end.start()] if end is not None else body


def _compared(text: str, names: Collection[str]) -> Iterator[tuple[str, object]]:
    for match in _COMPARED.finditer(text):
        literal = _LITERAL.match(text, match.end()) if match[1] in names else None
        if literal is None:
            continue
        try:
            value = ast.literal_eval(literal[0])
        except (ValueError, SyntaxError):
            continue
        values = value if isinstance(value, list | tuple | set) else [value]
        yield from ((match[1], item) for item in values if isinstance(item, bool | int | float | str))


def _files(operator: Operator, workspace: Workspace) -> Iterator[str]:
    """The Python files that implement an operator."""
    places = [item.place for item in operator.implementations if item.place is not None]
    paths = dict.fromkeys(place.path for place in places if not place.is_foreign and place.path.endswith(".py"))
    yield from (workspace.source(path).text[:_MOST_FILE] for path in paths)


def _given(text: str, names: Collection[str]) -> Iterator[tuple[str, object]]:
    """Values of assignments, defaults and keyword arguments."""
    for match in _GIVEN.finditer(text):
        literal = _LITERAL.match(text, match.end()) if match[1] in names else None
        if literal is None or not _ENDS.match(text, literal.end()):
            continue
        try:
            value = ast.literal_eval(literal[0])
        except (ValueError, SyntaxError):
            continue
        if isinstance(value, bool | int | float | str):
            yield match[1], value
        elif isinstance(value, list | tuple) and value and all(type(item) is int for item in value):
            yield match[1], list(value)
