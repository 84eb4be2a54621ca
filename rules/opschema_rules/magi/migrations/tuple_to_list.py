"""`tuple-to-list`: parameters and fields that are tuples become lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.arguments import add_keyword, to_list
from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.imports import drop_imports, unused_imports
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.signatures import parameter
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.python import Expr, Param, PythonFile
from opschema_cli.source.resolution import ClassRef, External
from opschema_cli.source.text import Place, Span
from opschema_rules.magi.dataclasses import Dataclass, Field
from opschema_rules.magi.migrations.scopes import OPS
from opschema_rules.magi.migrations.spelling import of_dataclasses
from opschema_rules.magi.migrations.trees import meaning, meant_ops, meta_body, naming, tree_of
from opschema_rules.magi.migrations.tuple_types import element_of, rewritten, tuple_of
from opschema_rules.magi.migrations.tuple_uses import tuple_uses
from opschema_rules.magi.model import MagiOp, MagiTree
from opschema_rules.magi.proofs import PROGRAMS
from opschema_rules.magi.signature import Leaf

_HASHING = ("hash", "functools.lru_cache", "functools.cache")


class _Tuple(msgspec.Struct, frozen=True):
    """A parameter or field that is a tuple, and the ops that have it."""

    leaf: Leaf
    ops: tuple[MagiOp, ...]


def find(draft: Draft, options: object) -> Iterator[Site]:
    """The parameters of ops, and the fields of their dataclasses, that are tuples."""
    tree = tree_of(draft)
    found: dict[Place, tuple[Leaf, list[MagiOp]]] = {}
    for op in meant_ops(tree) if tree is not None else ():
        for leaf in op.lowering.leaves:
            if tuple_of(leaf.type) is not None:
                found.setdefault(leaf.place, (leaf, []))[1].append(op)
    for place, (leaf, ops) in found.items():
        titles = tuple(sorted({op.title for op in ops}))
        yield Site(place, f"make `{leaf.name}` a list", titles, ("MAG302",), _Tuple(leaf, tuple(ops)))


@migration(
    "tuple-to-list", find=find, scope=OPS, settled="no op takes a tuple, or the contract takes them", proof=PROGRAMS
)
def tuple_to_list(draft: Draft, sites: Sequence[Site], options: object) -> Iterator[Note]:
    """Turn tuple parameters of ops, and tuple fields of their dataclasses, into lists.

    Schemas support only lists: `tuple[int, int]` becomes `list[int]`, in the op, in its meta function and in the dataclass.
    Literal tuples in calls of the op or the dataclass become lists as well, and so do default values. A field gets a
    `default_factory`; the default of a parameter is removed, because a lowered signature cannot hold a list, and calls that
    omitted it pass it.

    Left unchanged, with a note: tuples whose elements differ in type, or have a type that schemas have no list of; those
    whose type is an alias; parameters whose default cannot be removed, because an earlier one has a default. Notes show
    where an op, a method of the dataclass or a function with a parameter of its type uses the value in a way that a list does
    not support (`pad + (0,)`, `pad == (1, 1)`, `table[pad]`, `isinstance(pad, tuple)`).

        opschema migrate tuple-to-list
    """
    tree = tree_of(draft)
    assert tree is not None
    workbench = Workbench(draft)
    for site in sites:
        assert isinstance(site.subject, _Tuple)
        try:
            with workbench.atomic():
                notes = list(_make_list(tree, workbench, site.subject))
        except LeftAlone as found:
            yield from left(site, found)
            continue
        yield from notes
    for path in workbench.paths:
        with workbench.on(path) as rewrite:
            if any(map(rewrite.is_gone, rewrite.tree.names("Tuple"))):
                drop_imports(rewrite, unused_imports(rewrite, ["Tuple"]))
    workbench.commit()


def _make_list(tree: MagiTree, workbench: Workbench, found: _Tuple) -> Iterator[Note]:
    leaf = found.leaf
    form = tuple_of(leaf.type)
    assert form is not None
    if element_of(form) is None:
        raise LeftAlone(leaf.place, f"`{form}` is not a list of one type that a schema has")
    if isinstance(leaf.source, Field):
        _field(tree, workbench, leaf.source)
        yield from _made(tree, workbench, leaf.source)
        yield from _read(tree, workbench, found, leaf.source)
    else:
        for op in found.ops:
            yield from _parameter(workbench, op, leaf.source)
    for op in found.ops:
        for body in filter(None, (op.body, meta_body(op))):
            with workbench.on(body.file.path) as rewrite:
                yield from tuple_uses(tree, rewrite, body, _path_in(op, leaf))


def _path_in(op: MagiOp, leaf: Leaf) -> tuple[str, ...]:
    return next(item.path for item in op.lowering.leaves if item.place == leaf.place)


def _annotation(tree: MagiTree, rewrite: Rewrite, body: Body, annotation: Expr | None) -> None:
    """Write an annotation anew.

    Raises:
        LeftAlone: it is an alias, or `list` means something else here.
    """
    edits = rewritten(rewrite.tree, annotation) if annotation is not None else None
    place = body.at(annotation) if annotation is not None else body.at(Span(0, 0))
    if not edits:
        raise LeftAlone(place, f"`{body.file.text(place.span)}` is not written as a tuple here")
    if tree.bodies.resolve(body, "list") != External("list"):
        raise LeftAlone(place, "`list` is another name here")
    for edit in edits:
        rewrite.replace(*edit)


# Parameters


def _parameter(workbench: Workbench, op: MagiOp, param: Param) -> Iterator[Note]:
    path = op.body.file.path
    with workbench.on(path) as rewrite:
        node = function_node(rewrite.tree, op.body)
        _annotation(op.tree, rewrite, op.body.parent or op.body, param.annotation)
        code = None
        if param.default is not None and not _is_none(param.default):
            code = _list_code(rewrite, param.default)
            if code is None:
                place = op.body.at(param.default)
                raise LeftAlone(place, f"the default of `{param.name}` is not written as a tuple here")
            _drop_default(rewrite, node, param.name)
    meta = meta_body(op)
    twin = meta.function.param(param.name) if meta is not None and meta.function is not None else None
    if meta is not None and twin is not None and twin.annotation is not None:
        with workbench.on(meta.file.path) as rewrite:
            edits = rewritten(rewrite.tree, twin.annotation)
            for edit in edits or ():
                rewrite.replace(*edit)
    yield from _callers(workbench, op, param, code)


def _drop_default(rewrite: Rewrite, function: cst.FunctionDef, name: str) -> None:
    """Take a parameter's default away; those before it may have lost theirs in the same round."""
    tree, params = rewrite.tree, function.params
    param = parameter(rewrite, function, name)
    assert param.default is not None
    assert param.annotation is not None
    peers = list(params.params)
    for before in peers[: peers.index(param)] if param in peers else ():
        if before.default is not None and not rewrite.is_gone(before.default):
            reason = f"{name} has no default and would follow {before.name.value}, which has one"
            raise Refused([Problem(tree.span(before).start, reason)])
    start, end = tree.outer(param.annotation.annotation).end, tree.outer(param.default).end
    rewrite.replace(Span(start, end), "")


