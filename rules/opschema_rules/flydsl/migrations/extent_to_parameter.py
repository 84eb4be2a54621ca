"""`extent-to-parameter`: turns a number that is compiled into kernels into a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

import libcst as cst
import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.rewrite import Refused
from opschema_cli.migrate.codemods.scopes import is_write, module_uses
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import occurrences
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ValueRef
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.text import Place, Span
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.migrations.baked import Baked
from opschema_rules.flydsl.migrations.callers import Group, group_above
from opschema_rules.flydsl.migrations.constants import Constant, check_names, check_number, rename
from opschema_rules.flydsl.migrations.places import add_argument, add_parameter, slot_of
from opschema_rules.flydsl.migrations.references import References, is_parameter
from opschema_rules.flydsl.migrations.scopes import TREE
from opschema_rules.flydsl.migrations.trees import tree_of
from opschema_rules.flydsl.model import Call, FlyTree, Traced
from opschema_rules.flydsl.rules.descriptors import hands_on

TYPE = "Int32"
"""The FlyDSL type of the parameter."""


class ExtentToParameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``names`` are the constants, such as `M`; ``constant`` is the template for their new names outside the kernels, with `{}`
    for the old name.
    """

    names: tuple[str, ...]
    constant: str = "{}_RUNTIME"


class _Extent(msgspec.Struct, frozen=True):
    """A constant, and the traced functions that read it."""

    constant: Constant
    readers: tuple[Traced, ...]


def find(draft: Draft, options: ExtentToParameter) -> Iterator[Site]:
    """Yield the constants of these names that traced functions read."""
    check_names([*options.names, *(options.constant.replace("{}", name) for name in options.names)])
    tree = tree_of(draft)
    found = False
    for extent in _extents(draft, tree, options.names) if tree is not None else ():
        found = True
        titles = sorted({item.title for item in extent.readers})
        title = f"give `{extent.constant.name}` to {', '.join(f'`{item}()`' for item in titles) or 'kernels'}"
        yield Site(extent.constant.place, title, tuple(titles), (), extent)
    if not found and tree is not None and not draft.changes:
        named = " or ".join(f"`{name}`" for name in options.names)
        raise OpschemaError(f"no kernel reads {named} of its own module")


def _extents(draft: Draft, tree: FlyTree, names: Iterable[str]) -> Iterator[_Extent]:
    candidates: dict[str, list[str]] = {}
    for traced in tree.traced:
        for body in tree.within(traced):
            for name in {use.name.partition(".")[0] for use in body.scope.uses}.intersection(names):
                if name in traced.body.file.assigns:
                    paths = candidates.setdefault(name, [])
                    paths += [traced.body.file.path] if traced.body.file.path not in paths else []
    for name in names:
        for path in candidates.get(name, ()):
            extent = _extent(draft, tree, path, name)
            if extent is not None:
                yield extent


def _extent(draft: Draft, tree: FlyTree, path: str, name: str) -> _Extent | None:
    file = tree.bodies.program.load(path)
    assert file is not None
    constant = Constant(file, file.assigns[name][0])
    try:
        nodes = PythonTree.parse(draft.text(path))
        reads = [node for node in module_uses(nodes, name) if not is_write(nodes, node)]
    except TreeError:
        return None
    except Refused:
        return _Extent(constant, ())
    around = (tree.around(tree.bodies.at(file, nodes.span(node).start)) for node in reads)
    readers = tuple(dict.fromkeys(item for item in around if item is not None))
    return _Extent(constant, readers) if readers else None


@migration(
    "extent-to-parameter",
    find=find,
    options=ExtentToParameter,
    scope=TREE,
    settled="no traced function reads such a constant",
    proof=proofs.ROUND,
)
def extent_to_parameter(draft: Draft, sites: Sequence[Site], options: ExtentToParameter) -> Iterator[Note]:
    """Turn an extent that is compiled into kernels into a run-time parameter.

    A kernel that reads a constant of its own module is compiled with the constant's value in it. The constant becomes a parameter
    `fx.Int32` of every kernel and launcher that needs it, behind their tensors; every call passes it; and outside the kernels the
    constant gets another name (`M_RUNTIME`), so that nothing reads it there by accident. `-o constant={}` keeps its name.

        opschema migrate extent-to-parameter -o names=M

    It is left unchanged, with a note that shows the place, if a kernel needs the value at compile time (`range_constexpr`,
    a static layout, a Python `if`), or if that is not known; if another number is computed from it that a kernel reads; if
    a number of bytes needs more than 32 bits; if code or a test sets the constant; and if not all calls are known, or one
    is made where the constant has no name.

    `parameter-to-extent` reverts it.
    """
    # Each goes behind the tensors, so the last one first.
    for site in reversed(sites):
        assert isinstance(site.subject, _Extent)
        tree = tree_of(draft)
        constant = site.subject.constant
        extent = _extent(draft, tree, constant.path, constant.name) if tree is not None else None
        assert tree is not None
        assert extent is not None
        bench = Workbench(draft)
        try:
            notes = _Step(bench, References(draft, tree), extent, options).run()
        except LeftAlone as found:
            yield from left(replace(site, place=extent.constant.place), found)
        else:
            bench.commit()
            yield from notes
            draft.settle()


