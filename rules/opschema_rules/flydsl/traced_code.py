"""Functions of a file that run while a kernel is traced: traced functions, functions that make values of FlyDSL's types, functions
nested in these, and the helpers that they call.
"""

from __future__ import annotations

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.value_classes import bodies_with_values


@cached_on_argument
def calls_by_name(body: Body) -> dict[str, list[Expr]]:
    """Return the calls of a body, by the dotted name of the function."""
    found: dict[str, list[Expr]] = {}
    for call in body.scope.calls:
        callee = call.items[0]
        if callee.kind == "name":
            found.setdefault(callee.text, []).append(call)
    return found


@cached_on_argument
def traced_code(tree: FlyTree) -> dict[str, list[Body]]:
    """Return these functions by file path, without FlyDSL's own; helpers are only followed within the file of their call."""
    starts: dict[str, list[Body]] = {}
    for body in bodies_with_values(tree):
        starts.setdefault(body.file.path, []).append(body)
    return {path: _reached(tree, bodies[0].file, bodies) for path, bodies in starts.items()}


def _reached(tree: FlyTree, file: PythonFile, waiting: list[Body]) -> list[Body]:
    helpers = {item.name: item for item in file.body.functions}
    found: dict[Body, None] = {}
    while waiting:
        body = waiting.pop()
        if body in found:
            continue
        found[body] = None
        for name in calls_by_name(body):
            helper = tree.bodies.defined(file, helpers[name]) if name in helpers and name not in body.visible else None
            if helper is not None and helper not in found:
                waiting += tree.bodies.inside(helper)
    return tree.bodies.sorted(body for body in found if body.function is not None)
