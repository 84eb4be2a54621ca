"""Names and places that an orchestration only uses in plain forms, so that their values are certain.

Macros, lambdas, helpers and headers may do anything to what they get. So rules that need a number to be right ask here whether
each use of a name in the file is one of a few statements. They ask just before they report something, so that most files are
never searched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import Beyond

_AT = r"(?<=[;{}])\s*"
_SUBMIT = r"(?<![\w:.>])rt_submit_(?:aic_|aiv_)?task\s*\(\s*\w+\s*,\s*"
_GET = r"(?<![\w:.>])(\w+)\s*\.\s*get_ref\s*\(\s*\d+\s*\)"
_GRAPHS = (
    re.compile(rf"{_AT}GraphTaskArgs\s+(\w+)\s*;"),
    re.compile(
        rf"{_AT}(\w+)\s*\.\s*(?:add_(?:input|output|inout|no_dep)\s*\(\s*(?:[a-z_]\w*|\w+\s*\.\s*tensor\([^;{{}}]*\)\.ref\(\))\s*\)"
        r"|add_scalar\s*\([^;{}]*\))\s*;"
    ),
    re.compile(r"(?<![\w:.>])rt_submit_graph\s*\(\s*(?:\w+\s*,\s*)?&\s*\w+\s*,\s*(\w+)\s*[,)]"),
)
_GIVEN = re.compile(r"\badd_(?:input|output|inout|no_dep)\s*\(\s*([a-z_]\w*)\s*\)")
_OF_GRAPH = re.compile(r"\brt_submit_graph\s*\(\s*(?:\w+\s*,\s*)?&\s*(\w+)")
_FUNCTION = re.compile(r"\bvoid\s+(\w+)\s*\(")
_UNCLEAR = re.compile(r"#[ \t]*define[ \t]+[a-z_]\w*|\bnamespace\s+\w")
"""Code in which a name may refer to several tensors, or several functions may share a name."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_PAYLOADS = (
    re.compile(rf"{_AT}CoreTaskArgs\s+(\w+)\s*;"),
    re.compile(
        rf"{_AT}(\w+)\s*\.\s*(?:add_(?:input|output|inout|no_dep|scalar|dep)|reset|launch_spec\.set_\w+|set_(?!args|inputs|outputs|tensors)\w+)\s*\("
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
_GRAPH_ARGUMENTS = (re.compile(r"\bGraphTaskArgs\s*&\s*(\w+)\s*,"), *_ARGUMENTS)
_REDEFINES = re.compile(
    r"\b(?:struct|class|typename|using|typedef|enum|define|undef)\b[^;{}\n]*\b(?:CoreTaskArgs|GraphTaskArgs|TaskOutputTensors|TensorCreateInfo|ChipTensor)\b"
    r"|\bdefine\b[^\n]*\b(?:rt_submit_\w+|alloc_tensors)\b|\b(?:rt_submit_(?:\w*task|graph)|alloc_tensors)\s*\([^;{}]*\)\s*\{"
    r"|\b(?:rt_submit_(?:\w*task|graph)|alloc_tensors)\b(?!\s*\()"
)
_HIDDEN = re.compile(
    rf"{_AT}(?!(?:if|for|while|switch|catch|else|do|try|extern|namespace|struct|union|enum|PTO2_SCOPE)\b)[A-Za-z_]\w*\s*(?:\((?:[^(){{}}]|\([^(){{}}]*\))*\)\s*)?\{{"
)
"""A macro in front of a block, which may be a loop or a condition."""


class Plain:
    """The plain forms of a file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._whole = only_code(text)
        self._code = only_code(text, directives=False)
        redefined = _REDEFINES.search(self._whole) is not None or _HIDDEN.search(self._code) is not None
        self._counts = Counter[str]() if redefined else Counter(_WORD.findall(self._whole))

    def is_beyond(self, found: Beyond) -> bool:
        """Whether the count of the outputs or tensors from which one is taken is certain."""
        if not found.outputs:
            return found.payload in self._graphs and self._arguments.get(found.span.start) in self._of_graphs
        own = all(name in self._tensors for name in found.tensors)
        is_sure = found.outputs in self._outputs and (not found.payload or found.payload in self._payloads) and own
        return is_sure and found.span.start in self._takes

    def is_argument(self, at: Span) -> bool:
        """Whether a place is known to take an argument of the orchestration."""
        return self._arguments.get(at.start) in self._all_arguments

    @cached_property
    def _payloads(self) -> frozenset[str]:
        return self._only(_PAYLOADS)

    @cached_property
    def _outputs(self) -> frozenset[str]:
        return self._only(_OUTPUTS)

    @cached_property
    def _all_arguments(self) -> frozenset[str]:
        return self._only(_ARGUMENTS) if "const_cast" not in self._text else frozenset()

    @cached_property
    def _graphs(self) -> frozenset[str]:
        """The arguments of graphs, if all their functions and all added tensors are known."""
        functions = Counter(_FUNCTION.findall(self._code))
        known = all(functions[name] == 1 for name in _OF_GRAPH.findall(self._code))
        known = known and self._declared.keys() >= {*_GIVEN.findall(self._code)}
        return self._only(_GRAPHS) if known and _UNCLEAR.search(self._whole) is None else frozenset()

    @cached_property
    def _of_graphs(self) -> frozenset[str]:
        return self._only(_GRAPH_ARGUMENTS) if "const_cast" not in self._text else frozenset()

    @cached_property
    def _tensors(self) -> frozenset[str]:
        """The references to tensors of the orchestration whose names are declared only once."""
        tensors, declared = Counter(match[1] for match in _TENSORS.finditer(self._code)), self._declared
        return frozenset(name for name, number in tensors.items() if number == declared[name] and name in self._counts)

    @cached_property
    def _declared(self) -> Counter[str]:
        return Counter(match[1] for match in _DECLARED.finditer(self._whole))

    @cached_property
    def _takes(self) -> frozenset[int]:
        return frozenset(match.start(1) for form in _TAKES for match in form.finditer(self._code))

    @cached_property
    def _arguments(self) -> dict[int, str]:
        return {match.start(1): match[1] for match in _ARGUMENT.finditer(self._code)}

    def _only(self, forms: Iterable[re.Pattern[str]]) -> frozenset[str]:
        """Return the names without other uses."""
        found = Counter(_named(self._code, forms))
        return frozenset(name for name, number in found.items() if number == self._counts[name])


def _named(code: str, forms: Iterable[re.Pattern[str]]) -> Iterator[str]:
    for form in forms:
        for match in form.finditer(code):
            yield next(name for name in match.groups() if name)


@lru_cache(maxsize=2)
def plain(text: str) -> Plain:
    """The plain forms of a file, cached for the next caller."""
    return Plain(text)
