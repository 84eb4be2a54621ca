"""An op without ``infer_output_meta_fn``: tracing takes its outputs to be like its inputs."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.magi.given import Meta
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.outputs import Difference, difference
from opschema_rules.magi.rules.meta import is_judged, may_be_one
from opschema_rules.magi.signature import Leaf


@rule("MAG322", "identity-meta")
def identity_meta(op: MagiOp) -> Iterator[Diagnostic]:
    """An op whose output has another shape or type than its first tensor, without a meta function that says so.

    Without `infer_output_meta_fn`, and with a list of names, tracing assumes that the outputs are tensors like those
    parameters. If the body returns a sum, a matrix product or a comparison of such a tensor, the compiled program computes
    with the wrong shape or type, without an error. Only plain expressions in `return` are checked. A matrix product, `cat`,
    `view`, `argsort`, `==` and similar may keep both: they are a warning, and not reported if a list names the tensor.

    Bad:

    ```python
    @magi_register_custom_op("kit::total")
    def total(x: Tensor) -> Tensor:
        return x.sum()
    ```

    Bad:

    ```python
    @magi_register_custom_op("kit::product")
    def product(a: Tensor, b: Tensor) -> Tensor:
        return a @ b
    ```

    Good:

    ```python
    def product_meta(a, b):
        return a.new_empty(a.shape[0], b.shape[1])


    @magi_register_custom_op("kit::product", infer_output_meta_fn=product_meta)
    def product(a: Tensor, b: Tensor) -> Tensor:
        return a @ b


    @magi_register_custom_op("kit::square", infer_output_meta_fn=["a"])
    def square(a: Tensor, b: Tensor) -> Tensor:
        return a @ b


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, y: Tensor) -> Tensor:
        return x * y.sum()
    ```
    """
    meta = op.meta
    if not is_judged(op) or not isinstance(meta, Meta) or meta.kind not in ("identity", "names"):
        return
    likes = likes_of(op, meta)
    for found in difference(op, likes) if likes else ():
        if found.sure or meta.kind == "identity":
            yield _unlike(op, meta, found)


def likes_of(op: MagiOp, meta: Meta) -> list[Leaf]:
    """Return the tensors that the outputs are assumed to match; empty if that is not known."""
    count = op.output_count
    if meta.kind == "names":
        named = [op.lowering.leaf(item.name) for item in meta.names]
        found = [leaf for leaf in named if leaf is not None]
    else:
        found = []
        for leaf in op.lowering.leaves:
            if may_be_one(leaf) and not leaf.is_tensor:
                break
            found += [leaf] if leaf.is_tensor else []
        found = found[: count or 0]
    return found if count is not None and len(found) == count else []


def _unlike(op: MagiOp, meta: Meta, found: Difference) -> Diagnostic:
    how = "by this list" if meta.kind == "names" else "without `infer_output_meta_fn`"
    place = meta.written.place if meta.written is not None and meta.kind == "names" else op.registration.place
    return Diagnostic(
        f"`{op.function_name}()` returns {found.words}, and {how} tracing takes it for one like `{found.like.lowered}`",
        found.place,
        (Related(place, "taken to be like its input"),),
        ops=(op.title,),
        severity=Severity.ERROR if found.sure else Severity.WARNING,
    )
