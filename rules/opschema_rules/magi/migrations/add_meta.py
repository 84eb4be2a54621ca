"""`add-meta`: the inputs that an op's outputs are like, named for its fake, or a function that computes the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.arguments import add_keyword
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.python import Expr
from opschema_rules.magi.given import Meta
from opschema_rules.magi.migrations.computed_meta import computed_meta
from opschema_rules.magi.migrations.mirrors import Mirrors
from opschema_rules.magi.migrations.scopes import OPS
from opschema_rules.magi.migrations.trees import meant_ops, registering_call, tree_of
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.proofs import FAKES
from opschema_rules.magi.registrations import Written

_ARGUMENT = "infer_output_meta_fn"


class AddMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``explicit=true`` also names the inputs if the default is the same."""

    explicit: bool = False


class _Added(msgspec.Struct, frozen=True):
    """An op, and the code of the argument that is added: names of tensors that its outputs are like, or a function."""

    op: MagiOp
    code: str


def find(draft: Draft, options: AddMeta) -> Iterator[Site]:
    """The ops without a meta function whose outputs are each like one of their tensors."""
    tree = tree_of(draft)
    for op in meant_ops(tree) if tree is not None else ():
        found = _added(op, options.explicit)
        if found is not None:
            title = f"add `{_ARGUMENT}={found.code}` to `{op.title}`"
            yield Site(op.place, title, (op.title,), ("MAG322",), found)


def _added(op: MagiOp, explicit: bool) -> _Added | None:
    lowering = op.lowering
    if not op.is_plain or not lowering.complete or lowering.problems or not _lacks_meta(op):
        return None
    leaves = Mirrors(op).outputs()
    if leaves is None:
        computed = computed_meta(op)
        return _Added(op, computed) if computed is not None else None
    taken = [leaf for leaf in lowering.leaves if leaf.may_be_tensor][: len(leaves)]
    same = len(taken) == len(leaves) and all(one is other for one, other in zip(taken, leaves, strict=True))
    quoted = ", ".join(f'"{leaf.lowered}"' for leaf in leaves)
    return _Added(op, f"[{quoted}]") if explicit or not same else None


def _lacks_meta(op: MagiOp) -> bool:
    """Whether the decorator is called by its own name, and without a meta function."""
    registration = op.registration
    span = registering_call(registration)
    calls = [registration.call, *registration.call.items[:1]]
    call = next((item for item in calls if item.span == span), None)
    direct = call is not None and op.tree.registrations.is_registrar(registration.outer, call.callee)
    return direct and isinstance(op.meta, Meta) and op.meta.kind == "identity"


@migration(
    "add-meta",
    find=find,
    options=AddMeta,
    scope=OPS,
    settled="every op has a meta function, or none is known that is right for it",
    proof=FAKES,
)
def add_meta(draft: Draft, sites: Sequence[Site], options: AddMeta) -> Iterator[Note]:
    """Add `infer_output_meta_fn` to ops whose outputs provably differ from the default.

    Without a meta function, the fake outputs of an op are like its first tensors. If the op returns something like another
    of its tensors, that is silently wrong under `torch.compile`. The migration names the right ones, by their lowered names
    (`cfg__w`), where every `return` provably gives a new tensor with the shape, strides, type and device of one input:

    - `torch.empty_like(x)` and its kin, `x.clone()`, `-x`, `torch.relu(x)`, `F.silu(x)` and the like, and locals that hold one;
    - arithmetic with Python numbers, and functions such as `torch.exp()`, where `.to(x.dtype)` gives the type back: of
      integers `x * 0.5` is of another type.

    Where `identity-meta` reports an op whose body only returns one expression, such as `a @ b` or `x.sum(-1)`, that expression
    becomes the meta function: `infer_output_meta_fn=lambda a, b: a @ b`. It has to be made of parameters, constants and functions
    of torch whose shape does not depend on values.

    Everything else is left unchanged, without a note: other tensors may be broadcast, and what other functions return is
    not known. With `-o explicit=true` the inputs are also named if the default is the same.

        opschema migrate add-meta
        opschema migrate add-meta -o explicit=true
    """
    workbench = Workbench(draft)
    for site in sites:
        assert isinstance(site.subject, _Added)
        try:
            with workbench.atomic():
                _add(workbench, site.subject)
        except LeftAlone as found:
            yield from left(site, found)
    workbench.commit()


def _add(workbench: Workbench, found: _Added) -> None:
    registration = found.op.registration
    span = registering_call(registration)
    assert span is not None
    written = found.op.argument(_ARGUMENT)
    with workbench.on(registration.outer.file.path) as rewrite:
        if isinstance(written, Written):
            _replace(workbench, found, written.expr)
        else:
            add_keyword(rewrite, rewrite.tree.find(span, cst.Call), _ARGUMENT, found.code)


def _replace(workbench: Workbench, found: _Added, value: Expr) -> None:
    path = found.op.registration.outer.file.path
    if value.kind != "const":
        raise LeftAlone(found.op.registration.outer.at(value), f"`{_ARGUMENT}` is None by another name")
    with workbench.on(path) as rewrite:
        rewrite.replace(value.span, found.code)
