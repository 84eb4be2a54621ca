"""Tests that a validator lets an op without tensor inputs declare some, once it does not any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import libcst as cst

from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import Program
from opschema_cli.source.python import Expr, PythonFile
from opschema_rules.tileops.carve_outs import CarveOut
from opschema_rules.tileops.conditions import emptiness


def drop_exempting(workbench: Workbench, program: Program, file: PythonFile, found: CarveOut) -> Iterator[Note]:
    """Remove the tests of a file that assert an exception without a flag; yield notes on those that may."""
    checks = {body.function.name: body for body, _ in found.guards if body.function is not None}
    bodies = Bodies(program, [file.path])
    for body in bodies.of(file):
        if body.function is None or not body.function.name.startswith("test"):
            continue
        calls = [call for call in body.scope.calls if call.callee.rpartition(".")[2] in checks]
        told = [item for call in body.scope.calls for item in call.walk() if item.value == "none"]
        told += [item for assign in body.scope.assigns for item in _walk(assign.value) if item.value == "none"]
        if not calls or not told:
            continue
        if len(calls) == 1 and _asserts(bodies, body, calls[0], checks):
            with suppress(LeftAlone), workbench.atomic():
                _remove(workbench, body)
                continue
        yield Note(body.at(body.function.span), "this may assert the removed exception; if it does, drop it")


def _walk(expr: Expr | None) -> Iterable[Expr]:
    return expr.walk() if expr is not None else ()


def _remove(workbench: Workbench, body: Body) -> None:
    """Remove a test; its class if that contains no other test."""
    with workbench.on(body.file.path) as rewrite:
        node = function_node(rewrite.tree, body)
        around = rewrite.tree.enclosing(node, cst.ClassDef)
        rewrite.remove(around if around is not None and len(around.body.body) == 1 else node)


# Whether a test asserts the exception, and nothing else


def _asserts(bodies: Bodies, body: Body, call: Expr, checks: dict[str, Body]) -> bool:
    """Whether a test only asserts that nothing is reported for an op that takes no tensor and declares one."""
    function, check = body.function, checks[call.callee.rpartition(".")[2]]
    if function is None or function.decorators or not _is_call_of(bodies, body, call, check):
        return False
    given = [_value(body, item) for _, item in call.args]
    exempt = any(_declares_input(item) for item in given) and any(_takes_nothing(body, item) for item in given)
    conditions, others = body.scope.conditions, {item.callee for item in body.scope.calls if item is not call}
    alone = others <= {"len"} and len(conditions) == 1 and conditions[0].kind == "assert" and not body.scope.loops
    return exempt and alone and _is_told_nothing(body, conditions[0].expr, call)


def _is_call_of(bodies: Bodies, body: Body, call: Expr, check: Body) -> bool:
    """Whether a call is of a validator's function, which tests import from a package or from a single script."""
    called, full = bodies.called(body, call.callee), bodies.external(body, call.callee)
    if called is not None and called.function is not None and check.function is not None:
        return (called.file.path, called.function.span) == (check.file.path, check.function.span)
    module = "/" + full.rpartition(".")[0].replace(".", "/") + ".py"
    return [path for path in bodies.program.files if f"/{path}".endswith(module)] == [check.file.path]


def _value(body: Body, expr: Expr) -> Expr:
    """The value of a name that is bound once in a test."""
    values = body.values(expr.text) if expr.kind == "name" else None
    return values[0] if values and len(values) == 1 else expr


def _is_told_nothing(body: Body, test: Expr, call: Expr) -> bool:
    """Whether an assertion says that the result of a check, or the list passed to it, is empty."""
    measured = emptiness(test)
    if measured is None or not measured[1]:
        return False
    result = measured[0]
    passed = any(item.kind == "name" and item.text == result.text for _, item in call.args)
    return _value(body, result).span == call.span or (result.kind == "name" and passed)


def _declares_input(entry: Expr) -> bool:
    """Whether an entry that is written down has ``ref_api: "none"`` and declares an input."""
    signature = _item(entry, "signature")
    inputs = _item(signature, "inputs") if signature is not None else None
    reference = _item(entry, "ref_api")
    declares = inputs is not None and inputs.kind in ("dict", "list") and bool(inputs.items)
    return declares and reference is not None and reference.value == "none"


def _item(mapping: Expr, key: str) -> Expr | None:
    """The value of a key in a mapping that is written down."""
    if mapping.kind != "dict":
        return None
    pairs = zip(mapping.items[::2], mapping.items[1::2], strict=True)
    return next((value for name, value in pairs if name.value == key), None)


def _takes_nothing(body: Body, expr: Expr) -> bool:
    """Whether an expression is a class, of the test or its module, without bases, whose ``forward()`` takes nothing."""
    scopes = [outer.scope for outer in body.outward() if outer.cls is None]
    classes = [item for scope in scopes for item in scope.classes if expr.kind == "name" and item.name == expr.text]
    forward = classes[0].body.function("forward") if len(classes) == 1 and not classes[0].bases else None
    return forward is not None and [item.kind for item in forward.params] == ["normal"] and not forward.decorators
