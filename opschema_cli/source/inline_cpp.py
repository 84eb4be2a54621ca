"""C++ in the strings that a Python file passes to ``torch.utils.cpp_extension.load_inline``.

The strings are found in the text alone, in linear time and without parsing the file. What is computed (an f-string, ``.replace()``,
an escape) is not read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from opschema_cli.source.enclosing_functions import EnclosingFunction, enclosing_functions
from opschema_cli.source.text import Span, blanked

_PIECE = re.compile(r"#[^\n]*|(?<![A-Za-z0-9_])([A-Za-z]{0,2})(\"\"\"|'''|\"|')")
_ENDS = {
    '"""': re.compile(r'[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*"""', re.DOTALL),
    "'''": re.compile(r"[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*'''", re.DOTALL),
    '"': re.compile(r'[^\\"\n]*(?:\\.[^\\"\n]*)*"', re.DOTALL),
    "'": re.compile(r"[^\\'\n]*(?:\\.[^\\'\n]*)*'", re.DOTALL),
}
_CALL = re.compile(r"(?<!def )\bload_inline\s*\(")
_COMPILES = re.compile(r"(?<!def )(?:\bload_inline|\bcpp_extension\.load|(?<![\w.])load)\s*\(")
_BRACKET = re.compile(r"[()\[\]{}]")
_NAME = re.compile(r"\b([A-Za-z_]\w*)\b(\s*[.%\[(])?")
_ASSIGNED = re.compile(
    r"^[ \t]*([A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?=[ \t]*((?:(?:textwrap\.)?dedent\()?[\[(\s\\]*)\Z", re.MULTILINE
)
_COMPUTED = re.compile(r"[ \t]*(?:[.%+*\[]|(?:if|or|and)\b)")
_COMPUTED_INSIDE = re.compile(r"\s*(?:[.%+*\[]|(?:if|or|and|for)\b)")
_REGISTERS = re.compile(r"(?<![A-Za-z0-9])TORCH_LIBRARY|RegisterOperators")
_CODE = re.compile(r"[;{(#]")
_WINDOW = 300


class _Literal(msgspec.Struct, frozen=True):
    """A string literal: the text between its quotes, and its span; ``plain`` if its value is exactly that text."""

    body: Span
    outer: Span
    plain: bool


class _Group(msgspec.Struct):
    """Adjacent literals or those of one list, the name that they are assigned to, if any, and whether they are its entire value."""

    literals: list[_Literal]
    name: str
    known: bool


def inline_cpp(text: str) -> str | None:
    """Return the text of a Python file with everything but its C++ blanked, so that offsets stay the same; None if there is
    none, or if code that registers operators is not known.
    """
    found = _literals(text)
    if found is None:
        return None
    literals, code = found
    calls = list(_calls(code))
    if not calls:
        return None
    groups = _groups(literals, code)
    starts = [call.start for call in calls]
    used = [item for item in groups if _is_inside(item, calls, starts)]
    names = {name: known for call in calls for name, known in _names(code, call)}
    by_name: dict[str, list[_Group]] = {}
    for item in groups:
        by_name.setdefault(item.name, []).append(item)
    for name, known in names.items():
        assigned = by_name.get(name, [])
        for item in assigned:
            item.known = item.known and known and len(assigned) == 1
        used += assigned
    if any(not item.known and _registers(text, item) for item in used):
        return None
    pieces = {span for item in used if item.known for span in _code_of(text, code, item)}
    return _masked(text, sorted(pieces)) if pieces else None


class Compilation(msgspec.Struct, frozen=True):
    """The calls of ``load_inline`` or ``load`` in a file: whether one is at the top level, and the functions around the others."""

    at_top_level: bool = False
    functions: tuple[EnclosingFunction, ...] = ()


def compilation(text: str) -> Compilation:
    """Return where a Python file compiles C++. A call is at the top level if it, or its statement, begins in the first column."""
    found = _literals(text)
    code = found[1] if found is not None else text
    places = [match.start() for match in _COMPILES.finditer(code)]
    nested = [place for place in places if code[code.rfind("\n", 0, place) + 1].isspace()]
    return Compilation(len(nested) < len(places), tuple(enclosing_functions(code, nested)))


def _literals(text: str) -> tuple[list[_Literal], str] | None:
    """Return the string literals, and the text with them and comments blanked; None if one is not closed."""
    found: list[_Literal] = []
    covered: list[Span] = []
    at = 0
    while match := _PIECE.search(text, at):
        end = match.end()
        if match[2]:
            closing = _ENDS[match[2]].match(text, end)
            if closing is None:
                return None
            body, prefix, end = Span(end, closing.end() - len(match[2])), match[1].lower(), closing.end()
            escaped = "\\" in text[body.start : body.end] and "r" not in prefix
            found.append(_Literal(body, Span(match.start(), end), prefix in ("", "r", "u") and not escaped))
        covered.append(Span(match.start(), end))
        at = end
    return found, blanked(text, covered)


def _calls(code: str) -> Iterator[Span]:
    """Yield the calls, up to their last bracket."""
    end = 0
    for match in _CALL.finditer(code):
        if match.start() < end:
            continue
        depth = 0
        for bracket in _BRACKET.finditer(code, match.end() - 1):
            depth += 1 if bracket[0] in "([{" else -1
            if depth == 0:
                end = bracket.end()
                yield Span(match.end(), end)
                break
        else:
            return


def _groups(literals: list[_Literal], code: str) -> list[_Group]:
    groups: list[_Group] = []
    for literal in literals:
        if groups and not code[groups[-1].literals[-1].outer.end : literal.outer.start].strip(" \t\r\n,\\"):
            groups[-1].literals.append(literal)
        else:
            groups.append(_Group([literal], "", True))
    for item in groups:
        start = item.literals[0].outer.start
        assigned = _ASSIGNED.search(code[max(0, start - _WINDOW) : start])
        inside = assigned is None or bool(assigned[2].strip(" \t\\"))
        computed = (_COMPUTED_INSIDE if inside else _COMPUTED).match(code, item.literals[-1].outer.end)
        item.name = assigned[1] if assigned is not None else ""
        item.known = computed is None and all(one.plain for one in item.literals)
    return groups


def _names(code: str, call: Span) -> Iterator[tuple[str, bool]]:
    """Yield the names in a call, and whether each is an argument by itself."""
    for match in _NAME.finditer(code, call.start, call.end):
        yield match[1], match[2] is None


def _is_inside(group: _Group, calls: list[Span], starts: list[int]) -> bool:
    """Whether a group begins in one of the calls, which are sorted and disjoint."""
    at = group.literals[0].outer.start
    index = bisect_right(starts, at) - 1
    return index >= 0 and at < calls[index].end


def _registers(text: str, group: _Group) -> bool:
    return any(_REGISTERS.search(text, one.body.start, one.body.end) for one in group.literals)


def _code_of(text: str, code: str, group: _Group) -> Iterator[Span]:
    """Yield the texts of a group that are code, not names, functions or flags. Adjacent strings are one text; those of a list
    are not.
    """
    runs: list[list[Span]] = []
    end = 0
    for item in group.literals:
        if not runs or "," in code[end : item.outer.start]:
            runs.append([])
        runs[-1].append(item.body)
        end = item.outer.end
    for run in runs:
        if any(_CODE.search(text, span.start, span.end) for span in run):
            yield from run


def _masked(text: str, pieces: list[Span]) -> str:
    """Return a text with everything but some sorted pieces blanked."""
    ends = [0, *(span.end for span in pieces)]
    return blanked(text, zip(ends, [*(span.start for span in pieces), len(text)], strict=True))