class _Step:
    """The change for one constant."""

    def __init__(self, bench: Workbench, references: References, extent: _Extent, options: ExtentToParameter) -> None:
        self.bench = bench
        self.references = references
        self.tree = references.tree
        self.constant = extent.constant
        self.readers = extent.readers
        self.name = extent.constant.name
        self.renamed = options.constant.replace("{}", self.name)

    def run(self) -> list[Note]:
        """Record all edits.

        Raises:
            LeftAlone: something forbids it.
        """
        check_number(self.references, self.constant)
        group = group_above(self.references, self.readers)
        baked = Baked(self.bench, self.references, self.constant, self.readers)
        baked.check_reads()
        baked.check_derived()
        counts = baked.check_flow()
        for traced in group.functions:
            self._add_parameter(traced)
        for call in group.calls:
            self._pass(call)
        keep = [item.function.outer for item in self.readers]
        rename(self.bench, self.references, self.constant, self.renamed, keep=keep)
        self.bench.check()
        return [*self._counted(counts), *self._mentioned(group)]

    def _add_parameter(self, traced: Traced) -> None:
        body = traced.body
        if body.binds(self.name):
            raise LeftAlone(traced.place, f"`{traced.name}()` has a `{self.name}` of its own")
        annotation = self._annotation(traced)
        with self.bench.on(body.file.path) as rewrite:
            function = function_node(rewrite.tree, body)
            add_parameter(rewrite, function, slot_of(traced), f"{self.name}: {annotation}")

    def _annotation(self, traced: Traced) -> str:
        """Return the parameter's type, spelled like the annotations beside it."""
        around = traced.body.parent or traced.body
        prefixes = [
            item.param.annotation.text.rpartition(".")[0]
            for item in traced.parameters
            if item.param.annotation is not None
        ]
        prefixes += [item.name for item in traced.body.file.body.imports]
        for prefix in dict.fromkeys(prefixes):
            name = f"{prefix}.{TYPE}" if prefix else TYPE
            if self.tree.names.full(around, name) == f"flydsl.expr.{TYPE}" or self._is_type(around, name):
                return name
        raise LeftAlone(traced.place, f"FlyDSL's `{TYPE}` has no name here: import it")

    def _is_type(self, body: Body, name: str) -> bool:
        full = self.tree.names.full(body, name)
        return full.startswith("flydsl.expr.") and full.endswith(f".{TYPE}")

    def _pass(self, call: Call) -> None:
        around = self.tree.around(call.body)
        code = self.name if around is not None else self._spelled(call)
        if around is not None:
            inside = takewhile(lambda body: body is not around.body, call.body.outward())
            if any(body.binds(self.name) for body in inside):
                raise LeftAlone(call.place, f"`{self.name}` is a local here")
        with self.bench.on(call.body.file.path) as rewrite:
            node = rewrite.tree.find(call.expr.span, cst.Call)
            add_argument(rewrite, node, slot_of(call.target), self.name, code)

    def _spelled(self, call: Call) -> str:
        """Return the constant's name at a call of the function."""
        body, path = call.body, self.constant.path
        module = call.expr.callee.rpartition(".")[0]
        for item in (self.name, f"{module}.{self.name}" if module else ""):
            if item and self._means(body, item):
                return item.removesuffix(self.name) + self.renamed
        for found in body.file.body.imports:
            if found.attr == self.name and self._means(body, found.name):
                return found.name
        where = "" if body.file.path == path else f"; import it from {path}"
        raise LeftAlone(call.place, f"`{self.name}` has no name here{where}")

    def _means(self, body: Body, name: str) -> bool:
        if is_parameter(body, name.partition(".")[0]):
            return False
        found = self.tree.bodies.resolve(body, name)
        return isinstance(found, ValueRef) and found.assign is self.constant.assign

    def _counted(self, counts: Iterable[Span]) -> Iterator[Note]:
        """Yield notes on byte counts, if the tree's own FlyDSL does not widen 32-bit numbers."""
        text = self.constant.file.source.text
        for span in counts if self.tree.contract.own and hands_on(self.tree) else ():
            shown = text[span.start : span.end]
            message = f"`{shown}` has 32 bits now, and this FlyDSL wants 64: compute it from `fx.Int64({self.name})`"
            yield Note(Place(self.constant.path, span), message)

    def _mentioned(self, group: Group) -> Iterator[Note]:
        """Yield notes on comments and strings outside the functions that name the constant."""
        if self.renamed == self.name:
            return
        nodes = self.bench.tree(self.constant.path)
        known = {nodes.span(node) for node in nodes.walk(nodes.module) if isinstance(node, cst.Name)}
        inside = [item.function.outer for item in group.functions]
        for span in occurrences(nodes.text, self.name):
            if span not in known and not any(item.start <= span.start < item.end for item in inside):
                message = f"`{self.name}` is still mentioned here: the constant is `{self.renamed}` now"
                yield Note(Place(self.constant.path, span), message)
