"""The calls in formulas of derivatives.yaml, and the arguments of PyTorch's operators as C++ functions and methods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_rules.aten.cpp_types import has_symint, kernel_name
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.model import NativeEntry, NativeFile

_CALL = re.compile(r"(?<![\w>])(?:(at::|(\w+)\.|)([a-z_]\w*))\(")
_TOKEN = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|[][(){},]|[^][(){},\s"\'/]+|/', re.DOTALL)
_BEFORE = 200
"""Number of characters to examine before a call."""

_TEMPLATE = re.compile(r"\w<[^<>()]*,[^<>()]*>")


class Call(msgspec.Struct, frozen=True):
    """A call: the text before the name (``at``, the name of an object, or nothing), the name, its place, and the number of
    arguments; None if that is not clear.
    """

    holder: str
    name: str
    start: int
    count: int | None


class Takes(msgspec.Struct):
    """The numbers of arguments that the overloads of an operator accept: as functions, and as methods of a tensor; ``entry``
    declares the first of them.
    """

    entry: NativeEntry
    functions: list[range] = msgspec.field(default_factory=list)
    methods: list[range] = msgspec.field(default_factory=list)


def calls_in(text: str) -> Iterator[Call]:
    """The calls of functions without a namespace or of ``at``, and of methods of a named object."""
    counts = _argument_counts(text) if _TEMPLATE.search(text) is None else {}
    for match in _CALL.finditer(text):
        before = text[max(0, match.start() - _BEFORE) : match.start()].rstrip()
        if not before.endswith((".", "->", "::")):
            holder = "at" if match[1] == "at::" else match[2] or ""
            yield Call(holder, match[3], match.start(3), counts.get(match.end()))


def _argument_counts(text: str) -> dict[int, int]:
    """Return the numbers of arguments in closed brackets, by the places after the opening ones."""
    found: dict[int, int] = {}
    open_: list[tuple[int, int, bool]] = []  # the place, the commas, and whether there is anything else
    for match in _TOKEN.finditer(text):
        token = match.group()
        place, commas, anything = open_.pop() if open_ else (-1, 0, False)
        if token in (")", "]", "}"):
            found[place] = commas + anything
            continue
        if token == ",":
            commas += 1
        elif not token.startswith("/*"):
            anything = True
        if place >= 0:
            open_.append((place, commas, anything))
        if token in ("(", "[", "{"):
            open_.append((match.end(), 0, False))
    return found


@cached_on_argument
def callables_of(native: NativeFile) -> Mapping[str, Takes]:
    """The operators of a file, and those that torchgen generates, by their names in C++."""
    found: dict[str, Takes] = {}
    for function in functions_of(native).values():
        variants = _variants(function.entry) if not function.generated else ("function",)
        least, most = _numbers(function.schema)
        for symint in (False, True) if has_symint(function.schema) else (False,):
            takes = found.setdefault(kernel_name(function.schema, symint=symint), Takes(function.entry))
            if "function" in variants:
                takes.functions.append(range(least, most + 1))
            if "method" in variants:
                takes.methods.append(range(least - 1, most))
    return found


def _variants(entry: NativeEntry) -> tuple[str, ...]:
    return tuple(item.strip() for item in (entry.text_of("variants") or "function").split(","))


def _numbers(schema: OperatorSchema) -> tuple[int, int]:
    """The least and the greatest number of arguments; dtype, layout, device and pin_memory may be one."""
    return sum(item.default is None for item in schema.arguments), len(schema.arguments)
