"""Selects the functions that may use a device value, by their text and scopes, so that few statements need decoding."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMPREHENSION = re.compile(r"\bin\b[^\n:]*\bif\b[^\n:]*[])}]|^[ \t]+if\b[^:\n]*$")
_SUBSCRIPT = re.compile(r"([A-Za-z_]\w*|[\])])\[")
_MEMBER = re.compile(r"(?<!for )\b([A-Za-z_][\w.]*)(?: not)? in [\[(A-Za-z_]")
_REPEATED = re.compile(r"[\]'\"] ?\*[^*]|,[^()\n]*\) ?\*[^*]|[\w)\]] ?\* ?(?:\[|['\"]|\([^()\n]*,)")
_FORMAT = re.compile(r"\b[fF][rR]?['\"].*\{[^{}\n]*:[^{}\n]+\}")
_INDEXES = frozenset({"thread_idx", "block_idx"})
_IDENTITY = re.compile(r"\bis (?:not )?[-\d\"'TF]|[\d\"'e] is ")
_DISPLAYS = frozenset({"list", "tuple", "listcomp"})


def candidate_names(bodies: Iterable[Body], parameters: Iterable[str]) -> frozenset[str]:
    """Return the names that may hold a device value: parameters, variables of loops over ``range``, and all that is computed from
    them.
    """
    found = {*parameters, *_INDEXES}
    bound: list[tuple[Collection[str], frozenset[str]]] = []
    for body in bodies:
        for loop in body.scope.loops:
            if loop.iterable.callee.rpartition(".")[2] == "range":
                found.update(loop.targets)
        bound += [((item.target,), words(body, item.value)) for item in body.scope.assigns if item.value is not None]
        bound += [(item.targets, words(body, item.value)) for item in body.scope.unpacks]
    size = 0
    while size != len(found):
        size = len(found)
        for targets, named in bound:
            if not found.isdisjoint(named):
                found.update(targets)
    return frozenset(found)


def may_need(body: Body, device: frozenset[str], called: frozenset[str], arrays: Collection[str]) -> bool:
    """Whether a body may pass a device value to one of the functions ``called``, branch on it, or use it to index one of the
    ``arrays`` or a list that the body makes itself.
    """
    for call in body.scope.calls:
        name = call.callee
        if (name.rpartition(".")[2] in called or name.startswith("math.")) and not device.isdisjoint(words(body, call)):
            return True
    if any(item.kind == "assert" and not device.isdisjoint(words(body, item.expr)) for item in body.scope.conditions):
        return True
    text = body.file.text(body.function.outer) if body.function is not None else ""
    return any(_line_may_need(line, device, arrays) for line in text.split("\n"))


def displays(bodies: Iterable[Body]) -> set[str]:
    """Return the names that are assigned lists, tuples or unknown values."""
    found: set[str] = set()
    for body in bodies:
        found.update(item.target for item in body.scope.assigns if item.value is None or is_display(item.value))
    return found


def is_display(expr: Expr) -> bool:
    """Whether an expression is a list or tuple literal, or a repeated one (``[None] * 4``)."""
    if expr.kind == "binary" and expr.text == "*":
        return any(item.kind in _DISPLAYS for item in expr.items)
    return expr.kind in _DISPLAYS


def _line_may_need(line: str, device: frozenset[str], arrays: Collection[str]) -> bool:
    """Whether a line has a comprehension with a condition, or searches, repeats, formats or indexes one of the ``arrays`` by a
    device value.
    """
    if "if" in line and _COMPREHENSION.search(line) is not None:
        return True
    if any(not device.isdisjoint(match[1].split(".")) for match in (_MEMBER.finditer(line) if " in " in line else ())):
        return True
    if " is " in line and _IDENTITY.search(line) is not None and not device.isdisjoint(_WORD.findall(line)):
        return True
    repeats = "*" in line and _REPEATED.search(line) is not None
    if (repeats or ("{" in line and _FORMAT.search(line) is not None)) and not device.isdisjoint(_WORD.findall(line)):
        return True
    found = _SUBSCRIPT.finditer(line) if "[" in line else ()  # the expression tries every word
    arrays_indexed = (match for match in found if match[1] in arrays or match[1] in "])")
    return any(not device.isdisjoint(_WORD.findall(line, match.end())) for match in arrays_indexed)


def words(body: Body, part: Expr | Statement) -> frozenset[str]:
    """Return the words of an expression or statement."""
    return frozenset(_WORD.findall(body.file.text(part.span)))