def _callers(workbench: Workbench, op: MagiOp, param: Param, default: str | None) -> Iterator[Note]:
    for call in op.calls:
        name = param.name
        value = argument_for(call.call, op.params, name)
        hidden = "*" in call.call.keywords or "**" in call.call.keywords
        with workbench.on(call.place.path) as rewrite:
            if value is not None:
                _literal(rewrite, value)
            elif hidden:
                yield Note(call.place, f"this may pass `{name}`, which is a list now")
            elif default is not None:
                add_keyword(rewrite, rewrite.tree.find(call.call.span, cst.Call), name, default)


def _literal(rewrite: Rewrite, value: Expr) -> None:
    if value.kind == "tuple":
        to_list(rewrite, rewrite.tree.find(value.span, cst.Tuple))


def _list_code(rewrite: Rewrite, value: Expr) -> str | None:
    """A tuple's code as that of a list."""
    if value.kind != "tuple":
        return None
    node = rewrite.tree.find(value.span, cst.Tuple)
    elements = [rewrite.tree.code(item) for item in node.elements]
    return f"[{', '.join(elements)}]" if "#" not in rewrite.tree.code(node) else None


def _is_none(value: Expr) -> bool:
    return value.kind == "const" and value.value is None


# Fields


def _field(tree: MagiTree, workbench: Workbench, field: Field) -> None:
    with workbench.on(field.body.file.path) as rewrite:
        _annotation(tree, rewrite, field.body, field.annotation)
        value = field.assign.value
        if value is None or _is_none(value):
            return
        code = _list_code(rewrite, value)
        if code is None:
            raise LeftAlone(field.body.at(value), f"the default of `{field.name}` is not written as a tuple here")
        node = rewrite.tree.find(value.span, cst.Tuple)
        factory = of_dataclasses(tree, rewrite, field.body, "field")
        rewrite.replace(rewrite.tree.outer(node), f"{factory}(default_factory=lambda: {code})")


