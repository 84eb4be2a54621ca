"""Checks whether a kernel still compiles if a run-time number becomes a plain one, which has no MLIR value."""

from __future__ import annotations

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Problem, Refused
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_rules.flydsl.model import FlyTree

_ARITHMETIC = (cst.BinaryOperation, cst.UnaryOperation, cst.Element, cst.Tuple, cst.List)
_BUILTINS = frozenset({"range", "min", "max", "int", "abs", "print", "len"})
_RAW = frozenset({"arith", "llvm", "math", "vector", "scf", "memref", "_mlir"})


def check_plain(tree: FlyTree, file: PythonFile, nodes: PythonTree, name: cst.Name) -> None:
    """Check that the code that reads a number also accepts a plain one.

    Raises:
        Refused: it reads an attribute, or is a function of which that is not known.
    """
    node: cst.CSTNode = name
    above = nodes.parent(node)
    while isinstance(above, _ARITHMETIC):
        node, above = above, nodes.parent(above)
    at = nodes.span(name).start
    if isinstance(above, cst.Attribute):
        raise Refused([Problem(at, f"`{nodes.code(above)}`: a constant is a plain number")])
    call = nodes.parent(above) if isinstance(above, cst.Arg) else None
    if isinstance(call, cst.Call) and not _takes_plain(tree, file, nodes, call):
        callee = " ".join(nodes.code(call.func).split())
        raise Refused([Problem(at, f"whether `{callee}()` takes a plain number is not known")])


def _takes_plain(tree: FlyTree, file: PythonFile, nodes: PythonTree, call: cst.Call) -> bool:
    callee = nodes.span(call.func)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "launch":
        return True
    if any(
        item.expr.items[0].span == callee and item.body.file is file for traced in tree.traced for item in traced.calls
    ):
        return True
    if any(item.expr.items[0].span == callee and item.body.file is file for item in tree.descriptors):
        return True
    name = dotted(call.func)
    body = tree.bodies.at(file, callee.start)
    full = tree.names.full(body, name).split(".")
    if full[:2] == ["flydsl", "expr"]:
        return _RAW.isdisjoint(full)
    return tree.bodies.external(body, name) in _BUILTINS
