"""Types of numbers in traced functions: FlyDSL's (``Int32``, ``Int64``, ``Float32``) and Python's ``int`` and ``float``."""

from __future__ import annotations

from collections.abc import Callable

from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Statement
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.device_values import DEEPEST, DeviceValues, is_loop, launches
from opschema_rules.flydsl.model import Kind

INT = "int"
FLOAT = "float"
I32 = "Int32"
I64 = "Int64"
I32_MAX = 2**31 - 1

_INDEXES = frozenset({"thread_idx", "block_idx", "block_dim", "grid_dim"})
_INTEGRAL = frozenset({"+", "-", "*", "//", "%", "<<"})


class NumberTypes:
    """The known types of the numbers of one traced function."""

    def __init__(
        self, values: DeviceValues, known: Callable[[Body, Expr], int | None] = lambda body, expr: None
    ) -> None:
        """``known`` holds the values of expressions in one call, for expressions whose value the tree alone does not give."""
        self.values = values
        self._known = known
        self.tree = values.tree
        self._asked: set[tuple[Body, str]] = set()
        self._depth = 0

    def of(self, body: Body, expr: Expr) -> str:
        """Return the type of an expression in a body; empty if it is not known, as for a very deeply nested one."""
        self._depth += 1
        try:
            return self._of(body, expr) if self._depth <= DEEPEST else ""
        finally:
            self._depth -= 1

    def _of(self, body: Body, expr: Expr) -> str:
        match expr.kind:
            case "const" if isinstance(expr.value, int | float) and not isinstance(expr.value, bool):
                return INT if isinstance(expr.value, int) else FLOAT
            case "name":
                return self._attribute(body, expr.text) if "." in expr.text else self._name(body, expr.text)
            case "unary" if expr.text in ("-", "+"):
                return self.of(body, expr.items[0])
            case "binary":
                return self._binary(body, expr)
            case "call":
                last = expr.callee.rpartition(".")[2]
                cast = is_number(last) and expr.keywords == ("",)
                return last if cast and self.tree.names.full(body, expr.callee) else ""
        return ""

    def _attribute(self, body: Body, name: str) -> str:
        parts = self.tree.names.full(body, name).split(".") if not _INDEXES.isdisjoint(name.split(".")) else []
        return I32 if len(parts) > 2 and parts[-2] in _INDEXES and parts[-1] in ("x", "y", "z") else ""

    def _binary(self, body: Body, expr: Expr) -> str:
        first, second = (self.of(body, item) for item in expr.items)
        if expr.text == "/":
            kinds = [kind or self.values.of(body, item) for kind, item in zip((first, second), expr.items, strict=True)]
            return FLOAT if all(kinds) and "raw" not in kinds else ""
        if not first or not second:
            return ""
        return joined(first, second) if expr.text in _INTEGRAL and self._fit(body, expr) else ""

    def _fit(self, body: Body, expr: Expr) -> bool:
        """Whether the plain numbers among the operands fit in 32 bits; a larger one turns the other operand into a 64-bit
        number.
        """
        plain = [item for item in expr.items if self.of(body, item) == INT]
        if len(plain) == len(expr.items):
            return True
        values = [self._plain(body, item) for item in plain]
        return all(isinstance(item, int) and abs(item) <= I32_MAX for item in values)

    def _plain(self, body: Body, expr: Expr) -> object:
        """Return the value of a plain number; None if it is not known."""
        found = self.tree.evaluator.fold(body, expr)
        return found.value if isinstance(found, Folded) and not found.symbol else self._known(body, expr)

    def _name(self, body: Body, name: str) -> str:
        bound = self.values.bindings(body, name)
        if bound is None:
            found = self.tree.evaluator.fold(body, Expr("name", 0, 0, name))
            value = found.value if isinstance(found, Folded) and not found.symbol else None
            return "" if isinstance(value, bool) else INT if isinstance(value, int) else ""
        if (body, name) in self._asked or not bound:
            return ""
        if bound == [None]:
            return self._parameter(body, name)
        self._asked.add((body, name))
        found_types = {self.of(body, item) if isinstance(item, Expr) else self._of_loop(body, item) for item in bound}
        self._asked.discard((body, name))
        return found_types.pop() if len(found_types) == 1 else ""

    def _of_loop(self, body: Body, loop: Statement | None) -> str:
        """Return the type of a GPU loop's variable: the type of all its bounds, if that has 32 bits."""
        call = loop.exprs[1] if loop is not None and is_loop(loop) else None
        found = {self.of(body, item) for item in call.items[1:]} if call is not None else set[str]()
        return I32 if found and found <= {I32, INT} and I32 in found else ""

    def _parameter(self, body: Body, name: str) -> str:
        """Return the type of a launcher's parameter. Before 0.2.0 only the argument determines it; in a kernel it always does."""
        traced = self.values.traced
        found = self.values.parameter(body, name)
        if found is not None and found.kind is Kind.CONSTEXPR:
            annotation = found.param.annotation
            plain = annotation is not None and annotation.kind == "subscript" and annotation.items[-1].text == INT
            return INT if plain and not found.param.default else ""
        if found is None or found.kind is not Kind.NUMBER or not self.tree.contract.surely(Era.SPLIT, Era.CURRENT):
            return ""
        if traced.kind == "jit":
            return found.dsl if launches(self.tree, traced) else ""
        return self.of_launches(name)

    def of_launches(self, name: str) -> str:
        """Return the type that every launch passes to a kernel's parameter."""
        found = set[str]()
        for call in self.values.traced.calls:
            argument, around = call.argument(name), self.tree.around(call.body)
            if argument is None or around is None or around is self.values.traced:
                return ""
            found.add(NumberTypes(DeviceValues(self.tree, around)).of(call.body, argument))
        return found.pop() if len(found) == 1 else ""


def joined(first: str, second: str) -> str:
    """Return the type of a sum or product."""
    types = {first, second}
    if len(types) == 1:
        return first
    if types == {INT, FLOAT}:
        return FLOAT
    if INT in types and types & {I32, I64}:
        return (types - {INT}).pop()
    return I64 if types == {I32, I64} else ""
