"""The events that synchronize a kernel's pipes: each ``wait_flag()`` needs one ``set_flag()``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.preprocessor import read_directives
from opschema_cli.source.text import Span
from opschema_rules.pypto.includes import includes_others
from opschema_rules.pypto.kernel_facts import EventFault

_CALL = re.compile(r"(?:set|wait)_flag\(([^()]*)\)")
_QUICK = (re.compile(r"set_flag\(([^()]*)\)"), re.compile(r"wait_flag\(([^()]*)\)"))
"""The pattern for one name, which is much faster to find."""

_WORD = re.compile(r"\b(?:set|wait)_flag\b")
_PLAIN = re.compile(r"\s*(PIPE_\w+)\s*,\s*(PIPE_\w+)\s*,\s*(EVENT_ID\d+)\s*")
_MARK = re.compile(r"[{}]|\b(?:set|wait)_flag\(|\bcase\b|\bdefault\s*:|^[ \t]*#[ \t]*(?:if|endif)", re.MULTILINE)
_NEAR = 1_000
"""Maximum number of characters between a statement and the previous one."""

_UNCLEAR = re.compile(r"##|\bEvent\s*<|\bgoto\b|\basm\b")


class _Call:
    """A call: its pipes and event, whether it waits, and the block in which it is a statement of its own (otherwise -1)."""

    def __init__(self, match: re.Match[str], block: int) -> None:
        plain = _PLAIN.fullmatch(match[1])
        self.key = ", ".join(plain.groups()) if plain is not None else ""
        self.waits = match[0].startswith("wait")
        self.span = Span(*match.span())
        self.block = block


def event_faults(text: str) -> tuple[EventFault, ...]:
    """Return the calls of ``set_flag()`` and ``wait_flag()`` in a file that are known to have no counterpart.

    That is known of a triple of two pipes and an event that only one of both names, and of one whose calls all stand in one block
    and are not as many. Nothing is known where an event is computed, a macro names it, or other code of the tree is included.
    """
    set_for, waited_for = (sorted(quick.findall(text)) for quick in _QUICK)
    if set_for == waited_for:
        return ()
    code = only_code(text, directives=False)
    calls = list(_calls(code))
    words = len(_WORD.findall(only_code(text)))
    if len(calls) != words or not all(call.key for call in calls) or _UNCLEAR.search(text) or includes_others(text):
        return ()
    is_conditional, conditions = _is_conditional(text), read_directives(text).conditions
    found = []
    for key, every in _by_key(calls).items():
        own = [call for call in every if not conditions(call.span.start)] if is_conditional else every
        if {call.waits for call in own} != {call.waits for call in every}:
            continue
        waits, sets = [call for call in own if call.waits], [call for call in own if not call.waits]
        blocks = {call.block for call in own}
        in_one = len(blocks) == 1 and -1 not in blocks and not is_conditional
        if len(waits) != len(sets) and (not waits or not sets or in_one):
            more, fewer = (waits, sets) if len(waits) > len(sets) else (sets, waits)
            found.append(EventFault(key, more is waits, len(fewer), more[len(fewer)].span))
    return tuple(found)


def _by_key(calls: Iterable[_Call]) -> dict[str, list[_Call]]:
    found: dict[str, list[_Call]] = {}
    for call in calls:
        found.setdefault(call.key, []).append(call)
    return found


def _calls(code: str) -> Iterator[_Call]:
    blocks, number = [0], 0
    for mark in _MARK.finditer(code):
        if mark[0] == "{":
            number += 1
            blocks.append(number)
        elif mark[0] == "}":
            if len(blocks) > 1:
                blocks.pop()
        elif mark[0].startswith(("case", "default")):
            blocks[-1] = -1
        elif mark[0].endswith("(") and (match := _CALL.match(code, mark.start())) is not None:
            before = code[max(0, mark.start() - _NEAR) : mark.start()].rstrip()[-1:]
            yield _Call(match, blocks[-1] if before in (";", "{", "}") else -1)


def _is_conditional(text: str) -> bool:
    """Whether only some compilations contain all the calls."""
    depth = 0
    for mark in _MARK.finditer(text):
        word = mark[0].lstrip()
        if word.startswith("#"):
            depth += -1 if word.endswith("endif") else 1
        elif word.endswith("(") and depth > 0:
            return True
    return False
