"""Collects a module's facts from CPython's own syntax tree, at a fifth of the cost of libcst's.

What facts are, :mod:`opschema_cli.source.cst_facts` says. This gives the same, or :class:`NotTakenError` where CPython's
tree does not tell what libcst's does; tests hold the two equal. The methods have the names of those there.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from opschema_cli.source.ast_spans import Places
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


class NotTakenError(Exception):
    """The facts of this text have to come from libcst."""


def collect_from_ast(text: str) -> ModuleFacts:
    """The facts of a module's text.

    Raises:
        NotTakenError: the Python that runs does not parse it, or parses it to a tree that says less than libcst's.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes
            module = ast.parse(text)
        return _Collector(Places(text)).module(module)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotTakenError from error


_Definition = ast.FunctionDef | ast.AsyncFunctionDef


class _Collector:
    """Turns one tree into facts; ``guard`` counts the conditions, loops and handlers around a statement."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.text = places.text
        self.span = places.span
        self.bounds = places.bounds
        self.guard = 0
        self._calls: dict[ast.Call, tuple[int, Expr]] = {}
        self._cut = 0

    def module(self, module: ast.Module) -> ModuleFacts:
        return ModuleFacts(self.scope(module.body), self.docstring(module.body))

    def docstring(self, body: Sequence[ast.stmt]) -> Span | None:
        first = body[0] if body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            return self.span(first.value) if isinstance(first.value.value, str | bytes) else None
        return None

    def scope(self, body: Iterable[ast.AST]) -> Scope:
        scope = Parts()
        outer, self.guard = self.guard, 0
        self.visit_all(body, scope)
        self.guard = outer
        return scope.finished()

    def visit_all(self, nodes: Iterable[ast.AST], scope: Parts) -> None:
        for node in nodes:
            _HANDLERS.get(type(node), _visit_children)(self, node, scope)

    def visit(self, node: ast.AST, scope: Parts) -> None:
        _HANDLERS.get(type(node), _visit_children)(self, node, scope)

    def visit_children(self, node: ast.AST, scope: Parts) -> None:
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, list):
                self.visit_all(value, scope)
            elif isinstance(value, ast.AST):
                self.visit(value, scope)

    def nothing(self, node: ast.AST, scope: Parts) -> None:
        """A context or an operator."""

    def not_taken(self, node: ast.AST, scope: Parts) -> None:
        raise NotTakenError

    def block(self, body: Sequence[ast.stmt]) -> Span:
        return Span(self.places.start(body[0]), self.end(body[-1]))

    def end(self, node: ast.stmt) -> int:
        """Where a statement ends; for CPython one of several lines also holds the semicolon behind its last."""
        end = self.places.end(node)
        return len(self.text[:end].rstrip("; \t\f\\\r\n")) if self.text[end - 1] == ";" else end

    def word(self, name: str, start: int) -> tuple[int, int]:
        """Where a name is written; CPython may have normalised it, and places few parts of formatted strings wrongly."""
        if not self.text.startswith(name, start):
            raise NotTakenError
        return start, start + len(name)

    def check_words(self, node: ast.expr) -> None:
        """See that the names of an attribute stand where CPython places them."""
        while isinstance(node, ast.Attribute):
            self.word(node.attr, self.places.end(node) - len(node.attr))
            node = node.value
        if isinstance(node, ast.Name):
            self.word(node.id, self.places.start(node))

    # Definitions

    def function_def(self, node: _Definition, scope: Parts) -> None:
        if getattr(node, "type_params", None):
            raise NotTakenError
        self.visit_all(node.decorator_list, scope)
        params = tuple([self.param(*item, scope) for item in _params(node.args)])
        if node.returns is not None:
            self.visit(node.returns, scope)
        inner = self.scope(node.body)
        outer = self.outer(node)
        leaving = {self.block(item.body): _leaves(item.body) for item in node.body if isinstance(item, ast.If)}
        scope.functions.append(
            Function(
                node.name,
                *self.word(node.name, self.places.name(node).start),
                outer,
                params,
                tuple([self.expr(item) for item in node.decorator_list]),
                self.expr(node.returns) if node.returns is not None else None,
                packed_body(inner),
                all(map(_does_nothing, node.body)),
                not self.guard,
                find_guards(inner.assigns, inner.conditions, leaving, outer.end),
                written_in(inner),
            )
        )

    def class_def(self, node: ast.ClassDef, scope: Parts) -> None:
        if getattr(node, "type_params", None):
            raise NotTakenError
        self.visit_all(node.decorator_list, scope)
        bases = [item.value if isinstance(item, ast.Starred) else item for item in node.bases]
        self.visit_all((*bases, *(item.value for item in node.keywords)), scope)
        scope.classes.append(
            Class(
                node.name,
                *self.word(node.name, self.places.name(node).start),
                self.outer(node),
                tuple([self.expr(item) for item in bases]),
                tuple([item.arg for item in node.keywords if item.arg is not None]),
                tuple([self.expr(item) for item in node.decorator_list]),
                self.scope(node.body),
                not self.guard,
                next((self.expr(item.value) for item in node.keywords if item.arg == "metaclass"), None),
            )
        )

    def outer(self, node: _Definition | ast.ClassDef) -> Span:
        start, end = self.places.start(node), self.end(node)
        if node.decorator_list:
            start = self.text.rindex("@", 0, self.places.start(node.decorator_list[0]))
        return Span(start, end)

    def param(self, node: ast.arg, kind: ParamKind, default: ast.expr | None, scope: Parts) -> Param:
        for child in (node.annotation, default):
            if child is not None:
                self.visit(child, scope)
        start, end = self.word(node.arg, self.places.start(node))
        full_end = end
        for child in (node.annotation, default):
            full_end = full_end if child is None else self.places.closing(full_end, child)
        return Param(
            node.arg,
            kind,
            start,
            end,
            full_end,
            self.expr(node.annotation) if node.annotation is not None else None,
            self.expr(default) if default is not None else None,
        )

    def lambda_(self, node: ast.Lambda, scope: Parts) -> None:
        params = list(_params(node.args))
        self.visit_all([default for _, _, default in params if default is not None], scope)
        inner = Parts()
        self.visit(node.body, inner)
        scope.take(inner)
        inner.returns.append(self.expr(node.body))
        span = self.span(node)
        found = tuple([self.param(*item, Parts()) for item in params])
        scope.lambdas.append(
            Function("<lambda>", *span, span, found, (), None, packed_body(inner.finished()), stub=False)
        )

    # Statements

    def assign(self, node: ast.Assign, scope: Parts) -> None:
        value = self.expr(node.value)
        self.visit(node.value, scope)
        statement = self.span(node)
        for target in node.targets:
            self.target(target, value, statement, scope)
            key = _item_key(target)
            if key is not None:
                scope.items.append(Item(*key, value))
            if isinstance(target, ast.Tuple | ast.List):
                self.unpack(target, value, scope)

    def unpack(self, node: ast.Tuple | ast.List, value: Expr, scope: Parts) -> None:
        targets = tuple([_dotted(_unstarred(item)) for item in node.elts])
        starred = any(isinstance(item, ast.Starred) for item in node.elts)
        if value.kind not in ("tuple", "list"):
            scope.unpacks.append(Unpack(targets, starred, value, *self.span(node)))

    def ann_assign(self, node: ast.AnnAssign, scope: Parts) -> None:
        annotation = self.expr(node.annotation)
        self.visit(node.annotation, scope)
        value = self.expr(node.value) if node.value is not None else None
        if node.value is not None:
            self.visit(node.value, scope)
        self.target(node.target, value, self.span(node), scope, annotation)

    def aug_assign(self, node: ast.AugAssign, scope: Parts) -> None:
        self.visit(node.target, scope)
        self.visit(node.value, scope)
        self.target(node.target, None, self.span(node), scope)

    def named_expr(self, node: ast.NamedExpr, scope: Parts) -> None:
        value = self.expr(node.value)
        self.visit(node.value, scope)
        self.target(node.target, value, self.span(node), scope)

    def target(
        self, node: ast.expr, value: Expr | None, statement: Span, scope: Parts, annotation: Expr | None = None
    ) -> None:
        if isinstance(node, ast.Tuple | ast.List):
            items = value.items if value is not None and value.kind in ("tuple", "list") else ()
            pairs = items if len(items) == len(node.elts) else [None] * len(node.elts)
            for element, item in zip(node.elts, pairs, strict=True):
                self.target(_unstarred(element), item, statement, scope)
            return
        name = _dotted(node)
        if name:
            self.check_words(node)
            sure = not self.guard
            scope.assigns.append(Assign(name, *self.span(node), value, statement, sure, annotation))
            if isinstance(node, ast.Attribute):
                self.visit(node.value, scope)
        else:
            self.visit(node, scope)

    def if_(self, node: ast.If, scope: Parts) -> None:
        body = self.block(node.body)
        orelse = self.block(node.orelse) if node.orelse else None
        scope.conditions.append(Condition("if", self.expr(node.test), body, orelse))
        scope.guarded += [body] if orelse is None else [body, orelse]
        self.guarded_children(node, scope)

    def guarded_children(self, node: ast.AST, scope: Parts) -> None:
        self.guard += 1
        self.visit_children(node, scope)
        self.guard -= 1

    def while_(self, node: ast.While, scope: Parts) -> None:
        scope.guarded.append(self.block(node.body))
        self.guarded_children(node, scope)

    def try_(self, node: ast.Try, scope: Parts) -> None:
        blocks = [node.body, *(item.body for item in node.handlers), node.orelse]
        scope.guarded += [self.block(body) for body in blocks if body]
        self.guarded_children(node, scope)

    def assert_(self, node: ast.Assert, scope: Parts) -> None:
        scope.conditions.append(Condition("assert", self.expr(node.test), self.span(node)))
        self.visit_children(node, scope)

    def for_(self, node: ast.For | ast.AsyncFor, scope: Parts) -> None:
        self.visit(node.iter, scope)
        self.guard += 1
        self.target(node.target, None, self.span(node.target), scope)
        targets = tuple([_dotted(item) for item in _target_names(node.target)])
        scope.loops.append(Loop(targets, self.expr(node.iter), self.block(node.body)))
        self.visit_all((*node.body, *node.orelse), scope)
        self.guard -= 1

    def comprehension(self, node: ast.comprehension, scope: Parts) -> None:
        self.visit_all((node.iter, *node.ifs), scope)

    def with_item(self, node: ast.withitem, scope: Parts) -> None:
        self.visit(node.context_expr, scope)
        if node.optional_vars is not None:
            self.target(node.optional_vars, None, self.span(node.optional_vars), scope)

    def except_handler(self, node: ast.ExceptHandler, scope: Parts) -> None:
        self.guard += 1
        self.visit_all(node.body, scope)
        if node.type is not None:
            self.visit(node.type, scope)
        self.guard -= 1

    def return_(self, node: ast.Return, scope: Parts) -> None:
        if node.value is not None:
            scope.returns.append(self.expr(node.value))
            self.visit(node.value, scope)
        else:
            scope.returns.append(Expr("const", *self.span(node)))

    def del_(self, node: ast.Delete, scope: Parts) -> None:
        names = [name for target in node.targets for name in _target_names(target)]
        scope.deleted.extend(filter(None, map(_dotted, names)))

    def global_(self, node: ast.Global | ast.Nonlocal, scope: Parts) -> None:
        scope.deleted.extend(node.names)

    def import_(self, node: ast.Import, scope: Parts) -> None:
        for alias in node.names:
            local = alias.asname or alias.name.partition(".")[0]
            span = self.places.dotted(self.places.start(alias), alias.name)
            scope.imports.append(Import(local, alias.name, "", 0, *span, bool(self.guard)))

    def import_from(self, node: ast.ImportFrom, scope: Parts) -> None:
        for alias in node.names:
            span = self.word(alias.name, self.places.start(alias))
            local = alias.asname or alias.name
            scope.imports.append(Import(local, node.module or "", alias.name, node.level, *span, bool(self.guard)))

    # Expressions

    def call(self, node: ast.Call, scope: Parts) -> None:
        scope.calls.append(self.expr(node))
        self.visit(node.func, scope)
        self.visit_all([value for _, value in _arguments(node)], scope)

    def name(self, node: ast.Name, scope: Parts) -> None:
        scope.uses.append(Use(node.id, *self.word(node.id, self.places.start(node))))

    def attribute(self, node: ast.Attribute, scope: Parts) -> None:
        dotted = _dotted(node)
        span = self.span(node)
        self.check_words(node)
        if dotted:
            scope.uses.append(Use(dotted, *span))
        else:
            self.visit(node.value, scope)
            scope.uses.append(Use(f"?.{node.attr}", *span))

    def constant(self, node: ast.Constant, scope: Parts) -> None:
        if isinstance(node.value, str):
            if is_word(node.value):
                scope.strings.append(node.value)
        elif node.value is None or isinstance(node.value, bool):
            scope.uses.append(Use(str(node.value), *self.span(node)))

    def joined_str(self, node: ast.JoinedStr, scope: Parts) -> None:
        self.visit_all([item for item in node.values if isinstance(item, ast.FormattedValue)], scope)

    def dict_(self, node: ast.Dict, scope: Parts) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.visit(key, scope)
            self.visit(value, scope)

    def expr(self, node: ast.expr, depth: int = 0) -> Expr:
        if isinstance(node, ast.Name):
            return Expr("name", *self.bounds(node), node.id)
        if isinstance(node, ast.Constant):
            constant = _constant(node)
            known = constant is not NOT_CONSTANT
            return Expr("const", *self.bounds(node), "", constant) if known else Expr("other", *self.bounds(node))
        kind = type(node)
        dotted = _dotted(node) if kind is ast.Attribute else ""
        if dotted:
            return Expr("name", *self.bounds(node), dotted)
        build = _EXPRESSIONS.get(kind)
        if build is None:
            return Expr("other", *self.span(node))
        if depth >= MAX_EXPR_DEPTH:
            self._cut += 1
            return Expr("other", *self.span(node))
        found: Expr = build(self, node, self.span(node), depth + 1)
        return found

    def call_expr(self, node: ast.Call, span: Span, depth: int) -> Expr:
        # What holds a call is made before the call itself is visited; where it was not cut, it is the same less deep.
        at, known = self._calls.get(node, (0, None))
        if known is not None and depth <= at:
            return known
        cut, arguments = self._cut, _arguments(node)
        items = (self.expr(node.func, depth), *[self.expr(value, depth) for _, value in arguments])
        made = Expr("call", *span, "", None, items, tuple([word for word, _ in arguments]))
        if cut == self._cut:
            self._calls[node] = depth, made
        return made

    def sequence_expr(self, node: ast.Tuple | ast.List | ast.Set, span: Span, depth: int) -> Expr:
        kind: ExprKind = "tuple" if isinstance(node, ast.Tuple) else "list" if isinstance(node, ast.List) else "set"
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return Expr("other", *span)
        return Expr(kind, *span, "", None, tuple([self.expr(item, depth) for item in node.elts]))

    def dict_expr(self, node: ast.Dict, span: Span, depth: int) -> Expr:
        items: list[Expr] = []
        before = span.start + 1
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                items.append(self.expr(key, depth))
            else:
                items.append(Expr("other", *self.places.unpacked(before, value), "**"))
            items.append(self.expr(value, depth))
            before = self.places.outer(value).end
        return Expr("dict", *span, "", None, tuple(items))

    def unary_expr(self, node: ast.UnaryOp, span: Span, depth: int) -> Expr:
        return Expr("unary", *span, _OPERATORS[type(node.op)], None, (self.expr(node.operand, depth),))

    def binary_expr(self, node: ast.BinOp, span: Span, depth: int) -> Expr:
        items = (self.expr(node.left, depth), self.expr(node.right, depth))
        return Expr("binary", *span, _OPERATORS[type(node.op)], None, items)

    def attribute_expr(self, node: ast.Attribute, span: Span, depth: int) -> Expr:
        return Expr("attribute", *span, node.attr, None, (self.expr(node.value, depth),))

    def boolean_expr(self, node: ast.BoolOp, span: Span, depth: int) -> Expr:
        operator = "and" if isinstance(node.op, ast.And) else "or"
        operands = list(node.values)
        while isinstance(operands[0], ast.BoolOp) and type(operands[0].op) is type(node.op):
            operands[:1] = operands[0].values
        items: list[Expr] = []
        for side in [self.expr(item, depth) for item in operands]:
            items += side.items if side.kind == "boolop" and side.text == operator else (side,)
        return Expr("boolop", *span, operator, None, tuple(items))

    def compare_expr(self, node: ast.Compare, span: Span, depth: int) -> Expr:
        operators = " ".join(_COMPARISONS[type(item)] for item in node.ops)
        items = tuple([self.expr(item, depth) for item in (node.left, *node.comparators)])
        return Expr("compare", *span, operators, None, items)

    def subscript_expr(self, node: ast.Subscript, span: Span, depth: int) -> Expr:
        items = [self.expr(node.value, depth)]
        several = isinstance(node.slice, ast.Tuple) and node.slice.elts and not self.places.bracketed(node.slice)
        for element in node.slice.elts if several and isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(element, ast.Slice):
                return Expr("other", *span, "", None, tuple(items))
            items.append(self.expr(_unstarred(element), depth))
        return Expr("subscript", *span, "", None, tuple(items))

    def lambda_expr(self, node: ast.Lambda, span: Span, depth: int) -> Expr:
        places = [(item.arg, self.places.start(item)) for item, _, _ in _params(node.args)]
        params = [Expr("name", start, start + len(name), name) for name, start in places]
        return Expr("lambda", *span, "", None, (*params, self.expr(node.body, depth)))


_visit_children = _Collector.visit_children

_HANDLERS: dict[type[ast.AST], Any] = {
    ast.FunctionDef: _Collector.function_def,
    ast.AsyncFunctionDef: _Collector.function_def,
    ast.ClassDef: _Collector.class_def,
    ast.Lambda: _Collector.lambda_,
    ast.Assign: _Collector.assign,
    ast.AnnAssign: _Collector.ann_assign,
    ast.AugAssign: _Collector.aug_assign,
    ast.NamedExpr: _Collector.named_expr,
    ast.If: _Collector.if_,
    ast.IfExp: _Collector.guarded_children,
    ast.While: _Collector.while_,
    ast.Try: _Collector.try_,
    ast.Assert: _Collector.assert_,
    ast.For: _Collector.for_,
    ast.AsyncFor: _Collector.for_,
    ast.comprehension: _Collector.comprehension,
    ast.withitem: _Collector.with_item,
    ast.ExceptHandler: _Collector.except_handler,
    ast.Return: _Collector.return_,
    ast.Delete: _Collector.del_,
    ast.Global: _Collector.global_,
    ast.Nonlocal: _Collector.global_,
    ast.Import: _Collector.import_,
    ast.ImportFrom: _Collector.import_from,
    ast.Call: _Collector.call,
    ast.Name: _Collector.name,
    ast.Attribute: _Collector.attribute,
    ast.Constant: _Collector.constant,
    ast.JoinedStr: _Collector.joined_str,
    ast.Dict: _Collector.dict_,
    ast.Match: _Collector.not_taken,
    **{
        getattr(ast, name): _Collector.not_taken
        for name in ("TryStar", "TypeAlias", "TemplateStr")  # of Python 3.11, 3.12 and 3.14
        if hasattr(ast, name)
    },
    **{kind: _Collector.nothing for base in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
       for kind in base.__subclasses__()},
}  # fmt: skip

_EXPRESSIONS: dict[type[ast.AST], Any] = {
    ast.Call: _Collector.call_expr,
    ast.Tuple: _Collector.sequence_expr,
    ast.List: _Collector.sequence_expr,
    ast.Set: _Collector.sequence_expr,
    ast.Dict: _Collector.dict_expr,
    ast.UnaryOp: _Collector.unary_expr,
    ast.BinOp: _Collector.binary_expr,
    ast.Subscript: _Collector.subscript_expr,
    ast.Lambda: _Collector.lambda_expr,
    ast.Attribute: _Collector.attribute_expr,
    ast.BoolOp: _Collector.boolean_expr,
    ast.Compare: _Collector.compare_expr,
}

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.MatMult: "@", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip

_COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is-not", ast.In: "in", ast.NotIn: "not-in",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def _params(args: ast.arguments) -> Iterator[tuple[ast.arg, ParamKind, ast.expr | None]]:
    """The parameters in the order of the text, each with its default."""
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    for index, (item, default) in enumerate(zip(plain, defaults, strict=True)):
        yield item, "posonly" if index < len(args.posonlyargs) else "normal", default
    if args.vararg is not None:
        if isinstance(args.vararg.annotation, ast.Starred):
            raise NotTakenError
        yield args.vararg, "vararg", None
    for item, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield item, "kwonly", default
    if args.kwarg is not None:
        yield args.kwarg, "kwarg", None


def _arguments(node: ast.Call) -> list[tuple[str, ast.expr]]:
    """What a call passes, in the order of the text: empty, ``*``, ``**`` or the keyword, and the value."""
    plain = [("*", item.value) if isinstance(item, ast.Starred) else ("", item) for item in node.args]
    named = [("**" if item.arg is None else item.arg, item.value) for item in node.keywords]
    if named and any(word for word, _ in plain):
        return sorted([*plain, *named], key=lambda item: (item[1].lineno, item[1].col_offset))
    return plain + named


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool)):
        parts.append(str(node.value))
    else:
        return ""
    return ".".join(reversed(parts))


def _target_names(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _target_names(_unstarred(element))
    else:
        yield node


def _item_key(node: ast.expr) -> tuple[str, str] | None:
    """The dotted name and the constant string of ``name["key"]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    holder, key = _dotted(node.value), _constant(node.slice)
    return (holder, key) if holder and isinstance(key, str) and key != NOT_CONSTANT else None


def _constant(node: ast.Constant) -> Constant:
    value = node.value
    if value is None or isinstance(value, bool | float):
        return value
    return kept_int(value) if isinstance(value, int) else kept_text(value)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise)


def _does_nothing(node: ast.stmt) -> bool:
    """Whether it is a docstring, ``pass``, ``...`` or ``raise NotImplementedError``."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value is Ellipsis or isinstance(node.value.value, str | bytes)
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return _dotted(raised) == "NotImplementedError"
    return isinstance(node, ast.Pass)
