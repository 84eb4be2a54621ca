"""`drop-mark-static`: removes the API that pinned sizes into the cache key for three days in May 2026, with its calls and tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst
import msgspec

from opschema_cli.file_kinds import is_python
from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.imports import drop_imports, unused_imports
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import effects
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import Mention, mentions
from opschema_cli.migrate.migration import NoMigrationOptions, Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Class, Expr, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.migrations.marking import NAME, is_wrapped, method_of, owner, pins
from opschema_rules.flydsl.migrations.own_tests import only_tests
from opschema_rules.flydsl.migrations.private_state import drop_method, join_return
from opschema_rules.flydsl.migrations.prose import trimmed
from opschema_rules.flydsl.migrations.scopes import TREE
from opschema_rules.flydsl.migrations.trees import tree_of
from opschema_rules.flydsl.model import FlyTree


class _Call(msgspec.Struct, frozen=True):
    """A call of the method on a wrapped tensor; ``pins`` if it kept sizes in the cache key that are no longer part of it."""

    body: Body
    call: Expr
    known: bool
    pins: bool


class _Test(msgspec.Struct, frozen=True):
    """A test that tests nothing but the method."""

    body: Body


class _Method(msgspec.Struct, frozen=True):
    """The method itself, in FlyDSL's own files."""

    file: PythonFile
    cls: Class


class _Left(msgspec.Struct):
    """The state of the search for leftovers after the calls are removed."""

    pinned: list[Place] = msgspec.field(default_factory=list)
    folded: list[tuple[str, str]] = msgspec.field(default_factory=list)


def find(draft: Draft, options: NoMigrationOptions) -> Iterator[Site]:
    """Yield the method, its calls, and the tests that test nothing else."""
    tree = tree_of(draft)
    if tree is None:
        return
    for file in tree.package.files:
        for cls in file.body.classes:
            method = cls.body.function(NAME)
            if method is not None:
                yield Site(Place(file.path, method.span), f"drop `{cls.name}.{NAME}()`", (), (), _Method(file, cls))
    for file in tree.bodies.files:
        if NAME in file.source.text:
            yield from _sites_of(draft, tree, file)


def _sites_of(draft: Draft, tree: FlyTree, file: PythonFile) -> Iterator[Site]:
    calls = [(body, call) for body in tree.bodies.of(file) for call in body.scope.calls if method_of(call) == NAME]
    calls = [item for item in calls if not tree.bodies.external(item[0], item[1].callee)]
    tests = dict.fromkeys(test for body, _ in calls if (test := _test_around(body)) is not None)
    whole = [test for test in tests if only_tests(draft.tree(file.path), test, NAME)]
    for test in whole:
        assert test.function is not None
        title = f"drop the test `{test.function.name}`, which only tests `{NAME}`"
        yield Site(test.at(test.function.span), title, (), (), _Test(test))
    for body, call in calls:
        if _test_around(body) not in whole:
            holder = owner(call)
            known = holder is not None and is_wrapped(tree, body, holder)
            pinning = holder is not None and known and pins(tree, body, holder)
            yield Site(body.at(call), f"drop the call of `{NAME}()`", (), (), _Call(body, call, known, pinning))


def _test_around(body: Body) -> Body | None:
    """Return the test function that a body is or is nested in."""
    file = body.file.path.rpartition("/")[2]
    if not file.startswith("test_") and not file.endswith("_test.py"):
        return None
    functions = [item for item in body.outward() if item.function is not None]
    return next((item for item in reversed(functions) if item.function and item.function.name.startswith("test")), None)


@migration("drop-mark-static", find=find, scope=TREE, settled="nothing calls `mark_static()`", proof=proofs.TRACED)
def drop_mark_static(draft: Draft, sites: Sequence[Site], options: NoMigrationOptions) -> Iterator[Note]:
    """Drop `mark_static()`: its calls, the tests that only test it, and the method itself.

    `TensorAdaptor.mark_static(dims)` put the sizes of a tensor into the key of compiled kernels, for three days in May 2026. Since
    commit 801fc4e6 a wrapped tensor has them there anyway, unless it is marked dynamic.

    The object of a call is kept: `flyc.from_dlpack(t).mark_static()` becomes `flyc.from_dlpack(t)`. A statement that only
    calls it is removed, and so is a test whose assertions and expected exceptions all concern what the method returns or
    raises. In FlyDSL's own files the method is removed together with the attributes that only it writes after `__init__`,
    the conditions on them, and unused imports. Sentences in comments and docstrings that mention it are removed.

    Notes say

    - each text that was shortened: read it again;
    - each call on a dynamic tensor: up to FlyDSL 0.4.2 its sizes are no longer in the key. Pass the sizes that the kernel
      compiles in as `fx.Constexpr[int]`;
    - each remaining mention, except of `torch._dynamo.mark_static`.

    A call is left unchanged, with a note, if its object may be something else or its arguments may have effects; everything
    is left unchanged if FlyDSL may be 0.1.8 or older, where only `mark_static` puts sizes into the key.
    """
    tree = tree_of(draft)
    assert tree is not None
    bench, rest = Workbench(draft), _Left()
    for site in sites:
        try:
            if Era.BAKED in tree.contract.eras:
                raise LeftAlone(
                    site.place, "only this call puts sizes into the key of this FlyDSL, or of one that it may be"
                )
            with bench.atomic():
                _drop(bench, site, rest)
        except LeftAlone as found:
            yield from left(site, found)
    bench.commit()
    since = draft.revision
    draft.settle()
    for place in rest.pinned:
        message = (
            f"without `{NAME}()` its sizes are not in the key of the kernel: pass those that it bakes as `fx.Constexpr`"
        )
        yield Note(draft.forward(place, since), message)
    yield from _tidy(draft, rest)


