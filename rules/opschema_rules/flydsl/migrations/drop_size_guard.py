"""`drop-size-guard`: removes the guard of `make_buffer_tensor` against constant sizes, and the tests that expect it to raise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.folding import fold_expression
from opschema_cli.migrate.codemods.imports import drop_imports, unused_imports
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import occurrences, texts_with
from opschema_cli.migrate.migration import NoMigrationOptions, Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.python import Function, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Place, Source, Span
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.migrations.scopes import TREE
from opschema_rules.flydsl.migrations.trees import tree_of
from opschema_rules.flydsl.model import FlyTree

_MAKER = "make_buffer_tensor"
_COUNT = "num_records_bytes"
_GUARD = re.compile(r"\bguards?\b", re.IGNORECASE)
_DEMANDS = re.compile(r"\b(?:required|must|raises?|guards?)\b", re.IGNORECASE)
_TEXTS = (".py", ".md", ".rst", ".txt")
_STRINGS = (cst.SimpleString, cst.FormattedStringText)
_STATIC = frozenset({"is_static", "is_static_shape"})


class _Guard(msgspec.Struct, frozen=True):
    """A test for a constant layout by which a FlyDSL function raises."""

    function: str
    question: Span


class _Test(msgspec.Struct, frozen=True):
    """A test that only expects the guard to raise."""

    name: Span


def find(draft: Draft, options: NoMigrationOptions) -> Iterator[Site]:
    """Yield the guard in the tree's own FlyDSL, and its tests."""
    tree = tree_of(draft)
    if tree is None or not tree.contract.own or not tree.contract.surely(Era.DYNAMIC, Era.SPLIT, Era.CURRENT):
        return
    own = tree.answers.definition(_MAKER)
    if own is None:
        return
    for _, question in _guards(draft, own.file, own.function):
        title = f"drop the guard of `{_MAKER}`"
        yield Site(Place(own.file.path, question), title, (), (), _Guard(own.function.name, question))
    if _other_message(draft, tree) is None:
        yield from _tests(draft, tree)


def _guards(draft: Draft, file: PythonFile, function: Function) -> Iterator[tuple[Span, Span]]:
    """Yield the `if` statements by which a function raises for constant layouts, each with its condition."""
    tree = draft.tree(file.path)
    for node in tree.walk(tree.function(function.name)):
        if isinstance(node, cst.If) and (asked := _question(node.test)) is not None and _raises(node):
            yield tree.span(node), tree.span(asked)


def _other_message(draft: Draft, tree: FlyTree) -> Place | None:
    """Return the place of a string outside FlyDSL's guards and docstrings that names the byte count: an error may still mention
    it.
    """
    own = tree.answers.definition(_MAKER)
    guards = [span for span, _ in _guards(draft, own.file, own.function)] if own is not None else []
    for file in (item for item in tree.package.files if _COUNT in item.source.text):
        parsed = draft.tree(file.path)
        for node in _strings(parsed):
            at = parsed.span(node).start
            is_home = own is not None and file.path == own.file.path
            if not (is_home and any(guard.start <= at < guard.end for guard in guards)):
                return Place(file.path, Span(at, at))
    return None


def _strings(tree: PythonTree) -> Iterator[cst.CSTNode]:
    """Yield the strings that name the byte count, without docstrings."""
    docstrings = {id(node.value) for node in tree.walk(tree.module) if isinstance(node, cst.Expr)}
    for node in tree.walk(tree.module):
        if id(node) not in docstrings and isinstance(node, _STRINGS) and _COUNT in node.value:
            yield node


def _question(test: cst.BaseExpression) -> cst.Attribute | None:
    """Return the attribute that says whether a layout is constant, if the condition tests nothing else."""
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test = test.expression
    return test if isinstance(test, cst.Attribute) and test.attr.value in _STATIC else None


def _raises(node: cst.If) -> bool:
    """Whether an `if` does nothing but raise for a constant layout."""
    negated, test = False, node.test
    while isinstance(test, cst.UnaryOperation):
        negated, test = not negated, test.expression
    branch = node.orelse.body if negated and isinstance(node.orelse, cst.Else) else None if negated else node.body
    return branch is not None and _only_raises(branch)


