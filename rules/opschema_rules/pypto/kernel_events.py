"""The events that synchronize a kernel's pipes: each ``wait_flag()`` needs one ``set_flag()``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.preprocessor import Directives, is_dead, read_directives
from opschema_cli.source.text import Span
from opschema_rules.pypto.event_balance import balances
from opschema_rules.pypto.includes import includes_others
from opschema_rules.pypto.kernel_facts import EventFault
from opschema_rules.pypto.kernel_text import is_of_core
from opschema_rules.pypto.kernel_walk import ENTRY

_CALL = re.compile(r"\b(?:set|wait)_flag\(([^()]*)\)")
_QUICK = (re.compile(r"set_flag\(([^()]*)\)"), re.compile(r"wait_flag\(([^()]*)\)"))
"""The pattern for one name, which is much faster to find."""

_WORD = re.compile(r"\b(?:set|wait)_flag\b")
_PIPE = r"(PIPE_(?:S|V2?|M|MTE[1-5]|FIX|ALL))"
_PLAIN = re.compile(rf"\s*{_PIPE}\s*,\s*{_PIPE}\s*,\s*(EVENT_ID\d+)\s*")
_UNCLEAR = re.compile(r"##|\bEvent\s*<|\bgoto\b|\basm\b|__asm|\brequires\b|define[ \t]+(?:PIPE_|EVENT_)|[gt]_\\\n|<%")


class _Call:
    """A call: its pipes and event, and whether it waits."""

    def __init__(self, match: re.Match[str]) -> None:
        plain = _PLAIN.fullmatch(match[1])
        self.key = ", ".join(plain.groups()) if plain is not None else ""
        self.waits = match[0].startswith("wait")
        self.span = Span(*match.span())


def event_faults(text: str) -> tuple[EventFault, ...]:
    """Return the calls of ``set_flag()`` and ``wait_flag()`` in a file that are known to have no counterpart.

    A call has none if the file only sets or only waits for the event, or if the code sets it more often than it waits for it, or
    less often, on every path. Nothing is known if an event is computed, if a macro names it, if other code of the tree is included,
    or if code is compiled under other conditions than those of a core.
    """
    set_for, waited_for = (sorted(quick.findall(text)) for quick in _QUICK)
    if set_for == waited_for:
        return ()
    code = only_code(text, directives=False)
    calls = [_Call(match) for match in _CALL.finditer(code)]
    words = len(_WORD.findall(only_code(text)))
    if len(calls) != words or not all(call.key for call in calls) or _UNCLEAR.search(text) or includes_others(text):
        return ()
    directives = read_directives(text)
    uneven = {key: own for key, own in _by_key(calls).items() if sum(call.waits for call in own) * 2 != len(own)}
    compiled = {key: own for key, own in uneven.items() if _are_together(own, directives)}
    signs = _signs(text, compiled)
    found = (_fault(own, signs[key]) for key, own in compiled.items())
    return tuple(item for item in found if item is not None)


def _are_together(calls: Iterable[_Call], directives: Directives) -> bool:
    """Whether calls are only compiled together, and under no conditions but those of a core."""
    conditions = {directives.conditions(call.span.start) for call in calls}
    around = conditions.pop()
    return not conditions and all(map(is_of_core, around)) and not is_dead(around)


def _by_key(calls: Iterable[_Call]) -> dict[str, list[_Call]]:
    found: dict[str, list[_Call]] = {}
    for call in calls:
        found.setdefault(call.key, []).append(call)
    return found


def _signs(text: str, calls: Mapping[str, list[_Call]]) -> dict[str, int | None]:
    """Return for each event whether the functions of a file set it more (1) or less often (-1) than they wait for it; None if not
    known.
    """
    places = {call.span.start: (key, -1 if call.waits else 1) for key, own in calls.items() for call in own}
    signs: dict[str, set[int | None]] = {key: set() for key in calls}
    for item in balances(text, places, ENTRY) if places else ():
        for key, net in item.items():
            signs[key].add(net.sign if net is not None else None)
    found = ((key, own - {0}) for key, own in signs.items())
    return {key: own.pop() if len(own) == 1 else None for key, own in found}


def _fault(calls: list[_Call], sign: int | None) -> EventFault | None:
    """Return the first call for an event without a counterpart; ``sign`` tells which calls are more, if known."""
    waits, sets = [call for call in calls if call.waits], [call for call in calls if not call.waits]
    more, fewer = (waits, sets) if len(waits) > len(sets) else (sets, waits)
    if fewer and sign != (-1 if more is waits else 1):
        return None
    return EventFault(more[0].key, more is waits, len(fewer), more[len(fewer)].span)
