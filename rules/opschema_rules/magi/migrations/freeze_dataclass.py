"""`freeze-dataclass`: `frozen=True` for the dataclasses that ops take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from opschema_cli.migrate.codemods.arguments import add_keyword
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Place, Span
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.migrations.attribute_writes import AttributeWrites
from opschema_rules.magi.migrations.family import family_of, refuse_family
from opschema_rules.magi.migrations.scopes import OPS
from opschema_rules.magi.migrations.trees import meant_ops, tree_of
from opschema_rules.magi.model import MagiTree
from opschema_rules.magi.proofs import PROGRAMS


def find(draft: Draft, options: object) -> Iterator[Site]:
    """The mutable dataclasses that are parameters of ops, or fields of such."""
    tree = tree_of(draft)
    if tree is None or tree.contract.surely("plain"):
        return
    takers: dict[ClassRef, tuple[Dataclass, list[str]]] = {}
    for op in meant_ops(tree):
        for problem in op.lowering.problems:
            if problem.kind == "mutable-dataclass" and problem.dataclass is not None:
                for item in _with_fields(tree, problem.dataclass, ()):
                    takers.setdefault(item.made, (item, []))[1].append(op.title)
    for made, (item, titles) in takers.items():
        place = Place(made.file.path, made.cls.span)
        yield Site(place, f"freeze `{made.name}`", tuple(sorted(set(titles))), ("MAG301",), item)


def _with_fields(tree: MagiTree, item: Dataclass, above: tuple[ClassRef, ...]) -> Iterator[Dataclass]:
    """A mutable dataclass and those of its fields: once it is frozen, they are refused next."""
    if item.frozen is False:
        yield item
    if item.ref not in above:
        for field in item.fields:
            form = field.type
            inner = tree.lowerer.dataclasses.of(form.ref) if form.kind == "class" and form.ref is not None else None
            if isinstance(inner, Dataclass) and not form.args:
                yield from _with_fields(tree, inner, (*above, item.ref))


@migration(
    "freeze-dataclass",
    find=find,
    scope=OPS,
    settled="every dataclass that an op takes is frozen, or the contract takes mutable ones",
    proof=PROGRAMS,
)
def freeze_dataclass(draft: Draft, sites: Sequence[Site], options: object) -> Iterator[Note]:
    """Add `frozen=True` to the dataclasses that ops take as parameters.

    `magi_register_custom_op` rejects a mutable dataclass, as a parameter or as a field of one. The decorator of each such
    class gets `frozen=True`; so do those of its fields' classes. Ops that a test expects to fail are ignored.

    A class is left unchanged, with a note at the place that shows why, where

    - an attribute of an instance is assigned, deleted or set by `setattr()` after it is made: in its own methods (`__init__()`,
      `__post_init__()`) or anywhere else in the workspace. A write to a field's name counts unless what it is written to is known
      to be something else; a write to another name counts where it is known to be an instance;
    - it inherits from a dataclass that is not frozen, or one that is not frozen inherits from it;
    - it, or what it inherits from, defines `__setattr__()` or `__delattr__()`;
    - it defines `__eq__()` without `__hash__()`, which a frozen dataclass would make from all fields.

        opschema migrate freeze-dataclass
        opschema migrate freeze-dataclass --apply
    """
    tree = tree_of(draft)
    assert tree is not None
    workbench = Workbench(draft)
    writes = AttributeWrites(draft, tree, workbench)
    for site in sites:
        assert isinstance(site.subject, Dataclass)
        try:
            _freeze(tree, workbench, writes, site.subject)
        except LeftAlone as found:
            yield from left(site, found)
    workbench.commit()


def _freeze(tree: MagiTree, workbench: Workbench, writes: AttributeWrites, item: Dataclass) -> None:
    family = family_of(workbench.draft, tree, item)
    refuse_family(tree, item, family)
    writes.refuse(item, family)
    with workbench.atomic(), workbench.on(item.made.file.path) as rewrite:
        _add_frozen(rewrite, item)


def _add_frozen(rewrite: Rewrite, item: Dataclass) -> None:
    maker: Expr = item.maker
    if maker.kind != "call":
        rewrite.replace(Span(maker.end, maker.end), "(frozen=True)")
        return
    given = maker.keyword("frozen")
    if given is None:
        add_keyword(rewrite, rewrite.tree.find(maker.span, cst.Call), "frozen", "True")
    elif given.kind == "const":
        rewrite.replace(given.span, "True")
    else:
        place = Place(item.made.file.path, given.span)
        raise LeftAlone(place, f"`frozen` of `{item.made.name}` comes from elsewhere")
