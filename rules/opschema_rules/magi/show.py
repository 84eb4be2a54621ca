"""``opschema show`` for ops of MagiCompiler: original signature, lowered signature, and the tree that maps one to the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.lint.names import closest_names
from opschema_cli.lint.pack import Shown, ShowRow
from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Place
from opschema_rules.magi.given import Callback, Lambda, Meta, Mutates
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Branch, Leaf, Lowering, Node, Problem

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


def show(project: Project, options: MagiOptions, name: str) -> Shown | Sequence[str]:
    """The op of that qualified name or function; the closest names when there is none."""
    from opschema_rules.magi.pack import load_tree

    ops = load_tree(project, options).ops
    op = next((item for item in ops if name in (item.name, item.function_name)), None)
    if op is None:
        return closest_names(name, [item.title for item in ops])
    lowered = op.contract.lowers
    places = [*_places(op), *(_lowered_places(op) if lowered else ())]
    rows = [_row(op, leaf) for leaf in op.lowering.leaves] if lowered else []
    return Shown(
        op.title,
        places,
        rows,
        ("parameter", "original", "lowered"),
        _text(op, op.lowering) if lowered else original(op),
    )


def _places(op: MagiOp) -> Iterator[tuple[str, str]]:
    yield "registered", _at(op, op.registration.place)
    yield "function", _at(op, op.place)
    contract = op.contract
    yield "contract", f"{contract.name} ({contract.source})"
    yield "meta", _meta(op)
    if op.backward is not None:
        yield "backward", _callback(op, op.backward)
    if op.setup_context is not None:
        yield "setup", _callback(op, op.setup_context)


def _lowered_places(op: MagiOp) -> Iterator[tuple[str, str]]:
    lowering = op.lowering
    yield "path", _PATHS[lowering.path] if lowering.path is not None else "unresolved"
    mutates = op.mutates
    if isinstance(mutates, Mutates) and mutates.names:
        expanded, unknown = lowering.expand_mutates([item.name for item in mutates.names])
        yield "mutates", ", ".join([*expanded, *(f"{name} (no parameter)" for name in unknown)])
    for problem in lowering.problems:
        yield "refused", f"{_at(op, problem.place)}: {refusal(problem)}"
    for reason in lowering.unknown:
        yield "unresolved", reason


def refusal(problem: Problem) -> str:
    """Why the decorator refuses an op, in a few words."""
    return f"{problem.where} {_REFUSALS[problem.kind]}"


def _meta(op: MagiOp) -> str:
    meta = op.meta
    if not isinstance(meta, Meta):
        return f"unresolved: {meta.reason}"
    if meta.kind == "names":
        return f"like {', '.join(item.name for item in meta.names)}"
    if meta.function is not None:
        return _callback(op, meta.function)
    return "identity: like the first tensors" if meta.kind == "identity" else "neither a function nor a list"


def _callback(op: MagiOp, found: Callback) -> str:
    if isinstance(found, Lambda):
        return _at(op, found.written.place)
    if isinstance(found, Body) and found.function is not None:
        return f"{_at(op, found.at(found.function.span))} {found.function.name}"
    return f"unresolved: {found.reason}" if isinstance(found, Unresolved) else "none"


def _at(op: MagiOp, place: Place) -> str:
    source = op.tree.project.source(place.path)
    return place.path if source is None else f"{place.path}:{source.position(place.span.start).line}"


def _row(op: MagiOp, leaf: Leaf) -> ShowRow:
    note = "default dropped" if leaf.scrubbed else "str at run time" if leaf.downgraded else ""
    body, source = (op.body, leaf.source) if isinstance(leaf.source, Param) else (leaf.source.body, leaf.source)
    place = source.full_span if isinstance(source, Param) else source.statement.span
    return ShowRow(".".join(leaf.path), _one_line(body.file.text(place)), _lowered(leaf), note)


def _lowered(leaf: Leaf) -> str:
    form = f": {leaf.lowered_type}" if leaf.lowered_type is not None else ""
    return f"{leaf.lowered}{form}" + (f" = {leaf.default}" if leaf.default.kind != "absent" else "")


def _text(op: MagiOp, lowering: Lowering) -> str:
    returned = f" -> {lowering.returns}" if lowering.returns is not None else ""
    signature = f"({', '.join(map(_lowered, lowering.leaves))}){returned}"
    tree = "".join(_tree(node, "    ") for node in lowering.nodes)
    return f"{original(op)}\nlowered_sig:  {signature}\nparam_mapping_tree:\n[\n{tree}]"


def original(op: MagiOp) -> str:
    """The op's signature as it is written."""
    parts: list[str] = []
    for index, item in enumerate(op.params):
        before = [param.kind for param in op.params[:index]]
        if item.kind != "posonly" and before and before[-1] == "posonly":
            parts.append("/")
        if item.kind == "kwonly" and "kwonly" not in before and "vararg" not in before:
            parts.append("*")
        stars = {"vararg": "*", "kwarg": "**"}.get(item.kind, "")
        parts.append(stars + _one_line(op.body.file.text(item.full_span)))
    returns = op.body.function.returns if op.body.function is not None else None
    return f"original_sig: ({', '.join(parts)})" + (f" -> {_expr(op, returns)}" if returns is not None else "")


def _expr(op: MagiOp, expr: Expr) -> str:
    return _one_line(op.body.file.text(expr))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _tree(node: Node, indent: str) -> str:
    if isinstance(node, Branch):
        inner = "".join(_tree(child, indent + "    ") for child in node.children)
        return f'{indent}("dataclass", "{node.name}", {node.dataclass.name}, [\n{inner}{indent}]),\n'
    return f'{indent}("primitive", "{node.name}", "{node.lowered}", None),\n'
