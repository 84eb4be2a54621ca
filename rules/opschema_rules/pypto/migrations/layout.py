"""Lays out fields and directions as a formatter would: on one line if it is short enough, otherwise one per line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from opschema_cli.project import Project
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Edit
from opschema_cli.workspace import ReadError
from opschema_rules.pypto.dict_edits import add_fields, turn_into
from opschema_rules.pypto.migrations.demands import Demand
from opschema_rules.pypto.model import Direction, Kernel, Signature

_WIDTH = re.compile(r"(?m)^\s*line-length\s*=\s*(\d{1,4})\s*(?:#.*)?$")


def line_width(project: Project) -> int:
    """Return the line length of the tree's formatter; 0 if its configuration does not set one."""
    for path in ("ruff.toml", ".ruff.toml", "pyproject.toml"):
        try:
            found = _WIDTH.search(project.workspace.source(path).text) if project.workspace.is_file(path) else None
        except ReadError:
            continue
        if found is not None:
            return int(found[1])
    return 0


def edits_of(item: Demand, enum: str, longest: int) -> list[Edit]:
    """Return the edits that write a kernel's declaration; none if its description cannot take it, or is computed."""
    kernel = item.kernel
    if not kernel.written or (kernel.signature is not None and kernel.signature.is_computed):
        return []
    new = {"signature": [f"{enum}.{direction.value}" for direction in item.directions]}
    edits: list[Edit] = []
    if item.slots is not None and "arg_index" in kernel.fields:
        edits = [Edit(kernel.fields["arg_index"][1].span, f"[{', '.join(map(str, item.slots))}]")]
    elif item.slots is not None:
        new["arg_index"] = [*map(str, item.slots)]
    if kernel.signature is None:
        added = declare(kernel, new, longest)
        return [*edits, *added] if added else []
    edits += redirect(kernel.program.file, kernel.signature, item.directions, enum, longest)
    slots = {name: items for name, items in new.items() if name == "arg_index"}
    return [*edits, *(declare(kernel, slots, longest, "signature") if slots else ())]


def declare(kernel: Kernel, new: Mapping[str, Sequence[str]], width: int, behind: str = "") -> list[Edit]:
    """Return the edits that add list fields to a kernel; none for a dict that cannot have more.

    A dict in one line that would get too long gets a line for each field, a list that would a line for each item.
    """
    file, fields = kernel.program.file, kernel.expr
    edit = add_fields(file, fields, {name: _listed(items) for name, items in new.items()}, behind)
    if edit is None or not width:
        return [edit] if edit is not None else []
    text, last = file.source.text, fields.items[-1]
    if not _fits(text, edit, width) and _is_one_line(text, fields, width):
        return [Edit(fields.span, _spread(text, fields, new, width, behind))]
    indent = _indent(text, fields.items[-2].start)
    lists = {name: _wrapped(name, items, indent, text, width) for name, items in new.items()}
    wrapped = add_fields(file, fields, lists, behind) if "\n" in text[fields.start : last.start] else edit
    return [wrapped or edit]


def redirect(
    file: PythonFile, signature: Signature, directions: Sequence[Direction], enum: str, width: int
) -> list[Edit]:
    """Return the edits that change the directions of a signature; a line that would get too long is split into one line for
    each.
    """
    edits = turn_into(file, signature, directions, enum)
    text, span = file.source.text, signature.expr.span
    end = _line_end(text, span.end)
    long = len(text[_line_start(text, span.start) : end]) + sum(
        len(item.replacement) - (item.span.end - item.span.start) for item in edits
    )
    if not width or long <= width or "\n" in text[span.start : span.end] or signature.expr.kind != "list":
        return edits
    items = [f"{enum}.{item.value}" for item in directions]
    return [Edit(span, _columns(items, _indent(text, span.start), text))]


def _listed(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _wrapped(name: str, items: Sequence[str], indent: str, text: str, width: int) -> str:
    """Return a list as the value of a field on a line of its own."""
    line = f'{indent}"{name}": {_listed(items)},'
    return _listed(items) if len(line) <= width else _columns(items, indent, text)


def _columns(items: Sequence[str], indent: str, text: str) -> str:
    newline, deeper = _newline(text), _deeper(indent)
    return "[" + "".join(f"{newline}{deeper}{item}," for item in items) + f"{newline}{indent}]"


def _spread(text: str, fields: Expr, new: Mapping[str, Sequence[str]], width: int, behind: str) -> str:
    """Return a dict with each field on a line of its own."""
    indent, newline = _indent(text, fields.start), _newline(text)
    deeper = _deeper(indent)
    keys = fields.items[::2]
    ends = [*(key.start for key in keys[1:]), fields.end - 1]
    lines: list[str] = []
    for key, end in zip(keys, ends, strict=True):
        lines.append(text[key.start : end].rstrip().rstrip(","))
        if key.value == behind or (not behind and key is keys[-1]):
            lines += [f'"{name}": {_wrapped(name, items, deeper, text, width)}' for name, items in new.items()]
    return "{" + "".join(f"{newline}{deeper}{line}," for line in lines) + f"{newline}{indent}}}"


def _is_one_line(text: str, fields: Expr, width: int) -> bool:
    """Whether a dict is on one line of its own that is not too long yet."""
    start, end = _line_start(text, fields.start), _line_end(text, fields.end)
    alone = not text[start : fields.start].strip() and text[fields.end : end].strip() in ("", ",")
    return alone and "\n" not in text[fields.start : fields.end] and len(text[start:end].rstrip("\r")) <= width


def _fits(text: str, edit: Edit, width: int) -> bool:
    start, end = _line_start(text, edit.span.start), _line_end(text, edit.span.end)
    return len(text[start:end].rstrip("\r")) + len(edit.replacement) <= width


def _indent(text: str, at: int) -> str:
    line = text[_line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _deeper(indent: str) -> str:
    return indent + ("\t" if indent.startswith("\t") else "    ")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
