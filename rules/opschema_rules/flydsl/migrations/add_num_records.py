"""`add-num-records`: proposes byte counts for descriptors whose size does not follow the tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import position
from opschema_cli.migrate.migration import NoMigrationOptions, Note, Site, migration
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ValueRef
from opschema_cli.source.text import Place
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.migrations.call_paths import Unproved
from opschema_rules.flydsl.migrations.extents import Layout, layouts
from opschema_rules.flydsl.migrations.references import References
from opschema_rules.flydsl.migrations.scopes import TREE
from opschema_rules.flydsl.migrations.trees import tree_of
from opschema_rules.flydsl.model import Descriptor, FlyTree


def find(draft: Draft, options: NoMigrationOptions) -> Iterator[Site]:
    """Yield the descriptors with `max_size=False` and no byte count, for a FlyDSL whose key does not contain shapes."""
    tree = tree_of(draft)
    if tree is None or not tree.contract.surely(Era.BAKED):
        return
    for found in tree.descriptors:
        size = found.max_size
        if size is None or size.kind != "const" or size.value is not False or found.num_records is not None:
            continue
        hidden = any(word in ("*", "**") for word in found.expr.keywords)
        if not hidden and not expects_failure(tree.bodies, found.body, found.expr.start):
            around = tree.around(found.body)
            ops = (around.title,) if around is not None else ()
            yield Site(found.body.at(size), f"give `{found.api}` a byte count", ops, ("FLY201",), found)


@migration(
    "add-num-records",
    find=find,
    scope=TREE,
    settled="no buffer descriptor is known to need a byte count",
    proof=proofs.NOTHING,
)
def add_num_records(draft: Draft, sites: Sequence[Site], options: NoMigrationOptions) -> Iterator[Note]:
    """List the buffer descriptors that need a byte count, and propose one. Nothing is written.

    Up to FlyDSL 0.1.8 the shape of a tensor is a constant of the compiled code, but not part of the compile cache key. With
    `max_size=False` and without `num_records_bytes`, a descriptor of `make_buffer_tensor` is as long as the tensor of the
    first call: with the next, longer one the kernel reads zeros and loses stores. One of `create_buffer_resource` is 4 GiB
    long: nothing stops the kernel behind the tensor.

    Which bytes a kernel may access cannot be derived. The note proposes

    - the extents times the size of an element, where every call leads to a tensor that torch makes with them, and their names mean
      the same in the kernel;
    - the same in the names of the place where it is created, if the kernel does not have them: pass their values;
    - otherwise a description, with the reason why nothing is proposed.
    """
    tree = tree_of(draft)
    assert tree is not None
    references = References(draft, tree)
    for site in sites:
        assert isinstance(site.subject, Descriptor)
        proposal = _proposal(draft, references, site.subject)
        yield Note(site.place, f"{site.title} by hand: {proposal}", leaves_site=True)


def _proposal(draft: Draft, references: References, found: Descriptor) -> str:
    """Return the value to pass, as text."""
    if not found.takes_bytes:
        return "it takes none in this FlyDSL; leave `max_size=False` out, or have each caller mark its layout dynamic"
    tensor = _text(found.body, found.tensor) if found.tensor is not None else "the tensor"
    try:
        known = list(layouts(references, found))
    except Unproved as unproved:
        at = _line(draft, unproved.place)
        return f"`num_records_bytes=` the elements of `{tensor}` times their size; {unproved.reason} ({at})"
    texts = dict.fromkeys(_bytes(layout) for layout in known)
    shown = next(iter(texts), "")
    body, first = known[0].extents[0]
    if len(texts) == 1 and all(_means_same(references.tree, found.body, *item) for item in known[0].extents):
        return f"`num_records_bytes={shown}`, as `{tensor}` has where it is made ({_line(draft, body.at(first))})"
    made = "; ".join(f"`{_bytes(item)}` ({_line(draft, item.extents[0][0].at(item.extents[0][1]))})" for item in known)
    return f"`num_records_bytes=` what `{tensor}` has where it is made, in the names there: {made}"


def _bytes(layout: Layout) -> str:
    factors = [_factor(body, item) for body, item in layout.extents]
    return " * ".join([*factors, str(layout.bits // 8) if layout.bits else "BYTES_OF_AN_ELEMENT"])


def _factor(body: Body, expr: Expr) -> str:
    text = _text(body, expr)
    return text if expr.kind in ("name", "const", "call") else f"({text})"


def _text(body: Body, expr: Expr) -> str:
    return " ".join(body.file.text(expr).split())


def _means_same(tree: FlyTree, kernel: Body, body: Body, expr: Expr) -> bool:
    """Whether the names in an expression have the same meaning in the kernel as where the expression is written."""
    for item in expr.walk():
        if item.kind == "name":
            here, there = (tree.bodies.resolve(found, item.text) for found in (kernel, body))
            same = isinstance(here, ValueRef) and isinstance(there, ValueRef) and here.assign is there.assign
            if not same or kernel.binder(item.text) is not body.binder(item.text):
                return False
    return True


def _line(draft: Draft, place: Place) -> str:
    return f"{place.path}:{position(draft, place).line}"
