"""Code that a test expects to fail: below ``with pytest.raises(...)`` it is wrong on purpose."""

from __future__ import annotations

from functools import lru_cache

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.guarded_code import is_conditional, is_guarded, is_tried, never_runs
from opschema_cli.source.text import Span, SpanSet

_RAISES = frozenset({"pytest.raises", "pytest.warns", "raises", "contextlib.suppress"})
_METHODS = frozenset({"assertRaises", "assertRaisesRegex"})
_MARKS = ("pytest.mark.xfail", "unittest.expectedFailure")


def expects_failure(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether what stands at ``at``, in ``body``, is meant to raise: it is in such a block, or in a test that is marked so."""
    for outer in body.outward():
        if _in_block(bodies, outer, at) or _is_marked(bodies, outer):
            return True
        if outer.function is not None:
            at = outer.function.start
    return False


def allows_failure(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether the code allows for a call that raises: a handler catches it, a test expects it, or it is for another release."""
    never = never_runs(body, at) or is_conditional(body, at)
    return never or is_tried(body, at) or expects_failure(bodies, body, at)


def allows_any_error(bodies: Bodies, body: Body, at: int) -> bool:
    """Whether the code allows for any error: something handles or expects one, or the code is for another release."""
    return is_guarded(body, at) or never_runs(body, at) or expects_failure(bodies, body, at)


def _is_marked(bodies: Bodies, body: Body) -> bool:
    function = body.function
    named = function.decorator_names if function is not None and body.parent is not None else []
    return any(bodies.external(body.parent, name) in _MARKS for name in named if body.parent is not None)


def _in_block(bodies: Bodies, body: Body, at: int) -> bool:
    return at in _blocks(bodies, body)


@lru_cache(maxsize=1024)
def _blocks(bodies: Bodies, body: Body) -> SpanSet:
    """The calls that expect errors of what they are passed, and what is written below ``with`` and such a call."""
    text, found = body.file.source.text, list[Span]()
    for call in (item for item in body.scope.calls if _raises(bodies, body, item.callee)):
        found.append(Span(call.start + 1, call.end))  # `pytest.raises(TypeError, lambda: f())`
        start = text.rfind("\n", 0, call.start) + 1
        if text[start : call.start].lstrip().startswith(("with ", "async with ")):
            found.append(Span(call.start + 1, _end_of_block(text, start, call.end)))
    return SpanSet(found)


def _raises(bodies: Bodies, body: Body, callee: str) -> bool:
    if callee.rpartition(".")[2] in _METHODS:
        return True
    return callee.rpartition(".")[2] in ("raises", "warns", "suppress") and bodies.external(body, callee) in _RAISES


def _end_of_block(text: str, start: int, end: int) -> int:
    """The end of the lines behind ``end`` that are indented deeper than the line that begins at ``start``."""
    indent = _indent(text[start:end])
    while 0 <= (end := text.find("\n", end)) < len(text) - 1:
        end += 1
        stop = text.find("\n", end)
        line = text[end : stop if stop >= 0 else len(text)]
        if line.strip() and _indent(line) <= indent and not line.lstrip().startswith(("#", ")")):
            return end
    return len(text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
