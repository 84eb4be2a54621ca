"""Names and places of an orchestration that are used in plain forms only, so that what they hold is sure.

Macros, lambdas, helpers and headers may do anything to what they get. So rules that need a number to be right ask here whether
each use of a name in the file is one of a few statements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.source.cpp_text import parts
from opschema_cli.source.text import blanked

_AT = r"(?<=[;{}])\s*"
_SUBMIT = r"(?<![\w:.>])rt_submit_(?:aic_|aiv_)?task\s*\(\s*\w+\s*,\s*"
_GET = r"(?<![\w:.>])(\w+)\s*\.\s*get_ref\s*\(\s*\d+\s*\)"
_WORD = re.compile(r"[A-Za-z_]\w*")
_PAYLOADS = (
    re.compile(rf"{_AT}CoreTaskArgs\s+(\w+)\s*;"),
    re.compile(
        rf"{_AT}(\w+)\s*\.\s*(?:add_(?:input|output|inout|no_dep|scalar|dep)|reset|launch_spec\.set_\w+|set_\w+)\s*\("
    ),
    re.compile(rf"{_SUBMIT}(\w+)\s*\)"),
)
_OUTPUTS = (
    re.compile(
        rf"{_AT}(?:const\s+)?(?:TaskOutputTensors|auto)\b\s*&?\s*(\w+)\s*=\s*"
        rf"(?:{_SUBMIT}\w+\s*\)|alloc_tensors\s*\([\w\s,]*\))\s*;"
    ),
    re.compile(_GET),
    re.compile(r"(?<![\w:.>])(\w+)\s*\.\s*task_id\s*\("),
)
_TENSORS = re.compile(rf"{_AT}const\s+ChipTensor\s*&\s*(\w+)\s*=\s*\w+\.tensor\(\d+\)\.ref\(\)\s*;")
_DECLARED = re.compile(r"[\w>&*]\s*[\s&*]\s*([A-Za-z_]\w*)\s*(?:=(?!=)|[;{(,)])")
_TAKES = (
    re.compile(rf"{_AT}(?:const\s+)?(?:ChipTensor|auto)\b\s*&?\s*\w+\s*=\s*{_GET}\s*;"),
    re.compile(rf"{_AT}\w+\s*\.\s*add_(?:input|inout|no_dep)\s*\(\s*{_GET}\s*\)\s*;"),
)
_CAST = r"(?:(?:static|reinterpret)_cast<[\w\s:]+\*?>\s*\(\s*|from_u64<\w+>\s*\(\s*|\([\w\s]+\*?\)\s*)*"
_TYPE = r"(?:u?int\d+_t|int|unsigned|bool|float|double|size_t|auto|void|ChipTensor|DataType|CommContext)\b"
_ARGUMENT = re.compile(
    rf"{_AT}(?:const\s+)?{_TYPE}\s*[&*]*\s*\w+\s*=\s*{_CAST}(\w+)\s*\.\s*(?:tensor|scalar)\s*\(\s*\d+\s*\)[^;?&|]*;"
)
_ARGUMENTS = (
    re.compile(r"\b\w*Args\s*&\s*(\w+)\s*\)"),
    re.compile(r"(?<![\w:.>])(\w+)\s*\.\s*(?:tensor|scalar)\s*\("),
    re.compile(r"(?<=[(,])\s*(\w+)\s*(?=[,)])|\(void\)\s*(\w+)\s*;"),
)
_REDEFINES = re.compile(
    r"\b(?:struct|class|using|typedef|enum|define)\b[^;{}\n]*\b(?:CoreTaskArgs|TaskOutputTensors|TensorCreateInfo|ChipTensor)\b"
    r"|\bdefine\b[^\n]*\b(?:rt_submit_\w*task|alloc_tensors)\b|\b(?:rt_submit_\w*task|alloc_tensors)\s*\([^;{}]*\)\s*\{"
)
_HIDDEN = re.compile(
    rf"{_AT}(?!(?:if|for|while|switch|catch|else|do|try|extern|namespace|struct|union|enum|PTO2_SCOPE)\b)[A-Za-z_]\w*\s*(?:\((?:[^(){{}}]|\([^(){{}}]*\))*\)\s*)?\{{"
)
"""A macro in front of a block, which may be a loop or a condition."""


class Plain(msgspec.Struct, frozen=True):
    """What is used in plain forms only: payloads, outputs of tasks, and references to tensors of the orchestration, by their
    names; and the places where an output, or an argument of the orchestration, is surely taken.
    """

    payloads: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    tensors: frozenset[str] = frozenset()
    takes: frozenset[int] = frozenset()
    arguments: frozenset[int] = frozenset()


def plain(text: str) -> Plain:
    """The plain forms of a file."""
    found = list(parts(text))
    whole = blanked(text, [(start, end) for kind, start, end in found if kind != "directive"])
    code = blanked(text, [(start, end) for _, start, end in found])
    counts = Counter(_WORD.findall(whole))
    declared = Counter(match[1] for match in _DECLARED.finditer(whole))
    tensors = Counter(match[1] for match in _TENSORS.finditer(code))
    if _REDEFINES.search(whole) is not None or _HIDDEN.search(code) is not None:
        return Plain()
    given = _only(code, counts, _ARGUMENTS) if "const_cast" not in text else frozenset[str]()
    return Plain(
        _only(code, counts, _PAYLOADS),
        _only(code, counts, _OUTPUTS),
        frozenset(name for name, number in tensors.items() if number == declared[name]),
        frozenset(match.start(1) for form in _TAKES for match in form.finditer(code)),
        frozenset(match.start(1) for match in _ARGUMENT.finditer(code) if match[1] in given),
    )


def _only(code: str, counts: Counter[str], forms: Iterable[re.Pattern[str]]) -> frozenset[str]:
    """The names that have no other uses."""
    found = Counter(_named(code, forms))
    return frozenset(name for name, number in found.items() if number == counts[name])


def _named(code: str, forms: Iterable[re.Pattern[str]]) -> Iterator[str]:
    for form in forms:
        for match in form.finditer(code):
            yield next(name for name in match.groups() if name)
