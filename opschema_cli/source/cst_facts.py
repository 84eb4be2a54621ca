"""Collects a module's facts from its libcst tree.

This says what facts are; :mod:`opschema_cli.source.ast_facts` gives the same ones faster, where it can. Importing this
module imports libcst (0.1 to 0.2 s).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from opschema_cli.source.cst_spans import Spans, children
from opschema_cli.source.fact_parts import MAX_EXPR_DEPTH, NOT_CONSTANT, Parts, is_word, kept_int, kept_text
from opschema_cli.source.python import (
    Assign,
    Class,
    Condition,
    Constant,
    Expr,
    ExprKind,
    Function,
    Import,
    Item,
    Loop,
    ModuleFacts,
    Param,
    ParamKind,
    Scope,
    Unpack,
    Use,
    packed_body,
    written_in,
)
from opschema_cli.source.python_guards import find_guards
from opschema_cli.source.text import Span


def collect_from_cst(module: cst.Module, spans: Spans) -> ModuleFacts:
    """The facts of a tree whose nodes stand at ``spans``.

    Raises:
        RecursionError: it nests too deeply.
    """
    return _Collector(spans).module(module)


class _Collector:
    """Turns one tree into facts; ``guard`` counts the conditions, loops and handlers around a statement."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self.guard = 0

    def span(self, node: cst.CSTNode) -> Span:
        return Span(*self.spans[id(node)])

    def module(self, module: cst.Module) -> ModuleFacts:
        scope = self.scope(module.body)
        return ModuleFacts(scope, self.docstring(module.body))

    def docstring(self, body: Sequence[cst.BaseStatement]) -> Span | None:
        first = body[0] if body else None
        if isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Expr):
            value = first.body[0].value
            if _is_plain_string(value):
                return self.span(value)
        return None

    def scope(self, body: Sequence[cst.CSTNode]) -> Scope:
        scope = Parts()
        outer, self.guard = self.guard, 0
        self.visit_all(body, scope)
        self.guard = outer
        return scope.finished()

    def visit_all(self, nodes: Sequence[cst.CSTNode], scope: Parts) -> None:
        for node in nodes:
            self.visit(node, scope)

    def visit(self, node: cst.CSTNode, scope: Parts) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node, scope)
        elif isinstance(node, _GUARDS):
            scope.guarded += map(self.span, _guarded(node))
            self.guard += 1
            self.visit_all(children(node), scope)
            self.guard -= 1
        else:
            for child in children(node):
                self.visit(child, scope)

    # Definitions

    def function_def(self, node: cst.FunctionDef, scope: Parts) -> None:
        for decorator in node.decorators:
            self.visit(decorator.decorator, scope)
        params = tuple([self.param(item, kind, scope) for item, kind in _params(node.params)])
        if node.returns is not None:
            self.visit(node.returns.annotation, scope)
        body = list(node.body.body)
        inner = self.scope(body)
        scope.functions.append(
            Function(
                node.name.value,
                *self.span(node.name),
                self.outer(node),
                params,
                tuple([self.expr(item.decorator) for item in node.decorators]),
                self.expr(node.returns.annotation) if node.returns is not None else None,
                packed_body(inner),
                _is_stub(body),
                not self.guard,
                find_guards(inner.assigns, inner.conditions, self.leaving(body), self.span(node).end),
                written_in(inner),
            )
        )

    def leaving(self, body: Sequence[cst.CSTNode]) -> dict[Span, bool]:
        """What each ``if`` among these statements guards, and whether that leaves the function."""
        return {self.span(item.body): _leaves(item.body) for item in body if isinstance(item, cst.If)}

    def class_def(self, node: cst.ClassDef, scope: Parts) -> None:
        for decorator in node.decorators:
            self.visit(decorator.decorator, scope)
        for arg in (*node.bases, *node.keywords):
            self.visit(arg.value, scope)
        scope.classes.append(
            Class(
                node.name.value,
                *self.span(node.name),
                self.outer(node),
                tuple([self.expr(item.value) for item in node.bases]),
                tuple([_keyword(item) for item in node.keywords if item.keyword is not None]),
                tuple([self.expr(item.decorator) for item in node.decorators]),
                self.scope(list(node.body.body)),
                not self.guard,
                next((self.expr(item.value) for item in node.keywords if _keyword(item) == "metaclass"), None),
            )
        )

    def outer(self, node: cst.FunctionDef | cst.ClassDef) -> Span:
        start, end = self.span(node)
        if node.decorators:
            start = min(start, self.span(node.decorators[0]).start)
        return Span(start, end)

    def param(self, node: cst.Param, kind: ParamKind, scope: Parts) -> Param:
        annotation = node.annotation.annotation if node.annotation is not None else None
        for child in (annotation, node.default):
            if child is not None:
                self.visit(child, scope)
        name = self.span(node.name)
        ends = [self.closing(child) for child in (node.name, annotation, node.default) if child is not None]
        return Param(
            node.name.value,
            kind,
            *name,
            max(ends),
            self.expr(annotation) if annotation is not None else None,
            self.expr(node.default) if node.default is not None else None,
        )

    def closing(self, node: cst.BaseExpression) -> int:
        """Where an expression ends, with its brackets."""
        return self.span(node.rpar[-1] if node.rpar else node).end

    def lambda_(self, node: cst.Lambda, scope: Parts) -> None:
        for item, _ in _params(node.params):
            if item.default is not None:
                self.visit(item.default, scope)
        inner = Parts()
        self.visit(node.body, inner)
        scope.take(inner)
        inner.returns.append(self.expr(node.body))
        span = self.span(node)
        params = tuple([self.param(item, kind, Parts()) for item, kind in _params(node.params)])
        scope.lambdas.append(
            Function("<lambda>", *span, span, params, (), None, packed_body(inner.finished()), stub=False)
        )

    # Statements

    def assign(self, node: cst.Assign, scope: Parts) -> None:
        self.visit(node.value, scope)
        value = self.expr(node.value)
        for target in node.targets:
            self.target(target.target, value, self.span(node), scope)
            key = _item_key(target.target)
            if key is not None:
                scope.items.append(Item(*key, value))
            if isinstance(target.target, cst.Tuple | cst.List):
                self.unpack(target.target, value, scope)

    def unpack(self, node: cst.Tuple | cst.List, value: Expr, scope: Parts) -> None:
        targets = tuple([_dotted(item.value) for item in node.elements])
        starred = any(isinstance(item, cst.StarredElement) for item in node.elements)
        if value.kind not in ("tuple", "list"):
            scope.unpacks.append(Unpack(targets, starred, value, *self.span(node)))

    def ann_assign(self, node: cst.AnnAssign, scope: Parts) -> None:
        annotation = self.expr(node.annotation.annotation)
        self.visit(node.annotation.annotation, scope)
        if node.value is not None:
            self.visit(node.value, scope)
        value = self.expr(node.value) if node.value is not None else None
        self.target(node.target, value, self.span(node), scope, annotation)

    def aug_assign(self, node: cst.AugAssign, scope: Parts) -> None:
        self.visit(node.target, scope)
        self.visit(node.value, scope)
        self.target(node.target, None, self.span(node), scope)

    def named_expr(self, node: cst.NamedExpr, scope: Parts) -> None:
        self.visit(node.value, scope)
        self.target(node.target, self.expr(node.value), self.span(node), scope)

    def target(
        self, node: cst.CSTNode, value: Expr | None, statement: Span, scope: Parts, annotation: Expr | None = None
    ) -> None:
        if isinstance(node, cst.Tuple | cst.List):
            items = value.items if value is not None and value.kind in ("tuple", "list") else []
            pairs = items if len(items) == len(node.elements) else [None] * len(node.elements)
            for element, item in zip(node.elements, pairs, strict=True):
                self.target(element.value, item, statement, scope)
            return
        name = _dotted(node)
        if name:
            sure = not self.guard
            scope.assigns.append(Assign(name, *self.span(node), value, statement, sure, annotation))
            if isinstance(node, cst.Attribute):
                self.visit(node.value, scope)
        else:
            self.visit(node, scope)

    def if_(self, node: cst.If, scope: Parts) -> None:
        last = node.orelse.body if isinstance(node.orelse, cst.Else) else node.orelse
        orelse = self.span(last) if last is not None else None
        scope.conditions.append(Condition("if", self.expr(node.test), self.span(node.body), orelse))
        scope.guarded += [self.span(node.body)] if orelse is None else [self.span(node.body), orelse]
        self.guard += 1
        self.visit_all(children(node), scope)
        self.guard -= 1

    def assert_(self, node: cst.Assert, scope: Parts) -> None:
        scope.conditions.append(Condition("assert", self.expr(node.test), self.span(node)))
        self.visit_all(children(node), scope)

    def for_(self, node: cst.For, scope: Parts) -> None:
        self.visit(node.iter, scope)
        self.guard += 1
        self.target(node.target, None, self.span(node.target), scope)
        targets = tuple([_dotted(item) for item in _target_names(node.target)])
        scope.loops.append(Loop(targets, self.expr(node.iter), self.span(node.body)))
        self.visit(node.body, scope)
        if node.orelse is not None:
            self.visit(node.orelse, scope)
        self.guard -= 1

    def comp_for(self, node: cst.CompFor, scope: Parts) -> None:
        self.visit(node.iter, scope)
        self.visit_all([item.test for item in node.ifs], scope)
        if node.inner_for_in is not None:
            self.visit(node.inner_for_in, scope)

    def with_item(self, node: cst.WithItem, scope: Parts) -> None:
        self.visit(node.item, scope)
        if node.asname is not None:
            self.target(node.asname.name, None, self.span(node.asname.name), scope)

    def except_handler(self, node: cst.ExceptHandler, scope: Parts) -> None:
        self.guard += 1
        for child in children(node):
            if not isinstance(child, cst.AsName):
                self.visit(child, scope)
        self.guard -= 1

    def return_(self, node: cst.Return, scope: Parts) -> None:
        if node.value is not None:
            self.visit(node.value, scope)
            scope.returns.append(self.expr(node.value))
        else:
            scope.returns.append(Expr("const", *self.span(node)))

    def del_(self, node: cst.Del, scope: Parts) -> None:
        scope.deleted.extend(filter(None, map(_dotted, _target_names(node.target))))

    def global_(self, node: cst.Global, scope: Parts) -> None:
        scope.deleted.extend(item.name.value for item in node.names)

    def import_(self, node: cst.Import, scope: Parts) -> None:
        for alias in node.names:
            module = _dotted(alias.name)
            local = _alias(alias) or module.partition(".")[0]
            scope.imports.append(Import(local, module, "", 0, *self.span(alias.name), bool(self.guard)))

    def import_from(self, node: cst.ImportFrom, scope: Parts) -> None:
        module = _dotted(node.module) if node.module is not None else ""
        level = len(node.relative)
        guarded = bool(self.guard)
        if isinstance(node.names, cst.ImportStar):
            scope.imports.append(Import("*", module, "*", level, *self.span(node.names), guarded))
            return
        for alias in node.names:
            attr = _dotted(alias.name)
            span = self.span(alias.name)
            scope.imports.append(Import(_alias(alias) or attr, module, attr, level, *span, guarded))

    # Expressions

    def call(self, node: cst.Call, scope: Parts) -> None:
        scope.calls.append(self.expr(node))
        self.visit(node.func, scope)
        for arg in node.args:
            self.visit(arg.value, scope)

    def name(self, node: cst.Name, scope: Parts) -> None:
        scope.uses.append(Use(node.value, *self.span(node)))

    def attribute(self, node: cst.Attribute, scope: Parts) -> None:
        dotted = _dotted(node)
        if dotted:
            scope.uses.append(Use(dotted, *self.span(node)))
        else:
            self.visit(node.value, scope)
            scope.uses.append(Use(f"?.{node.attr.value}", *self.span(node)))

    def string(self, node: cst.SimpleString | cst.ConcatenatedString, scope: Parts) -> None:
        value = _constant(node)
        if is_word(value):
            scope.strings.append(str(value))
        if not _is_plain_string(node):
            self.visit_all(_formatted(node), scope)

    def expr(self, node: cst.BaseExpression, depth: int = 0) -> Expr:
        span = self.span(node)
        constant = _constant(node)
        if constant is not NOT_CONSTANT:
            return Expr("const", *span, "", constant)
        dotted = _dotted(node)
        if dotted:
            return Expr("name", *span, dotted)
        build = _EXPRESSIONS.get(type(node)) if depth < MAX_EXPR_DEPTH else None
        return build(self, node, span, depth + 1) if build is not None else Expr("other", *span)

    def call_expr(self, node: cst.Call, span: Span, depth: int) -> Expr:
        items = (self.expr(node.func, depth), *(self.expr(arg.value, depth) for arg in node.args))
        words = tuple(arg.star or (arg.keyword.value if arg.keyword is not None else "") for arg in node.args)
        return Expr("call", *span, "", None, items, words)

    def sequence_expr(self, node: cst.Tuple | cst.List | cst.Set, span: Span, depth: int) -> Expr:
        kind: ExprKind = "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
        if any(isinstance(item, cst.StarredElement) for item in node.elements):
            return Expr("other", *span)
        return Expr(kind, *span, "", None, tuple(self.expr(item.value, depth) for item in node.elements))

    def dict_expr(self, node: cst.Dict, span: Span, depth: int) -> Expr:
        items: list[Expr] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                items.append(self.expr(element.key, depth))
            else:
                items.append(Expr("other", *self.span(element), "**"))
            items.append(self.expr(element.value, depth))
        return Expr("dict", *span, "", None, tuple(items))

    def unary_expr(self, node: cst.UnaryOperation, span: Span, depth: int) -> Expr:
        return Expr("unary", *span, _operator(node.operator), None, (self.expr(node.expression, depth),))

    def binary_expr(self, node: cst.BinaryOperation, span: Span, depth: int) -> Expr:
        items = (self.expr(node.left, depth), self.expr(node.right, depth))
        return Expr("binary", *span, _operator(node.operator), None, items)

    def attribute_expr(self, node: cst.Attribute, span: Span, depth: int) -> Expr:
        return Expr("attribute", *span, node.attr.value, None, (self.expr(node.value, depth),))

    def boolean_expr(self, node: cst.BooleanOperation, span: Span, depth: int) -> Expr:
        operator = "and" if isinstance(node.operator, cst.And) else "or"
        operands: list[cst.BaseExpression] = []
        left: cst.BaseExpression = node
        while isinstance(left, cst.BooleanOperation) and type(left.operator) is type(node.operator):
            operands.append(left.right)
            left = left.left
        items: list[Expr] = []
        for side in [self.expr(item, depth) for item in (left, *reversed(operands))]:
            items += side.items if side.kind == "boolop" and side.text == operator else (side,)
        return Expr("boolop", *span, operator, None, tuple(items))

    def compare_expr(self, node: cst.Comparison, span: Span, depth: int) -> Expr:
        operators = " ".join(_COMPARISONS.get(type(item.operator), "?") for item in node.comparisons)
        items = [node.left, *(item.comparator for item in node.comparisons)]
        return Expr("compare", *span, operators, None, tuple(self.expr(item, depth) for item in items))

    def subscript_expr(self, node: cst.Subscript, span: Span, depth: int) -> Expr:
        items = [self.expr(node.value, depth)]
        for element in node.slice:
            if not isinstance(element.slice, cst.Index):
                return Expr("other", *span, "", None, tuple(items))
            items.append(self.expr(element.slice.value, depth))
        return Expr("subscript", *span, "", None, tuple(items))

    def lambda_expr(self, node: cst.Lambda, span: Span, depth: int) -> Expr:
        params = [Expr("name", *self.span(item.name), item.name.value) for item, _ in _params(node.params)]
        return Expr("lambda", *span, "", None, (*params, self.expr(node.body, depth)))


