"""The pack's operators for the table: the written signature, the lowered one, and the tree that maps one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from opschema_cli.operators.model import (
    Argument,
    Declaration,
    Detail,
    Gap,
    Implementation,
    Operator,
    Registration,
    Return,
    Role,
    Signature,
)
from opschema_cli.operators.parameters import argument_of, arguments_of, one_line
from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_cli.source.resolution import Unresolved
from opschema_rules.magi.given import Callback, Lambda, Meta, Mutates
from opschema_rules.magi.load import load_tree
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Branch, Leaf, Lowering, Node

if TYPE_CHECKING:
    from opschema_rules.magi.detection import MagiOptions

_PATHS = {
    "simple": "simple: fn -> torch op",
    "signature": "sig-only-rewrite: fn -> lowered fn -> torch op",
    "flatten": "dataclass-flatten: fn -> lowered fn -> torch op -> exposed op",
}

_REFUSALS = {
    "variadic": "is variadic",
    "no-annotation": "has no annotation",
    "mutable-dataclass": "is a dataclass that is not frozen",
    "tuple": "is a tuple",
    "dict": "is a dict",
    "text-field": "has an annotation that stays a string",
    "recursive": "is a dataclass that holds itself",
    "no-return": "has no annotation",
    "dataclass-return": "is a dataclass",
    "literal": "is a Literal of more than strings",
    "enum": "is an enumeration of more than strings",
    "default-order": "has no default but follows one that has",
    "duplicate-name": "is there twice",
}


def operators(project: Project, options: MagiOptions) -> Iterator[Operator]:
    """The ops of the workspace."""
    yield from map(operator_of, load_tree(project, options).ops)


def operator_of(op: MagiOp) -> Operator:
    """One op of MagiCompiler."""
    lowered = op.contract.lowers
    names = sorted(op.names or ())
    return Operator(
        op.title,
        _declaration(op, lowered=lowered),
        aliases=tuple(sorted({*names, op.function_name} - {op.title, ""})),
        implementations=tuple(_implementations(op, lowered=lowered)),
        registrations=(Registration("definition", "registered", op.registration.place, helper=_helper(op)),),
        details=tuple(_details(op, lowered=lowered)),
        unresolved=tuple(_gaps(op, lowered=lowered)),
        text=_text(op, op.lowering) if lowered else original(op),
    )


def _helper(op: MagiOp) -> str:
    """The wrapper that is called in place of MagiCompiler's decorator."""
    name = (op.registration.call.callee or op.registration.call.text).rpartition(".")[2]
    return "" if name == "magi_register_custom_op" else name


# -- the declaration -------------------------------------------------------------------------------------------------------


def _declaration(op: MagiOp, *, lowered: bool) -> Declaration:
    mutates = op.mutates
    written = {item.name for item in mutates.names} if isinstance(mutates, Mutates) else None
    nodes = {node.name: node for node in op.lowering.nodes} if lowered else {}
    arguments = (argument_of(op.body.file, item) for item in op.params)
    arguments = (replace(item, mutated=item.name in written if written is not None else None) for item in arguments)
    returns = op.body.function.returns if op.body.function is not None else None
    return Declaration(
        "function",
        op.place,
        tuple(replace(item, fields=_fields(nodes.get(item.name))) for item in arguments),
        (Return("", one_line(op.body.file, returns.span), place=op.body.at(returns)),) if returns is not None else (),
    )


def _fields(node: Node | None) -> tuple[Argument, ...]:
    """The fields of a parameter that is a dataclass."""
    if not isinstance(node, Branch):
        return ()
    return tuple(replace(_as_written(child), fields=_fields(child)) for child in node.children)


def _as_written(node: Node) -> Argument:
    source = node.source
    if isinstance(source, Param):  # the op's own parameter is declared above
        return Argument(node.name, place=node.place)
    return Argument(node.name, text=one_line(source.body.file, source.statement.span), place=node.place)


# -- what implements it ----------------------------------------------------------------------------------------------------


def _implementations(op: MagiOp, *, lowered: bool) -> Iterator[Implementation]:
    yield Implementation("kernel", op.function_name, op.place, registered=op.registration.place)
    if lowered:
        signature = Signature("lowered", op.place, tuple(map(_lowered_argument, op.lowering.leaves)))
        yield Implementation("lowering", place=op.place, signatures=(signature,), generated=True, text=_path(op))
    meta = op.meta
    if not isinstance(meta, Meta):
        yield Implementation("fake", unresolved=meta.reason)
    elif meta.function is not None:
        yield _callback(op, "fake", meta.function)
    else:
        yield Implementation("fake", text=_meta(meta), place=meta.written.place if meta.written is not None else None)
    for found in (op.backward,):
        if found is not None:
            yield _callback(op, "autograd", found)


