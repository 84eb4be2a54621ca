"""Reads a module's syntax from its libcst tree.

:mod:`opschema_cli.source.ast_facts` gives the same faster, where it can. Importing this module imports libcst (0.1 to 0.2 s).
It is one module because it is one visitor, with a method for each kind of statement and expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import libcst as cst

from opschema_cli.source.cst_spans import Spans, children
from opschema_cli.source.fact_parts import (
    MAX_EXPR_DEPTH,
    NOT_CONSTANT,
    Definition,
    Syntax,
    clause_of,
    flattened,
    format_text,
    kept_int,
    kept_text,
    slice_of,
)
from opschema_cli.source.python import (
    Constant,
    Expr,
    ExprKind,
    Import,
    ModuleFacts,
    Param,
    ParamKind,
    Statement,
    StatementKind,
)
from opschema_cli.source.scope_facts import facts_of
from opschema_cli.source.text import Span


def collect_from_cst(module: cst.Module, spans: Spans, text: str) -> ModuleFacts:
    """Collect the facts of a text from its tree, whose nodes are at ``spans``.

    Raises:
        RecursionError: it nests too deeply.
    """
    return facts_of(_Reader(spans, text).module(module))


class _Reader:
    """Converts a tree to statements and expressions."""

    def __init__(self, spans: Spans, text: str) -> None:
        self.spans = spans
        self.text = text
        self.syntax = Syntax()
        self.deep: list[tuple[Expr, cst.CSTNode]] = []

    def module(self, module: cst.Module) -> Syntax:
        self.syntax.body = self.block(module)
        while self.deep:  # one after the other, however deep they nest
            made, node = self.deep.pop()
            self.syntax.below[id(made)] = self.expr(node)
        return self.syntax

    def span(self, node: cst.CSTNode) -> Span:
        return Span(*self.spans[id(node)])

    def closing(self, node: cst.BaseExpression) -> int:
        """Return the end of an expression, including its brackets."""
        return self.span(node.rpar[-1] if node.rpar else node).end

    # Statements

    def block(self, node: cst.Module | cst.BaseSuite | cst.Else | cst.Finally | None) -> list[Statement]:
        if node is None:
            return []
        lines = node.body.body if isinstance(node, cst.Else | cst.Finally) else node.body
        parts = [
            part for line in lines for part in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
        ]
        return [_STATEMENTS.get(type(part), _Reader.unknown_statement)(self, part) for part in parts]

    def made(
        self, kind: StatementKind, node: cst.CSTNode, exprs: Iterable[cst.CSTNode | None], *blocks: Any, text: str = ""
    ) -> Statement:
        values = tuple([self.expr(item) for item in exprs if item is not None])
        inner = tuple([tuple(self.block(item)) for item in blocks])
        return Statement(kind, *self.span(node), text, values, inner)

    def unknown_statement(self, node: cst.CSTNode) -> Statement:
        return Statement("other", *self.span(node), "", self.parts(node))

    def parts(self, node: cst.CSTNode) -> tuple[Expr, ...]:
        """Return the expressions in a node of another kind."""
        found: list[Expr] = []
        for child in children(node):
            found += (self.expr(child),) if isinstance(child, cst.BaseExpression) else self.parts(child)
        return tuple(found)

    def function_def(self, node: cst.FunctionDef) -> Statement:
        params = tuple([self.param(item, kind) for item, kind in _params(node.params)])
        returns = self.expr(node.returns.annotation) if node.returns is not None else None
        return self.definition("def", node, Definition(*self.head(node), params=params, returns=returns))

    def class_def(self, node: cst.ClassDef) -> Statement:
        bases = tuple([self.expr(item.value) for item in node.bases])
        keywords = tuple([(_keyword(item), self.expr(item.value)) for item in node.keywords])
        return self.definition("class", node, Definition(*self.head(node), bases=bases, keywords=keywords))

    def head(self, node: cst.FunctionDef | cst.ClassDef) -> tuple[str, Span, list[Statement], tuple[Expr, ...]]:
        decorators = tuple([self.expr(item.decorator) for item in node.decorators])
        return node.name.value, self.span(node.name), self.block(node.body), decorators

    def definition(self, kind: StatementKind, node: cst.FunctionDef | cst.ClassDef, found: Definition) -> Statement:
        start, end = self.span(node)
        if node.decorators:
            start = min(start, self.span(node.decorators[0]).start)
        made = Statement(kind, start, end, node.name.value)
        self.syntax.definitions[id(made)] = found
        return made

    def param(self, node: cst.Param, kind: ParamKind) -> Param:
        annotation = node.annotation.annotation if node.annotation is not None else None
        ends = [self.closing(child) for child in (node.name, annotation, node.default) if child is not None]
        found, default = [self.expr(item) if item is not None else None for item in (annotation, node.default)]
        return Param(node.name.value, kind, *self.span(node.name), max(ends), found, default)

    def expression(self, node: cst.Expr) -> Statement:
        return self.made("expr", node, [node.value])

    def assign(self, node: cst.Assign) -> Statement:
        return self.made("assign", node, [*(item.target for item in node.targets), node.value])

    def ann_assign(self, node: cst.AnnAssign) -> Statement:
        return self.made("annassign", node, [node.target, node.annotation.annotation, node.value])

    def aug_assign(self, node: cst.AugAssign) -> Statement:
        operator = _OPERATORS[type(node.operator).__name__.removesuffix("Assign")]
        return self.made("augassign", node, [node.target, node.value], text=operator)

    def if_(self, node: cst.If) -> Statement:
        chain = [node]
        while isinstance(last := chain[-1].orelse, cst.If):
            chain.append(last)
        orelse = tuple(self.block(last))
        for item in reversed(chain):
            made = self.made("if", item, [item.test], item.body)
            made.blocks = (*made.blocks, orelse)
            orelse = (made,)
        return made

    def while_(self, node: cst.While) -> Statement:
        return self.made("while", node, [node.test], node.body, node.orelse)

    def for_(self, node: cst.For) -> Statement:
        return self.made("for", node, [node.target, node.iter], node.body, node.orelse, text=_async(node))

    def with_(self, node: cst.With) -> Statement:
        exprs: list[Expr] = []
        for item in node.items:
            exprs.append(self.expr(item.item))
            target = item.asname.name if item.asname is not None else None
            exprs.append(self.expr(target) if target is not None else Expr("absent", exprs[-1].end, exprs[-1].end))
        made = self.made("with", node, [], node.body, text=_async(node))
        made.exprs = tuple(exprs)
        return made

    def try_(self, node: cst.Try | cst.TryStar) -> Statement:
        star = "*" if isinstance(node, cst.TryStar) else ""
        made = self.made("try", node, [], node.body, None, node.orelse, node.finalbody, text=star)
        handlers = tuple([self.handler(item) for item in node.handlers])
        made.blocks = (made.blocks[0], handlers, *made.blocks[2:])
        return made

    def handler(self, node: cst.ExceptHandler | cst.ExceptStarHandler) -> Statement:
        name = node.name.name if node.name is not None else None
        made = self.made(
            "except", node, [node.type, name], node.body, text=name.value if isinstance(name, cst.Name) else ""
        )
        made.end = made.blocks[0][-1].end
        return made

    def match(self, node: cst.Match) -> Statement:
        made = self.made("match", node, [node.subject])
        made.blocks = (tuple([self.case(item) for item in node.cases]),)
        return made

    def case(self, node: cst.MatchCase) -> Statement:
        bound: list[Expr] = []
        read: list[Expr] = []
        self.pattern(node.pattern, bound, read)
        text = ",".join(dict.fromkeys(item.text for item in bound))
        made = self.made("case", node, [node.guard], node.body, text=text)
        self.syntax.patterns[id(made)] = bound, read
        return made

    def pattern(self, node: cst.CSTNode, bound: list[Expr], read: list[Expr]) -> None:
        """Record the names that a pattern binds, and the expressions that it reads."""
        for child in children(node):
            binds = isinstance(node, cst.MatchAs | cst.MatchStar | cst.MatchMapping) and isinstance(child, cst.Name)
            if binds or not isinstance(child, cst.BaseExpression):
                self.pattern(child, bound, read)
            elif not isinstance(node, cst.MatchKeywordElement) or child is not node.key:
                read.append(self.expr(child))
            if binds:
                bound.append(self.expr(child))

    def return_(self, node: cst.Return) -> Statement:
        return self.made("return", node, [node.value])

    def delete(self, node: cst.Del) -> Statement:
        target = node.target
        if isinstance(target, cst.Tuple) and not target.lpar:
            return self.made("delete", node, [item.value for item in target.elements])
        return self.made("delete", node, [target])

    def raise_(self, node: cst.Raise) -> Statement:
        return self.made("raise", node, [node.exc, node.cause.item if node.cause is not None else None])

    def assert_(self, node: cst.Assert) -> Statement:
        return self.made("assert", node, [node.test, node.msg])

    def global_(self, node: cst.Global | cst.Nonlocal) -> Statement:
        names = ",".join([item.name.value for item in node.names])
        return self.made("global" if isinstance(node, cst.Global) else "nonlocal", node, [], text=names)

    def word_only(self, node: cst.Pass | cst.Break | cst.Continue) -> Statement:
        return self.made(_WORDS[type(node)], node, [])

    def import_(self, node: cst.Import) -> Statement:
        found: list[Import] = []
        for alias in node.names:
            module = _dotted(alias.name)
            local = _alias(alias) or module.partition(".")[0]
            found.append(Import(local, module, "", 0, *self.span(alias.name)))
        return self.imported(node, found)

    def import_from(self, node: cst.ImportFrom) -> Statement:
        module = _dotted(node.module) if node.module is not None else ""
        level = len(node.relative)
        if isinstance(node.names, cst.ImportStar):
            return self.imported(node, [Import("*", module, "*", level, *self.span(node.names))])
        found: list[Import] = []
        for alias in node.names:
            attr = _dotted(alias.name)
            found.append(Import(_alias(alias) or attr, module, attr, level, *self.span(alias.name)))
        return self.imported(node, found)

    def imported(self, node: cst.CSTNode, found: list[Import]) -> Statement:
        made = self.made("import", node, [], text=",".join([item.name for item in found]))
        self.syntax.imports[id(made)] = found
        return made

    # Expressions

    def expr(self, node: cst.CSTNode, depth: int = 0) -> Expr:
        span = self.span(node)
        constant = _constant(node)
        if constant is not NOT_CONSTANT:
            return Expr("const", *span, "", constant)
        if isinstance(node, _LITERALS) or _is_plain_string(node):
            return Expr("literal", *span, self.text[span.start : span.end])
        dotted = _dotted(node)
        if dotted:
            made = Expr("name", *span, dotted)
            if span.end - span.start != len(dotted) and isinstance(node, cst.Attribute):
                self.syntax.heads[id(made)] = self.span(node.value)
            return made
        if depth >= MAX_EXPR_DEPTH:
            made = Expr("other", *span)
            self.deep.append((made, node))
            return made
        found: Expr = _EXPRESSIONS.get(type(node), _Reader.unknown)(self, node, span, depth + 1)
        return found

    def exprs(self, nodes: Iterable[cst.CSTNode], depth: int) -> tuple[Expr, ...]:
        return tuple([self.expr(node, depth) for node in nodes])

    def unknown(self, node: cst.BaseExpression, span: Span, depth: int) -> Expr:
        made = Expr("other", *span)
        self.syntax.below[id(made)] = Expr("tuple", *span, "", None, self.parts(node))
        return made

    def call(self, node: cst.Call, span: Span, depth: int) -> Expr:
        items = (self.expr(node.func, depth), *(self.expr(arg.value, depth) for arg in node.args))
        words = tuple(arg.star or (arg.keyword.value if arg.keyword is not None else "") for arg in node.args)
        return Expr("call", *span, "", None, items, words)

    def sequence(self, node: cst.Tuple | cst.List | cst.Set, span: Span, depth: int) -> Expr:
        kind: ExprKind = "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
        elements = [item if isinstance(item, cst.StarredElement) else item.value for item in node.elements]
        return Expr(kind, *span, "", None, self.exprs(elements, depth))

    def starred(self, node: cst.StarredElement, span: Span, depth: int) -> Expr:
        return Expr("starred", span.start, self.closing(node.value), "", None, (self.expr(node.value, depth),))

    def dict_(self, node: cst.Dict, span: Span, depth: int) -> Expr:
        items: list[Expr] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                items.append(self.expr(element.key, depth))
            else:
                items.append(Expr("absent", *self.span(element), "**"))
            items.append(self.expr(element.value, depth))
        return Expr("dict", *span, "", None, tuple(items))

    def unary(self, node: cst.UnaryOperation, span: Span, depth: int) -> Expr:
        return Expr("unary", *span, _operator(node.operator), None, (self.expr(node.expression, depth),))

    def binary(self, node: cst.BinaryOperation, span: Span, depth: int) -> Expr:
        return Expr("binary", *span, _operator(node.operator), None, self.exprs((node.left, node.right), depth))

    def attribute(self, node: cst.Attribute, span: Span, depth: int) -> Expr:
        return Expr("attribute", *span, node.attr.value, None, (self.expr(node.value, depth),))

    def boolean(self, node: cst.BooleanOperation, span: Span, depth: int) -> Expr:
        operator = "and" if isinstance(node.operator, cst.And) else "or"
        operands: list[cst.BaseExpression] = []
        left: cst.BaseExpression = node
        while isinstance(left, cst.BooleanOperation) and type(left.operator) is type(node.operator):
            operands.append(left.right)
            left = left.left
        items = flattened(operator, self.exprs((left, *reversed(operands)), depth))
        return Expr("boolop", *span, operator, None, items)

    def compare(self, node: cst.Comparison, span: Span, depth: int) -> Expr:
        operators = " ".join(_COMPARISONS.get(type(item.operator), "?") for item in node.comparisons)
        items = [node.left, *(item.comparator for item in node.comparisons)]
        return Expr("compare", *span, operators, None, self.exprs(items, depth))

    def subscript(self, node: cst.Subscript, span: Span, depth: int) -> Expr:
        elements = tuple([self.index(item, depth) for item in node.slice])
        if len(elements) == 1 and elements[0].kind != "starred" and isinstance(node.slice[0].comma, cst.Comma):
            elements = (Expr("tuple", elements[0].start, elements[0].end, "", None, elements),)
        return Expr("subscript", *span, "", None, (self.expr(node.value, depth), *elements))

    def index(self, node: cst.SubscriptElement, depth: int) -> Expr:
        part = node.slice
        if isinstance(part, cst.Slice):
            parts = [
                self.expr(item, depth + 1) if item is not None else None for item in (part.lower, part.upper, part.step)
            ]
            return slice_of(self.span(part).start, parts)
        if not isinstance(part, cst.Index):
            return Expr("other", *self.span(part))
        if not part.star:
            return self.expr(part.value, depth)
        value = self.expr(part.value, depth + 1)
        return Expr("starred", self.span(part).start, self.closing(part.value), "", None, (value,))

    def if_expression(self, node: cst.IfExp, span: Span, depth: int) -> Expr:
        return Expr("ifexp", *span, "", None, self.exprs((node.test, node.body, node.orelse), depth))

    def comprehension(self, node: cst.BaseSimpleComp, span: Span, depth: int) -> Expr:
        items = (self.expr(node.elt, depth), *self.clauses(node.for_in, depth))
        return Expr(_COMPREHENSIONS[type(node)], *span, "", None, items)

    def dict_comprehension(self, node: cst.DictComp, span: Span, depth: int) -> Expr:
        items = (*self.exprs((node.key, node.value), depth), *self.clauses(node.for_in, depth))
        return Expr("dictcomp", *span, "", None, items)

    def clauses(self, node: cst.CompFor | None, depth: int) -> Iterator[Expr]:
        while node is not None:
            parts = self.exprs((node.target, node.iter, *(item.test for item in node.ifs)), depth)
            yield clause_of(_async(node), parts)
            node = node.inner_for_in

    def lambda_(self, node: cst.Lambda, span: Span, depth: int) -> Expr:
        params = tuple([self.param(item, kind) for item, kind in _params(node.params)])
        names = [Expr("name", item.start, item.end, item.name) for item in params]
        made = Expr("lambda", *span, "", None, (*names, self.expr(node.body, depth)))
        self.syntax.params[id(made)] = params
        return made

    def walrus(self, node: cst.NamedExpr, span: Span, depth: int) -> Expr:
        return Expr("walrus", *span, "", None, self.exprs((node.target, node.value), depth))

    def await_(self, node: cst.Await, span: Span, depth: int) -> Expr:
        return Expr("await", *span, "", None, (self.expr(node.expression, depth),))

    def yield_(self, node: cst.Yield, span: Span, depth: int) -> Expr:
        if isinstance(node.value, cst.From):
            return Expr("yield-from", *span, "", None, (self.expr(node.value.item, depth),))
        return Expr("yield", *span, "", None, self.exprs([node.value] if node.value is not None else [], depth))

    # Formatted strings

    def formatted(self, node: cst.FormattedString | cst.ConcatenatedString, span: Span, depth: int) -> Expr:
        found: list[str | Expr] = []
        for piece in _pieces(node):
            if isinstance(piece, cst.FormattedString):
                found += self.content(piece.parts, piece.start, span, depth)
            elif isinstance(piece, cst.SimpleString):
                found.append(_evaluated(piece.value))
        return _fstring(found, span)

    def content(
        self, parts: Sequence[cst.BaseFormattedStringContent], opening: str, span: Span, depth: int
    ) -> Iterator[str | Expr]:
        """Yield the texts and fields of a formatted string or of a format specification."""
        for part in parts:
            if isinstance(part, cst.FormattedStringText):
                yield _format_text(part.value, opening)
            elif isinstance(part, cst.FormattedStringExpression):
                if part.equal is not None:
                    yield self.shown(part)
                yield self.field(part, opening, span, depth)

    def shown(self, node: cst.FormattedStringExpression) -> str:
        """Return the text of ``x = `` in ``{x = }``."""
        start, end = self.span(node).start + 1, self.closing(node.expression)
        equal = _EQUAL.match(self.text, end)
        return self.text[start : equal.end() if equal is not None else end]

    def field(self, node: cst.FormattedStringExpression, opening: str, span: Span, depth: int) -> Expr:
        value = self.expr(node.expression, depth)
        spec: tuple[Expr, ...] = ()
        if node.format_spec is not None:
            spec = (_fstring(self.content(node.format_spec, opening, span, depth + 1), span),)
        plain = node.equal is not None and node.conversion is None and not spec
        return Expr("field", value.start, value.end, node.conversion or ("r" if plain else ""), None, (value, *spec))


_LITERALS = (cst.Integer, cst.Float, cst.Imaginary, cst.Ellipsis)

_STATEMENTS: dict[type[cst.CSTNode], Any] = {
    cst.FunctionDef: _Reader.function_def,
    cst.ClassDef: _Reader.class_def,
    cst.Expr: _Reader.expression,
    cst.Assign: _Reader.assign,
    cst.AnnAssign: _Reader.ann_assign,
    cst.AugAssign: _Reader.aug_assign,
    cst.If: _Reader.if_,
    cst.While: _Reader.while_,
    cst.For: _Reader.for_,
    cst.With: _Reader.with_,
    cst.Try: _Reader.try_,
    cst.TryStar: _Reader.try_,
    cst.Match: _Reader.match,
    cst.Return: _Reader.return_,
    cst.Del: _Reader.delete,
    cst.Raise: _Reader.raise_,
    cst.Assert: _Reader.assert_,
    cst.Global: _Reader.global_,
    cst.Nonlocal: _Reader.global_,
    cst.Import: _Reader.import_,
    cst.ImportFrom: _Reader.import_from,
    cst.Pass: _Reader.word_only,
    cst.Break: _Reader.word_only,
    cst.Continue: _Reader.word_only,
}

_EXPRESSIONS: dict[type[cst.CSTNode], Any] = {
    cst.Call: _Reader.call,
    cst.Tuple: _Reader.sequence,
    cst.List: _Reader.sequence,
    cst.Set: _Reader.sequence,
    cst.StarredElement: _Reader.starred,
    cst.Dict: _Reader.dict_,
    cst.UnaryOperation: _Reader.unary,
    cst.BinaryOperation: _Reader.binary,
    cst.Subscript: _Reader.subscript,
    cst.Lambda: _Reader.lambda_,
    cst.Attribute: _Reader.attribute,
    cst.BooleanOperation: _Reader.boolean,
    cst.Comparison: _Reader.compare,
    cst.IfExp: _Reader.if_expression,
    cst.ListComp: _Reader.comprehension,
    cst.SetComp: _Reader.comprehension,
    cst.GeneratorExp: _Reader.comprehension,
    cst.DictComp: _Reader.dict_comprehension,
    cst.NamedExpr: _Reader.walrus,
    cst.Await: _Reader.await_,
    cst.Yield: _Reader.yield_,
    cst.FormattedString: _Reader.formatted,
    cst.ConcatenatedString: _Reader.formatted,
}

_COMPREHENSIONS: dict[type[cst.CSTNode], ExprKind] = {
    cst.ListComp: "listcomp", cst.SetComp: "setcomp", cst.GeneratorExp: "generator",
}  # fmt: skip

_WORDS: dict[type[cst.CSTNode], StatementKind] = {cst.Pass: "pass", cst.Break: "break", cst.Continue: "continue"}

_EQUAL = re.compile(r"\s*=\s*")

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


def _async(node: cst.For | cst.With | cst.CompFor) -> str:
    return "async" if node.asynchronous is not None else ""


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


_NAMED = {"None": None, "True": True, "False": False}


def _constant(node: cst.CSTNode) -> Constant:
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


def _is_plain_string(node: cst.CSTNode) -> bool:
    """Whether it is a string literal other than a formatted one."""
    pieces = _pieces(node) if isinstance(node, cst.ConcatenatedString) else [node]
    return all(isinstance(piece, cst.SimpleString) for piece in pieces)


def _pieces(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return the parts of adjacent strings."""
    if isinstance(node, cst.ConcatenatedString):
        return _pieces(node.left) + _pieces(node.right)
    return [node]


def _format_text(text: str, opening: str) -> str:
    """Return the value of text in a formatted string that begins with ``opening``, its prefix and quotes."""
    text = text.replace("{{", "{").replace("}}", "}").replace("\r\n", "\n").replace("\r", "\n")
    if "\\" not in text or "r" in opening.lower():
        return text
    if (len(text) - len(text.rstrip("\\"))) % 2:  # an escaped brace
        text += "\\"
    quote = opening.lstrip("fF")
    return _evaluated(f"{quote}{text}{quote}")


def _evaluated(literal: str) -> str:
    """Return the value of a string literal; the literal itself if Python rejects it, which libcst does not."""
    try:
        return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        return literal


def _fstring(content: Iterable[str | Expr], span: Span) -> Expr:
    """Return a formatted string from its texts and fields; adjacent texts are joined."""
    found: list[Expr] = []
    texts: list[str] = []
    for item in content:
        if isinstance(item, str):
            texts.append(item)
            continue
        if any(texts):
            found.append(format_text(span, "".join(texts)))
        texts = []
        found.append(item)
    if any(texts):
        found.append(format_text(span, "".join(texts)))
    return Expr("fstring", *span, "", None, tuple(found))