_GUARDS = (cst.Try, cst.TryStar, cst.While, cst.Match, cst.IfExp)

_HANDLERS: dict[type[cst.CSTNode], Any] = {
    cst.FunctionDef: _Collector.function_def,
    cst.ClassDef: _Collector.class_def,
    cst.Lambda: _Collector.lambda_,
    cst.Assign: _Collector.assign,
    cst.AnnAssign: _Collector.ann_assign,
    cst.AugAssign: _Collector.aug_assign,
    cst.NamedExpr: _Collector.named_expr,
    cst.If: _Collector.if_,
    cst.Assert: _Collector.assert_,
    cst.For: _Collector.for_,
    cst.CompFor: _Collector.comp_for,
    cst.WithItem: _Collector.with_item,
    cst.ExceptHandler: _Collector.except_handler,
    cst.Return: _Collector.return_,
    cst.Del: _Collector.del_,
    cst.Global: _Collector.global_,
    cst.Nonlocal: _Collector.global_,
    cst.Import: _Collector.import_,
    cst.ImportFrom: _Collector.import_from,
    cst.Call: _Collector.call,
    cst.Name: _Collector.name,
    cst.Attribute: _Collector.attribute,
    cst.SimpleString: _Collector.string,
    cst.ConcatenatedString: _Collector.string,
}