def _path(op: MagiOp) -> str:
    return _PATHS[op.lowering.path] if op.lowering.path is not None else "unresolved"


def _lowered_argument(leaf: Leaf) -> Argument:
    return Argument(
        leaf.lowered,
        str(leaf.lowered_type) if leaf.lowered_type is not None else "",
        default=str(leaf.default) if leaf.default.kind != "absent" else None,
        text=_lowered(leaf),
        place=leaf.place,
        stands_for=".".join(leaf.path),
        note="default dropped" if leaf.scrubbed else "str at run time" if leaf.downgraded else "",
    )


def _meta(meta: Meta) -> str:
    if meta.kind == "names":
        return f"like {', '.join(item.name for item in meta.names)}"
    return "identity: like the first tensors" if meta.kind == "identity" else "neither a function nor a list"


def _callback(op: MagiOp, role: Role, found: Callback) -> Implementation:
    if isinstance(found, Lambda):
        return Implementation(role, "lambda", found.written.place)
    if isinstance(found, Body) and found.function is not None:
        place = found.at(found.function.span)
        return Implementation(role, found.function.name, place, registered=None)
    return Implementation(role, unresolved=found.reason if isinstance(found, Unresolved) else "it is not a function")


# -- what only MagiCompiler knows ------------------------------------------------------------------------------------------


def _details(op: MagiOp, *, lowered: bool) -> Iterator[Detail]:
    yield Detail("contract", f"{op.contract.name} ({op.contract.source})")
    if op.setup_context is not None:
        found = _callback(op, "other", op.setup_context)
        yield Detail("setup", found.symbol or f"unresolved: {found.unresolved}", found.place)
    mutates = op.mutates
    if isinstance(mutates, Mutates) and mutates.names and lowered:
        expanded, unknown = op.lowering.expand_mutates([item.name for item in mutates.names])
        names = ", ".join([*expanded, *(f"{name} (no parameter)" for name in unknown)])
        yield Detail("mutates", names, mutates.names[0].place)
    for problem in op.lowering.problems if lowered else ():
        yield Detail("refused", f"{problem.where} {_REFUSALS[problem.kind]}", problem.place)


def _gaps(op: MagiOp, *, lowered: bool) -> Iterator[Gap]:
    if op.names is None:
        yield Gap("name", "its qualified name is not known", op.registration.place)
    if isinstance(op.mutates, Unresolved):
        yield Gap("mutates", op.mutates.reason, op.registration.place)
    yield from (Gap("lowering", reason, op.place) for reason in (op.lowering.unknown if lowered else ()))


# -- both signatures and the tree, as MagiCompiler's own debugging prints them -----------------------------------------------


def _lowered(leaf: Leaf) -> str:
    form = f": {leaf.lowered_type}" if leaf.lowered_type is not None else ""
    return f"{leaf.lowered}{form}" + (f" = {leaf.default}" if leaf.default.kind != "absent" else "")


def _text(op: MagiOp, lowering: Lowering) -> str:
    returned = f" -> {lowering.returns}" if lowering.returns is not None else ""
    signature = f"({', '.join(map(_lowered, lowering.leaves))}){returned}"
    tree = "".join(_tree(node, "    ") for node in lowering.nodes)
    return f"{original(op)}\nlowered_sig:  {signature}\nparam_mapping_tree:\n[\n{tree}]"


def original(op: MagiOp) -> str:
    """Return the op's signature as written."""
    parts: list[str] = []
    kinds = [item.kind for item in op.params]
    for index, item in enumerate(arguments_of(op.body.file, op.params)):
        before = kinds[:index]
        if item.kind != "posonly" and before and before[-1] == "posonly":
            parts.append("/")
        if item.kind == "kwonly" and "kwonly" not in before and "vararg" not in before:
            parts.append("*")
        parts.append(item.text)
    returns = op.body.function.returns if op.body.function is not None else None
    returned = f" -> {one_line(op.body.file, returns.span)}" if returns is not None else ""
    return f"original_sig: ({', '.join(parts)}){returned}"


def _tree(node: Node, indent: str) -> str:
    if isinstance(node, Branch):
        inner = "".join(_tree(child, indent + "    ") for child in node.children)
        return f'{indent}("dataclass", "{node.name}", {node.dataclass.name}, [\n{inner}{indent}]),\n'
    return f'{indent}("primitive", "{node.name}", "{node.lowered}", None),\n'