def _only_raises(block: cst.BaseSuite) -> bool:
    lines = [item.body if isinstance(item, cst.SimpleStatementLine) else [item] for item in block.body]
    return len(lines) == 1 and len(lines[0]) == 1 and isinstance(lines[0][0], cst.Raise)


def _tests(draft: Draft, tree: FlyTree) -> Iterator[Site]:
    """Yield the tests that only expect an error that names the byte count."""
    for file in tree.bodies.files:
        name = file.path.rpartition("/")[2]
        text = file.source.text
        if name.startswith("test_") and _MAKER in text and _COUNT in text and "raises" in text:
            parsed = draft.tree(file.path)
            for function in file.body.functions:
                if function.name.startswith("test") and _only_expects(parsed, parsed.function(function.name)):
                    title = f"drop the test `{function.name}`, which only expects the guard to raise"
                    yield Site(Place(file.path, function.span), title, (), (), _Test(function.span))


def _only_expects(tree: PythonTree, function: cst.FunctionDef) -> bool:
    """Whether a test checks nothing but that a call raises with the byte count in the message."""
    expected = [node for node in tree.walk(function) if isinstance(node, cst.With) and _expects(node)]
    checks = [node for node in tree.walk(function) if isinstance(node, cst.Assert)]
    others = [
        node
        for node in tree.walk(function)
        if isinstance(node, cst.With | cst.Raise | cst.Try) and node not in expected
    ]
    if len(expected) != 1 or others or function.decorators:
        return False
    about = [_names_count(tree, item) for item in checks]
    return all(about) and (bool(about) or _names_count(tree, expected[0].items[0].item))


def _expects(node: cst.With) -> bool:
    calls = [item.item for item in node.items]
    return len(calls) == 1 and isinstance(calls[0], cst.Call) and dotted(calls[0].func).rpartition(".")[2] == "raises"


def _names_count(tree: PythonTree, node: cst.CSTNode) -> bool:
    """Whether a string in a node names the byte count."""
    return any(isinstance(part, _STRINGS) and _COUNT in part.value for part in tree.walk(node))


def _drop_local_imports(rewrite: Rewrite, function: str, question: cst.Attribute) -> None:
    """Remove a function's local imports of names that only the guard's condition used."""
    tree = rewrite.tree
    asked = [node for node in tree.walk(question) if isinstance(node, cst.Name)]
    for node in tree.walk(tree.function(function)):
        names = node.names if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar) else ()
        if len(names) == 1 and isinstance(names[0].name, cst.Name) and names[0].asname is None:
            word = names[0].name.value
            uses = [
                part for part in tree.walk(tree.function(function)) if isinstance(part, cst.Name) and part.value == word
            ]
            if sum(part in asked for part in uses) == len(uses) - 1 > 0 and isinstance(node, cst.ImportFrom):
                rewrite.remove(node)