_EXPRESSIONS: dict[type[cst.CSTNode], Any] = {
    cst.Call: _Collector.call_expr,
    cst.Tuple: _Collector.sequence_expr,
    cst.List: _Collector.sequence_expr,
    cst.Set: _Collector.sequence_expr,
    cst.Dict: _Collector.dict_expr,
    cst.UnaryOperation: _Collector.unary_expr,
    cst.BinaryOperation: _Collector.binary_expr,
    cst.Subscript: _Collector.subscript_expr,
    cst.Lambda: _Collector.lambda_expr,
    cst.Attribute: _Collector.attribute_expr,
    cst.BooleanOperation: _Collector.boolean_expr,
    cst.Comparison: _Collector.compare_expr,
}

_OPERATORS = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "FloorDivide": "//", "Modulo": "%",
    "Power": "**", "BitOr": "|", "BitAnd": "&", "BitXor": "^", "LeftShift": "<<", "RightShift": ">>",
    "MatrixMultiply": "@", "Minus": "-", "Plus": "+", "BitInvert": "~", "Not": "not",
}  # fmt: skip

_COMPARISONS: dict[type[cst.CSTNode], str] = {
    cst.Equal: "==", cst.NotEqual: "!=", cst.Is: "is", cst.IsNot: "is-not", cst.In: "in", cst.NotIn: "not-in",
    cst.LessThan: "<", cst.LessThanEqual: "<=", cst.GreaterThan: ">", cst.GreaterThanEqual: ">=",
}  # fmt: skip


