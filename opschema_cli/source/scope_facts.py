"""Turns the syntax of a module into facts, regardless of the collector.

:mod:`opschema_cli.source.ast_facts` and :mod:`opschema_cli.source.cst_facts` give the syntax. It is one module because it
is one visitor, with a method for each kind of statement and expression that binds or uses a name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from opschema_cli.source.container_changes import ContainerChanges
from opschema_cli.source.fact_parts import MAX_EXPR_DEPTH, MAX_STATEMENT_DEPTH, Definition, Parts, Syntax, is_word
from opschema_cli.source.python import (
    Assign,
    Class,
    Condition,
    Expr,
    Function,
    Item,
    Loop,
    ModuleFacts,
    Param,
    Scope,
    Statement,
    Unpack,
    packed_body,
    packed_statements,
    written_in,
)
from opschema_cli.source.python_guards import find_guards
from opschema_cli.source.text import Span


def facts_of(syntax: Syntax) -> ModuleFacts:
    """Return the facts of a module's syntax.

    Raises:
        RecursionError: it nests too deeply.
    """
    doc, scopes = _docstring(syntax.body), _Scopes(syntax)
    body = scopes.scope(syntax.body)
    return ModuleFacts(body, doc.span if doc is not None else None, changes=scopes.changes.finished())


class _Scopes:
    """Fills scopes; ``guard`` counts the conditions, loops and handlers around a statement, ``level`` the blocks."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self.guard = 0
        self.level = 0
        self.too_deep = False
        self.changes = ContainerChanges(syntax.below)

    def scope(self, body: Sequence[Statement]) -> Scope:
        parts = Parts()
        outer = self.guard, self.level
        self.guard = self.level = 0
        self.block(body, parts)
        self.guard, self.level = outer
        self.changes.uses(use[0] for use in parts.uses)
        return parts.finished()

    def block(self, body: Iterable[Statement], parts: Parts) -> None:
        self.level += 1
        self.too_deep = self.too_deep or self.level > MAX_STATEMENT_DEPTH
        for statement in body:
            _STATEMENTS.get(statement.kind, _Scopes.plain)(self, statement, parts)
        self.level -= 1

    def plain(self, node: Statement, parts: Parts) -> None:
        for expr in node.exprs:
            self.visit(expr, parts)
        for block in node.blocks:
            self.block(block, parts)

    def guarded(self, node: Statement, parts: Parts) -> None:
        self.guard += 1
        self.plain(node, parts)
        self.guard -= 1

    # Definitions

    def function_def(self, node: Statement, parts: Parts) -> None:
        found = self.syntax.definitions[id(node)]
        self.head(found, parts)
        inner = self.scope(found.body)
        leaving = {_span(item.blocks[0]): _leaves(item.blocks[0]) for item in found.body if item.kind == "if"}
        statements = tuple(self.statements(found.body))
        made = Function(
            found.name,
            *found.span,
            node.span,
            found.params,
            found.decorators,
            found.returns,
            packed_body(inner),
            all(map(_does_nothing, found.body)),
            not self.guard,
            find_guards(inner.assigns, inner.conditions, leaving, node.end),
            written_in(inner),
            packed_statements(statements),
        )
        made.__dict__.update(body=inner, statements=statements)  # for code that continues with the facts
        parts.functions.append(made)

    def statements(self, body: Sequence[Statement]) -> Sequence[Statement]:
        """Return the statements of a function to keep."""
        kept = body[1:] if _docstring(body) is not None else body
        return [_limited(item, MAX_STATEMENT_DEPTH - 1) for item in kept] if self.too_deep else kept

    def class_def(self, node: Statement, parts: Parts) -> None:
        found = self.syntax.definitions[id(node)]
        self.head(found, parts)
        parts.classes.append(
            Class(
                found.name,
                *found.span,
                node.span,
                found.bases,
                tuple([word for word, _ in found.keywords if word]),
                found.decorators,
                self.scope(found.body),
                not self.guard,
                next((value for word, value in found.keywords if word == "metaclass"), None),
            )
        )

    def head(self, found: Definition, parts: Parts) -> None:
        self.visit_all(found.decorators, parts)
        self.params(found.params, parts)
        self.visit_all((*found.bases, *(value for _, value in found.keywords)), parts)
        if found.returns is not None:
            self.visit(found.returns, parts)

    def params(self, params: Iterable[Param], parts: Parts) -> None:
        for param in params:
            self.visit_all([item for item in (param.annotation, param.default) if item is not None], parts)

    # Statements

    def assign(self, node: Statement, parts: Parts) -> None:
        value = node.exprs[-1]
        self.visit(value, parts)
        for target in node.exprs[:-1]:
            if (key := _item_key(target)) is not None:
                self.visit(target, parts)
                self.changes.stored(target, "write")
                parts.items.append(Item(target.items[0].text, key, value))
                continue
            self.target(target, value, node.span, parts)
            if target.kind in ("tuple", "list") and not _displayed(value):
                starred = any(item.kind == "starred" for item in target.items)
                targets = tuple([_dotted(_unstarred(item)) for item in target.items])
                parts.unpacks.append(Unpack(targets, starred, value, target.start, target.end))

    def ann_assign(self, node: Statement, parts: Parts) -> None:
        target, annotation, *value = node.exprs
        self.visit_all((annotation, *value), parts)
        if value or target.kind == "name":
            self.target(target, value[0] if value else None, node.span, parts, annotation)
        else:
            self.visit(target, parts)

    def aug_assign(self, node: Statement, parts: Parts) -> None:
        self.plain(node, parts)
        self.target(node.exprs[0], None, node.span, parts)

    def target(
        self, node: Expr, value: Expr | None, statement: Span, parts: Parts, annotation: Expr | None = None
    ) -> None:
        if node.kind in ("tuple", "list"):
            values = value.items if value is not None and _displayed(value) else ()
            pairs = values if len(values) == len(node.items) else [None] * len(node.items)
            for element, item in zip(node.items, pairs, strict=True):
                taken = item if element.kind != "starred" else None  # which is a list of it
                self.target(_unstarred(element), taken, statement, parts)
        elif node.kind == "name":
            parts.assigns.append(Assign(node.text, node.start, node.end, value, statement, not self.guard, annotation))
            holder, _, attribute = node.text.rpartition(".")
            if holder:
                head = self.syntax.heads.get(id(node)) or (node.start, node.end - len(attribute) - 1)
                parts.uses.append((holder, *head))
        else:
            self.visit(node, parts)
            self.changes.stored(node, "write", _key(node) or "")

    def if_(self, node: Statement, parts: Parts) -> None:
        outer = self.guard, self.level
        orelse: tuple[Statement, ...] = (node,)
        while len(orelse) == 1 and orelse[0].kind == "if":  # an `elif` is not a recursion: there may be hundreds
            self.guard, self.level = self.guard + 1, self.level + 1
            [test], (body, orelse) = orelse[0].exprs, orelse[0].blocks
            spans = [_span(block) for block in (body, orelse) if block]
            parts.conditions.append(Condition("if", test, spans[0], spans[1] if orelse else None))
            parts.guarded += spans
            self.visit(test, parts)
            self.block(body, parts)
        self.block(orelse, parts)
        self.guard, self.level = outer

    def while_(self, node: Statement, parts: Parts) -> None:
        parts.guarded.append(_span(node.blocks[0]))
        self.guarded(node, parts)

    def try_(self, node: Statement, parts: Parts) -> None:
        body, handlers, orelse, _ = node.blocks
        blocks = [body, *(item.blocks[0] for item in handlers), orelse]
        parts.guarded += [_span(block) for block in blocks if block]
        self.guarded(node, parts)

    def except_(self, node: Statement, parts: Parts) -> None:
        self.guard += 1
        self.visit_all(node.exprs[:1], parts)
        for name in node.exprs[1:]:
            self.target(name, None, name.span, parts)
        self.block(node.blocks[0], parts)
        self.guard -= 1

    def match(self, node: Statement, parts: Parts) -> None:
        parts.guarded += [_span(case.blocks[0]) for case in node.blocks[0]]
        self.guarded(node, parts)

    def case(self, node: Statement, parts: Parts) -> None:
        bound, read = self.syntax.patterns[id(node)]
        self.visit_all(read, parts)
        for name in bound:
            self.target(name, None, name.span, parts)
        self.plain(node, parts)

    def assert_(self, node: Statement, parts: Parts) -> None:
        parts.conditions.append(Condition("assert", node.exprs[0], node.span))
        self.plain(node, parts)

    def for_(self, node: Statement, parts: Parts) -> None:
        target, iterable = node.exprs
        self.visit(iterable, parts)
        self.guard += 1
        self.target(target, None, target.span, parts)
        targets = tuple([_dotted(item) for item in _target_names(target)])
        parts.loops.append(Loop(targets, iterable, _span(node.blocks[0]), target))
        for block in node.blocks:
            self.block(block, parts)
        self.guard -= 1

    def with_(self, node: Statement, parts: Parts) -> None:
        for context, target in zip(node.exprs[::2], node.exprs[1::2], strict=True):
            self.visit(context, parts)
            if target.kind != "absent":
                self.target(target, None, target.span, parts)
        self.block(node.blocks[0], parts)

    def return_(self, node: Statement, parts: Parts) -> None:
        parts.returns.append(node.exprs[0] if node.exprs else Expr("const", node.start, node.end))
        self.plain(node, parts)

    def delete(self, node: Statement, parts: Parts) -> None:
        for target in (name for item in node.exprs for name in _target_names(item)):
            if target.kind == "name":
                parts.deleted.append(target.text)
            else:
                self.visit(target, parts)
                self.changes.stored(target, "delete", _key(target) or "")

    def global_(self, node: Statement, parts: Parts) -> None:
        parts.deleted += node.names

    def import_(self, node: Statement, parts: Parts) -> None:
        for item in self.syntax.imports[id(node)]:
            item.guarded = bool(self.guard)
            parts.imports.append(item)

    # Expressions

    def visit_all(self, exprs: Iterable[Expr], parts: Parts) -> None:
        for expr in exprs:
            self.visit(expr, parts)

    def visit(self, expr: Expr, parts: Parts) -> None:
        while (kind := expr.kind) == "attribute" or kind == "other":  # a loop, since chains of calls may be long
            if kind == "attribute":
                parts.uses.append((f"?.{expr.text}", expr.start, expr.end))
                self.changes.attribute(expr)
                expr = expr.items[0]
            elif id(expr) in self.syntax.below:
                expr = self.syntax.below[id(expr)]
            else:
                return
        if kind == "name":
            parts.uses.append((expr.text, expr.start, expr.end))
        elif (read := _EXPRESSIONS.get(kind)) is not None:
            read(self, expr, parts)
        else:
            self.inner(expr.items, parts)

    def inner(self, exprs: Iterable[Expr], parts: Parts) -> None:
        """Visit several expressions; most are names."""
        for expr in exprs:
            if expr.kind == "name":
                parts.uses.append((expr.text, expr.start, expr.end))
            else:
                self.visit(expr, parts)

    def const(self, expr: Expr, parts: Parts) -> None:
        value = expr.value
        if isinstance(value, str):
            if is_word(value):
                parts.strings.append(value)
        elif value is None or isinstance(value, bool):
            parts.uses.append((str(value), expr.start, expr.end))

    def call(self, expr: Expr, parts: Parts) -> None:
        parts.calls.append(self.expanded(expr) if self.syntax.below else expr)
        self.changes.call(expr)
        self.inner(expr.items, parts)

    def if_expression(self, expr: Expr, parts: Parts) -> None:
        self.guard += 1
        for item in expr.items:
            self.visit(item, parts)
        self.guard -= 1

    def fields(self, expr: Expr, parts: Parts) -> None:
        self.visit_all((item for item in expr.items if item.kind == "field"), parts)

    def comprehension(self, expr: Expr, parts: Parts) -> None:
        first, first_use = len(parts.calls), len(parts.uses)
        self.inner(expr.items, parts)
        clauses = [item for item in expr.items if item.kind == "for"]
        targets = (name for clause in clauses for name in _target_names(clause.items[0]))
        variables = {target.text for target in targets if target.kind == "name"}
        _hide(parts.calls, first, variables)
        self.hide_uses(parts, first_use, variables, clauses[0].items[1].span)

    def clause(self, expr: Expr, parts: Parts) -> None:
        self.guard += 1
        for target in _target_names(expr.items[0]):
            if target.kind != "name" or "." in target.text:  # other names are those of the comprehension
                self.target(target, None, target.span, parts)
        self.guard -= 1
        self.visit_all(expr.items[1:], parts)

    def walrus(self, expr: Expr, parts: Parts) -> None:
        target, value = expr.items
        self.visit(value, parts)
        self.target(target, self.expanded(value), expr.span, parts)

    def lambda_(self, expr: Expr, parts: Parts) -> None:
        params = self.syntax.params[id(expr)]
        self.params(params, parts)
        inner = Parts()
        self.visit(expr.items[-1], inner)
        first, first_use = len(parts.calls), len(parts.uses)
        parts.take(inner)
        variables = {item.name for item in params}
        _hide(parts.calls, first, variables)
        self.hide_uses(parts, first_use, variables, Span(0, 0))
        body = self.expanded(expr.items[-1])
        inner.returns.append(body)
        parts.lambdas.append(
            Function(
                "<lambda>",
                *expr.span,
                expr.span,
                params,
                (),
                None,
                packed_body(inner.finished()),
                stub=False,
                packed_statements=packed_statements([Statement("return", body.start, body.end, "", (body,))]),
            )
        )

    def hide_uses(self, parts: Parts, first: int, variables: Container[str], outside: Span) -> None:
        """Make the owners of attributes unknown, from the use ``first`` on, that are variables of a lambda or comprehension; the
        expression ``outside`` does not see these.
        """
        for place in range(first, len(parts.uses)):
            name, start, end = parts.uses[place]
            holder, _, attribute = name.partition(".")
            if attribute and holder in variables and not outside.start <= start < outside.end:
                self.changes.uses([name])
                parts.uses[place] = f"?.{attribute}", start, end

    def expanded(self, expr: Expr) -> Expr:
        """Return a part of an expression, as deep as if it were an expression of its own."""
        return self._expanded(expr, 0) if self.syntax.below else expr

    def _expanded(self, expr: Expr, depth: int) -> Expr:
        if expr.kind == "other":
            expr = self.syntax.below.get(id(expr), expr)
        if not expr.items:
            return expr
        if depth >= MAX_EXPR_DEPTH:
            return Expr("other", expr.start, expr.end)
        items = tuple([self._expanded(item, depth + 1) for item in expr.items])
        same = all(map(_is, items, expr.items))
        return expr if same else Expr(expr.kind, expr.start, expr.end, expr.text, expr.value, items, expr.keywords)


