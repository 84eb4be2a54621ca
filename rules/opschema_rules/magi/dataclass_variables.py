"""Variables that are known to hold a dataclass of an op: in its body, its other functions, and at its calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

from opschema_cli.evaluation.statements import all_statements
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Expr
from opschema_cli.source.resolution import ClassRef
from opschema_rules.magi.given import Meta
from opschema_rules.magi.judged_calls import judged_calls
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import passed
from opschema_rules.magi.signature import Branch
from opschema_rules.magi.usage import is_tested

Variables: TypeAlias = "dict[str, Branch]"
"""Dataclasses by the dotted names that hold them."""

_ROUNDS = 3
"""Maximum length of a chain of variables assigned from each other."""


class Holder(msgspec.Struct, frozen=True, eq=False):
    """A body, and the variables in it that hold a dataclass."""

    body: Body
    variables: Variables


def holders(op: MagiOp) -> Iterator[Holder]:
    """The bodies that get a dataclass of an op, each with its variables."""
    roots = {node.name: node for node in op.lowering.nodes if isinstance(node, Branch)}
    yield _holder(op.body, _params(op.body, roots))
    meta = op.meta.function if isinstance(op.meta, Meta) else None
    if isinstance(meta, Body):
        yield _holder(meta, _params(meta, roots))
    if isinstance(op.setup_context, Body):
        yield from _of_gradient(op, op.setup_context)
    yield from _callers(op, roots)


def branch_of(variables: Mapping[str, Branch], dotted: str) -> tuple[Branch, list[str]] | None:
    """Return the last dataclass on the path of a dotted name, and the rest of the name."""
    words = dotted.split(".")
    start = next((n for n in range(len(words) - 1, 0, -1) if ".".join(words[:n]) in variables), 0)
    if not start:
        return None
    branch, rest = variables[".".join(words[:start])], words[start:]
    while len(rest) > 1:
        child = next((item for item in branch.children if item.name == rest[0]), None)
        if not isinstance(child, Branch):
            break
        branch, rest = child, rest[1:]
    return branch, rest


def _holder(body: Body, variables: Variables) -> Holder:
    """The body with the variables that are assigned once, from others."""
    found = dict(variables)
    for _ in range(_ROUNDS):
        for item in body.scope.assigns:
            branch = _held(found, item.value) if item.value is not None else None
            if branch is not None and "." not in item.target and _is_only(body, item):
                found.setdefault(item.target, branch)
    return Holder(body, {name: item for name, item in found.items() if not is_tested(body, name)})


def _held(variables: Variables, value: Expr) -> Branch | None:
    """Return the dataclass of an expression: a variable, or a field that holds one."""
    if value.kind != "name":
        return None
    if value.text in variables:
        return variables[value.text]
    found = branch_of(variables, value.text)
    child = next((item for item in found[0].children if item.name == found[1][0]), None) if found is not None else None
    return child if found is not None and len(found[1]) == 1 and isinstance(child, Branch) else None


def _params(body: Body, roots: Variables) -> Variables:
    """The parameters of those names that are never bound anew."""
    names = {item.name for item in body.params if item.by_name}
    return {name: branch for name, branch in roots.items() if name in names and not _is_bound(body, name)}


def _is_bound(body: Body, name: str) -> bool:
    """Whether a parameter is rebound, in a function or a nested one."""
    scopes = list(body.scope.walk())
    functions = (item.name for scope in scopes for item in scope.functions)
    classes = (item.name for scope in scopes for item in scope.classes)
    imported = (item.name for scope in scopes for item in scope.imports)
    assigned = (item.target for scope in scopes for item in scope.assigns)
    captured = (
        word for item in all_statements(body.statements) if item.kind == "case" for word in item.text.split(",")
    )
    deleted = (word for scope in scopes for word in scope.deleted)
    return name in {*functions, *classes, *imported, *assigned, *captured, *deleted}


def _is_only(body: Body, item: Assign) -> bool:
    """Whether an assignment is the only one to its target, in its body and in those in it."""
    written = [other for scope in body.scope.walk() for other in scope.assigns if other.target == item.target]
    param = any(other.name == item.target for other in body.params)
    return len(written) == 1 and not param and not any(item.target in scope.deleted for scope in body.scope.walk())


# Gradients


def _of_gradient(op: MagiOp, setup: Body) -> Iterator[Holder]:
    """Yield ``setup_context_fn``, and ``backward_fn`` with the values that the context keeps."""
    names = [item.name for item in setup.params if item.kind in ("posonly", "normal")]
    if len(names) < 2 or any(_is_bound(setup, name) for name in names[:2]):
        return
    found = _holder(setup, _unpacked(op, setup, names[1]))
    yield found
    kept = {
        item.target.removeprefix(f"{names[0]}."): branch
        for item in setup.scope.assigns
        if item.target.startswith(f"{names[0]}.") and _is_only(setup, item)
        if (branch := _assigned(op, found.variables, item, names[1])) is not None
    }
    backward = op.backward
    if isinstance(backward, Body) and backward.params and not _is_bound(backward, backward.params[0].name):
        context = backward.params[0].name
        written = {item.target for scope in backward.scope.walk() for item in scope.assigns}
        names_kept = {f"{context}.{name}": branch for name, branch in kept.items()}
        yield _holder(backward, {name: item for name, item in names_kept.items() if name not in written})


def _assigned(op: MagiOp, variables: Variables, item: Assign, inputs: str) -> Branch | None:
    if item.value is None:
        return None
    return _held(variables, item.value) or _indexed(op, item.value, inputs)


def _unpacked(op: MagiOp, setup: Body, inputs: str) -> Variables:
    """Return the variables that the inputs are unpacked into, or that hold one of them."""
    found: Variables = {}
    for part in setup.scope.unpacks:
        if part.value.text == inputs and not part.starred and len(part.targets) == len(op.lowering.nodes):
            pairs = zip(part.targets, op.lowering.nodes, strict=True)
            found.update({name: node for name, node in pairs if name and isinstance(node, Branch)})
    for item in setup.scope.assigns:
        branch = _indexed(op, item.value, inputs) if item.value is not None else None
        if branch is not None and "." not in item.target:
            found[item.target] = branch
    written = [item.target for scope in setup.scope.walk() for item in scope.assigns]
    return {name: branch for name, branch in found.items() if written.count(name) == 1}


def _indexed(op: MagiOp, value: Expr, inputs: str) -> Branch | None:
    """The dataclass that ``inputs[1]`` is."""
    if value.kind != "subscript" or len(value.items) != 2 or value.items[0].text != inputs:
        return None
    index = value.items[1].value
    nodes = op.lowering.nodes
    node = nodes[index] if isinstance(index, int) and 0 <= index < len(nodes) else None
    return node if isinstance(node, Branch) else None


# Callers


def _callers(op: MagiOp, roots: Variables) -> Iterator[Holder]:
    """The bodies that call the op, with the variables that are assigned an instance and passed."""
    found: dict[Body, Variables] = {}
    for item in judged_calls(op):
        for branch in roots.values():
            value = passed(op, item, branch)
            if value is not None and value.expr.kind == "name" and _is_made(op, item.body, value.expr.text, branch):
                found.setdefault(item.body, {})[value.expr.text] = branch
    for body, variables in found.items():
        yield _holder(body, variables)


def _is_made(op: MagiOp, body: Body, name: str, branch: Branch) -> bool:
    """Whether a variable of a body is assigned once, and an instance of the dataclass."""
    assigns = [item for item in body.scope.assigns if item.target == name]
    if len(assigns) != 1 or not _is_only(body, assigns[0]):
        return False
    value = assigns[0].value
    made = op.tree.bodies.resolve(body, value.callee) if value is not None and value.kind == "call" else None
    return isinstance(made, ClassRef) and made == branch.dataclass.ref
