"""Reads a module's syntax from CPython's own tree, at a fifth of the cost of libcst's.

It gives the same as :mod:`opschema_cli.source.cst_facts`, or :class:`NotTakenError` where CPython's tree says less than
libcst's; tests hold the two equal. It is one module because it is one visitor, with a method for each kind of statement and
expression, named as there.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from opschema_cli.source.ast_patterns import PatternReader, first_case, next_case
from opschema_cli.source.ast_spans import Places
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


class NotTakenError(Exception):
    """Raised if the facts of this text must be collected from libcst."""


def collect_from_ast(text: str) -> ModuleFacts:
    """Collect the facts of a module's text.

    Raises:
        NotTakenError: the Python that runs does not parse it, or parses it to a tree that says less than libcst's.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes
            module = ast.parse(text)
        return facts_of(_Reader(Places(text)).module(module))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotTakenError from error


def expression_of(text: str, node: ast.expr) -> Expr:
    """Return an expression of the tree of a text.

    Raises:
        NotTakenError: CPython reads one of its names as another one.
    """
    return _Reader(Places(text)).expr(node)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef

_NAME, _CONSTANT, _ATTRIBUTE = ast.Name, ast.Constant, ast.Attribute
_WITH_BRACKETS = frozenset({ast.Tuple, ast.GeneratorExp})
"""Node kinds whose own brackets are part of the node for CPython, but not for libcst."""


