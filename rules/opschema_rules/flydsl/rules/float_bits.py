"""Bitwise operations on floats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import excerpt
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.device_values import is_plain_number
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.operands import LONGEST
from opschema_rules.flydsl.possible_types import is_float, is_scalar, may_be_floats, possible_of
from opschema_rules.flydsl.usage import is_meant_to_fail, may_be_absent
from opschema_rules.flydsl.value_classes import bodies_with_values, plain_name, value_at, value_classes
from opschema_rules.flydsl.value_table import NUMERIC

_BITS = frozenset({"&", "|", "^", "<<", ">>"})
_WRITTEN = re.compile(r"~|<<|>>|\||&|\^|-\(|-[\w.]*\bBoolean\(")
_HINT = re.compile(r"Float\d+\(|[^/]/[^/]|\d\.\d")
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMPARING = frozenset("<>")
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%"})
_DEEPEST = 30


@rule("FLY238", "float-bits", pure=True)
def float_bits(file: FlyFile) -> Iterator[Diagnostic]:
    """An operation on the bits of a number of FlyDSL that is a float.

    `&`, `|`, `^`, `<<`, `>>` and `~` take integers: with an `fx.Float32` on either side they raise `TypeError` when the function is
    traced. `/` gives a float, also of two integers: `n / 2 & 1` raises, `n // 2 & 1` does not. `bitcast()` gives the bits of a
    float as an integer. A comparison has no negative: `-(n < 4)` raises, too, and so does `-fx.Boolean(n)`.

    Only floats are reported that are written as such: `fx.Float32(...)`, constants, results of `/`, and what is computed of these.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Int32):
        value = fx.Float32(n)
        A[0] = value << 1
        A[1] = fx.thread_idx.x / 2 & 1
    ```

    Good:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Int32):
        value = fx.Float32(n)
        A[0] = value.bitcast(fx.Int32) << 1
        A[1] = fx.thread_idx.x // 2 & 1
        value = {1, 2}
        A[2] = len(value | {3})
    ```
    """
    tree = file.tree
    for body in bodies_with_values(tree):
        if _may_be_wrong(body):
            yield from _wrong(tree, body)


def _may_be_wrong(body: Body) -> bool:
    """Whether a line of a function has such an operator and may have a float, by its text alone."""
    start, end = body.function.outer if body.function is not None else (0, 0)
    text, last = body.file.source.text, -1
    for match in _WRITTEN.finditer(text, start, end):
        if match.start() < last:
            continue
        first, last = text.rfind("\n", start, match.start()) + 1, text.find("\n", match.start(), end)
        line = text[first : last if last >= 0 else end]
        if _HINT.search(line) is not None or may_be_floats(body, _WORD.findall(line)):
            return True
        if not _COMPARING.isdisjoint(line.partition("-(")[2]) or "Boolean(" in match[0]:
            return True
        last = last if last >= 0 else end
    return False


def _wrong(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    for item in all_statements(body.statements):
        for expr in own_expressions(item):
            wrong = _refused(tree, body, expr)
            if wrong is None or may_pass(tree, body, expr.start):
                continue
            if not may_be_absent(tree, body, expr.start) and not is_meant_to_fail(tree, body):
                boolean = expr.kind == "unary" and expr.text == "-"
                what = "is a `Boolean`, which has no negative" if boolean else "is a float"
                written = f"`{excerpt(body.file.text(wrong), LONGEST)}` {what}"
                instead = "" if boolean else f", and `{expr.text}` takes integers"
                yield Diagnostic(f"{written}{instead}: tracing raises `TypeError`", body.at(expr))


def _refused(tree: FlyTree, body: Body, expr: Expr) -> Expr | None:
    """Return the operand that an operation does not accept."""
    if expr.kind == "unary":
        operand = expr.items[0]
        if expr.text == "-" and (operand.kind == "compare" or operand.callee.rpartition(".")[2] == "Boolean"):
            return operand if value_classes(tree).of(body, operand) == NUMERIC else None
        return operand if expr.text == "~" and _floats(tree).has(body, operand) else None
    if expr.kind != "binary" or expr.text not in _BITS:
        return None
    others = [item for item in expr.items if not _is_plain(item)]
    if not others or not all(NUMERIC in possible_of(body, item) for item in others):
        return None
    sure = all(value_classes(tree).of(body, item) == NUMERIC for item in others)
    found = [item for item in expr.items if _floats(tree).has(body, item)] if sure else []
    return found[0] if found else None


def _is_plain(expr: Expr) -> bool:
    """Whether an expression is a numeric literal, with or without a sign."""
    return is_plain_number(expr.items[0] if expr.kind == "unary" and expr.text == "-" else expr)


class _Floats:
    """The expressions of a tree that are known to be floats if they are FlyDSL or plain numbers."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._known: dict[tuple[Body, int, int], bool] = {}

    def has(self, body: Body, expr: Expr, depth: int = _DEEPEST) -> bool:
        """Whether an expression of a body is such a float."""
        key = (body, expr.start, expr.end)
        if key not in self._known:
            self._known[key] = depth > 0 and self._has(body, expr, depth - 1)
        return self._known[key]

    def _has(self, body: Body, expr: Expr, depth: int) -> bool:
        match expr.kind:
            case "const":
                return isinstance(expr.value, float)
            case "unary":
                return expr.text in ("-", "+") and self.has(body, expr.items[0], depth)
            case "binary":
                if expr.text == "/":
                    return value_classes(self.tree).of(body, expr) == NUMERIC
                return expr.text in _ARITHMETIC and any(self.has(body, item, depth) for item in expr.items)
            case "call":
                word = expr.callee.rpartition(".")[2]
                is_cast = is_scalar(word) and is_float(word) and expr.keywords == ("",)
                return is_cast and plain_name(self.tree.names.full(body, expr.callee)) == word
            case "name":
                binder = body.binder(expr.text) if "." not in expr.text else None
                value = value_at(body, binder, expr) if binder is not None else None
                return value is not None and binder is not None and self.has(binder, value, depth)
        return False


@cached_on_argument
def _floats(tree: FlyTree) -> _Floats:
    return _Floats(tree)