def _drop(bench: Workbench, site: Site, rest: _Left) -> None:
    subject = site.subject
    with bench.on(site.place.path) as rewrite:
        match subject:
            case _Method(cls=cls):
                owner = rewrite.tree.class_def(cls.name)
                method = rewrite.tree.method(cls.name, NAME)
                folded = drop_method(
                    rewrite, owner, method, lambda name: _is_elsewhere(bench.draft, name, site.place.path)
                )
                rest.folded += [(site.place.path, name) for name in folded]
                _drop_imports(rewrite, method)
            case _Test(body=body):
                assert body.function is not None
                test = rewrite.tree.parent(rewrite.tree.find(body.function.span, cst.Name))
                assert isinstance(test, cst.FunctionDef)
                rewrite.remove(test)
                _drop_imports(rewrite, test)
            case _Call() as found:
                if not found.known:
                    raise LeftAlone(site.place, "its object is not known")
                _drop_call(rewrite, rewrite.tree.find(found.call.span, cst.Call))
                if found.pins:
                    rest.pinned.append(site.place)


def _is_elsewhere(draft: Draft, name: str, path: str) -> bool:
    return any(is_python(item.place.path) and item.place.path != path for item in mentions(draft.project, [name]))


def _drop_call(rewrite: Rewrite, call: cst.Call) -> None:
    """Replace a call of the method with its object; remove a statement that does nothing else."""
    tree = rewrite.tree
    assert isinstance(call.func, cst.Attribute)
    problems = [problem for arg in call.args for problem in effects(tree, arg.value)]
    removed = Span(tree.outer(call.func.value).end, tree.span(call).end)
    if "#" in tree.text[removed.start : removed.end]:
        problems.append(Problem(removed.start, "the removed code contains a comment"))
    if problems:
        raise Refused(problems)
    statement, base = tree.statement(call), _base(call)
    if isinstance(base, cst.Name) and _only_marks(statement, base):
        if not rewrite.is_gone(statement):
            rewrite.remove(statement)
    else:
        rewrite.replace(removed, "")


def _base(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the expression that the calls of the method are chained to."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == NAME:
        node = node.func.value
    return node


def _only_marks(statement: cst.CSTNode, base: cst.Name) -> bool:
    """Whether a statement is only such a chain on a name, or assigns it to the same name."""
    if isinstance(statement, cst.Expr):
        return _base(statement.value) is base
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        return _base(statement.value) is base and isinstance(target, cst.Name) and target.value == base.value
    return False


def _drop_imports(rewrite: Rewrite, removed: cst.CSTNode) -> None:
    """Remove imports that only removed code used."""
    tree = rewrite.tree
    names = dict.fromkeys(node.value for node in tree.walk(removed) if isinstance(node, cst.Name))
    drop_imports(rewrite, unused_imports(rewrite, names))


def _tidy(draft: Draft, rest: _Left) -> Iterator[Note]:
    """Join statements left over from folding, and remove mentions of the method from comments and docstrings."""
    bench = Workbench(draft)
    for path, function in dict.fromkeys(rest.folded):
        with bench.on(path) as rewrite:
            join_return(rewrite, rewrite.tree.function(function))
    bench.commit()
    draft.settle()
    cut: list[Place] = []
    since = draft.revision
    if next(iter(find(draft, NoMigrationOptions())), None) is None:
        for path in dict.fromkeys(item.place.path for item in _mentions(draft)):
            if is_python(path) and draft.project.python(path) is not None:
                edits, places = trimmed(PythonTree.parse(draft.text(path)), path, NAME)
                draft.edit(path, edits)
                cut += places
        draft.settle()
    for place in cut:
        yield Note(draft.forward(place, since), f"mentions of `{NAME}` were removed here: check the text")
    for found in _mentions(draft):
        yield Note(found.place, f"`{NAME}` is still mentioned here")


def _mentions(draft: Draft) -> Iterator[Mention]:
    """Return the mentions of the method, without torch's function of that name."""
    for found in mentions(draft.project, [NAME]):
        text = draft.text(found.place.path)
        before = text[: found.place.span.start]
        of_torch = before.endswith("_dynamo.") or (
            not before.endswith(".") and re.search(rf"torch\._dynamo import [^\n]*\b{NAME}\b", text) is not None
        )
        if not of_torch:
            yield found
