"""Reads the ``kernel_config.py`` of an old test.

What it says is kept as text; where that would not say all of it, :class:`Unclear` tells why.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence

import libcst as cst
import msgspec

from opschema_cli.source.python import Assign, Expr, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Edit, Span, apply_edits
from opschema_rules.pypto.dict_edits import add_field, spelled
from opschema_rules.pypto.migrations.entry_signature import entry_signature, enum_import
from opschema_rules.pypto.migrations.old_statements import (
    Line,
    Piece,
    Unclear,
    bound,
    comments_in,
    header_of,
    lines_of,
    targets_of,
)
from opschema_rules.pypto.model import Direction, Part, Program

_COMPUTED = frozenset({
    "lambda", "listcomp", "setcomp", "dictcomp", "generator", "ifexp", "fstring", "walrus",
    "await", "yield", "yield-from", "starred", "other",
})  # fmt: skip
"""Expression kinds that bind names, or that no dict of a configuration contains."""

_DEFAULTS = {"aicpu_thread_num": "3", "block_dim": "24"}
"""Defaults of the old runner for missing settings."""

_DEFAULT_RUNTIME = "host_build_graph"
_PARTS = frozenset({"ORCHESTRATION", "KERNELS", "RUNTIME_CONFIG", "RUNTIME_ENV"})
_OF_RUNNER = ("runtime", "rounds")


class Config(msgspec.Struct, frozen=True):
    """The content of a ``kernel_config.py``. ``header`` is its leading comments, ``imports`` the lines that import what the
    pieces use, ``names`` what those bind; sources are relative to the folder that the reader was given. ``signed`` says that the
    orchestration has a signature, ``outputs`` how many tensors that declares as outputs, where it is known.
    """

    header: str
    docstring: str
    imports: tuple[str, ...]
    names: frozenset[str]
    orchestration: Piece
    kernels: Piece
    runtime: str
    settings: Mapping[str, str]
    settings_comments: tuple[str, ...]
    rounds: str
    environment: Piece | None
    signed: bool
    outputs: int | None


def read_config(tree: PythonTree, program: Program, folder: str) -> Config:
    """Read the description of a program, to be written in a file of ``folder``.

    Raises:
        Unclear: it says something in another way.
    """
    file, lines = program.file, list(lines_of(tree))
    values = {name: _value(file, name) for name in _PARTS if name in file.assigns}
    if program.orchestration is None or not program.whole or not {"ORCHESTRATION", "KERNELS"} <= values.keys():
        raise Unclear("not all of its kernels are known, or its orchestration is not")
    sources, derived = list(_sources(program, folder)), _derived(program)
    used = {name for expr in values.values() for name in _outer_names(expr, [edit.span for edit in sources])}
    _check_statements(tree, lines, used)
    used.update(derived.names)
    imports = [line for line in lines if used & bound(line.statement)]
    comments = dict(_comments_of(tree, lines))
    edits = [*sources, *derived.edits]
    pieces = {name: Piece(_written(tree, expr, edits), comments.get(name, ())) for name, expr in values.items()}
    settings, runtime = _settings(file, values.get("RUNTIME_CONFIG"))
    inner = comments_in(file.text(values["RUNTIME_CONFIG"])) if "RUNTIME_CONFIG" in values else ()
    docstring = tree.docstring(tree.module)
    return Config(
        header=header_of(tree),
        docstring=tree.code(docstring) if docstring is not None else "",
        imports=(*(tree.text[line.start : line.end].strip() for line in imports), *derived.imports),
        names=frozenset(used),
        orchestration=pieces["ORCHESTRATION"],
        kernels=pieces["KERNELS"],
        runtime=runtime,
        settings={name: text for name, text in settings.items() if name not in _OF_RUNNER},
        settings_comments=(*comments.get("RUNTIME_CONFIG", ()), *inner),
        rounds=settings.get("rounds", ""),
        environment=pieces.get("RUNTIME_ENV"),
        signed=derived.directions != () or program.orchestration.signature is not None,
        outputs=_outputs(program, derived),
    )


class _Derived(msgspec.Struct, frozen=True):
    """A signature that is added to the orchestration: the edit of its dict, the name that it uses, and the line that imports
    that.
    """

    directions: Sequence[Direction] = ()
    edits: Sequence[Edit] = ()
    names: Sequence[str] = ()
    imports: Sequence[str] = ()


def _derived(program: Program) -> _Derived:
    part = program.orchestration
    directions = entry_signature(program) if part is not None and part.signature is None else None
    if part is None or directions is None:
        return _Derived()
    name, line = enum_import(program)
    edit = add_field(program.file, part.expr, "signature", spelled(directions, name))
    return _Derived(directions, [edit], [name], [line] if line else []) if edit is not None else _Derived()


def _outputs(program: Program, derived: _Derived) -> int | None:
    signature = program.orchestration.signature if program.orchestration is not None else None
    declared = [slot.direction for slot in (signature.slots if signature is not None else None) or ()]
    found = declared or derived.directions
    return sum(item in (Direction.OUT, Direction.INOUT) for item in found) if found else None


def _value(file: PythonFile, name: str) -> Expr:
    found: list[Assign] = file.assigns[name]
    if len(found) != 1 or found[0].value is None or not found[0].sure:
        raise Unclear(f"`{name}` is set more than once, or under a condition")
    return found[0].value


def _sources(program: Program, folder: str) -> Iterator[Edit]:
    """Yield the edits that write the sources relative to ``folder``."""
    parts: list[Part | None] = [program.orchestration, *program.kernels]
    for part in parts:
        if part is None or part.source is None:
            raise Unclear("it has a source that is not known, or not there")
        if not part.written:
            raise Unclear("its kernels or its orchestration are computed")
        yield Edit(part.fields["source"][1].span, f'"{posixpath.relpath(part.source, folder or ".")}"')


def _outer_names(expr: Expr, sources: Sequence[Span]) -> set[str]:
    """Return the names that an expression takes from the enclosing scope, without those of sources."""
    if any(span.start <= expr.start and expr.end <= span.end for span in sources):
        return set()
    if expr.kind in _COMPUTED:
        raise Unclear("a value in its dicts is computed")
    own = {expr.text.partition(".")[0]} if expr.kind == "name" else set[str]()
    return own.union(*(_outer_names(item, sources) for item in expr.items if item.text != "**"))


def _check_statements(tree: PythonTree, lines: Sequence[Line], used: set[str]) -> None:
    """Check that each statement is part of the description, or only builds the paths of its sources, and that the parts only use
    imports.
    """
    if missing := used - {name for line in lines for name in bound(line.statement)}:
        raise Unclear(f"it takes `{min(missing)}` from outside of its dicts")
    for line in lines:
        statement = line.statement
        documents = isinstance(statement, cst.Expr) and isinstance(statement.value, cst.SimpleString)
        names = targets_of(statement)
        if not documents and not isinstance(statement, cst.Import | cst.ImportFrom) and not names:
            number = tree.text.count("\n", 0, line.start) + 1
            raise Unclear(f"line {number} of it does more than describe a program")


def _comments_of(tree: PythonTree, lines: Sequence[Line]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the comments before each part of a description and after it on its last line."""
    waiting: list[str] = []
    for line in lines:
        waiting += comments_in(tree.text[line.before : line.start])
        names = targets_of(line.statement) & _PARTS
        if names:
            behind = tree.text[tree.outer(line.statement).end : line.end]
            yield names.pop(), (*waiting, *comments_in(behind))
            waiting.clear()


