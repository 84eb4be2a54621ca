"""`parameter-to-extent`: turns a parameter into a constant that is compiled into kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst
import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.rewrite import Problem, Refused
from opschema_cli.migrate.codemods.scopes import is_write, local_uses
from opschema_cli.migrate.codemods.signatures import drop_parameter
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.program import ValueRef
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Place
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.migrations.callers import calls_of
from opschema_rules.flydsl.migrations.compile_time import check_plain
from opschema_rules.flydsl.migrations.constants import Constant, check_names, check_number, rename
from opschema_rules.flydsl.migrations.references import References, is_parameter
from opschema_rules.flydsl.migrations.scopes import TREE
from opschema_rules.flydsl.migrations.trees import tree_of
from opschema_rules.flydsl.model import Call, FlyTree, Kind, Traced


class ParameterToExtent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``names`` are the parameters, such as `M`."""

    names: tuple[str, ...]


class _Group(msgspec.Struct, frozen=True):
    """Traced functions of one file that pass a parameter of that name on to each other."""

    path: str
    name: str
    functions: tuple[Traced, ...]

    @property
    def titles(self) -> tuple[str, ...]:
        """The functions' names, which stay the same when other functions are rewritten."""
        return tuple(item.title for item in self.functions)

    @property
    def place(self) -> Place:
        """The place of the parameter in the first function."""
        first = self.functions[0]
        return first.body.at(next(item.param.span for item in first.parameters if item.name == self.name))


def find(draft: Draft, options: ParameterToExtent) -> Iterator[Site]:
    """Yield the kernels and launchers with a run-time number of that name."""
    check_names(options.names)
    tree = tree_of(draft)
    groups = [group for name in options.names for group in _groups(tree, name)] if tree is not None else []
    for group in groups:
        listed = ", ".join(f"`{item}()`" for item in group.titles)
        yield Site(group.place, f"bake `{group.name}` into {listed}", group.titles, (), group)
    if not groups and tree is not None and not draft.changes:
        raise OpschemaError(
            f"no kernel has a number {' or '.join(f'`{name}`' for name in options.names)} for a parameter"
        )


def _groups(tree: FlyTree, name: str) -> list[_Group]:
    """Return the groups of functions with that parameter; a function and those that it calls are one group."""
    groups: list[list[Traced]] = []
    for traced in tree.traced:
        param = traced.parameter(name)
        if param is not None and param.kind is Kind.NUMBER:
            callers = {id(tree.around(call.body)) for call in traced.calls}
            called = {
                id(call.target) for item in tree.traced for call in item.calls if tree.around(call.body) is traced
            }
            near = [group for group in groups if any(id(item) in callers | called for item in group)]
            groups = [group for group in groups if group not in near]
            groups.append([*(item for group in near for item in group), traced])
    ordered = (sorted(group, key=lambda item: (item.body.file.path, item.function.start)) for group in groups)
    return [_Group(group[0].body.file.path, name, tuple(group)) for group in ordered]


@migration(
    "parameter-to-extent",
    find=find,
    options=ParameterToExtent,
    scope=TREE,
    settled="no kernel or launcher has such a parameter",
    proof=proofs.ROUND,
)
def parameter_to_extent(draft: Draft, sites: Sequence[Site], options: ParameterToExtent) -> Iterator[Note]:
    """Turn a run-time parameter into an extent that is compiled into kernels.

    It reverts `extent-to-parameter`: if every launcher is passed the same constant of the kernels' module, the parameter is
    removed from kernels, launchers and calls, and the constant gets its name, under which the kernels then read it. FlyDSL
    may unroll and fold a constant, and compiles again for each value.

        opschema migrate parameter-to-extent -o names=M

    It is left unchanged, with a note that shows the place, if calls pass other values or not all of them are known, if a
    kernel assigns the parameter, reads an attribute of it or passes it to something that may not accept a plain number, and
    if the name means something else.
    """
    unclear = [site for site in sites if len(_named(draft, site)) > 1]
    for site in unclear:
        yield from left(site, LeftAlone(site.place, "several functions have that name"))
    for site in (item for item in sites if item not in unclear):
        tree, group = _named(draft, site)[0]
        bench = Workbench(draft)
        try:
            _Step(bench, References(draft, tree), group).run()
        except LeftAlone as found:
            yield from left(replace(site, place=group.place), found)
        else:
            bench.commit()
            draft.settle()


