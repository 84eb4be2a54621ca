"""Folding of constants: a parameter, a local or an expression, with the branches that it decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

import libcst as cst

from opschema_cli.migrate.codemods.assignments import plain_assignments
from opschema_cli.migrate.codemods.branches import head_of_chain, reduce_chain
from opschema_cli.migrate.codemods.docstrings import drop_docstring_parameter
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import effects, is_write, local_uses
from opschema_cli.migrate.codemods.signatures import check_parameter, drop_parameter
from opschema_cli.source.cst_spans import children
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Edit, Span

Literal: TypeAlias = "bool | int | str | None"

_NAMED: Mapping[str, Literal] = {"True": True, "False": False, "None": None}


def fold_parameter(rewrite: Rewrite, function: cst.FunctionDef, name: str, value: Literal) -> None:
    """Fix a parameter of a function to a value: fold its uses, take it out of the signature and the docstring.

    Its calls are the caller's: see :func:`~opschema_cli.migrate.codemods.calls.drop_argument`.

    Raises:
        Refused: it is written to, or :func:`~opschema_cli.migrate.codemods.signatures.drop_parameter` refuses.
    """
    check_parameter(rewrite, function, name)
    uses = local_uses(rewrite, function, name)
    _refuse_writes(rewrite.tree, uses)
    _refuse_debugging(rewrite.tree, uses)
    with rewrite.all_or_nothing():
        _fold(rewrite, {id(node): value for node in uses}, uses)
        drop_parameter(rewrite, function, name)
        drop_docstring_parameter(rewrite, function, name)


def fold_local(
    rewrite: Rewrite, function: cst.FunctionDef, name: str, value: Literal, pure: Collection[str] = ()
) -> None:
    """Fix a local to a value: take out the statements that assign it and fold its uses.

    Args:
        rewrite: the round.
        function: where it is assigned.
        name: the local.
        value: what it is known to be.
        pure: names of functions without effect, that the assigned expressions may call.

    Raises:
        Refused: it is a parameter, or is written other than by plain assignments without effects.
    """
    tree = rewrite.tree
    uses = local_uses(rewrite, function, name)
    assignments = plain_assignments(rewrite, [node for node in uses if is_write(tree, node)], pure)
    if not assignments:
        raise Refused([Problem(tree.span(function.name).start, f"{name} is not assigned in {function.name.value}()")])
    reads = [node for node in uses if not is_write(tree, node)]
    _refuse_debugging(tree, reads)
    rewrite.remove(*assignments)
    _fold(rewrite, {id(node): value for node in reads}, [node for node in reads if not rewrite.is_gone(node)])


def fold_expression(rewrite: Rewrite, expression: cst.BaseExpression, value: Literal) -> None:
    """Fix one expression to a value, with the ``if``, ternary, ``and`` or ``or`` that it decides."""
    _fold(rewrite, {id(expression): value}, [expression])


def _refuse_writes(tree: PythonTree, uses: Iterable[cst.Name]) -> None:
    written = [node for node in uses if is_write(tree, node)]
    if written:
        raise Refused(Problem(tree.span(node).start, f"{node.value} is written to") for node in written)


def _refuse_debugging(tree: PythonTree, uses: Iterable[cst.Name]) -> None:
    """``f"{x=}"`` prints the name."""
    shown = [
        node for node in uses for item in tree.ancestors(node)
        if isinstance(item, cst.FormattedStringExpression) and item.equal is not None
    ]  # fmt: skip
    if shown:
        raise Refused(Problem(tree.span(node).start, f"an f-string prints the name {node.value}") for node in shown)


def _fold(rewrite: Rewrite, known: Mapping[int, Literal], uses: Iterable[cst.BaseExpression]) -> None:
    _Folder(rewrite, known, uses).run()


class _Unknown:
    """No constant."""


_UNKNOWN = _Unknown()


class _Folder:
    """Folds the statements and expressions around some nodes whose values are known."""

    def __init__(self, rewrite: Rewrite, known: Mapping[int, Literal], uses: Iterable[cst.BaseExpression]) -> None:
        self.rewrite = rewrite
        self.tree = rewrite.tree
        self.known = known
        self.uses = list(uses)
        self.touched = {id(item) for use in self.uses for item in (use, *self.tree.ancestors(use))}

    def run(self) -> None:
        roots = {id(root): root for root in map(self.root, self.uses)}
        chains = {id(chain): chain for root in roots.values() if (chain := self.chain_of(root)) is not None}
        with self.rewrite.all_or_nothing():
            for chain in chains.values():
                self.rewrite.fold(chain)
                self.chain(chain)
            whole = [root for root in roots.values() if self.chain_of(root) is None and id(root) not in self.known]
            for root in whole:
                self.statement(root)
            for use in self.uses:
                if self.root(use) is use and self.chain_of(use) is None and not self.rewrite.is_gone(use):
                    self.refuse(use)
                    self.statement(use)

    def chain_of(self, root: cst.BaseExpression) -> cst.If | None:
        """The ``if`` chain that an expression is a test of."""
        above = self.tree.parent(root)
        return head_of_chain(self.tree, above) if isinstance(above, cst.If) and above.test is root else None

    def statement(self, root: cst.BaseExpression) -> None:
        if self.rewrite.is_gone(root):
            return
        self.rewrite.fold(root)
        above = self.tree.parent(root)
        if isinstance(above, cst.Assert) and above.test is root and self.truth(root) is True:
            self.rewrite.remove(above)
        else:
            self.simplify(root, _is_test(above, root))

    def refuse(self, use: cst.BaseExpression) -> None:
        """Refuse to replace a name with a literal where the syntax or the meaning does not allow one."""
        above, value = self.tree.parent(use), self.known[id(use)]
        called = isinstance(above, cst.Call) and above.func is use
        asked = isinstance(above, cst.Attribute | cst.Subscript) and not isinstance(value, str)
        shown = isinstance(value, str) and self.tree.enclosing(use, cst.FormattedString) is not None
        if called or asked or shown:
            reason = f"{value!r} cannot be written in place of `{self.tree.code(use)}` here"
            raise Refused([Problem(self.tree.span(use).start, reason)])

    def root(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The outermost expression around a node, lambdas and comprehensions left closed."""
        above = self.tree.parent(node)
        while isinstance(
            above, cst.BooleanOperation | cst.UnaryOperation | cst.Comparison | cst.ComparisonTarget | cst.IfExp
        ):
            if isinstance(above, cst.BaseExpression):
                node = above
            above = self.tree.parent(above)
        return node

    def chain(self, head: cst.If) -> None:
        known: dict[int, bool] = {}
        node: cst.If | cst.Else | None = head
        while isinstance(node, cst.If):
            truth = self.truth(node.test) if id(node.test) in self.touched else None
            if truth is not None:
                known[id(node)] = truth
            elif id(node.test) in self.touched:
                self.simplify(node.test, True)
            node = node.orelse
        if known:
            reduce_chain(self.rewrite, head, known)
            self.drop_unreachable(head)

    def drop_unreachable(self, head: cst.If) -> None:
        """Remove the statements after a condition whose remaining suite always leaves the block."""
        left = list(self.rewrite.remaining([head]))
        block = self.tree.parent(head)
        if not left or left == [head] or not isinstance(left[-1], cst.Return | cst.Raise | cst.Break | cst.Continue):
            return
        if isinstance(block, cst.IndentedBlock):
            rest = block.body[next(index for index, item in enumerate(block.body) if item is head) + 1 :]
            if not any(isinstance(node, cst.Yield) for item in rest for node in self.tree.walk(item)):
                self.rewrite.remove(*(item for item in rest if isinstance(item, _STATEMENTS)))

    # Values

    def value(self, node: cst.BaseExpression, as_test: bool) -> Literal | _Unknown:
        """Known value of an expression; of a test only its truth."""
        if id(node) in self.known:
            return self.known[id(node)]
        if isinstance(node, cst.Name):
            return _NAMED.get(node.value, _UNKNOWN)
        if isinstance(node, cst.SimpleString) and "b" not in node.prefix.lower():
            return str(node.evaluated_value)
        if isinstance(node, cst.Integer):
            return int(node.value, 0)
        if id(node) not in self.touched:
            return _UNKNOWN
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            truth = self.truth(node.expression)
            return _UNKNOWN if truth is None else not truth
        if isinstance(node, cst.BooleanOperation):
            return self.boolean(node, as_test)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return self.compared(node.left, node.comparisons[0])
        if isinstance(node, cst.IfExp):
            truth = self.truth(node.test)
            return _UNKNOWN if truth is None else self.value(node.body if truth else node.orelse, as_test)
        return _UNKNOWN

    def truth(self, node: cst.BaseExpression) -> bool | None:
        found = self.value(node, True)
        return None if isinstance(found, _Unknown) else bool(found)

    def boolean(self, node: cst.BooleanOperation, as_test: bool) -> Literal | _Unknown:
        decides = isinstance(node.operator, cst.Or)
        left = self.value(node.left, as_test)
        if not isinstance(left, _Unknown):
            return left if bool(left) is decides else self.value(node.right, as_test)
        right = self.value(node.right, as_test)
        pure = not any(effects(self.tree, node.left))
        return decides if as_test and pure and not isinstance(right, _Unknown) and bool(right) is decides else _UNKNOWN

    def compared(self, left: cst.BaseExpression, target: cst.ComparisonTarget) -> Literal | _Unknown:
        one, other = self.value(left, False), self.value(target.comparator, False)
        if isinstance(one, _Unknown) or isinstance(other, _Unknown):
            return _UNKNOWN
        if isinstance(target.operator, cst.Equal):
            return one == other
        if isinstance(target.operator, cst.NotEqual):
            return one != other
        if isinstance(target.operator, cst.Is | cst.IsNot) and (
            one is None or other is None or type(one) is type(other) is bool
        ):
            return (one is other) is isinstance(target.operator, cst.Is)
        return _UNKNOWN

    # Edits

    def simplify(self, node: cst.BaseExpression, as_test: bool) -> None:
        """Write the shortest expression that is the same."""
        if id(node) not in self.touched:
            return
        found = self.value(node, as_test)
        if not isinstance(found, _Unknown):
            literal = f"({found})" if isinstance(found, int) and found < 0 else repr(found)
            self.rewrite.replace(_whole(self.tree, node), literal)
            return
        kept = self.survivor(node, as_test)
        if kept is not None:
            for edit in _only(self.tree, node, kept):
                self.rewrite.replace(*edit)
            self.simplify(kept, as_test)
            return
        for child in _operands(node):
            negated = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)
            inherits = as_test and isinstance(node, cst.BooleanOperation)
            ternary = isinstance(node, cst.IfExp) and child is node.test
            self.simplify(child, negated or inherits or ternary)

    def survivor(self, node: cst.BaseExpression, as_test: bool) -> cst.BaseExpression | None:
        """The one operand that an ``and``, ``or`` or ternary comes to."""
        if isinstance(node, cst.IfExp):
            truth = self.truth(node.test)
            return None if truth is None else node.body if truth else node.orelse
        if isinstance(node, cst.BooleanOperation):
            decides = isinstance(node.operator, cst.Or)
            left = self.truth(node.left)
            if left is not None:
                return node.left if left is decides else node.right
            return node.left if as_test and self.truth(node.right) is (not decides) else None
        return None


_STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


def _is_test(above: cst.CSTNode | None, node: cst.BaseExpression) -> bool:
    return isinstance(above, cst.If | cst.While | cst.Assert | cst.CompIf) and above.test is node


def _operands(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for child in children(node):
        if isinstance(child, cst.BaseExpression):
            yield child
        elif isinstance(child, cst.ComparisonTarget):
            yield child.comparator


_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.SimpleString, cst.Integer)


def _only(tree: PythonTree, whole: cst.BaseExpression, kept: cst.BaseExpression) -> list[Edit]:
    """The edits that leave one operand, without parentheses that only the entire expression needed."""
    outer, inner = tree.span(whole), tree.outer(kept)
    around = tree.outer(whole)
    plain = "#" not in tree.text[around.start : inner.start] + tree.text[inner.end : around.end]
    if plain and (kept.lpar or (isinstance(kept, _ATOMS) and "\n" not in tree.code(kept))):
        outer = _whole(tree, whole)
    if not plain and tree.line_end(inner.end) < outer.end:
        return _without_lines_below(tree, outer, inner)
    return [Edit(Span(outer.start, inner.start), ""), Edit(Span(inner.end, outer.end), "")]


def _without_lines_below(tree: PythonTree, outer: Span, inner: Span) -> list[Edit]:
    """Like :func:`_only`, but keep the comment after the operand and remove the one after the entire expression."""
    line_end = tree.line_end(inner.end)
    behind = tree.text[inner.end : line_end]
    word = len(behind) - len(behind.lstrip("andor \t\\"))  # an operator at the end of the line
    comment = inner.end + (word if behind[word:].startswith("#") else len(behind.rstrip()))
    start = len(tree.text[:line_end].rstrip())
    last_line = tree.text[outer.end : tree.line_end(outer.end)].rstrip()
    end = outer.end + (len(last_line) if last_line.lstrip().startswith("#") else 0)
    gap = "  " if comment > inner.end and tree.text[comment : comment + 1] == "#" else ""
    return [
        Edit(Span(outer.start, inner.start), ""),
        Edit(Span(inner.end, comment), gap),
        Edit(Span(start, end), ""),
    ]


def _whole(tree: PythonTree, node: cst.BaseExpression) -> Span:
    """An expression with its parentheses, unless a word would run into the next (``not(x)``)."""
    start, end = tree.outer(node)
    words = (tree.text[start - 1 : start], tree.text[end : end + 1])
    return tree.span(node) if any(char.isalnum() or char == "_" for char in words) else Span(start, end)
