"""Operators that C++ looks up by name: ``findSchemaOrThrow("ns::name", "overload")``, with the type in ``typed<...>()``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.cpp_functions import CppParameterText
from opschema_cli.source.cpp_text import parts, without_comments
from opschema_cli.source.preprocessor import read_directives
from opschema_cli.source.text import Span, SpanSet
from opschema_rules.torchlib.cpp_signature import CppSignature
from opschema_rules.torchlib.model import DispatcherCall, Tree

_LOOKUP = re.compile(r'\bfindSchemaOrThrow\(\s*"([\w:]+)"\s*,\s*"(\w*)"\s*\)')
_DIRECTIVE = re.compile(r"^[ \t]*#", re.MULTILINE)
_TYPED = re.compile(r"\s*\.\s*typed\s*<")
_MAY_BE_SEVERAL = re.compile(r"^[A-Z][A-Z0-9_]+\b|\.\.\.")
"""Macros and packs that may be several parameters."""

_LONGEST = 10_000
"""Maximum number of characters of a type, or of a function before a look-up."""


class LookedUp(msgspec.Struct, frozen=True, array_like=True):
    """One look-up in a file; ``written`` is the type after it, empty if there is none."""

    name: str
    overload: str
    span: Span
    written: str = ""


_ALLOWS_ERRORS = re.compile(r"\btry\s*\{|\bcatch\s*\(|\w*_(?:ANY_)?THROW\w*\s*\(|\bexpectThrows\b|\bassertThrows\b")


def _looked_up(text: str) -> list[LookedUp]:
    # What comments, strings and bodies of macros hold is compiled nowhere, or elsewhere.
    hidden = SpanSet(Span(start, end) for _, start, end in parts(text))
    directives = read_directives(text)
    found = (
        item
        for item in _LOOKUP.finditer(text)
        if item.start() not in hidden
        and not directives.conditions(item.start())
        and not _allows_errors(text, item.start())
    )
    return [LookedUp(item[1], item[2], Span(*item.span()), _type_behind(text, item.end())) for item in found]


def _allows_errors(text: str, at: int) -> bool:
    """Whether the function around a place catches or expects errors before it."""
    start = max(0, at - _LONGEST)
    start = max(start, text.rfind("\n}", start, at))
    return _ALLOWS_ERRORS.search(text, start, at) is not None


def _type_behind(text: str, at: int) -> str:
    """Return the argument of ``typed<...>`` at a place; empty if it contains directives, which may leave out parts of it."""
    opened = _TYPED.match(text, at)
    start = opened.end() if opened is not None else len(text)
    depth = 1
    for place in range(start, min(len(text), start + _LONGEST)):
        depth += {"<": 1, ">": -1}.get(text[place], 0)
        if depth == 0:
            written = without_comments(text[start:place])
            return written if _DIRECTIVE.search(written) is None else ""
    return ""


LOOKED_UP: Reading[str, list[LookedUp]] = Reading("torchlib look-ups in C++", _looked_up, list[LookedUp])


def _holds(data: bytes) -> bool:
    return b"findSchemaOrThrow" in data


_HOLDS: Reading[bytes, bool] = Reading("torchlib files with look-ups", _holds, bool)


def dispatcher_calls(project: Project, tree: Tree, paths: Iterable[str]) -> Iterator[DispatcherCall]:
    """The look-ups of operators of the tree's namespaces."""
    holding = [path for path, holds in project.scan(_HOLDS, paths if tree.namespaces else ()) if holds]
    for path, found in project.readings(LOOKED_UP, holding).items():
        for item in found:
            if item.name.partition("::")[0] in tree.namespaces:
                place = Place(path, item.span)
                yield DispatcherCall(tree, item.name, item.overload, place, _signature(item.written, place))


def _signature(written: str, place: Place) -> CppSignature | None:
    """The signature that a function type says; None if it is named, or not read."""
    from opschema_cli.source.cpp import CppError, parse_cpp
    from opschema_cli.source.cpp_functions import read_functions

    head, bracket, rest = written.partition("(")
    if not bracket or "decltype" in head:
        return None
    try:
        found = read_functions(parse_cpp(f"{head} typed({rest};")).functions
    except CppError:
        return None
    if (
        len(found) != 1
        or found[0].unsure
        or any(map(_MAY_BE_SEVERAL.search, (one.type for one in found[0].parameters)))
    ):
        return None
    parameters = tuple(CppParameterText(item.type, item.name, Span(0, 0)) for item in found[0].parameters)
    return CppSignature("typed<>", found[0].returns, parameters, place, tuple(place for _ in parameters))