@migration(
    "drop-size-guard",
    find=find,
    scope=TREE,
    settled="no `make_buffer_tensor` of this tree is known to raise for constant layouts, and no test expects it to",
    proof=proofs.RESTORED,
)
def drop_size_guard(draft: Draft, sites: Sequence[Site], options: NoMigrationOptions) -> Iterator[Note]:
    """Drop the guard of `make_buffer_tensor` against constant sizes, and the tests that expect it.

    While compiled code held the sizes of the first call and its cache key did not, `make_buffer_tensor(t, max_size=False)`
    without `num_records_bytes` raised for a layout of constant size. Since commit 250c11d layouts are dynamic by default, and
    since 801fc4e6 constant sizes are part of the key: one artifact serves all sizes, or there is one for each, and the guard is
    needless.

    This migration changes FlyDSL's own tree, if its contract says so. The `if` by which the function raises for a constant
    layout is decided, with imports that only it used. A test is removed if all that it checks is that a call raises with
    `num_records_bytes` in the message. Other tests of the same file remain, since they still hold.

    Tests are kept if a string elsewhere in FlyDSL names the byte count, which may be the message of another guard; a note at
    each of them says where that string is. Notes also list where the docstring and comments of the function, the rest of a
    changed test file, and comments and documents elsewhere may still mention the guard.
    """
    other, kept = _kept(draft, sites)
    bench = Workbench(draft)
    changed: dict[str, Span] = {}
    tested: dict[str, None] = {}
    for site in sites:
        try:
            with bench.on(site.place.path) as rewrite:
                match site.subject:
                    case _Guard(function=function, question=question):
                        node = rewrite.tree.find(question, cst.Attribute)
                        fold_expression(rewrite, node, False)
                        _drop_local_imports(rewrite, function, node)
                        changed[site.place.path] = rewrite.tree.span(rewrite.tree.function(function).name)
                        removed: cst.CSTNode = node
                    case _Test(name=name):
                        test = rewrite.tree.parent(rewrite.tree.find(name, cst.Name))
                        assert isinstance(test, cst.FunctionDef)
                        rewrite.remove(test)
                        tested[site.place.path] = None
                        removed = test
                words = dict.fromkeys(node.value for node in rewrite.tree.walk(removed) if isinstance(node, cst.Name))
                drop_imports(rewrite, unused_imports(rewrite, words))
        except LeftAlone as found:
            yield from left(site, found)
    bench.commit()
    since = draft.revision
    draft.settle()
    yield from _notes_of_kept(draft, other, kept)
    yield from _leftovers(
        draft, {path: draft.forward(Place(path, span), since) for path, span in changed.items()}, tested
    )


def _leftovers(draft: Draft, changed: Mapping[str, Place], tested: Iterable[str]) -> Iterator[Note]:
    """Yield notes on places that may still mention a removed guard."""
    for place in changed.values():
        yield Note(place, "its docstring and comments may still mention the guard: check them")
    for path in tested:
        mention = _GUARD.search(draft.text(path))
        if mention is not None:
            yield Note(
                Place(path, Span(*mention.span())), "this may still mention the guard: check the rest of the file"
            )
    for place in _demands(draft) if changed else ():
        if place.path not in {*changed, *tested}:
            yield Note(place, "this may describe the guard: check it")


def _kept(draft: Draft, sites: Sequence[Site]) -> tuple[Place | None, list[Place]]:
    """Return the tests that may expect a removed guard, and the place of the string because of which they are kept."""
    tree = tree_of(draft) if any(isinstance(site.subject, _Guard) for site in sites) else None
    other = _other_message(draft, tree) if tree is not None else None
    return other, [test.place for test in _tests(draft, tree)] if tree is not None and other is not None else []


def _notes_of_kept(draft: Draft, other: Place | None, kept: Sequence[Place]) -> Iterator[Note]:
    if other is None:
        return
    at = draft.forward(other)
    for place in kept:
        line = draft.text(at.path).count("\n", 0, at.span.start) + 1
        why = f"it is kept, as `{at.path}:{line}` names `{_COUNT}`, too"
        yield Note(draft.forward(place), f"this test may expect the guard: {why}")


def _demands(draft: Draft) -> Iterator[Place]:
    """Yield the first place in each comment or document that may say that the byte count must be passed."""
    for source in texts_with(draft.project, {_COUNT}):
        if source.path.endswith(_TEXTS):
            found = (span for span in occurrences(source.text, _COUNT) if _is_demanded(source, span))
            yield from (Place(source.path, span) for span in islice(found, 1))


def _is_demanded(source: Source, span: Span) -> bool:
    """Whether the line of a mention, or the next one, is prose and makes a demand."""
    start = source.text.rfind("\n", 0, span.start) + 1
    lines = source.text[start:].split("\n", 2)[:2]
    if source.path.endswith(".py"):
        lines = [line for line in lines if line.lstrip().startswith("#")] if lines[0].lstrip().startswith("#") else []
    return any(_DEMANDS.search(line) for line in lines)
