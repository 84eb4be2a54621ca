"""The Python files that one round of the migration rewrites: each parsed once, a group of ops all or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.text import Span
from opschema_rules.tileops.bodies import Body
from opschema_rules.tileops.migrations.drop_carrier.left import LeftAlone


class Workshop:
    """The rewrites of one round over a draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._rewrites: dict[str, Rewrite] = {}
        self._undo: dict[str, Callable[[], None]] | None = None

    @contextmanager
    def on(self, path: str) -> Iterator[Rewrite]:
        """The rewrite of a file.

        Raises:
            LeftAlone: a codemod refuses, or the file does not parse.
        """
        try:
            yield self._rewrite(path)
        except Refused as refused:
            problem = refused.problems[0]
            raise LeftAlone(Place(path, Span(problem.offset, problem.offset)), problem.reason) from None
        except (LookupError, TreeError) as error:
            raise LeftAlone(Place(path, Span(0, 0)), str(error)) from None

    def _rewrite(self, path: str) -> Rewrite:
        if path not in self._rewrites:
            self._rewrites[path] = Rewrite(PythonTree.parse(self.draft.text(path)))
        rewrite = self._rewrites[path]
        if self._undo is not None and path not in self._undo:
            self._undo[path] = partial(rewrite.restore, len(rewrite.marks))
        return rewrite

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Undo what is marked inside when something is left alone."""
        self._undo = {}
        try:
            yield
        except LeftAlone:
            for undo in self._undo.values():
                undo()
            raise
        finally:
            self._undo = None

    @property
    def rewrites(self) -> dict[str, Rewrite]:
        """The rewrites so far, by path."""
        return dict(self._rewrites)

    def commit(self) -> None:
        """Collect the edits of all files in the draft."""
        for path, rewrite in self._rewrites.items():
            edits = rewrite.edits()
            if edits:
                self.draft.edit(path, edits)


_EXPRESSIONS: tuple[type[cst.BaseExpression], ...] = (
    cst.BooleanOperation, cst.Comparison, cst.UnaryOperation, cst.Call, cst.Name, cst.Attribute, cst.Subscript, cst.NamedExpr,
    cst.IfExp, cst.ListComp, cst.GeneratorExp, cst.List, cst.Tuple,
)  # fmt: skip


def expression_at(tree: PythonTree, span: Span) -> cst.BaseExpression:
    """The expression that is written at a span of the facts.

    Raises:
        LookupError: there is none.
    """
    for kind in _EXPRESSIONS:
        with suppress(LookupError):
            return tree.find(span, kind)
    raise LookupError(f"no expression is written at {span.start}-{span.end}")


def function_node(tree: PythonTree, body: Body) -> cst.FunctionDef:
    """The node of a function whose body is known from the facts.

    Raises:
        LookupError: there is none.
    """
    assert body.function is not None
    node = tree.parent(tree.find(body.function.span, cst.Name))
    if not isinstance(node, cst.FunctionDef):
        raise LookupError(f"`{body.function.name}` is no function")
    return node
