"""The module ``re``, for patterns and texts that can be matched quickly.

A matcher may need as many steps as there are ways to divide the text among the repeats of a pattern. That is estimated first, and
what may take longer is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import comb

import msgspec

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExecutionDialect
from opschema_cli.evaluation.execution.values import Native
from opschema_cli.evaluation.limits import MAX_CHARACTERS

MAX_PATTERN = 200
"""Maximum length of a pattern to compile."""
MAX_WAYS = 100_000
"""Maximum number of ways to divide a text among the repeats of a pattern; this takes milliseconds."""

_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_REPEAT = re.compile(r"[*+?{]")
_HARD = re.compile(r"\\\d|\(\?(?!:|P<)|\)[*+{]")
_METHODS = ("match", "fullmatch", "search", "sub", "findall", "split")


class PatternValue(msgspec.Struct, frozen=True, eq=False):
    """A compiled pattern and the number of its repeats."""

    pattern: re.Pattern[str]
    repeats: int


class MatchValue(msgspec.Struct, frozen=True, eq=False):
    """A match."""

    match: re.Match[str]


def compiled(text: str, flags: int = 0) -> PatternValue | None:
    """Compile a pattern that is safe to match; None for one that repeats a group, has backreferences or lookarounds, or is invalid.

    >>> compiled(r"(a+)+") is None
    True
    """
    plain = _ESCAPE_OR_CLASS.sub(lambda found: "\\0" if re.match(r"\\\d", found[0]) else "x", text)
    if len(text) > MAX_PATTERN or _HARD.search(plain):
        return None
    try:
        return PatternValue(re.compile(text, flags), len(_REPEAT.findall(plain)))
    except (re.error, OverflowError):
        return None


def _compile(call: Call) -> object:
    if len(call.positional) == 1 and isinstance(call.positional[0], str) and not call.keywords:
        return compiled(call.positional[0]) or call.opaque("a pattern")
    return call.opaque("a pattern")


def _function(name: str) -> Callable[[Call], object]:
    def call_of(call: Call) -> object:
        first, *rest = call.positional or (None,)
        pattern = compiled(first) if isinstance(first, str) else first
        known = isinstance(pattern, PatternValue) and not call.keywords
        return _matched(pattern, name, Call(call.machine, tuple(rest))) if known else NOT_KNOWN  # type: ignore[arg-type]

    return call_of


def _matched(pattern: PatternValue, name: str, call: Call) -> object:
    if not call.positional or call.keywords or not all(isinstance(item, str) for item in call.positional):
        return call.opaque("a text that is matched")
    *others, text = (str(item) for item in call.positional)
    size, longest = len(text), max(map(len, others), default=0)
    if len(others) != (name == "sub") or size * comb(size + pattern.repeats, size) > MAX_WAYS:
        return call.opaque("a match that may take long")
    if (size + 1) * longest > MAX_CHARACTERS:
        return call.opaque("a long text")
    call.machine.spend(size)
    found = getattr(pattern.pattern, name)(*call.positional)
    return MatchValue(found) if isinstance(found, re.Match) else found


def _attribute(machine: Caller, value: object, name: str) -> object:
    if isinstance(value, PatternValue) and name in _METHODS:
        return Native(name, lambda call: _matched(value, name, call))
    if isinstance(value, PatternValue) and name == "pattern":
        return value.pattern.pattern
    if isinstance(value, MatchValue) and name in ("group", "groups", "groupdict", "start", "end", "span"):
        return Native(name, lambda call: _of_match(value, name, call))
    return NOT_KNOWN


def _of_match(value: MatchValue, name: str, call: Call) -> object:
    try:
        return getattr(value.match, name)(*call.positional, **call.keywords)
    except (IndexError, TypeError) as error:
        call.throw(type(error).__name__, str(error))


def _operator(machine: Caller, word: str, operands: Sequence[object]) -> object:
    value, rest = operands[0], operands[1:]
    if word == "bool" and isinstance(value, PatternValue | MatchValue):
        return True
    if word == "[]" and isinstance(value, MatchValue):
        return _of_match(value, "group", Call(machine, tuple(rest)))
    return NOT_KNOWN


PATTERNS = ExecutionDialect(
    functions={"re.compile": _compile, **{f"re.{name}": _function(name) for name in _METHODS}}.get,
    attribute=_attribute,
    operator=_operator,
)
"""The dialect of ``re``."""
