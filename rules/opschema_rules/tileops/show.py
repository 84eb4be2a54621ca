"""``opschema show OP`` for manifest entries: declaration beside implementation, argument by argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.lint.names import closest_names
from opschema_cli.lint.pack import Loaded, Shown, ShowRow
from opschema_cli.project import Project
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Param, PythonFile
from opschema_rules.tileops.model import OpEntry, OpImplementation

if TYPE_CHECKING:
    from opschema_rules.tileops.detection import TileopsOptions


def show(project: Project, options: TileopsOptions, name: str) -> Shown | Sequence[str]:
    """The entry ``name`` beside its class; the closest names when there is no such entry."""
    from opschema_rules.tileops.pack import load

    loaded = load(project, options)
    entry = next((item for item in loaded.subjects if isinstance(item, OpEntry) and item.name == name), None)
    if entry is None:
        return closest_names(name, [item.name for item in _entries(loaded)])
    implementation = OpImplementation(entry, entry.op_class) if isinstance(entry.op_class, ClassRef) else None
    return Shown(
        f"{name} ({entry.status or 'no status'})", _places(entry, implementation), list(_rows(entry, implementation))
    )


def _entries(loaded: Loaded) -> list[OpEntry]:
    return [item for item in loaded.subjects if isinstance(item, OpEntry)]


def _places(entry: OpEntry, implementation: OpImplementation | None) -> list[tuple[str, str]]:
    found = [("declared", _line(entry.file.source.path, entry.file.source.position(entry.key.start).line))]
    if implementation is None:
        reason = getattr(entry.op_class, "reason", "no class of this name")
        return [*found, ("class", f"unresolved: {reason}")]
    found.append(("class", _at(implementation.ref.file, implementation.ref.cls.start)))
    for method in ("__init__", "forward"):
        ref = implementation.program.member(implementation.ref, method)
        place = implementation.method(method)
        found.append(
            (
                method,
                _at(place.file, place.function.start) if place else f"unresolved: {getattr(ref, 'reason', 'absent')}",
            )
        )
    return found


def _at(file: PythonFile, offset: int) -> str:
    return _line(file.path, file.source.position(offset).line)


def _line(path: str, line: int) -> str:
    return f"{path}:{line}"


def _rows(entry: OpEntry, implementation: OpImplementation | None) -> Iterator[ShowRow]:
    forward = implementation.call_params("forward") if implementation else None
    init = implementation.call_params("__init__") if implementation else None
    file = _file_of(implementation, "forward")
    seen: set[str] = set()
    for index, tensor in enumerate(entry.inputs):
        code = next((item for item in forward or [] if item.name == tensor.name), None)
        order = [item.name for item in forward or []]
        note = (
            ""
            if code is None or order.index(tensor.name) == index
            else f"argument {order.index(tensor.name) + 1} in the code"
        )
        flags = "".join(f" {flag}" for flag in ("optional", "mutated") if tensor.flag(flag))
        declared = f"input {tensor.dtype or '?'} {tensor.shape or ''}{flags}".strip()
        yield ShowRow(tensor.name, declared, _code(code, file, "forward", forward), note)
        seen.add(tensor.name)
    dims = entry.data_at("signature", "static_dims")
    for name, expression in dims.items() if isinstance(dims, dict) else ():
        code = next((item for item in init or [] if item.name == name), None)
        yield ShowRow(
            str(name), f"static dim {expression}", _code(code, _file_of(implementation, "__init__"), "__init__", init)
        )
        seen.add(str(name))
    for param in entry.params:
        owner, params = (
            ("forward", forward) if any(item.name == param.name for item in forward or []) else ("__init__", init)
        )
        code = next((item for item in params or [] if item.name == param.name), None)
        declared = f"param {param.type or '?'}" + (f" = {param.default!r}" if param.has_default else "")
        declared += " kw_only" if param.kw_only else ""
        yield ShowRow(param.name, declared, _code(code, _file_of(implementation, owner), owner, params))
        seen.add(param.name)
    for owner, params in (("forward", forward), ("__init__", init)):
        for item in params or []:
            if item.name not in seen and item.by_name:
                seen.add(item.name)
                yield ShowRow(item.name, "-", _code(item, _file_of(implementation, owner), owner, params))
    for tensor in entry.outputs:
        yield ShowRow(tensor.name, f"output {tensor.dtype or '?'} {tensor.shape or ''}".strip(), "")


def _file_of(implementation: OpImplementation | None, method: str) -> PythonFile | None:
    found = implementation.method(method) if implementation else None
    return found.file if found else None


def _code(param: Param | None, file: PythonFile | None, owner: str, params: Sequence[Param] | None) -> str:
    if params is None:
        return "unresolved"
    if param is None or file is None:
        return "absent"
    text = " ".join(file.text(param.full_span).split())
    return f"{owner}({'*, ' if param.kind == 'kwonly' else ''}{text})"
