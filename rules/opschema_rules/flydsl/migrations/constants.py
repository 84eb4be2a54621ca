"""A named number of a module: the code that reads it, values computed from it, and how to rename it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from keyword import iskeyword

import libcst as cst
import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import is_write, module_uses
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Assign, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Place, Span
from opschema_rules.flydsl.migrations.references import Reference, References
from opschema_rules.flydsl.model import FlyTree

MOST = 2**31 - 1
"""The largest value of ``fx.Int32``."""


class Constant(msgspec.Struct, frozen=True, eq=False):
    """A variable that a module assigns."""

    file: PythonFile
    assign: Assign

    @property
    def name(self) -> str:
        """Its name."""
        return self.assign.target

    @property
    def path(self) -> str:
        """Its file."""
        return self.file.path

    @property
    def place(self) -> Place:
        """The place of the assigned name."""
        return Place(self.path, self.assign.span)


def check_names(names: Iterable[str]) -> None:
    """Check that options are Python names.

    Raises:
        OpschemaError: one is not.
    """
    for name in names:
        if not name.isidentifier() or iskeyword(name):
            raise OpschemaError(f"`{name}` is not a Python name")


def check_number(references: References, constant: Constant) -> None:
    """Check that a constant is one integer that fits in a run-time parameter, and that nothing else sets it.

    Raises:
        LeftAlone: it is not, or is not known to be.
    """
    name, value = constant.name, constant.assign.value
    folded = references.tree.evaluator.fold(constant.file, value) if value is not None else None
    if len(constant.file.assigns[name]) > 1 or not constant.assign.sure:
        raise LeftAlone(constant.place, f"`{name}` is assigned more than once or conditionally")
    for place in references.writes_of(constant.path, constant.assign):
        raise LeftAlone(place, f"`{name}` of {constant.path} is set here")
    number = folded.value if isinstance(folded, Folded) else None
    if type(number) is not int:
        raise LeftAlone(constant.place, f"`{name}` is not known to be an integer")
    if abs(number) > MOST:
        raise LeftAlone(constant.place, f"`{name}` has more than 32 bits")


def uses(rewrite: Rewrite, constant: Constant) -> list[cst.Name]:
    """Return the places in its own file that name the constant, including the assignment.

    Raises:
        Refused: something else writes it too.
    """
    found = module_uses(rewrite.tree, constant.name)
    again = [node for node in found if is_write(rewrite.tree, node) and rewrite.tree.span(node) != constant.assign.span]
    if again:
        raise Refused(
            Problem(rewrite.tree.span(node).start, f"`{constant.name}` is written here too") for node in again
        )
    return found


def derived(tree: FlyTree, nodes: PythonTree, constant: Constant) -> Iterator[Assign]:
    """Yield the module's variables whose values are computed from the constant, directly or indirectly."""
    file = constant.file
    waiting, seen = [constant.name], {constant.name}
    while waiting:
        name = waiting.pop()
        reads = [nodes.span(node).start for node in module_uses(nodes, name) if not is_write(nodes, node)]
        for assign in file.body.assigns:
            start, end = assign.statement
            inside = any(start <= at < end and tree.bodies.at(file, at).function is None for at in reads)
            if inside and assign.target not in seen:
                seen.add(assign.target)
                waiting.append(assign.target)
                yield assign


def rename(
    bench: Workbench, references: References, constant: Constant, name: str, *, keep: Sequence[Span] = ()
) -> None:
    """Rename the constant in all files, except within ``keep`` in its own file.

    Raises:
        LeftAlone: a file uses the new name, or names the constant in a way that cannot be followed.
    """
    if name == constant.name:
        return
    for place in references.doubtful(constant.path, constant.name):
        raise LeftAlone(
            place, f"this may be `{constant.name}` of {constant.path}: its module is not found in the workspace"
        )
    with bench.on(constant.path) as rewrite:
        _rename_in(rewrite, references.tree, constant.file, uses(rewrite, constant), name, keep)
    imported: dict[str, PythonFile] = {}
    for body, item in references.imports_of(constant.path, constant.assign):
        if item.name == constant.name and (body.function is not None or body.cls is not None):
            raise LeftAlone(body.at(item.span), f"`{constant.name}` is imported in a function or class")
        if item.name == constant.name:
            imported[body.file.path] = body.file
        with bench.on(body.file.path) as rewrite:
            rewrite.replace(item.span, name)
    for path, file in imported.items():
        with bench.on(path) as rewrite:
            nodes = [node for node in module_uses(rewrite.tree, constant.name) if not is_write(rewrite.tree, node)]
            _rename_in(rewrite, references.tree, file, nodes, name, [])
    for reference in references.of_constant(constant.path, constant.assign):
        _rename_read(bench, reference, constant, name, imported)


def _rename_read(
    bench: Workbench, reference: Reference, constant: Constant, name: str, imported: Collection[str]
) -> None:
    """Rename a read in another file that goes through the module."""
    path = reference.body.file.path
    if reference.word == 0:
        own = path == constant.path or path in imported or reference.use.name.partition(".")[0] != constant.name
        if not own:
            raise LeftAlone(reference.place, f"`{constant.name}` comes from `import *`")
        return
    if reference.named is None:
        raise LeftAlone(reference.place, "there is white space around the dots of the name")
    with bench.on(path) as rewrite:
        rewrite.replace(reference.named, name)


def _rename_in(
    rewrite: Rewrite, tree: FlyTree, file: PythonFile, nodes: Sequence[cst.Name], name: str, keep: Sequence[Span]
) -> None:
    taken = module_uses(rewrite.tree, name)
    if taken:
        raise Refused([Problem(rewrite.tree.span(taken[0]).start, f"`{name}` is already a name in this module")])
    for node in nodes:
        start, end = rewrite.tree.span(node)
        if any(span.start <= start < span.end for span in keep):
            continue
        problem = _captured(rewrite.tree, tree, file, node, name)
        if problem:
            raise Refused([Problem(start, problem)])
        rewrite.replace(Span(start, end), name)


def _captured(nodes: PythonTree, tree: FlyTree, file: PythonFile, node: cst.Name, name: str) -> str:
    """Return why a name cannot replace another: it has another meaning there, or is printed."""
    if any(
        isinstance(item, cst.FormattedStringExpression) and item.equal is not None for item in nodes.ancestors(node)
    ):
        return f"an f-string prints the name `{node.value}`"
    for other in nodes.names(name):
        if is_write(nodes, other) and nodes.statement(other) is nodes.statement(node):
            return f"`{name}` is written in the same statement"
    body = tree.bodies.at(file, nodes.span(node).start)
    if any(outer.function is not None and outer.binds(name) for outer in body.outward()):
        return f"`{name}` is a local here"
    return ""
