"""Checks whether a kernel still compiles if a number that is known while tracing becomes a run-time value.

Uses that are known to accept run-time values pass; any other use may need the number when the kernel is traced.

What is known to take such numbers is let through; anything else may need to know them when the kernel is traced.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import dotted, is_write, local_uses
from opschema_cli.source.bodies import Body, param_for
from opschema_cli.source.python import PythonFile
from opschema_cli.source.text import Span
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.model import Call, FlyTree, Kind

_ARITHMETIC = (
    *(cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo),
    *(cst.LeftShift, cst.RightShift, cst.BitAnd, cst.BitOr, cst.BitXor),
)
_INDEXES = frozenset({"thread_idx", "block_idx", "block_dim", "grid_dim", "thread_id", "block_id"})
_STATIC = frozenset({"range_constexpr", "const_expr", "static", "make_layout", "make_ordered_layout", "make_tile"})
_LISTED = (cst.Element, cst.Tuple, cst.List, cst.Arg)
_TESTS = (cst.If, cst.IfExp, cst.While, cst.Assert, cst.BooleanOperation)


class RunTime:
    """Follows values through the traced functions of one file."""

    def __init__(self, tree: FlyTree, file: PythonFile, rewrite: Rewrite) -> None:
        self.tree = tree
        self.file = file
        self.rewrite = rewrite
        self.nodes = rewrite.tree
        self.bytes: list[Span] = []
        """The numbers of bytes that the values followed so far are part of."""
        self._seen: set[int] = set()

    def check(self, names: Iterable[cst.Name]) -> None:
        """Check that a run-time value is accepted wherever names are read, and wherever values computed from them are used.

        Raises:
            Refused: something needs it at compile time, or is not known to do without.
        """
        for name in names:
            if id(name) not in self._seen and not is_write(self.nodes, name):
                self._seen.add(id(name))
                self._check(name)

    def _check(self, name: cst.Name) -> None:
        node: cst.CSTNode = name
        above = self.nodes.parent(node)
        while above is not None and _computes(above):
            node, above = above, self.nodes.parent(above)
        match above:
            case cst.Arg():
                self._check_argument(name, above)
            case cst.Element():
                self._check_element(name, above)
            case cst.Assign():
                self._check_assigned(name, above)
            case cst.AugAssign(target=cst.Name() as target):
                self._follow(target)
            case cst.Comparison() | cst.ComparisonTarget():
                self._check_compared(name, node, above)
            case _:
                raise self._refused(name, _why(above))

    def _refused(self, name: cst.Name, reason: str) -> Refused:
        return Refused([Problem(self.nodes.span(name).start, f"`{name.value}` is needed at compile time: {reason}")])

    def _follow(self, target: cst.Name) -> None:
        """Check the reads of a local variable with such a value."""
        function = self.nodes.enclosing(target, cst.FunctionDef)
        if function is None:
            raise self._refused(target, "it is not a local")
        self.check(local_uses(self.rewrite, function, target.value))

    # Where it goes

    def _check_argument(self, name: cst.Name, arg: cst.Arg) -> None:
        call = self.nodes.parent(arg)
        assert isinstance(call, cst.Call)
        word = arg.keyword.value if arg.keyword is not None else ""
        callee = " ".join(self.nodes.code(call.func).split())
        traced = self._traced(call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "launch":
            if word != "grid":
                raise self._refused(
                    name, f"`{word}=` of a launch is known only when it is compiled" if word else "a launch"
                )
        elif word == "num_records_bytes" and self._describes(call):
            self.bytes.append(self.nodes.span(arg.value))
        elif traced is not None:
            self._check_passed(name, traced, call.args.index(arg))
        elif not self._is_loop(call, arg) and not self._is_cast(call):
            last = callee.rpartition(".")[2]
            unknown = f"whether `{callee}()` needs it is not known"
            raise self._refused(name, f"`{callee}()` needs it" if last in _STATIC else unknown)

    def _check_passed(self, name: cst.Name, call: Call, index: int) -> None:
        param = param_for(call.expr, index + 1, [item.param for item in call.target.call_parameters])
        found = call.target.parameter(param.name) if param is not None else None
        if found is None or found.kind is not Kind.NUMBER:
            what = f"`{found.name}` of " if found is not None else ""
            raise self._refused(name, f"{what}`{call.target.name}()` is not a run-time number")

    def _check_element(self, name: cst.Name, element: cst.Element) -> None:
        """Check an element of a tuple: the grid of a launch, possibly in a local variable, or one of several assigned values."""
        display = self.nodes.parent(element)
        above = self.nodes.parent(display) if display is not None else None
        if isinstance(above, cst.Arg) and above.keyword is not None and above.keyword.value == "grid":
            self._check_argument(name, above)
            return
        if isinstance(display, cst.Tuple) and isinstance(above, cst.Assign) and len(above.targets) == 1:
            target = above.targets[0].target
            if isinstance(target, cst.Name):
                self._follow(target)
                return
            if isinstance(target, cst.Tuple) and len(target.elements) == len(display.elements):
                taker = target.elements[display.elements.index(element)].value
                starred = any(isinstance(item, cst.StarredElement) for item in (*target.elements, *display.elements))
                if isinstance(taker, cst.Name) and not starred:
                    self._follow(taker)
                    return
        call = next((item for item in self.nodes.ancestors(element) if not isinstance(item, _LISTED)), None)
        callee = " ".join(self.nodes.code(call.func).split()) if isinstance(call, cst.Call) else ""
        if callee.rpartition(".")[2] in _STATIC:
            raise self._refused(name, f"`{callee}()` needs it")
        raise self._refused(name, "it is an element here, and what reads it is not known")

    def _check_assigned(self, name: cst.Name, statement: cst.Assign) -> None:
        for target in (item.target for item in statement.targets):
            if not isinstance(target, cst.Name):
                raise self._refused(name, "it is not assigned to a local, and what reads it is not known")
            self._follow(target)

    def _check_compared(self, name: cst.Name, node: cst.CSTNode, above: cst.CSTNode) -> None:
        """Check a comparison: the other side must be a run-time value already, so that Python does not decide by it."""
        comparison = self.nodes.parent(above) if isinstance(above, cst.ComparisonTarget) else above
        assert isinstance(comparison, cst.Comparison)
        sides = [comparison.left, *(item.comparator for item in comparison.comparisons)]
        others = [item for item in sides if item is not node]
        if len(sides) != 2 or not all(self._is_at_run_time(item, MAX_CALLS) for item in others):
            raise self._refused(name, "what it is compared with is known then, or may be")

    # What is asked

    def _is_loop(self, call: cst.Call, arg: cst.Arg) -> bool:
        """Whether an argument is a bound of a ``for`` loop over ``range()``, which is always a run-time value."""
        loop = self.nodes.parent(call)
        is_range = isinstance(call.func, cst.Name) and call.func.value == "range"
        return is_range and arg.keyword is None and isinstance(loop, cst.For) and loop.iter is call

    def _is_cast(self, call: cst.Call) -> bool:
        name = self.tree.names.full(self._body(call), dotted(call.func))
        return is_number(name.rpartition(".")[2])

    def _describes(self, call: cst.Call) -> bool:
        span, path = self.nodes.span(call), self.file.path
        return any(item.expr.span == span and item.body.file.path == path for item in self.tree.descriptors)

    def _traced(self, call: cst.Call) -> Call | None:
        """Return the call, if it calls a traced function."""
        span, callee = self.nodes.span(call), self.nodes.span(call.func)
        calls = (item for traced in self.tree.traced for item in traced.calls if item.body.file.path == self.file.path)
        return next((item for item in calls if (item.expr.span, item.expr.items[0].span) == (span, callee)), None)

    def _body(self, node: cst.CSTNode) -> Body:
        return self.tree.bodies.at(self.file, self.nodes.span(node).start)

    def _is_at_run_time(self, node: cst.CSTNode, hops: int) -> bool:
        """Whether an expression is known to be computed from a run-time number or a thread index."""
        for item in self.nodes.walk(node):
            if isinstance(item, cst.Attribute) and self._is_index(item):
                return True
            if isinstance(item, cst.Name) and hops > 0 and self._is_number(item, hops):
                return True
        return False

    def _is_index(self, node: cst.Attribute) -> bool:
        words = self.tree.names.full(self._body(node), dotted(node)).split(".")
        return not _INDEXES.isdisjoint(words)

    def _is_number(self, name: cst.Name, hops: int) -> bool:
        body = self._body(name)
        binder = body.binder(name.value)
        traced = self.tree.traced_of(binder)
        param = traced.parameter(name.value) if traced is not None else None
        if param is not None:
            return param.kind is Kind.NUMBER
        if binder is None:
            return False
        nodes = self.nodes.names(name.value, function_node(self.nodes, binder))
        written = [node for node in nodes if is_write(self.nodes, node)]
        return bool(written) and all(self._is_given(node, hops - 1) for node in written)

    def _is_given(self, name: cst.Name, hops: int) -> bool:
        """Whether an assignment gives a local variable a run-time value."""
        statement = next((item for item in self.nodes.ancestors(name) if isinstance(item, cst.Assign | cst.For)), None)
        if isinstance(statement, cst.For):
            loop = statement.iter
            return statement.target is name and isinstance(loop, cst.Call) and self.nodes.code(loop.func) == "range"
        return statement is not None and self._is_at_run_time(statement.value, hops)


def _computes(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, _ARITHMETIC)
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)


def _why(above: cst.CSTNode | None) -> str:
    """Return why a value may not be used in a node of the syntax tree."""
    if isinstance(above, _TESTS):
        return "Python decides by it"
    if isinstance(above, cst.FormattedStringExpression):
        return "a string is made of it"
    if isinstance(above, cst.Return):
        return "it is returned, and what reads it is not known"
    if isinstance(above, cst.Attribute):
        return "an attribute of it is read"
    if isinstance(above, cst.Param):
        return "a default is evaluated once"
    if isinstance(above, cst.Index | cst.Slice):
        return "it is an index"
    return "what reads it is not known"