def _operator(node: cst.CSTNode) -> str:
    return _OPERATORS.get(type(node).__name__, "?")


def _params(params: cst.Parameters) -> Iterator[tuple[cst.Param, ParamKind]]:
    for item in params.posonly_params:
        yield item, "posonly"
    for item in params.params:
        yield item, "normal"
    if isinstance(params.star_arg, cst.Param):
        yield params.star_arg, "vararg"
    for item in params.kwonly_params:
        yield item, "kwonly"
    if params.star_kwarg is not None:
        yield params.star_kwarg, "kwarg"


def _keyword(node: cst.Arg) -> str:
    return node.keyword.value if node.keyword is not None else ""


def _alias(node: cst.ImportAlias) -> str:
    return node.asname.name.value if node.asname is not None and isinstance(node.asname.name, cst.Name) else ""


def _dotted(node: cst.CSTNode | None) -> str:
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def _target_names(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Tuple | cst.List):
        for element in node.elements:
            yield from _target_names(element.value)
    else:
        yield node


def _item_key(node: cst.CSTNode) -> tuple[str, str] | None:
    """The dotted name and the constant string of ``name["key"]``."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    holder, key = _dotted(node.value), _constant(node.slice[0].slice.value)
    return (holder, key) if holder and isinstance(key, str) and key != NOT_CONSTANT else None


def _guarded(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The parts of a statement that may not run."""
    if isinstance(node, cst.Try | cst.TryStar):
        return [node.body, *(item.body for item in node.handlers), *([node.orelse.body] if node.orelse else [])]
    if isinstance(node, cst.Match):
        return [item.body for item in node.cases]
    return [node.body] if isinstance(node, cst.While) else []


