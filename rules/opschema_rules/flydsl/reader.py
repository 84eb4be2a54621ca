"""Finds the traced functions of a tree, their calls, and the tensors that are wrapped and described."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import FunctionRef, Program
from opschema_cli.source.python import Expr, Param, PythonFile
from opschema_cli.source.word_index import aliased, called_word
from opschema_rules.flydsl.annotations import parameter
from opschema_rules.flydsl.calls import find_calls
from opschema_rules.flydsl.contract import Era, find_contract
from opschema_rules.flydsl.detection import MARK, FlydslOptions, holding
from opschema_rules.flydsl.file_index import FILE_INDEX
from opschema_rules.flydsl.model import Descriptor, FlyTree, Parameter, Traced, TracedKind, Wrap
from opschema_rules.flydsl.names import Names

WRAPPERS = ("from_dlpack", "from_torch_tensor", "TensorAdaptor")
MARKS = ("mark_layout_dynamic", "mark_shape_dynamic", "mark_stride_dynamic", "mark_static")

_KINDS: dict[str, TracedKind] = {"kernel": "kernel", "jit": "jit"}


def params(*names: str) -> tuple[Param, ...]:
    """Parameters by name; those behind ``*`` by keyword only."""
    cut = names.index("*") if "*" in names else len(names)
    plain = [Param(name, "normal", 0, 0, 0) for name in names[:cut]]
    return (*plain, *(Param(name, "kwonly", 0, 0, 0) for name in names[cut + 1 :]))


DESCRIBERS = {
    "make_buffer_tensor": params("tensor", "max_size", "*", "num_records_bytes"),
    "create_buffer_resource": params("memref_val", "stride", "max_size", "*", "num_records_bytes", "base_byte_offset"),
}
"""FlyDSL's functions that make buffer descriptors of tensors, as they are called where their source is not at hand."""

FIRST_DESCRIBERS = {**DESCRIBERS, "make_buffer_tensor": params("tensor", "max_size")}
"""The same up to 0.1.8."""


def read_tree(project: Project, options: FlydslOptions) -> FlyTree:
    """Everything of the workspace that uses FlyDSL."""
    paths = list(holding(project, [MARK]))
    project.load_python(paths)
    program = Program(project.workspace.files, project.python, paths)
    files = [file for file in map(program.load, paths) if file is not None]
    index = project.file_readings(FILE_INDEX, files)
    bodies = Bodies(program, paths, lambda file: index[file.path].words)
    tree = FlyTree(project, bodies, Names(bodies), find_contract(project, options.version), index)
    indexes = [item.words for item in index.values()]
    compilers, wrappers = aliased(_KINDS.keys(), indexes), aliased(set(WRAPPERS), indexes)
    describers = aliased({*DESCRIBERS, *(name for item in index.values() for name in item.sized)}, indexes)
    for file in bodies.files:
        tree.traced.extend(_traced(tree.names, file, compilers))
        for body in bodies.calling(file, wrappers):
            tree.wraps.extend(_wraps(tree.names, body, wrappers))
        for body in bodies.calling(file, describers):
            tree.descriptors.extend(_descriptors(tree, body, describers))
    find_calls(tree.names, bodies, tree.traced, indexes)
    return tree


def _traced(names: Names, file: PythonFile, words: frozenset[str]) -> Iterator[Traced]:
    """The traced functions of a file, those with decorators before those that a call traces in the same body."""
    bodies = names.bodies
    decorated, calling = bodies.decorated(file, words), bodies.calling(file, words)
    for body in bodies.sorted({*decorated, *calling}):
        if body in decorated:
            yield from _decorated(names, body)
        if body in calling:
            yield from _applied(names, body, words)


def _decorated(names: Names, body: Body) -> Iterator[Traced]:
    """The function of a body, if a decorator traces it."""
    assert body.function is not None
    around = body.parent or body
    for decorator in body.function.decorators:
        target = decorator.items[0] if decorator.kind == "call" else decorator
        kind = _KINDS.get(_compiler(names, around, target))
        if kind is not None:
            yield Traced(body, kind, decorator, _parameters(names, body))
            return


def _calls(body: Body, words: frozenset[str]) -> Iterator[Expr]:
    """The calls in a body by one of these last words."""
    return (call for call in body.scope.calls if called_word(call.items[0]) in words)


def _applied(names: Names, body: Body, words: frozenset[str]) -> Iterator[Traced]:
    """The functions that ``flyc.jit(function)`` traces."""
    for call in _calls(body, words):
        kind = _KINDS.get(_compiler(names, body, call.items[0]))
        arguments = call.positional() if kind is not None else []
        target = names.bodies.called(body, arguments[0].text) if arguments and arguments[0].kind == "name" else None
        if kind is not None and target is not None:
            yield Traced(target, kind, call, _parameters(names, target))


def _compiler(names: Names, body: Body, expr: Expr) -> str:
    """The last word of a name of ``flydsl.compiler``."""
    full = names.full(body, expr.text) if expr.kind == "name" else ""
    return full.rpartition(".")[2] if full.startswith("flydsl.compiler.") else ""


def _parameters(names: Names, body: Body) -> tuple[Parameter, ...]:
    return tuple(parameter(names, body.parent or body, item) for item in body.params)


def _wraps(names: Names, body: Body, words: frozenset[str]) -> Iterator[Wrap]:
    marks = {
        item.items[0].items[0].span: item
        for item in body.scope.calls
        if item.items[0].kind == "attribute" and item.items[0].text in MARKS
    }
    for call in _calls(body, words):
        api = _compiler(names, body, call.items[0])
        if api in WRAPPERS:
            chain: list[Expr] = []
            while (found := marks.get((chain[-1] if chain else call).span)) is not None:
                chain.append(found)
            yield Wrap(body, call, api, tuple(chain))


def _descriptors(tree: FlyTree, body: Body, words: frozenset[str]) -> Iterator[Descriptor]:
    names = tree.names
    is_first = tree.contract.surely(Era.BAKED) and not tree.contract.own
    for call in _calls(body, words):
        if not call.callee:
            continue
        api, named = names.called(body, call), names.bodies.resolve(body, call.callee)
        found = named if isinstance(named, FunctionRef) else names.definition(api) if api in DESCRIBERS else None
        if found is not None:
            taken = {item.name for item in found.function.params[1:]}
            if "max_size" in taken and (found.function.name in DESCRIBERS or "num_records_bytes" in taken):
                yield Descriptor(body, call, found.function.name, found.function.params)
        elif api in DESCRIBERS:
            yield Descriptor(body, call, api, (FIRST_DESCRIBERS if is_first else DESCRIBERS)[api])
