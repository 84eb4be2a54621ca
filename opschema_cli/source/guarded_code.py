"""Code under conditions on what exists, or with handled errors: names in it may be missing, and calls may fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import LEAVING, Condition, Expr, Statement
from opschema_cli.source.text import NestedSpans, Span, SpanSet

_ASKS = re.compile(r"version|hasattr|getattr|\bdir\(|\bvars\(|__dict__", re.IGNORECASE)
_TRY = re.compile(r"\btry\s*:\s*(?:#[^\n]*\s*)*\Z")
_CATCHES = re.compile(r"\s*(?:#[^\n]*\s*)*except\b(?:(?!:\s*$).)*:\s*\Z", re.DOTALL)
_ANY_ERROR = re.compile(r"\bexcept\s*:|\b(?:TypeError|RuntimeError|Exception|BaseException)\b")
_LOOK_BACK = 400
_LINES_BACK = 300
_LEAVES = re.compile(r"\b(?:return|raise|continue|break|skip|(?:sys\.|os\.)?_?exit)\b")
_CHOICE = re.compile(r"\b(?:and|or|if)\b")
_EXPECTS_ERROR = re.compile(r"\s*(?:async\s+)?with\b.*\b(?:suppress|raises|assertRaises\w*)\b")
_SETS = frozenset({"setattr", "object", "patch", "multiple"})
"""Last words of functions that set an attribute, those of ``mock.patch`` included."""

_ACCESS = _SETS | {"hasattr", "getattr", "delattr"}

_MAKES_NAMES = frozenset({"__class__", "__dict__", "__getattr__"})
"""Attributes that may give an object any others."""

_READ_BEFORE = re.compile(r"(?:\bin|\*\*|\b(?:dict|list|tuple|set|frozenset|sorted|len|iter|update)\()\s*\Z")
_READ = re.compile(r"\.(?:get|items|keys|values|copy)\b|\[[^\]\n]*\](?!\s*=(?!=))")
"""The code before and after a dictionary that is only read."""

_SET_IN_PLACE = re.compile(
    r"\b(?:sys\.modules\[|import_module\()\s*[\"']([\w.]+)[\"']\s*[\])]\.(\w+)\s*(?::[^=\n]+)?=(?!=)"
)
"""An attribute of a module that is set where the module is looked up."""


def is_conditional(body: Body, start: int) -> bool:
    """Whether code runs under a condition on what exists, such as a release, or after a branch of such a condition leaves."""
    return any(start in _asking(around) for around in body.outward())


@lru_cache(maxsize=256)
def _asking(body: Body) -> SpanSet:
    """The branches of conditions on what exists, and the code after those that leave, for another release or without it."""
    conditions = [item for item in body.scope.conditions if asks_what_exists(body.file.text(item.expr))]
    branches = [span for item in conditions for span in (item.body, item.orelse) if span is not None]
    asked = {
        item.expr.start
        for item in conditions
        if item.expr.kind == "unary" or "version" in body.file.text(item.expr).lower()
    }
    return SpanSet([*branches, *(behind_exits(body, lambda item: _asks_and_leaves(item, asked)) if asked else ())])


def _asks_and_leaves(item: Statement, asked: Collection[int]) -> bool:
    asks = item.kind == "if" and item.exprs[0].start in asked
    return asks and any(block and block[-1].kind in LEAVING for block in item.blocks)


def asks_what_exists(condition: str) -> bool:
    """Whether the text of a condition tests a version, or the existence of a name."""
    return _ASKS.search(condition) is not None


def is_guarded(body: Body, start: int) -> bool:
    """Whether code runs under a condition on what exists, such as a release, or inside a ``try``."""
    return is_conditional(body, start) or any(True for _ in _tried(body, start))


def is_tried(body: Body, start: int) -> bool:
    """Whether the handlers of an enclosing ``try`` catch the errors of a call."""
    return any(_ANY_ERROR.search(clause) for clauses in _tried(body, start) for clause in clauses)


def never_runs(body: Body, start: int) -> bool:
    """Whether code is after a statement that leaves its block, or below ``if TYPE_CHECKING`` or ``if False``."""
    return any(start in _left_out(around) for around in body.outward())


@lru_cache(maxsize=256)
def _left_out(body: Body) -> SpanSet:
    off = (item.body for item in body.scope.conditions if item.kind == "if" and _is_off(item.expr))
    return SpanSet([*behind_exits(body, lambda item: item.kind in LEAVING), *off])


def _is_off(condition: Expr) -> bool:
    """Whether a condition is always false at run time."""
    return condition.member == "TYPE_CHECKING" or (condition.kind == "const" and condition.value in (False, 0))


def behind_exits(body: Body, leaves: Callable[[Statement], bool]) -> Iterator[Span]:
    """Yield the code of a body after statements that leave their blocks."""
    waiting = [body.statements]
    while waiting:
        block = waiting.pop()
        waiting += (inner for item in block for inner in item.blocks)
        leaving = next((item for item in block if leaves(item)), None)
        if leaving is not None and leaving is not block[-1]:
            yield Span(leaving.end, block[-1].end)


def may_be_skipped(body: Body, start: int) -> bool:
    """Whether code before or beside a place may skip it or let it fail: an ``if`` on what exists that leaves, such a test in the
    same expression, ``importorskip`` with a version, ``with suppress(...)``.
    """
    text = body.file.source.text
    for around in body.outward():
        if any(_leaves_before(around, item, start) for item in around.scope.conditions):
            return True
        for call in around.scope.calls:
            if call.start < start and call.items[0].member == "importorskip" and "minversion" in call.keywords:
                return True
    line = text[text.rfind("\n", 0, start) + 1 : text.find("\n", start) % (len(text) + 1)]
    return (_CHOICE.search(line) is not None and asks_what_exists(line)) or expects_error(text, start)


def _leaves_before(body: Body, item: Condition, start: int) -> bool:
    spans = [item.body, *([item.orelse] if item.orelse is not None else [])]
    if max(span.end for span in spans) > start or not asks_what_exists(body.file.text(item.expr)):
        return False
    return any(_LEAVES.search(body.file.source.text, span.start, span.end) for span in spans)


def expects_error(text: str, start: int) -> bool:
    """Whether a ``with`` around a place expects or ignores errors."""
    return _is_below(text, start, _EXPECTS_ERROR)


def _is_below(text: str, start: int, pattern: re.Pattern[str]) -> bool:
    """Whether one of the lines that a place is indented under matches a pattern."""
    begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", start) % (len(text) + 1)
    indent = _indent(text[begin:end])
    for _ in range(_LINES_BACK):
        if not indent or not begin:
            return False
        begin, end = text.rfind("\n", 0, begin - 1) + 1, begin - 1
        line = text[begin:end]
        if line.strip() and _indent(line) < indent:
            indent = _indent(line)
            if pattern.match(line):
                return True
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _tried(body: Body, start: int) -> Iterator[list[str]]:
    """Yield the texts of the ``except`` clauses of each ``try`` whose body contains a place."""
    for around in body.outward():
        spans, clauses = _tries(around)
        yield from (clauses[span] for span in spans.around(start))


@lru_cache(maxsize=256)
def _tries(body: Body) -> tuple[NestedSpans, dict[Span, list[str]]]:
    """The bodies of the ``try`` statements of a body, each with the texts of its ``except`` clauses."""
    text, guarded = body.file.source.text, body.scope.guarded
    found = {
        span: list(_clauses(text, map(guarded.__getitem__, range(index, len(guarded)))))
        for index, span in enumerate(guarded)
        if _TRY.search(text[max(0, span.start - _LOOK_BACK) : span.start])
    }
    return NestedSpans(found), found


def _clauses(text: str, spans: Iterable[Span]) -> Iterator[str]:
    for before, handler in pairwise(spans):
        clause = text[before.end : handler.start]
        if not _CATCHES.match(clause):
            return
        yield clause


class Asked(NamedTuple):
    """An attribute that code tests or sets: its object, which is a string if that names the object in full (``"kit._C"``); its
    name, empty if it is computed; and whether it is set.
    """

    holder: Expr
    name: str
    is_set: bool


def asked_attributes(body: Body) -> Iterator[Asked]:
    """Yield the attributes of objects that the code of a body tests or sets."""
    for call in body.scope.calls:
        if call.items[0].member in _ACCESS:
            yield from _asked_by(call)
    for item in body.scope.assigns:
        holder, _, name = item.target.rpartition(".")
        if holder:
            yield _set(Expr("name", item.start, item.start + len(holder), holder), name)
    yield from _set_in_dictionaries(body)
    for found in _SET_IN_PLACE.finditer(body.file.source.text) if body.definition is None else ():
        yield Asked(Expr("const", *found.span(1), "", found[1]), found[2], is_set=True)


def _set_in_dictionaries(body: Body) -> Iterator[Asked]:
    """Yield the objects whose dictionaries a body may change."""
    text = body.file.source.text
    for holder, span in _namespaces(body) if "__dict__" in text or "vars(" in text else ():
        is_read = _READ_BEFORE.search(text, max(0, span.start - _LOOK_BACK), span.start) or _READ.match(text, span.end)
        if not is_read:
            yield Asked(holder, "", is_set=True)


def _namespaces(body: Body) -> Iterator[tuple[Expr, Span]]:
    """Yield each object whose dictionary a body uses (``a.__dict__``, ``vars(a)``), and the place of the dictionary."""
    for use in body.scope.uses:
        holder, attribute, _ = use.name.partition(".__dict__")
        if attribute:
            end = use.start + len(holder)
            yield Expr("name", use.start, end, holder), Span(use.start, end + len(attribute))
    for call in body.scope.calls:
        if call.callee == "vars" and len(call.items) == 2:
            yield call.items[1], call.span


def _asked_by(call: Expr) -> Iterator[Asked]:
    first, is_set = call.argument("target", 0), call.items[0].member in _SETS
    if first is None:
        return
    if call.items[0].member == "multiple":
        yield from (Asked(first, name.strip("*"), is_set) for name in call.keywords if name)
    elif isinstance(first.value, str):
        holder, _, name = first.value.rpartition(".")
        if holder:
            yield Asked(Expr("const", first.start, first.end, "", holder), name, is_set)
    else:
        second = call.argument("attribute", 1) or call.keyword("name")
        known = second.value if second is not None and isinstance(second.value, str) else ""
        if known or (is_set and second is not None):
            yield _set(first, known) if is_set else Asked(first, known, is_set=False)


def _set(holder: Expr, name: str) -> Asked:
    return Asked(holder, "" if name in _MAKES_NAMES else name, is_set=True)