_NAMED = {"None": None, "True": True, "False": False}


def _constant(node: cst.BaseExpression) -> Constant:
    if isinstance(node, cst.Name):
        return _NAMED.get(node.value, NOT_CONSTANT)
    if isinstance(node, cst.Integer):
        value = int(node.value.replace("_", ""), 0) if len(node.value) < 80 else 2**70
        return kept_int(value)
    if isinstance(node, cst.Float):
        return float(node.value.replace("_", ""))
    if isinstance(node, cst.SimpleString):
        return _string(node)
    if isinstance(node, cst.ConcatenatedString):
        left, right = _constant(node.left), _constant(node.right)
        if isinstance(left, str) and isinstance(right, str) and NOT_CONSTANT not in (left, right):
            return left + right
    return NOT_CONSTANT


def _string(node: cst.SimpleString) -> Constant:
    try:
        value = node.evaluated_value
    except (ValueError, SyntaxError):
        return NOT_CONSTANT
    return kept_text(value)


def _is_plain_string(node: cst.BaseExpression) -> bool:
    """Whether it is a string literal of any kind but a formatted one."""
    return isinstance(node, cst.SimpleString) or (isinstance(node, cst.ConcatenatedString) and not _formatted(node))


def _formatted(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The formatted ones among strings that stand side by side."""
    if isinstance(node, cst.ConcatenatedString):
        return _formatted(node.left) + _formatted(node.right)
    return [] if isinstance(node, cst.SimpleString) else [node]


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Return | cst.Raise)


def _is_stub(body: Sequence[cst.CSTNode]) -> bool:
    """Whether a body does nothing: docstring, ``pass``, ``...``, ``raise NotImplementedError``."""
    for statement in body:
        parts: Sequence[cst.CSTNode] = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
        if not all(_does_nothing(part) for part in parts):
            return False
    return True


def _does_nothing(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Pass):
        return True
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.Ellipsis) or _is_plain_string(node.value)
    if isinstance(node, cst.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
        return _dotted(raised) == "NotImplementedError"
    return False
