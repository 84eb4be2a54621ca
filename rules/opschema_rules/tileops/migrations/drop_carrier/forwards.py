"""``forward()`` of an op without tensor inputs: it directly runs the code that its custom op ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.folding import fold_expression, fold_local
from opschema_cli.migrate.codemods.methods import inline_method
from opschema_cli.migrate.codemods.names import drop_local
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Bodies, Body, argument_for
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Expr
from opschema_cli.source.python_tree import PythonTree
from opschema_rules.tileops.carrier_attributes import Handing
from opschema_rules.tileops.custom_ops import CustomOp
from opschema_rules.tileops.mentions import MentionIndex

PURE = ("getattr", "type")


class Eager(msgspec.Struct, frozen=True):
    """The method ``callee`` that a method is left to call; ``later`` when that call is not yet in its text."""

    body: Body
    callee: str
    later: bool


def run_eagerly(workbench: Workbench, bodies: Bodies, body: Body, handings: Iterable[Handing]) -> Eager | None:
    """Let a method without tensors for a custom op run the op's code. Return the remaining call, if there is one method.

    Raises:
        LeftAlone: it is not certain that the same would run.
    """
    first = {id(item.call): item for item in handings}
    with workbench.on(body.file.path) as rewrite:
        function = function_node(rewrite.tree, body)
        calls = {rewrite.tree.find(item.call.span, cst.Call): item for item in first.values()}
        for call in calls:
            _take_absent(rewrite, function, call)
        texts = {_eager_call(bodies, body, handing) for handing in calls.values()}
        written = [call for call in calls if not rewrite.is_gone(call)]
        for call in written:
            rewrite.replace(rewrite.tree.span(call), _eager_call(bodies, body, calls[call]))
        if not written and {_code(rewrite, _returned(rewrite, function))} != {"".join(text.split()) for text in texts}:
            place = body.at(rewrite.tree.span(function.name))
            raise LeftAlone(place, "without its custom op, this runs something else")
        names = {node.value for call in calls for node in rewrite.tree.walk(call) if isinstance(node, cst.Name)}
        for name in sorted(names & {assign.target for assign in body.scope.assigns}):
            _drop_idle(rewrite, function, name)
    callees = {_method_of(op) for item in first.values() for op, _ in item.takers}
    later = bool(written) or isinstance(_returned(rewrite, function), cst.IfExp)
    return Eager(body, callees.pop(), later) if len(callees) == 1 else None


def inline(rewrite: Rewrite, eager: Eager) -> None:
    """Inline a method's body in place of the call that ends another method; leave both if that is not certain."""
    owner, function = eager.body.owner, eager.body.function
    if owner is None or function is None:
        return
    try:
        caller = rewrite.tree.method(owner.name, function.name)
        inline_method(rewrite, caller, rewrite.tree.method(owner.name, eager.callee))
    except (Refused, LookupError):
        return


# Where the custom op may be absent


def _take_absent(rewrite: Rewrite, function: cst.FunctionDef, call: cst.Call) -> None:
    """Fold the tests for whether there is a custom op, as if there were none."""
    tree = rewrite.tree
    named = [
        node for node in tree.walk(function)
        if type(node) is cst.NamedExpr and tree.code(node.target) == tree.code(call.func)
    ]  # fmt: skip
    text = tree.code(call.func)
    others = [node for node in tree.walk(function) if _is_test_of(tree, node, text)]
    for walrus in named:
        fold_expression(rewrite, walrus, None)
    if not named and others and isinstance(call.func, cst.Name):
        fold_local(rewrite, function, call.func.value, None, PURE)
    elif not named:
        for node in others:
            if isinstance(node, cst.BaseExpression) and not rewrite.is_gone(node):
                fold_expression(rewrite, node, None)


def _is_test_of(tree: PythonTree, node: cst.CSTNode, text: str) -> bool:
    """Whether a node is the expression ``text`` in a test."""
    if type(node) not in (cst.Name, cst.Attribute, cst.Call) or tree.code(node) != text:
        return False
    child: cst.CSTNode = node
    for above in tree.ancestors(node):
        if isinstance(above, cst.If | cst.IfExp):
            return above.test is child
        if not isinstance(above, cst.Comparison | cst.UnaryOperation | cst.BooleanOperation):
            return False
        child = above
    return False


