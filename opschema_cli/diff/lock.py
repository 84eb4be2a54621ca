"""The lock file: the contracts of all public operators, as a file that is reviewed and compared with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from opschema_cli.diff.entries import Call, Condition, Entry, Output, Parameter, Workload
from opschema_cli.errors import OpschemaError
from opschema_cli.source.text import Place, Span

LOCK_NAME = "opschema-contract.json"
VERSION = 2

_WIDTH = 132
"""Characters of a line."""

_NAME = re.compile(r'(?m)^ {6}"name": ("(?:[^"\\\n]|\\.)*")')


class LockFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a lock file."""

    version: int
    operators: list[Entry]


def render_lock(entries: Iterable[Entry]) -> str:
    """The text of a lock file: an object for each operator, by name, without places. What fits is on one line."""
    operators = [msgspec.to_builtins(_without_places(item)) for item in entries]
    operators.sort(key=lambda item: (item["name"], item.get("pack", ""), json.dumps(item)))
    shown = ",\n".join(f"    {_rendered(item, 4, 0)}" for item in operators)
    listed = f"[\n{shown}\n  ]" if operators else "[]"
    return f'{{\n  "version": {VERSION},\n  "operators": {listed}\n}}\n'


def _rendered(value: object, indent: int, width: int = _WIDTH) -> str:
    """A value as JSON: on one line if that ends within ``width``."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + len(line) <= width or not isinstance(value, dict | list | tuple) or not value:
        return line
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {_rendered(item, indent + 2)}" for key, item in value.items()]
    else:
        parts = [_rendered(item, indent + 2) for item in value]
    pad, ends = " " * indent, "{}" if isinstance(value, dict) else "[]"
    inner = ",\n".join(f"{pad}  {part}" for part in parts)
    return f"{ends[0]}\n{inner}\n{pad}{ends[1]}"


def read_lock(text: str, path: str) -> list[Entry]:
    """The contracts in a lock file, each at its place in it.

    Raises:
        OpschemaError: it is no lock file of this version.
    """
    try:
        found = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=LockFile)
    except (msgspec.DecodeError, RecursionError) as error:
        raise OpschemaError(f"{path}: not a lock file of `opschema diff --lock`: {error}") from None
    if found.version != VERSION:
        raise OpschemaError(f"{path}: version {found.version} is not known; `opschema diff --lock` writes a new one")
    spans = [Span(*match.span(1)) for match in _NAME.finditer(text)]
    if len(spans) != len(found.operators):  # it was formatted by another tool
        spans = [Span(0, 0)] * len(found.operators)
    return [replace(item, place=Place(path, span)) for item, span in zip(found.operators, spans, strict=True)]


def _without_places(item: Entry) -> Entry:
    return replace(
        item,
        place=None,
        places={},
        arguments=tuple(map(_placeless, item.arguments)),
        returns=tuple(map(_placeless_output, item.returns)),
        calls=tuple(Call(call.name, tuple(map(_placeless, call.parameters))) for call in item.calls),
        workloads=tuple(Workload(row.label, row.dtypes) for row in item.workloads),
        constraints=tuple(Condition(one.text) for one in item.constraints),
        kernels=tuple(replace(one, place=None) for one in item.kernels),
        combinations=tuple(Condition(one.text) for one in item.combinations),
    )


def _placeless(item: Parameter) -> Parameter:
    return replace(item, place=None)


def _placeless_output(item: Output) -> Output:
    return replace(item, place=None)
