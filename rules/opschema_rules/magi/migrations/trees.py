"""The ops of a draft, the files in which something is named, and the meaning of a name at its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import libcst as cst

from opschema_cli.migrate.codemods.scopes import all_parameters, dotted
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import Resolution, Unresolved
from opschema_cli.source.text import Span
from opschema_rules.magi.given import Meta
from opschema_rules.magi.model import MagiOp, MagiTree
from opschema_rules.magi.registrations import Registration

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


def tree_of(draft: Draft) -> MagiTree | None:
    """Return the tree that the pack read; None if it found none."""
    return next((item for item in draft.loaded.subjects if isinstance(item, MagiTree)), None)


def meant_ops(tree: MagiTree) -> list[MagiOp]:
    """The ops that are not made to fail in a test."""
    return [op for op in tree.ops if not op.fails_on_purpose]


def python_files(draft: Draft, words: set[str], *like: str) -> list[PythonFile]:
    """The Python files that hold one of the words, and in which each of some patterns is found, and that parse."""
    sources = (source for source in texts_with(draft.project, words) if source.path.endswith(".py"))
    paths = [source.path for source in sources if all(re.search(pattern, source.text) for pattern in like)]
    draft.project.load_python(paths)
    return [file for file in map(draft.project.python, paths) if file is not None]


def naming(draft: Draft, bodies: Bodies, name: str, is_it: Callable[[Resolution], bool]) -> list[PythonFile]:
    """The files that may name a thing of the tree: they hold its name, or another one under which it is imported or assigned."""
    words, before = {name}, set[str]()
    files: list[PythonFile] = []
    while words != before:
        before = set(words)
        files = python_files(draft, words)
        for file in files:
            for body in bodies.of(file):
                words.update(found for found in _others(body, words) if is_it(bodies.resolve(body, found)))
    return files


def _others(body: Body, words: set[str]) -> Iterator[str]:
    """Names that a body binds to something whose name is known."""
    for item in body.scope.imports:
        if item.attr in words and item.name not in words:
            yield item.name
    for assign in body.scope.assigns:
        value = assign.value
        if value is not None and value.kind == "name" and value.text.rpartition(".")[2] in words:
            yield assign.target.rpartition(".")[2]


def meaning(bodies: Bodies, file: PythonFile, tree: PythonTree, node: cst.CSTNode) -> Resolution:
    """The meaning of a dotted name at its node."""
    name = dotted(node)
    if not name:
        return Unresolved("it is not a name")
    if is_inner(tree, node, name.partition(".")[0]):
        return Unresolved(f"`{name}` is bound inside of an expression")
    return bodies.resolve(bodies.at(file, tree.span(node).start), name)


def is_inner(tree: PythonTree, node: cst.CSTNode, name: str, outermost: cst.CSTNode | None = None) -> bool:
    """Whether a lambda or comprehension around a node, inside ``outermost``, binds a name."""
    for above in tree.ancestors(node):
        if above is outermost:
            break
        if isinstance(above, cst.Lambda) and any(item.name.value == name for item in all_parameters(above.params)):
            return True
        if isinstance(above, _COMPREHENSIONS):
            clause: cst.CompFor | None = above.for_in
            while clause is not None:
                if any(isinstance(item, cst.Name) and item.value == name for item in tree.walk(clause.target)):
                    return True
                clause = clause.inner_for_in
    return False


def meta_body(op: MagiOp) -> Body | None:
    """Return the op's ``infer_output_meta_fn`` function; None if it is not a function, or not known."""
    meta = op.meta
    return meta.function if isinstance(meta, Meta) and isinstance(meta.function, Body) else None


def registering_call(registration: Registration) -> Span | None:
    """The call of the decorator that decorates a function, or that is called with it."""
    expr = registration.call
    function = registration.function.function
    if function is not None and not any(item.span == expr.span for item in function.decorators):
        expr = expr.items[0]
    return expr.span if expr.kind == "call" else None