def _made(tree: MagiTree, workbench: Workbench, field: Field) -> Iterator[Note]:
    """The calls that make instances of the dataclass, by its own name."""
    owner = field.owner
    for file in naming(workbench.draft, tree.bodies, owner.name, lambda found: found == owner):
        for body in tree.bodies.of(file):
            for call in body.scope.calls:
                if call.callee and tree.bodies.resolve(body, call.callee) == owner:
                    with workbench.on(file.path) as rewrite:
                        value = _passed(tree, owner, call, field.name)
                        if value is not None:
                            _literal(rewrite, value)
        yield from _hashed(tree, workbench, file, field)


def _read(tree: MagiTree, workbench: Workbench, found: _Tuple, field: Field) -> Iterator[Note]:
    """Notes on methods of the dataclass, and on other functions with a parameter of its type, that need a tuple. Those that
    read their variables by reflection are left out.
    """
    owner = field.owner
    noted = {id(body) for op in found.ops for body in (op.body, meta_body(op))}
    for file in naming(workbench.draft, tree.bodies, owner.name, lambda item: item == owner):
        for body in tree.bodies.of(file):
            for name in _holders(tree, body, owner) if id(body) not in noted else ():
                with suppress(LeftAlone), workbench.on(file.path) as rewrite:
                    yield from tuple_uses(tree, rewrite, body, (name, field.name))


def _holders(tree: MagiTree, body: Body, owner: ClassRef) -> Iterator[str]:
    """The parameters of a function that hold an instance of a class."""
    if body.method is body and body.owner == owner:
        yield body.this
    for param in body.params:
        written = param.annotation.text if param.annotation is not None and param.annotation.kind == "name" else ""
        if written and tree.bodies.resolve(body.parent or body, written) == owner:
            yield param.name


def _passed(tree: MagiTree, owner: ClassRef, call: Expr, name: str) -> Expr | None:
    made = tree.lowerer.dataclasses.of(owner)
    value = call.keyword(name)
    if value is not None or not isinstance(made, Dataclass):
        return value
    places = [item.name for item in made.fields if item.init is True and item.kw_only is False]
    if name not in places or made.own_init is not None or "*" in call.keywords:
        return None
    positional = call.positional()
    return positional[places.index(name)] if places.index(name) < len(positional) else None


def _hashed(tree: MagiTree, workbench: Workbench, file: PythonFile, field: Field) -> Iterator[Note]:
    nodes = workbench.tree(file.path)
    for full in _HASHING:
        name = full.rpartition(".")[2]
        for node in [*nodes.names(name), *nodes.attributes(name)]:
            imported = nodes.enclosing(node, cst.ImportAlias) is not None
            if not imported and meaning(tree.bodies, file, nodes, node) == External(full):
                reason = f"a `{field.owner.name}` with a list in `{field.name}` has no hash"
                yield Note(Place(file.path, nodes.span(node)), reason)