_STATEMENTS: dict[str, Any] = {
    "def": _Scopes.function_def,
    "class": _Scopes.class_def,
    "assign": _Scopes.assign,
    "annassign": _Scopes.ann_assign,
    "augassign": _Scopes.aug_assign,
    "if": _Scopes.if_,
    "while": _Scopes.while_,
    "try": _Scopes.try_,
    "except": _Scopes.except_,
    "match": _Scopes.match,
    "case": _Scopes.case,
    "assert": _Scopes.assert_,
    "for": _Scopes.for_,
    "with": _Scopes.with_,
    "return": _Scopes.return_,
    "delete": _Scopes.delete,
    "global": _Scopes.global_,
    "nonlocal": _Scopes.global_,
    "import": _Scopes.import_,
}

_EXPRESSIONS: dict[str, Any] = {
    "const": _Scopes.const,
    "call": _Scopes.call,
    "ifexp": _Scopes.if_expression,
    "fstring": _Scopes.fields,
    "for": _Scopes.clause,
    "listcomp": _Scopes.comprehension,
    "setcomp": _Scopes.comprehension,
    "dictcomp": _Scopes.comprehension,
    "generator": _Scopes.comprehension,
    "walrus": _Scopes.walrus,
    "lambda": _Scopes.lambda_,
}