def _written(tree: PythonTree, expr: Expr, sources: Iterable[Edit]) -> str:
    """Return an expression's text with other sources."""
    start, end = expr.span
    if any("\n" in item.value for item in tree.literals if start <= tree.span(item).start < end):
        raise Unclear("it has a string of several lines")
    own = (edit for edit in sources if start <= edit.span.start and edit.span.end <= end)
    moved = [Edit(Span(edit.span.start - start, edit.span.end - start), edit.replacement) for edit in own]
    return apply_edits(tree.text[start:end], moved)


def _settings(file: PythonFile, expr: Expr | None) -> tuple[dict[str, str], str]:
    """Return the settings of each run as they are written, and the runtime."""
    if expr is None:
        return dict(_DEFAULTS), _DEFAULT_RUNTIME
    pairs = list(zip(expr.items[::2], expr.items[1::2], strict=True)) if expr.kind == "dict" else []
    found = {key.value: value for key, value in pairs if key.kind == "const" and isinstance(key.value, str)}
    if expr.kind != "dict" or len(found) != len(pairs) or any(value.kind != "const" for value in found.values()):
        raise Unclear("`RUNTIME_CONFIG` is not all constants")
    runtime = found["runtime"].value if "runtime" in found else _DEFAULT_RUNTIME
    if not isinstance(runtime, str):
        raise Unclear("its runtime is not known")
    return {**{name: file.text(value) for name, value in found.items()}, **_missing(found)}, runtime


def _missing(found: Mapping[str, Expr]) -> dict[str, str]:
    return {name: value for name, value in _DEFAULTS.items() if name not in found}
