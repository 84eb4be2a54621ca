"""`drop-num-records`: removes byte counts of descriptors that equal the size of the layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from opschema_cli.migrate.codemods.calls import drop_argument
from opschema_cli.migrate.codemods.names import drop_local
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import occurrences
from opschema_cli.migrate.migration import NoMigrationOptions, Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Place, Span
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.contract import UNKNOWN
from opschema_rules.flydsl.migrations.call_paths import Unproved
from opschema_rules.flydsl.migrations.extents import Sized, sizes
from opschema_rules.flydsl.migrations.references import References
from opschema_rules.flydsl.migrations.scopes import TREE
from opschema_rules.flydsl.migrations.trees import tree_of
from opschema_rules.flydsl.model import Descriptor, FlyTree

_KEYWORD = "num_records_bytes"
_BYTES = (1, 2, 4, 8)
MAX_BYTES = 2**31 - 1
"""The largest byte count that fits in 32 bits."""

_CONVERSIONS = ("Int32", "Int64", "Index")


def find(draft: Draft, options: NoMigrationOptions) -> Iterator[Site]:
    """Yield the calls of `make_buffer_tensor` with `max_size=False` and a byte count."""
    tree = tree_of(draft)
    for found in tree.descriptors if tree is not None else ():
        size = found.max_size
        exact = size is not None and size.kind == "const" and size.value is False
        if found.api == "make_buffer_tensor" and exact and found.num_records is not None:
            around = tree.around(found.body) if tree is not None else None
            ops = (around.title,) if around is not None else ()
            yield Site(found.body.at(found.num_records), f"drop `{_KEYWORD}`", ops, (), found)


@migration(
    "drop-num-records",
    find=find,
    scope=TREE,
    settled="no buffer descriptor is known to have a byte count that the layout gives anyway",
    proof=proofs.BYTES,
)
def drop_num_records(draft: Draft, sites: Sequence[Site], options: NoMigrationOptions) -> Iterator[Note]:
    """Drop the byte counts of buffer descriptors that equal the size of the layout.

    `make_buffer_tensor(t, max_size=False)` without `num_records_bytes` takes the size from the layout of `t`. Where that is
    dynamic, or part of the compile cache's key, a byte count that says the same is noise.

    The count is dropped if it is certainly the same: `t` is followed through helpers, kernels and launchers to where torch
    creates it, or to the layout of a view of it, and on each path of calls the count must be the product of its extents and
    the size of an element. If only the elements can be counted, the count must be 1, 2, 4 or 8 bytes for each. A local that
    only held the count is removed too.

    A call is left unchanged, with a note,

    - where a path cannot be followed, or the count says something else: a descriptor may be meant to end before the tensor;
    - where the count is computed with 64 bits at run time, or is no less than 2 GiB: the sizes of a layout may have 32;
    - where the size would be a constant of the compiled code and not part of its key: FlyDSL up to 0.1.8, unless each
      caller marks the tensor `mark_layout_dynamic`;
    - where the tree's own `make_buffer_tensor` refuses to take the size from a constant layout.

    This migration does not change `create_buffer_resource`: it takes no size from a dynamic layout, and describes 4 GiB
    instead. Comments above a call that still mention `num_records_bytes` are reported as notes.
    """
    tree = tree_of(draft)
    assert tree is not None
    bench, references = Workbench(draft), References(draft, tree)
    comments: dict[Place, None] = {}
    for site in sites:
        assert isinstance(site.subject, Descriptor)
        try:
            _check(references, site.subject)
            with bench.on(site.place.path) as rewrite:
                comments.update(dict.fromkeys(_drop(rewrite, site.subject)))
        except LeftAlone as found:
            yield from left(site, found)
    bench.commit()
    since = draft.revision
    draft.settle()
    for place in comments:
        yield Note(draft.forward(place, since), f"this comment still mentions the removed `{_KEYWORD}`")


def _check(references: References, found: Descriptor) -> None:
    """Check that the layout gives the same number of bytes.

    Raises:
        LeftAlone: it may not.
    """
    assert found.num_records is not None
    tree = references.tree
    place = found.body.at(found.num_records)
    if tree.contract == UNKNOWN:
        raise LeftAlone(
            place, "it is not known for which FlyDSL the kernels are; set `version` in `[tool.opschema.flydsl]`"
        )
    try:
        for sized in sizes(references, found):
            _check_one(tree, place, sized)
    except Unproved as unproved:
        raise LeftAlone(unproved.place, unproved.reason) from None


def _check_one(tree: FlyTree, place: Place, sized: Sized) -> None:
    layout = sized.layout
    ratio = sized.given.ratio(layout.elements)
    fits = ratio * 8 == layout.bits if ratio is not None and layout.bits else ratio in _BYTES
    if not fits:
        raise LeftAlone(place, "the count may differ from the tensor's elements times their size")
    if sized.wide or (sized.given.value or 0) > MAX_BYTES:
        reason = "the count has 64 bits: the size from the layout may be computed in 32 bits and overflow"
        raise LeftAlone(place, reason)
    if layout.baked:
        reason = "without it the size would be a constant of the compiled code, whose key has no shape"
        raise LeftAlone(place, reason)
    if layout.constant and _refuses_constants(tree):
        raise LeftAlone(place, "`make_buffer_tensor` rejects a constant layout as the size here")


def _refuses_constants(tree: FlyTree) -> bool:
    """Whether the tree's own FlyDSL has the guard that existed for two days in May 2026."""
    own = tree.answers.definition("make_buffer_tensor")
    return own is not None and "raise ValueError" in own.file.text(own.function.outer)


def _drop(rewrite: Rewrite, found: Descriptor) -> Iterator[Place]:
    """Remove the argument, and the local variable that it was; yield the comments that mention it."""
    tree = rewrite.tree
    call = tree.find(found.expr.span, cst.Call)
    value = found.num_records
    drop_argument(rewrite, call, _KEYWORD)
    function = tree.enclosing(call, cst.FunctionDef)
    if value is not None and value.kind == "name" and function is not None:
        try:
            with rewrite.all_or_nothing():
                drop_local(rewrite, function, value.text, _CONVERSIONS)
        except Refused:
            pass
    yield from _comments(tree, found.body.file.path, call)


def _comments(tree: PythonTree, path: str, call: cst.Call) -> Iterator[Place]:
    """Yield the comments directly above a statement that mention the argument."""
    statement = tree.statement(call)
    top, line = tree.top(statement), tree.line_start(tree.span(statement).start)
    text = tree.text[top:line]
    if any(occurrences(text, _KEYWORD)):
        start = top + len(text) - len(text.lstrip())
        yield Place(path, Span(start, top + len(text.rstrip())))