def _named(draft: Draft, site: Site) -> list[tuple[FlyTree, _Group]]:
    """Return the groups of a site's functions, by name, in the current draft, each with its tree."""
    tree, before = tree_of(draft), site.subject
    assert tree is not None
    assert isinstance(before, _Group)
    groups = _groups(tree, before.name)
    return [(tree, item) for item in groups if (item.path, item.titles) == (before.path, before.titles)]


class _Step:
    """The change for one group."""

    def __init__(self, bench: Workbench, references: References, group: _Group) -> None:
        self.bench = bench
        self.references = references
        self.tree = references.tree
        self.group = group
        self.name = group.name

    def run(self) -> None:
        """Record all edits.

        Raises:
            LeftAlone: something forbids it.
        """
        calls = [call for traced in self.group.functions for call in calls_of(self.references, traced)]
        given = [(call, self._argument(call)) for call in calls]
        constant = self._constant([item for item in given if not self._is_passed_on(*item)])
        for traced in self.group.functions:
            self._check_uses(traced, constant)
        rename(self.bench, self.references, constant, self.name)
        for traced in self.group.functions:
            with self.bench.on(constant.path) as rewrite:
                drop_parameter(rewrite, function_node(rewrite.tree, traced.body), self.name)
        for call, value in given:
            with self.bench.on(call.body.file.path) as rewrite:
                node = rewrite.tree.find(call.expr.span, cst.Call)
                rewrite.drop(node.args, next(at for at, item in enumerate(call.expr.items[1:]) if item is value))
        self.bench.check()

    def _argument(self, call: Call) -> Expr:
        value = call.argument(self.name)
        if value is None:
            raise LeftAlone(call.place, f"what is passed here as `{self.name}` is not known")
        return value

    def _is_passed_on(self, call: Call, value: Expr) -> bool:
        """Whether a traced function passes its own parameter."""
        around = self.tree.around(call.body)
        if around is None:
            return False
        if (
            value.text != self.name
            or call.body.binder(self.name) is not around.body
            or around not in self.group.functions
        ):
            raise LeftAlone(
                call.body.at(value), f"`{around.name}()` passes something else as `{self.name}` than its own one"
            )
        return True

    def _constant(self, given: Sequence[tuple[Call, Expr]]) -> Constant:
        """Return the one constant that all calls from outside pass."""
        found: Constant | None = None
        for call, value in given:
            named = self._named(call, value)
            if named is None:
                raise LeftAlone(call.body.at(value), f"`{call.body.file.text(value)}` is not a constant of a module")
            if found is not None and named.assign is not found.assign:
                raise LeftAlone(call.body.at(value), f"other calls pass `{found.name}` here")
            found = Constant(named.file, named.assign)
        first = self.group.functions[0]
        if found is None:
            raise LeftAlone(first.place, f"nothing calls `{first.name}()`, so there is no value to bake in")
        check_number(self.references, found)
        return found

    def _named(self, call: Call, value: Expr) -> ValueRef | None:
        """Return the module variable that an argument refers to."""
        if value.kind != "name" or is_parameter(call.body, value.text.partition(".")[0]):
            return None
        found = self.tree.bodies.resolve(call.body, value.text)
        if not isinstance(found, ValueRef):
            return None
        return found if any(item is found.assign for item in found.file.body.assigns) else None

    def _check_uses(self, traced: Traced, constant: Constant) -> None:
        """Check that the functions can read the module's variable instead of the parameter."""
        body, name = traced.body, self.name
        param = traced.parameter(name)
        if body.file.path != constant.path:
            raise LeftAlone(traced.place, f"`{constant.name}` is in another module, {constant.path}")
        if param is not None and param.param.default is not None:
            raise LeftAlone(body.at(param.param.default), "it has a default")
        outer = body.parent
        if outer is not None and any(item.function is not None and item.binds(name) for item in outer.outward()):
            raise LeftAlone(traced.place, f"`{name}` is a local of a function around `{traced.name}()`")
        with self.bench.on(constant.path) as rewrite:
            nodes = rewrite.tree
            for node in local_uses(rewrite, function_node(nodes, body), name):
                if is_write(nodes, node):
                    raise Refused([Problem(nodes.span(node).start, f"`{traced.name}()` writes `{name}`")])
                check_plain(self.tree, body.file, nodes, node)