def _hide(calls: list[Expr], first: int, variables: Container[str]) -> None:
    """Make the callees unknown that are variables of the lambda or comprehension that makes the calls from ``first`` on: outside
    it, the same names have other meanings.
    """
    for place in range(first, len(calls)):
        call = calls[place]
        holder, _, name = call.callee.partition(".")
        if holder in variables:
            callee = call.items[0]
            unknown = Expr("other", callee.start, callee.end)
            if name:
                unknown = Expr("attribute", callee.start, callee.end, name.rpartition(".")[2], None, (unknown,))
            calls[place] = Expr(
                "call", call.start, call.end, call.text, None, (unknown, *call.items[1:]), call.keywords
            )


def _is(one: Expr, other: Expr) -> bool:
    return one is other


def _span(block: Sequence[Statement]) -> Span:
    return Span(block[0].start, block[-1].end)


def _limited(node: Statement, levels: int) -> Statement:
    """Return a statement with at most that many levels of nested blocks."""
    if not node.blocks:
        return node
    if levels <= 0:
        return Statement("other", node.start, node.end)
    blocks = tuple([tuple([_limited(item, levels - 1) for item in block]) for block in node.blocks])
    return Statement(node.kind, node.start, node.end, node.text, node.exprs, blocks)


def _displayed(value: Expr) -> bool:
    """Whether it is a tuple or list with all elements written out."""
    return value.kind in ("tuple", "list") and value.elements is not None