class _Reader:
    """Converts a tree to statements and expressions."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.text = places.text
        self.span = places.span
        self.bounds = places.bounds
        self.starts = places.starts
        self.wide = places.wide
        self.sure = True
        """Whether CPython places names where they are, as it does outside formatted strings."""
        self.syntax = Syntax()
        self.deep: list[tuple[Expr, ast.expr, bool]] = []

    def module(self, module: ast.Module) -> Syntax:
        self.syntax.body = self.block(module.body)
        while self.deep:  # one after the other, however deep they nest
            made, node, self.sure = self.deep.pop()
            self.syntax.below[id(made)] = self.expr(node)
        return self.syntax

    def end(self, node: ast.stmt) -> int:
        """Return the end of a statement; for CPython, the last one of a line also includes the semicolon after it."""
        last = node.end_lineno
        if last in self.wide:
            end = self.places.end(node)
        else:
            end = self.starts[last] + node.end_col_offset  # type: ignore[index, operator]
        return len(self.text[:end].rstrip("; \t\f\\\r\n")) if self.text[end - 1] == ";" else end

    def word(self, name: str, start: int) -> tuple[int, int]:
        """Return the span of a name; CPython normalizes names that are not ASCII, and places some in formatted strings wrongly."""
        if not self.text.startswith(name, start):
            raise NotTakenError
        return start, start + len(name)

    # Statements

    def block(self, body: Iterable[ast.stmt]) -> list[Statement]:
        return [_STATEMENTS[type(node)](self, node) for node in body]

    def made(
        self,
        kind: StatementKind,
        node: ast.stmt,
        exprs: Sequence[ast.expr | None],
        *blocks: Sequence[ast.stmt],
        text: str = "",
    ) -> Statement:
        values = tuple([self.expr(item) for item in exprs if item is not None])
        inner = tuple([tuple(self.block(item)) for item in blocks]) if blocks else ()
        line = node.lineno
        start = self.starts[line] + node.col_offset if line not in self.wide else self.places.start(node)
        return Statement(kind, start, self.end(node), text, values, inner)

    def function_def(self, node: _Definition) -> Statement:
        params = tuple([self.param(*item) for item in _params(node.args)])
        returns = self.expr(node.returns) if node.returns is not None else None
        return self.definition("def", node, Definition(*self.head(node), params=params, returns=returns))

    def class_def(self, node: ast.ClassDef) -> Statement:
        bases = tuple([self.expr(item.value if isinstance(item, ast.Starred) else item) for item in node.bases])
        keywords = tuple([(item.arg or "", self.expr(item.value)) for item in node.keywords])
        return self.definition("class", node, Definition(*self.head(node), bases=bases, keywords=keywords))

    def head(self, node: _Definition | ast.ClassDef) -> tuple[str, Span, list[Statement], tuple[Expr, ...]]:
        if getattr(node, "type_params", None):
            raise NotTakenError
        span = Span(*self.word(node.name, self.places.name(node).start))
        return node.name, span, self.block(node.body), tuple([self.expr(item) for item in node.decorator_list])

    def definition(self, kind: StatementKind, node: _Definition | ast.ClassDef, found: Definition) -> Statement:
        start = self.places.start(node)
        if node.decorator_list:
            start = self.text.rindex("@", 0, self.places.start(node.decorator_list[0]))
        made = Statement(kind, start, self.end(node), node.name)
        self.syntax.definitions[id(made)] = found
        return made

    def param(self, node: ast.arg, kind: ParamKind, default: ast.expr | None) -> Param:
        start, end = self.word(node.arg, self.places.start(node))
        full_end = end
        annotation = value = None
        if node.annotation is not None:
            full_end, annotation = self.places.closing(full_end, node.annotation), self.expr(node.annotation)
        if default is not None:
            full_end, value = self.places.closing(full_end, default), self.expr(default)
        return Param(node.arg, kind, start, end, full_end, annotation, value)

    def expression(self, node: ast.Expr) -> Statement:
        return self.made("expr", node, [node.value])

    def assign(self, node: ast.Assign) -> Statement:
        return self.made("assign", node, [*node.targets, node.value])

    def ann_assign(self, node: ast.AnnAssign) -> Statement:
        return self.made("annassign", node, [node.target, node.annotation, node.value])

    def aug_assign(self, node: ast.AugAssign) -> Statement:
        return self.made("augassign", node, [node.target, node.value], text=_OPERATORS[type(node.op)])

    def if_(self, node: ast.If) -> Statement:
        chain = [node]
        while len(chain[-1].orelse) == 1 and isinstance(last := chain[-1].orelse[0], ast.If):
            chain.append(last)
        orelse = tuple(self.block(chain[-1].orelse))
        for item in reversed(chain):
            made = self.made("if", item, [item.test], item.body)
            made.blocks = (*made.blocks, orelse)
            orelse = (made,)
        return made

    def while_(self, node: ast.While) -> Statement:
        return self.made("while", node, [node.test], node.body, node.orelse)

    def for_(self, node: ast.For | ast.AsyncFor) -> Statement:
        return self.made("for", node, [node.target, node.iter], node.body, node.orelse, text=_async(node))

    def with_(self, node: ast.With | ast.AsyncWith) -> Statement:
        exprs: list[Expr] = []
        for item in node.items:
            exprs.append(self.expr(item.context_expr))
            target = item.optional_vars
            exprs.append(self.expr(target) if target is not None else Expr("absent", exprs[-1].end, exprs[-1].end))
        made = self.made("with", node, [], node.body, text=_async(node))
        made.exprs = tuple(exprs)
        return made

    def try_(self, node: ast.Try) -> Statement:
        star = "*" if type(node) is not ast.Try else ""  # `ast.TryStar`, of Python 3.11
        made = self.made("try", node, [], node.body, [], node.orelse, node.finalbody, text=star)
        handlers = tuple([self.handler(item) for item in node.handlers])
        made.blocks = (made.blocks[0], handlers, *made.blocks[2:])
        return made

    def handler(self, node: ast.ExceptHandler) -> Statement:
        exprs = [self.expr(node.type)] if node.type is not None else []
        if node.type is not None and node.name is not None:
            word = self.places.after_space(self.places.closing(self.places.start(node), node.type))
            start = self.places.after_space(word + len("as"))
            exprs.append(Expr("name", *self.word(node.name, start), node.name))
        body = tuple(self.block(node.body))
        return Statement("except", self.places.start(node), body[-1].end, node.name or "", tuple(exprs), (body,))

    def match(self, node: ast.Match) -> Statement:
        made = self.made("match", node, [node.subject])
        start, cases = first_case(self.places, node), []
        for item in node.cases:
            cases.append(self.case(item, start))
            start = next_case(self.places, item)
        made.blocks = (tuple(cases),)
        return made

    def case(self, node: ast.match_case, start: int | None) -> Statement:
        if start is None or not self.text.startswith("case", start):
            raise NotTakenError
        patterns = PatternReader(self.places, self.expr, self.word)
        patterns.pattern(node.pattern)
        guard = (self.expr(node.guard),) if node.guard is not None else ()
        body = tuple(self.block(node.body))
        text = ",".join(dict.fromkeys([item.text for item in patterns.bound]))
        made = Statement("case", start, body[-1].end, text, guard, (body,))
        self.syntax.patterns[id(made)] = patterns.bound, patterns.read
        return made

    def return_(self, node: ast.Return) -> Statement:
        return self.made("return", node, [node.value])

    def delete(self, node: ast.Delete) -> Statement:
        return self.made("delete", node, node.targets)

    def raise_(self, node: ast.Raise) -> Statement:
        return self.made("raise", node, [node.exc, node.cause])

    def assert_(self, node: ast.Assert) -> Statement:
        return self.made("assert", node, [node.test, node.msg])

    def global_(self, node: ast.Global | ast.Nonlocal) -> Statement:
        return self.made("global" if isinstance(node, ast.Global) else "nonlocal", node, [], text=",".join(node.names))

    def word_only(self, node: ast.Pass | ast.Break | ast.Continue) -> Statement:
        return self.made(_WORDS[type(node)], node, [])

    def import_(self, node: ast.Import) -> Statement:
        found: list[Import] = []
        for alias in node.names:
            local = alias.asname or alias.name.partition(".")[0]
            span = self.places.dotted(self.places.start(alias), alias.name)
            found.append(Import(local, alias.name, "", 0, *span))
        return self.imported(node, found)

    def import_from(self, node: ast.ImportFrom) -> Statement:
        found: list[Import] = []
        for alias in node.names:
            span = self.word(alias.name, self.places.start(alias))
            found.append(Import(alias.asname or alias.name, node.module or "", alias.name, node.level, *span))
        return self.imported(node, found)

    def imported(self, node: ast.stmt, found: list[Import]) -> Statement:
        made = self.made("import", node, [], text=",".join([item.name for item in found]))
        self.syntax.imports[id(made)] = found
        return made

    def not_taken(self, node: ast.AST) -> Statement:
        raise NotTakenError

    # Expressions

    def expr(self, node: ast.expr, depth: int = 0) -> Expr:
        kind = type(node)
        line, starts, wide = node.lineno, self.starts, self.wide
        if kind is _NAME:  # most are names, and most of the time of a parse is spent here
            name: str = node.id  # type: ignore[attr-defined]
            if self.sure and line not in wide:
                start = starts[line] + node.col_offset
                return Expr("name", start, start + len(name), name)
            return Expr("name", *self.word(name, self.places.start(node)), name)
        last = node.end_lineno
        if wide and (line in wide or last in wide):
            start, end = self.bounds(node)
        else:
            start, end = starts[line] + node.col_offset, starts[last] + node.end_col_offset  # type: ignore[index, operator]
        if kind is _CONSTANT:
            return self.constant(node, start, end)  # type: ignore[arg-type]
        if kind is _ATTRIBUTE and (dotted := _dotted(node)):  # type: ignore[arg-type]
            return self.dotted(node, dotted, start, end)  # type: ignore[arg-type]
        build = _EXPRESSIONS.get(kind)
        if build is None:
            raise NotTakenError
        if kind in _WITH_BRACKETS:
            start, end = self.span(node)
        if depth >= MAX_EXPR_DEPTH:
            made = Expr("other", start, end)
            self.deep.append((made, node, self.sure))
            return made
        found: Expr = build(self, node, start, end, depth + 1)
        return found

    def exprs(self, nodes: Iterable[ast.expr], depth: int) -> tuple[Expr, ...]:
        return tuple([self.expr(node, depth) for node in nodes])

    def constant(self, node: ast.Constant, start: int, end: int) -> Expr:
        constant = _constant(node)
        if constant is NOT_CONSTANT:
            return Expr("literal", start, end, self.text[start:end])
        return Expr("const", start, end, "", constant)

    def dotted(self, node: ast.Attribute, dotted: str, start: int, end: int) -> Expr:
        made = Expr("name", start, end, dotted)
        if not self.text.startswith(dotted, start):
            self.check_words(node)
        if end - start != len(dotted):
            self.syntax.heads[id(made)] = self.span(node.value)
        return made

    def check_words(self, node: ast.expr) -> None:
        """Check that the names of an attribute are at the places that CPython gives."""
        while isinstance(node, ast.Attribute):
            self.word(node.attr, self.places.end(node) - len(node.attr))
            node = node.value
        if isinstance(node, ast.Name):
            self.word(node.id, self.places.start(node))

    def call(self, node: ast.Call, start: int, end: int, depth: int) -> Expr:
        items = [self.expr(node.func, depth)]
        if ast.Starred not in map(type, node.args):
            items += [self.expr(item, depth) for item in node.args]
            words = [""] * len(node.args)
            for item in node.keywords:
                items.append(self.expr(item.value, depth))
                words.append("**" if item.arg is None else item.arg)
        else:
            words = []
            for word, value in _arguments(node):
                items.append(self.expr(value, depth))
                words.append(word)
        return Expr("call", start, end, "", None, tuple(items), tuple(words))

    def sequence(self, node: ast.Tuple | ast.List | ast.Set, start: int, end: int, depth: int) -> Expr:
        kind: ExprKind = "tuple" if isinstance(node, ast.Tuple) else "list" if isinstance(node, ast.List) else "set"
        return Expr(kind, start, end, "", None, self.exprs(node.elts, depth))

    def dict_(self, node: ast.Dict, start: int, end: int, depth: int) -> Expr:
        items: list[Expr] = []
        before = start + 1
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                items.append(self.expr(key, depth))
            else:
                items.append(Expr("absent", *self.places.unpacked(before, value), "**"))
            items.append(self.expr(value, depth))
            before = self.places.outer(value).end
        return Expr("dict", start, end, "", None, tuple(items))

    def starred(self, node: ast.Starred, start: int, end: int, depth: int) -> Expr:
        return Expr("starred", start, end, "", None, (self.expr(node.value, depth),))

    def unary(self, node: ast.UnaryOp, start: int, end: int, depth: int) -> Expr:
        return Expr("unary", start, end, _OPERATORS[type(node.op)], None, (self.expr(node.operand, depth),))

    def binary(self, node: ast.BinOp, start: int, end: int, depth: int) -> Expr:
        return Expr("binary", start, end, _OPERATORS[type(node.op)], None, self.exprs((node.left, node.right), depth))

    def attribute(self, node: ast.Attribute, start: int, end: int, depth: int) -> Expr:
        self.word(node.attr, end - len(node.attr))
        return Expr("attribute", start, end, node.attr, None, (self.expr(node.value, depth),))

    def boolean(self, node: ast.BoolOp, start: int, end: int, depth: int) -> Expr:
        operator = "and" if isinstance(node.op, ast.And) else "or"
        operands = list(node.values)
        while isinstance(operands[0], ast.BoolOp) and type(operands[0].op) is type(node.op):
            operands[:1] = operands[0].values
        return Expr("boolop", start, end, operator, None, flattened(operator, self.exprs(operands, depth)))

    def compare(self, node: ast.Compare, start: int, end: int, depth: int) -> Expr:
        operators = " ".join([_COMPARISONS[type(item)] for item in node.ops])
        return Expr("compare", start, end, operators, None, self.exprs((node.left, *node.comparators), depth))

    def subscript(self, node: ast.Subscript, start: int, end: int, depth: int) -> Expr:
        index = node.slice
        several = isinstance(index, ast.Tuple) and index.elts and not self.places.bracketed(index)
        elements = self.exprs(index.elts if several and isinstance(index, ast.Tuple) else [index], depth)
        if several and len(elements) == 1 and elements[0].kind != "starred":
            elements = (Expr("tuple", elements[0].start, elements[0].end, "", None, elements),)
        return Expr("subscript", start, end, "", None, (self.expr(node.value, depth), *elements))

    def slice(self, node: ast.Slice, start: int, end: int, depth: int) -> Expr:
        parts = [self.expr(item, depth) if item is not None else None for item in (node.lower, node.upper, node.step)]
        return slice_of(start, parts)

    def if_expression(self, node: ast.IfExp, start: int, end: int, depth: int) -> Expr:
        return Expr("ifexp", start, end, "", None, self.exprs((node.test, node.body, node.orelse), depth))

    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, start: int, end: int, depth: int
    ) -> Expr:
        return Expr(
            _COMPREHENSIONS[type(node)], start, end, "", None, (self.expr(node.elt, depth), *self.clauses(node, depth))
        )

    def dict_comprehension(self, node: ast.DictComp, start: int, end: int, depth: int) -> Expr:
        items = (*self.exprs((node.key, node.value), depth), *self.clauses(node, depth))
        return Expr("dictcomp", start, end, "", None, items)

    def clauses(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, depth: int) -> list[Expr]:
        return [
            clause_of("async" if item.is_async else "", self.exprs((item.target, item.iter, *item.ifs), depth))
            for item in node.generators
        ]

    def lambda_(self, node: ast.Lambda, start: int, end: int, depth: int) -> Expr:
        params = tuple([self.param(*item) for item in _params(node.args)])
        names = [Expr("name", item.start, item.end, item.name) for item in params]
        made = Expr("lambda", start, end, "", None, (*names, self.expr(node.body, depth)))
        self.syntax.params[id(made)] = params
        return made

    def walrus(self, node: ast.NamedExpr, start: int, end: int, depth: int) -> Expr:
        return Expr("walrus", start, end, "", None, self.exprs((node.target, node.value), depth))

    def await_(self, node: ast.Await | ast.YieldFrom, start: int, end: int, depth: int) -> Expr:
        kind: ExprKind = "await" if isinstance(node, ast.Await) else "yield-from"
        return Expr(kind, start, end, "", None, (self.expr(node.value, depth),))

    def yield_(self, node: ast.Yield, start: int, end: int, depth: int) -> Expr:
        return Expr("yield", start, end, "", None, self.exprs([node.value] if node.value is not None else [], depth))

    def formatted(self, node: ast.JoinedStr, start: int, end: int, depth: int) -> Expr:
        sure, self.sure = self.sure, False
        parts = [self.part(item, Span(start, end), depth) for item in node.values]
        self.sure = sure
        return Expr("fstring", start, end, "", None, tuple(parts))

    def part(self, node: ast.expr, span: Span, depth: int) -> Expr:
        if isinstance(node, ast.Constant):
            return format_text(span, str(node.value))
        if not isinstance(node, ast.FormattedValue):
            raise NotTakenError
        value = self.expr(node.value, depth)
        spec = [self.formatted(node.format_spec, *span, depth)] if isinstance(node.format_spec, ast.JoinedStr) else []
        conversion = chr(node.conversion) if node.conversion > 0 else ""
        return Expr("field", value.start, value.end, conversion, None, (value, *spec))


_STATEMENTS: dict[type[ast.AST], Any] = {
    ast.FunctionDef: _Reader.function_def,
    ast.AsyncFunctionDef: _Reader.function_def,
    ast.ClassDef: _Reader.class_def,
    ast.Expr: _Reader.expression,
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.ann_assign,
    ast.AugAssign: _Reader.aug_assign,
    ast.If: _Reader.if_,
    ast.While: _Reader.while_,
    ast.For: _Reader.for_,
    ast.AsyncFor: _Reader.for_,
    ast.With: _Reader.with_,
    ast.AsyncWith: _Reader.with_,
    ast.Try: _Reader.try_,
    ast.Return: _Reader.return_,
    ast.Delete: _Reader.delete,
    ast.Raise: _Reader.raise_,
    ast.Assert: _Reader.assert_,
    ast.Global: _Reader.global_,
    ast.Nonlocal: _Reader.global_,
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_from,
    ast.Pass: _Reader.word_only,
    ast.Break: _Reader.word_only,
    ast.Continue: _Reader.word_only,
    ast.Match: _Reader.match,
    **{
        getattr(ast, name): read
        for name, read in (("TryStar", _Reader.try_), ("TypeAlias", _Reader.not_taken))  # of Python 3.11 and 3.12
        if hasattr(ast, name)
    },
}

_EXPRESSIONS: dict[type[ast.AST], Any] = {
    ast.Call: _Reader.call,
    ast.Tuple: _Reader.sequence,
    ast.List: _Reader.sequence,
    ast.Set: _Reader.sequence,
    ast.Dict: _Reader.dict_,
    ast.Starred: _Reader.starred,
    ast.UnaryOp: _Reader.unary,
    ast.BinOp: _Reader.binary,
    ast.Subscript: _Reader.subscript,
    ast.Slice: _Reader.slice,
    ast.Lambda: _Reader.lambda_,
    ast.Attribute: _Reader.attribute,
    ast.BoolOp: _Reader.boolean,
    ast.Compare: _Reader.compare,
    ast.IfExp: _Reader.if_expression,
    ast.ListComp: _Reader.comprehension,
    ast.SetComp: _Reader.comprehension,
    ast.GeneratorExp: _Reader.comprehension,
    ast.DictComp: _Reader.dict_comprehension,
    ast.NamedExpr: _Reader.walrus,
    ast.Await: _Reader.await_,
    ast.Yield: _Reader.yield_,
    ast.YieldFrom: _Reader.await_,
    ast.JoinedStr: _Reader.formatted,
}

_COMPREHENSIONS: dict[type[ast.AST], ExprKind] = {
    ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.GeneratorExp: "generator",
}  # fmt: skip

_WORDS: dict[type[ast.AST], StatementKind] = {ast.Pass: "pass", ast.Break: "break", ast.Continue: "continue"}

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.MatMult: "@", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip

_COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is-not", ast.In: "in", ast.NotIn: "not-in",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def _async(node: ast.stmt) -> str:
    return "async" if isinstance(node, ast.AsyncFor | ast.AsyncWith) else ""


def _params(args: ast.arguments) -> Iterator[tuple[ast.arg, ParamKind, ast.expr | None]]:
    """Yield the parameters in source order, each with its default."""
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    for index, (item, default) in enumerate(zip(plain, defaults, strict=True)):
        yield item, "posonly" if index < len(args.posonlyargs) else "normal", default
    if args.vararg is not None:
        yield args.vararg, "vararg", None
    for item, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield item, "kwonly", default
    if args.kwarg is not None:
        yield args.kwarg, "kwarg", None


def _arguments(node: ast.Call) -> list[tuple[str, ast.expr]]:
    """Return the arguments of a call in source order: an empty string, ``*``, ``**`` or the keyword, and the value."""
    plain = [("*", item.value) if type(item) is ast.Starred else ("", item) for item in node.args]
    if not node.keywords:
        return plain
    named = [("**" if item.arg is None else item.arg, item.value) for item in node.keywords]
    if any(word for word, _ in plain):
        return sorted([*plain, *named], key=lambda item: (item[1].lineno, item[1].col_offset))
    return plain + named


def _dotted(node: ast.Attribute) -> str:
    """Return the dotted name of an attribute; empty if it is an attribute of another value."""
    value = node.value
    if type(value) is _NAME:
        return f"{value.id}.{node.attr}"
    parts = [node.attr]
    while type(value) is _ATTRIBUTE:
        parts.append(value.attr)
        value = value.value
    if isinstance(value, ast.Name):
        parts.append(value.id)
    elif isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool)):
        parts.append(str(value.value))
    else:
        return ""
    return ".".join(reversed(parts))


def _constant(node: ast.Constant) -> Constant:
    value = node.value
    if value is None or isinstance(value, bool | float):
        return value
    return kept_int(value) if isinstance(value, int) else kept_text(value)
