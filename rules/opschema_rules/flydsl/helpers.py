"""Helpers that are traced into compiled functions whose cache keys do not contain the helpers' source."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import dirname

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Import, PythonFile
from opschema_cli.source.text import Place
from opschema_rules.flydsl.code import FlyCode, FlyFile
from opschema_rules.flydsl.detection import EXTRA, ROOT, is_of_flydsl, naming_folders
from opschema_rules.flydsl.key import has_computed_key
from opschema_rules.flydsl.model import FlyTree, Traced

_SETTINGS = (".sh", ".yml", ".yaml", ".toml", ".cfg", ".ini", ".env", "Dockerfile")


class Helper(msgspec.Struct, frozen=True, array_like=True):
    """A ``call`` through which the plain function ``target`` is traced into the function ``into``, whose key does not contain
    it.
    """

    callee: str
    call: Place
    target: Place
    into: Place
    title: str


def helpers_of(file: FlyFile) -> list[Helper]:
    """Return the helpers of the functions that a file traces."""
    return file.value("helpers", list[Helper], lambda tree: list(unseen_helpers(tree)))


def unseen_helpers(tree: FlyTree) -> Iterator[Helper]:
    """Yield the calls of plain functions in folders other than the compiled function's, or by an attribute of their module.

    Kernels and captured functions are followed wherever they are, functions under ``jit``, which have keys of their own, by
    their own folder, and plain functions in the same folder.
    """
    calls = _Calls(tree)
    for traced in tree.traced if has_computed_key(tree) else ():
        if traced.kind == "jit" and is_compiled(tree, traced) and not _is_own(tree, traced.body):
            yield from _unseen(tree, traced, calls)


def is_compiled(tree: FlyTree, traced: Traced) -> bool:
    """Whether a function is compiled on its own, and not only traced into others: it launches, the enclosing function returns it,
    the module calls it, or it is passed to ``flyc.compile``.
    """
    around = traced.body.parent
    if around is None or tree.around(around) is not None:
        return False
    if any(_gives(item, traced.name) for item in around.scope.returns) or any(
        call.body.function is None or call.compiles for call in traced.calls
    ):
        return True
    known, path = _launching(tree), traced.body.file.path
    if path not in known:
        known[path] = {
            outer
            for body in tree.bodies.calling(traced.body.file, ["launch"])
            if any(_is_launch(call.items[0]) for call in body.scope.calls)
            for outer in body.outward()
        }
    return traced.body in known[path]


@cached_on_argument
def _launching(tree: FlyTree) -> dict[str, set[Body]]:
    """The bodies that launch something, or in which a nested one does, by path; found when they are asked for."""
    return {}


def _is_launch(callee: Expr) -> bool:
    return callee.text == "launch" if callee.kind == "attribute" else callee.text.endswith(".launch")


def _gives(returned: Expr, name: str) -> bool:
    """Whether a returned expression is a name or contains it."""
    if returned.kind in ("tuple", "list", "dict"):
        return any(_gives(item, name) for item in returned.items)
    return returned.kind == "name" and returned.text == name


def _unseen(tree: FlyTree, traced: Traced, calls: _Calls) -> Iterator[Helper]:
    reached, waiting = {traced.body}, [(traced.body, dirname(traced.body.file.path))]
    while waiting:
        current, folder = waiting.pop()
        followed = _captured_functions(tree, current)
        for body, call, target in calls.of(current):
            if tree.traced_of(target) is not None or ("." not in call.callee and dirname(target.file.path) == folder):
                followed.append(target)
            else:
                assert target.function is not None
                place = target.at(target.function.span)
                yield Helper(call.callee, body.at(call.items[0]), place, traced.place, traced.title)
        for target in followed:
            if target not in reached:
                reached.add(target)
                called = tree.traced_of(target)
                own = called is not None and called.kind == "jit"
                waiting.append((target, dirname(target.file.path) if own else folder))


def _captured_functions(tree: FlyTree, body: Body) -> list[Body]:
    """Return the functions that a function captures, as a launcher captures the kernel beside it: the key follows all of them."""
    return [found for cell in tree.closures.cells(body) if (found := tree.closures.function_of(cell)) is not None]


class _Calls:
    """The calls of top-level functions by names of the module; many launchers reach the same bodies."""

    def __init__(self, tree: FlyTree) -> None:
        self._tree = tree
        self._known: dict[Body, list[tuple[Body, Expr, Body]]] = {}

    def of(self, traced: Body) -> list[tuple[Body, Expr, Body]]:
        """Return the calls in a body and in nested functions."""
        if traced not in self._known:
            self._known[traced] = list(self._find(traced))
        return self._known[traced]

    def _find(self, traced: Body) -> Iterator[tuple[Body, Expr, Body]]:
        for body in self._tree.bodies.inside(traced):
            targets: dict[str, Body | None] = {}
            for call in body.scope.calls:
                callee = call.callee
                if callee and callee not in targets:
                    targets[callee] = self._target(body, callee)
                target = targets.get(callee)
                if target is not None:
                    yield body, call, target

    def _target(self, body: Body, callee: str) -> Body | None:
        """Return the top-level function that a module's name refers to in a body; None for FlyDSL's own."""
        first = callee.partition(".")[0]
        if (
            not _may_be_helper(body.file, first)
            or body.binder(first) is not None
            or self._tree.names.full(body, callee)
        ):
            return None
        target = self._tree.bodies.called(body, callee)
        found = target is not None and _is_top_level(target) and not _is_own(self._tree, target)
        return target if found else None


def _may_be_helper(file: PythonFile, name: str) -> bool:
    """Whether a module-level name may refer to a function of the workspace, judging by its bindings."""
    bound = file.body.named.get(name)
    if bound is None:
        return any(item.attr == "*" for item in file.body.imports)
    return not all(isinstance(item, Import) and is_of_flydsl(item) for item in bound)


def _is_top_level(body: Body) -> bool:
    return body.parent is not None and body.parent.parent is None and body.parent.cls is None


def _is_own(tree: FlyTree, body: Body) -> bool:
    """Whether a function belongs to FlyDSL itself, which is part of every key as a whole."""
    return tree.bodies.program.module_name(body.file.path).partition(".")[0] == ROOT


def names_folders(code: FlyCode) -> bool:
    """Whether any file of the workspace that configures or runs code, except FlyDSL's own, lists folders for the keys."""
    workspace, own = code.project.workspace, set(code.package.paths)
    if any(path not in own for path in naming_folders(code.project)):
        return True
    return any(EXTRA.encode() in workspace.peek(path) for path in workspace.files if path.endswith(_SETTINGS))
