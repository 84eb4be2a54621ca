"""Code that a test expects to fail: below ``with pytest.raises(...)`` it is wrong on purpose."""

from __future__ import annotations

from functools import lru_cache

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr

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


def _is_marked(bodies: Bodies, body: Body) -> bool:
    function = body.function
    named = function.decorator_names if function is not None and body.parent is not None else []
    return any(bodies.external(body.parent, name) in _MARKS for name in named if body.parent is not None)


def _in_block(bodies: Bodies, body: Body, at: int) -> bool:
    text = body.file.source.text
    for call in _raising(bodies, body):
        if call.start < at < call.end:  # `pytest.raises(TypeError, lambda: f())`
            return True
        if call.start < at:
            start = text.rfind("\n", 0, call.start) + 1
            line = text[start : call.start]
            if line.lstrip().startswith(("with ", "async with ")) and _below(text, start, call.end, at):
                return True
    return False


@lru_cache(maxsize=1024)
def _raising(bodies: Bodies, body: Body) -> tuple[Expr, ...]:
    return tuple(call for call in body.scope.calls if _raises(bodies, body, call.callee))


def _raises(bodies: Bodies, body: Body, callee: str) -> bool:
    if callee.rpartition(".")[2] in _METHODS:
        return True
    return callee.rpartition(".")[2] in ("raises", "warns", "suppress") and bodies.external(body, callee) in _RAISES


def _below(text: str, start: int, end: int, at: int) -> bool:
    """Whether every line from after ``end`` to ``at`` is indented deeper than the line that begins at ``start``."""
    indent = _indent(text[start:end])
    first = text.find("\n", end) + 1
    if not first or at < first:
        return True
    lines = text[first:at].split("\n")
    lines[-1] += text[at : at + 1]
    return all(_indent(line) > indent or not line.strip() or line.lstrip().startswith(("#", ")")) for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
