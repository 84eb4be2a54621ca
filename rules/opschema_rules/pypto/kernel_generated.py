"""Wrong operands in kernels that pypto's compiler wrote: these have one form per statement, and are numerous."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span
from opschema_rules.pypto.kernel_facts import ArgumentUse, OperandFault
from opschema_rules.pypto.kernel_operands import always_compiled

_GLOBAL = re.compile(r"GlobalTensor<")
_MOVES = {"TLOAD": re.compile(r"TLOAD\((\w+), (\w+)\)"), "TSTORE": re.compile(r"TSTORE\((\w+), (\w+)\)")}
_INDENT = 24
"""One more than the maximum number of spaces before the value of a variable."""

_VALUE = re.compile(r"\s*([\w:]+)")
_LONGEST = 80
"""Maximum number of characters of a name and the text before it on its line."""

_FEW = 8
"""Maximum number of candidate calls whose names are searched for one by one."""


def generated_faults(text: str) -> tuple[OperandFault, ...]:
    """Return the loads and stores of a generated file with exchanged operands: loads into a ``GlobalTensor``, or stores from
    one.
    """
    tensors = {_assigned(text, match.start()) for match in _GLOBAL.finditer(text)} - {""}
    found = list(_exchanged(text, tensors)) if tensors else []
    code = only_code(text) if found else ""
    return tuple(always_compiled(text, (item for item in found if code[item.span.start] == "T")))


def _exchanged(text: str, tensors: set[str]) -> Iterator[OperandFault]:
    left = _FEW
    for name, pattern in _MOVES.items():
        at = 0 if name == "TLOAD" else 1
        if all(names[at] not in tensors for names in pattern.findall(text)):
            continue
        for match in pattern.finditer(text):
            wrong = match[at + 1]
            if wrong not in tensors or not left:
                continue
            left -= 1
            if _is_statement(text, match.start()) and _is_only_global(text, wrong):
                yield OperandFault("exchanged", f"{name}({match[2]}, {match[1]})", Span(*match.span()))


def _assigned(text: str, at: int) -> str:
    """Return the variable that is declared with the value at a place; empty for a type."""
    if not text[max(0, at - _INDENT) : at].rstrip().endswith("="):
        return ""
    words = text[max(0, at - _LONGEST) : at].rstrip()[:-1].split()
    return words[-1] if words else ""


def _is_statement(text: str, at: int) -> bool:
    return text[max(0, at - _LONGEST) : at].rstrip()[-1:] in (";", "{", "}")


def _is_only_global(text: str, name: str) -> bool:
    """Whether every variable with a name is declared as a ``GlobalTensor`` with a value."""
    at, begin = -1, f"{name} ="
    while (at := text.find(begin, at + 1)) >= 0:
        is_inside = text[at - 1].isalnum() or text[at - 1] == "_"
        value = _VALUE.match(text, at + len(begin))
        if not is_inside and value is not None and value[1] != "GlobalTensor":
            return False
    if re.search(rf"\b{name}(?:=(?!=)|\s*:(?!:))|,\s*{name}\s*[;={{]", text) is not None:
        return False
    others = re.search(rf"[\w>*&]\s+[*&]*{name}\s*(?:[,;({{\[]|\))", text)
    return others is None or others[0].startswith("return")


def repeated_arguments(uses: Iterable[ArgumentUse]) -> Iterator[OperandFault]:
    """Yield the arguments that a generated entry unpacks twice while it skips another one: it unpacks all of them in order."""
    known = list(uses)
    taken: set[int] = set()
    every = {use.index for use in known}
    for place, use in enumerate(known):
        if use.index in taken and place not in every:
            yield OperandFault("repeated", f"args[{use.index}]", use.span, place)
        taken.add(use.index)
