"""Whether torchgen treats an operator as one that draws random numbers: its own condition, parsed and never run.

The condition is an expression over the operator's name and arguments (:attr:`.conditions.Limits.draws`). What is not one of
the forms below is not known, so that nothing is said of an operator which depends on it.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_rules.aten.signatures import full_name

_FULL_NAME, _NAME = "str(self.func.name)", "str(self.func.name.name)"
_ARGUMENTS = "self.func.arguments.flat_all"
_HAS_GENERATOR = "self.func.arguments.has_generator_arg()"


class Answer(NamedTuple):
    """Whether a condition holds, or None if that is not known, and a reason why it does."""

    holds: bool | None
    reason: str = ""


def draws(condition: str, schema: OperatorSchema) -> str:
    """Return why an operator meets the condition; empty if it does not, or if that is not known."""
    tree = _parsed(condition)
    answer = _Condition(schema).answer(tree) if tree is not None else Answer(None)
    return answer.reason if answer.holds else ""


@lru_cache(maxsize=16)
def words(condition: str) -> tuple[str, ...]:
    """Words in the text of every schema that may meet the condition."""
    tree = _parsed(condition)
    nodes = ast.walk(tree) if tree is not None else ()
    found = {item.value for item in nodes if isinstance(item, ast.Constant) and isinstance(item.value, str)}
    return (*sorted(found), "Generator")


@lru_cache(maxsize=16)
def _parsed(condition: str) -> ast.expr | None:
    return ast.parse(condition, mode="eval").body if condition else None


@lru_cache(maxsize=256)
def _text(node: ast.AST) -> str:
    """Return the text of a part of a condition, which is evaluated for many operators."""
    return ast.unparse(node)


class _Condition:
    """Answers a condition for one schema."""

    def __init__(self, schema: OperatorSchema) -> None:
        self.schema = schema

    def answer(self, node: ast.expr, argument: tuple[str, Argument] | None = None) -> Answer:
        """Whether an expression is true; ``argument`` is the variable of a generator and its value."""
        if isinstance(node, ast.BoolOp):
            return self._joined(node, argument)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            holds = self.answer(node.operand, argument).holds
            return Answer(None if holds is None else not holds)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node, argument)
        return self._called(node)

    def _joined(self, node: ast.BoolOp, argument: tuple[str, Argument] | None) -> Answer:
        deciding = isinstance(node.op, ast.Or)
        answers = [self.answer(item, argument) for item in node.values]
        found = next((item for item in answers if item.holds is deciding), None)
        if found is not None:
            return found
        reason = next((item.reason for item in answers if item.reason), "")
        return Answer(None if any(item.holds is None for item in answers) else not deciding, reason)

    def _compared(self, node: ast.Compare, argument: tuple[str, Argument] | None) -> Answer:
        left, right = (self._value(item, argument) for item in (node.left, node.comparators[0]))
        operator = node.ops[0]
        if left is None or right is None:
            return Answer(None)
        if isinstance(operator, ast.In | ast.NotIn):
            holds = left in right
            named = isinstance(operator, ast.In) and isinstance(left, str) and isinstance(right, str)
            reason = f"the name `{right}` holds `{left}`" if named and holds else ""
            return Answer(holds is isinstance(operator, ast.In), reason)
        if isinstance(operator, ast.Eq | ast.NotEq):
            return Answer((left == right) is isinstance(operator, ast.Eq))
        return Answer(None)

    def _value(self, node: ast.expr, argument: tuple[str, Argument] | None) -> str | tuple[str, ...] | None:
        """A text, or several; None for anything else."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items = [self._value(item, argument) for item in node.elts]
            texts = tuple(item for item in items if isinstance(item, str))
            return texts if len(texts) == len(items) else None
        text = _text(node)
        if argument is not None and text == f"{argument[0]}.name":
            return argument[1].name
        return self.schema.name if text == _NAME else full_name(self.schema) if text == _FULL_NAME else None

    def _called(self, node: ast.expr) -> Answer:
        if _text(node) == _HAS_GENERATOR:
            generator = next((item for item in self.schema.arguments if item.type.base == "Generator"), None)
            return Answer(generator is not None, f"`{generator.name}` is a `Generator`" if generator else "")
        inner = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else None
        if not isinstance(inner, ast.GeneratorExp) or not isinstance(node, ast.Call) or _text(node.func) != "any":
            return Answer(None)
        loop = inner.generators[0]
        if len(inner.generators) > 1 or loop.ifs or _text(loop.iter) != _ARGUMENTS:
            return Answer(None)
        answers = [self.answer(inner.elt, (_text(loop.target), item)) for item in self.schema.arguments]
        found = next((item for item in answers if item.holds), None)
        return found or Answer(None if any(item.holds is None for item in answers) else False)