def _drop_idle(rewrite: Rewrite, function: cst.FunctionDef, name: str) -> None:
    """Remove a local that only the call read."""
    try:
        drop_local(rewrite, function, name, PURE)
    except Refused:
        return


# What the custom op runs


def _eager_call(bodies: Bodies, body: Body, handing: Handing) -> str:
    """The call of the instance's own method that an op's implementation is, from inside the instance."""
    texts = {_own_call(bodies, body, handing, op) for op, _ in handing.takers}
    text = next(iter(texts)) if len(texts) == 1 else ""
    if not text:
        raise LeftAlone(
            handing.body.at(handing.call),
            "the custom op does more than call a method of the instance; run here what it runs",
        )
    return text


def _own_call(bodies: Bodies, body: Body, handing: Handing, op: CustomOp) -> str:
    returned = op.body.scope.returns
    name = _method_of(op) if len(op.bodies) == 1 else ""
    owner = body.owner
    if not name or owner is None or not _has_method(bodies, owner, name):
        return ""
    arguments = []
    for keyword, value in returned[0].args:
        given = argument_for(handing.call, op.body.params, value.text) if value.kind == "name" else None
        if given is None or keyword in ("*", "**"):
            return ""
        text = handing.body.file.text(given)
        arguments.append(f"{keyword}={text}" if keyword else text)
    return f"{body.this}.{name}({', '.join(arguments)})"


def _has_method(bodies: Bodies, owner: ClassRef, name: str) -> bool:
    """Whether a class, or one of those that inherit from it, has a method."""
    family = (ref for ref in bodies.family(owner) if owner in bodies.program.lineage(ref))
    return any(isinstance(bodies.program.member(ref, name), FunctionRef) for ref in (owner, *family))


def _method_of(op: CustomOp) -> str:
    """The method that an implementation calls on the instance that it looks up by key, and does nothing else."""
    returned = op.body.scope.returns
    if len(returned) != 1 or returned[0].kind != "call" or op.body.scope.conditions or op.body.scope.loops:
        return ""
    callee = returned[0].items[0]
    if callee.kind == "attribute":
        return callee.text if _looks_up(op.body, callee.items[0]) else ""
    holder, _, name = callee.text.rpartition(".")
    values = op.body.values(holder) if holder and "." not in holder else None
    return name if values and len(values) == 1 and _looks_up(op.body, values[0]) else ""


def _looks_up(body: Body, expr: Expr) -> bool:
    """Whether an expression takes something from a collection by one of a function's parameters."""
    while expr.kind == "call" and len(expr.items) == 1:  # a weak reference, called
        expr = expr.items[0]
    if expr.kind not in ("subscript", "call") or len(expr.items) < 2:
        return False
    names = {item.name for item in body.params}
    return expr.items[1].kind == "name" and expr.items[1].text in names


def _returned(rewrite: Rewrite, function: cst.FunctionDef) -> cst.BaseExpression | None:
    """The value that a function returns at its end."""
    left = list(rewrite.remaining(function.body.body))
    return left[-1].value if left and isinstance(left[-1], cst.Return) else None


def _code(rewrite: Rewrite, node: cst.BaseExpression | None) -> str:
    """Return the code of the rest of an expression, without white space."""
    if isinstance(node, cst.IfExp):
        node = node.orelse if rewrite.is_gone(node.body) else node.body
    return "".join(rewrite.tree.code(node).split()) if node is not None else ""


def is_private(
    bodies: Bodies, mentions: MentionIndex, eager: Eager, readers: Callable[[Bodies, str], list[str]]
) -> bool:
    """Whether nothing but the method that it is to be inlined into calls an eager method.

    ``readers`` gives the texts outside of the package that read an attribute.
    """
    found, owner = mentions.of(eager.callee), eager.body.owner
    if owner is None or not eager.callee.startswith("_"):
        return False
    family = bodies.family(owner)
    if any(ref in found.functions or ref in found.uses or ref in found.writes for ref in family if ref != owner):
        return False
    return not any(ref.name in text for text in readers(bodies, eager.callee) for ref in family)