def _unstarred(expr: Expr) -> Expr:
    return expr.items[0] if expr.kind == "starred" else expr


def _dotted(expr: Expr) -> str:
    return expr.text if expr.kind == "name" else ""


def _target_names(expr: Expr) -> Iterator[Expr]:
    if expr.kind in ("tuple", "list"):
        for element in expr.items:
            yield from _target_names(_unstarred(element))
    else:
        yield expr


def _item_key(target: Expr) -> str | None:
    """Return the constant string of ``name["key"]``; None for anything else."""
    return _key(target) if target.kind == "subscript" and target.items[0].kind == "name" else None


def _key(target: Expr) -> str | None:
    """Return the constant string of an index, ``x["key"]``; None for anything else."""
    key = target.items[1].value if target.kind == "subscript" and len(target.items) == 2 else None
    return key if isinstance(key, str) else None


def _leaves(block: Sequence[Statement]) -> bool:
    return block[-1].kind in ("return", "raise")


def _docstring(body: Sequence[Statement]) -> Expr | None:
    """Return the string at the beginning of a body, if there is one."""
    value = body[0].exprs[0] if body and body[0].kind == "expr" else None
    return value if value is not None and _is_string(value) else None


def _is_string(expr: Expr) -> bool:
    if expr.kind == "literal":
        return expr.text.endswith(("'", '"'))
    return expr.kind == "const" and isinstance(expr.value, str)


def _does_nothing(node: Statement) -> bool:
    """Whether it is a docstring, ``pass``, ``...`` or ``raise NotImplementedError``."""
    if node.kind == "expr":
        [value] = node.exprs
        return _is_string(value) or (value.kind == "literal" and value.text == "...")
    if node.kind == "raise" and node.exprs:
        raised = node.exprs[0]
        return (raised.callee or _dotted(raised)) == "NotImplementedError"
    return node.kind == "pass"
