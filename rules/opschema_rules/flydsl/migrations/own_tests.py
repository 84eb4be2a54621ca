"""Tests that test one method and nothing else."""

from __future__ import annotations

import libcst as cst

from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.source.bodies import Body
from opschema_cli.source.python_tree import PythonTree

_ASKS = frozenset({"hash", "isinstance", "id", "repr", "str", "type", "bool", "len"})
"""Functions whose result depends on the argument itself."""


def only_tests(tree: PythonTree, body: Body, method: str) -> bool:
    """Whether each assertion and each expected exception of a test is about what calls of ``method`` return or raise.

    A statement that does anything but assign, assert or expect an exception may test more.
    """
    function = function_node(tree, body)
    if not isinstance(function.body, cst.IndentedBlock):
        return False
    test = _Test(tree, function, method)
    return bool(test.checks) and all(map(test.is_about, test.checks)) and not test.does_more


class _Test:
    """A test function and its checks."""

    def __init__(self, tree: PythonTree, function: cst.FunctionDef, method: str) -> None:
        self.tree = tree
        self.method = method
        self.checks: list[cst.Assert | cst.With] = []
        self.does_more = False
        self.names: set[str] = set()
        docstring = tree.docstring(function)
        for statement in _statements(function.body):
            if isinstance(statement, cst.Assert) or (isinstance(statement, cst.With) and _expects(statement)):
                self.checks.append(statement)
            elif isinstance(statement, cst.Assign):
                self._learn(statement)
            elif not isinstance(statement, cst.Pass):
                self.does_more |= not (isinstance(statement, cst.Expr) and statement.value is docstring)

    def _learn(self, statement: cst.Assign) -> None:
        """Record a name that holds the method's result."""
        if self._marked(statement.value):
            self.names.update(item.target.value for item in statement.targets if isinstance(item.target, cst.Name))

    def _marked(self, node: cst.CSTNode) -> bool:
        """Whether an expression is the method's result, or an attribute or method of it."""
        while isinstance(node, cst.Call | cst.Attribute):
            inner = node.func if isinstance(node, cst.Call) else node.value
            if isinstance(node, cst.Call) and isinstance(inner, cst.Attribute) and inner.attr.value == self.method:
                return True
            node = inner
        return isinstance(node, cst.Name) and node.value in self.names

    def is_about(self, check: cst.Assert | cst.With) -> bool:
        """Whether a check is about the method."""
        part = check.body if isinstance(check, cst.With) else check.test
        return any(self._marked(node) and self._is_direct(node, part) for node in self.tree.walk(part))

    def _is_direct(self, node: cst.CSTNode, part: cst.CSTNode) -> bool:
        """Whether an expression is not passed to a function, which may do anything with it."""
        for above in self.tree.ancestors(node):
            if above is part:
                return True
            call = self.tree.parent(above) if isinstance(above, cst.Arg) else None
            if isinstance(call, cst.Call) and dotted(call.func) not in _ASKS:
                return False
        return node is part


def _statements(block: cst.BaseSuite) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    for item in block.body:
        found += item.body if isinstance(item, cst.SimpleStatementLine) else [item]
    return found


def _expects(statement: cst.With) -> bool:
    """Whether a ``with`` expects an exception or a warning."""
    calls = [item.item for item in statement.items]
    return all(
        isinstance(call, cst.Call) and dotted(call.func).rpartition(".")[2] in ("raises", "warns") for call in calls
    )
