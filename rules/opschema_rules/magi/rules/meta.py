"""``infer_output_meta_fn``: the outputs that tracing assumes, against the op's results."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.namespaces import postponed
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.text import Edit, Span
from opschema_cli.suggestions import near_names
from opschema_rules.magi.given import Meta, Named
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.reporting import (
    is_plain,
    is_refused,
    is_sound,
    lowers,
    registered,
)
from opschema_rules.magi.rules.results import returned_misfits
from opschema_rules.magi.signature import Branch, Leaf
from opschema_rules.magi.usage import is_called_to_fail, is_never_traced


def is_judged(op: MagiOp) -> bool:
    """Whether the op is registered, its signature known, and nothing shows that it is never traced: then its meta function runs."""
    return (
        is_sound(op)
        and not is_refused(op)
        and op.lowering.complete
        and not is_called_to_fail(op)
        and not is_never_traced(op)
    )


@rule("MAG320", "meta-name", fixable="safe", proof=CALLS)
def meta_name(op: MagiOp) -> Iterator[Diagnostic]:
    """A list in `infer_output_meta_fn` with a name that is not a tensor parameter.

    `infer_output_meta_fn=["x"]` says that the output is like the tensor `x`. Names are those of the lowered signature: the
    tensor `w` in the dataclass `config` is `config__w`. Any other name raises when the op is traced, that is, only under
    `torch.compile`.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        w: Tensor
        scale: float


    @magi_register_custom_op("kit::scale", infer_output_meta_fn=["config"])
    def scale(config: Config) -> Tensor:
        return config.w * config.scale
    ```

    Bad:

    ```python
    @magi_register_custom_op("kit::scale", infer_output_meta_fn=["factor"])
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        w: Tensor
        scale: float


    @magi_register_custom_op("kit::scale", infer_output_meta_fn=["config__w"])
    def scale(config: Config, bias: Optional[Tensor] = None) -> Tensor:
        return config.w * config.scale
    ```
    """
    meta = op.meta
    if is_judged(op) and isinstance(meta, Meta):
        for item in meta.names:
            leaf = op.lowering.leaf(item.name)
            if leaf is None or not leaf.may_be_tensor:
                yield _misnamed(op, item, leaf)


def _misnamed(op: MagiOp, item: Named, leaf: Leaf | None) -> Diagnostic:
    node = op.lowering.node(item.name)
    function = op.body.function
    names = quoted(op.lowering.tensors) or "none"
    reason = "is not a parameter of the op"
    place = op.body.at(function.span) if function is not None else op.registration.place
    if isinstance(node, Branch):
        reason, place = f"is the dataclass `{node.dataclass.name}`, no tensor", node.place
    elif leaf is not None:
        reason, place = f"is not a tensor, but `{leaf.lowered_type}`", leaf.place
    return Diagnostic(
        f"`{item.name}` {reason}, and tracing the op raises; its tensors are {names}",
        item.place,
        (Related(place, "the op's parameters" if node is None and leaf is None else "the parameter"),),
        _renaming(op, item, node),
        (op.title,),
    )


def _renaming(op: MagiOp, item: Named, node: object) -> Fix | None:
    tensors = [leaf for leaf in op.lowering.leaves if leaf.is_tensor]
    path = item.name.split(".")
    found = [leaf.lowered for leaf in tensors if list(leaf.path) == path]
    if isinstance(node, Branch):
        found = [leaf.lowered for leaf in tensors if leaf.path[0] == item.name]
    elif not found and len(path) == 1:
        found = [leaf.lowered for leaf in tensors if len(leaf.path) > 1 and leaf.name == item.name]
    source = op.tree.project.source(item.place.path)
    if source is None:
        return None
    start, end = item.place.span
    written = source.text[start:end]
    quote = written[:1]
    if written != f"{quote}{item.name}{quote}" or quote not in "'\"":
        return None
    if len(found) == 1:
        return _renamed(item, found[0], quote)
    close = near_names(item.name, op.lowering.tensors, 1, 0.8)
    fix = _renamed(item, close[0], quote) if close else None
    why = "another parameter may be meant"
    return Fix(fix.title, fix.edits, "unsafe", why) if fix is not None else None


def _renamed(item: Named, name: str, quote: str) -> Fix:
    return Fix(f"name `{name}`", (FileEdit(item.place.path, Edit(item.place.span, f"{quote}{name}{quote}")),))


@rule("MAG321", "meta-count", fixable="safe", proof=CALLS)
def meta_count(op: MagiOp) -> Iterator[Diagnostic]:
    """A meta function that returns another number of outputs than the op.

    A list of one name makes one tensor, a list of several names a tuple. Without `infer_output_meta_fn` the outputs are
    like the first tensors among the op's parameters, as many as the return annotation's tuple has; those in its dataclasses
    count. An op that returns `None`, a number, a list or a tuple of one needs a function. So does, before commit e68e0b0,
    one that returns a tuple in a module whose annotations are strings (`from __future__ import annotations`): its tuple is
    not recognised. A tuple instead of the list is treated as a function, and called. All of this raises only when the op is
    traced, with messages that do not say why.

    Bad:

    ```python
    @magi_register_custom_op("kit::split", infer_output_meta_fn=["x"])
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2
    ```

    Bad (a function):

    ```python
    def split_meta(x):
        return torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)


    @magi_register_custom_op("kit::split", infer_output_meta_fn=split_meta)
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2
    ```

    Bad (a tuple):

    ```python
    @magi_register_custom_op("kit::double", infer_output_meta_fn=("x",))
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```

    Bad (too few tensors):

    ```python
    @magi_register_custom_op("kit::split")
    def split(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2
    ```

    Bad (no `infer_output_meta_fn`, before e68e0b0):

    ```toml
    [magi]
    magi = "plain"
    ```

    ```python
    @magi_register_custom_op("kit::clear", mutates_args=("x",))
    def clear(x: Tensor) -> None:
        x.zero_()
    ```

    Good (the tensors are in the dataclass):

    ```python
    @dataclass(frozen=True)
    class Pair:
        left: Tensor
        right: Tensor


    @magi_register_custom_op("kit::swap")
    def swap(pair: Pair) -> tuple[Tensor, Tensor]:
        return pair.right.clone(), pair.left.clone()


    @magi_register_custom_op("kit::both", infer_output_meta_fn=["pair__left", "pair__left"])
    def both(pair: Pair) -> list[Tensor]:
        return [pair.left + 1, pair.left + 2]
    ```
    """
    meta, wanted = op.meta, _Outputs.of(op)
    if not is_judged(op) or not isinstance(meta, Meta) or wanted is None:
        return
    if meta.kind == "other" and meta.written is not None:
        yield _no_function(op, meta)
    elif meta.kind == "names" and meta.written is not None and not wanted.takes(len(meta.names)):
        made = "one tensor" if len(meta.names) == 1 else f"a tuple of {len(meta.names)}"
        message = f"this list makes {made}, and `{op.function_name}()` returns {wanted}: tracing it raises"
        yield Diagnostic(message, meta.written.place, _returned(op), ops=(op.title,))
    elif meta.kind == "identity":
        yield from _identity(op, wanted)
    else:
        yield from returned_misfits(op, "the fake", f"the meta function of `{op.title}`")


class _Outputs:
    """The outputs of an op: ``count`` values in a tuple, None if it is not a tuple; ``kind`` names its type."""

    def __init__(self, kind: str, count: int | None = None) -> None:
        self.kind = kind
        self.count = count

    @classmethod
    def of(cls, op: MagiOp) -> _Outputs | None:
        """The outputs that the annotation declares; None when they are not known."""
        form = op.returns
        if form is None or not form.is_known or form.kind == "text":
            return None
        if form.kind == "none":
            return cls("nothing")
        if form.is_tensor:
            return cls("one tensor")
        if form.kind == "generic" and form.name == "tuple":
            fixed = all(item.kind != "ellipsis" for item in form.args)
            return cls(f"a tuple of {len(form.args)}", len(form.args)) if fixed else None
        if form.kind == "generic" and form.name in ("list", "collections.abc.Sequence"):
            return cls("a list")
        return cls(f"`{form}`") if form.kind == "name" and form.name in ("int", "float", "bool") else None

    def takes(self, count: int) -> bool:
        """Whether a meta may make that many outputs: of one a tensor, of others a tuple."""
        if count == 1:
            return self.kind == "one tensor"
        return self.count == count or self.kind == "a list"

    def __str__(self) -> str:
        return self.kind


def _no_function(op: MagiOp, meta: Meta) -> Diagnostic:
    assert meta.written is not None
    text = meta.written.body.file.text(meta.written.expr)
    message = f"`{text}` is not a list of names, so it is called as a function: tracing `{op.function_name}()` raises"
    return Diagnostic(message, meta.written.place, registered(op), _listing(meta.written, text), (op.title,))


def _listing(written: Written, text: str) -> Fix | None:
    """The list for a tuple in parentheses, or for a string."""
    whole, place = written.body.file.source.text, written.place
    start, end = place.span
    if written.expr.kind == "const" and isinstance(written.expr.value, str):
        edit = Edit(place.span, f"[{text}]")
    elif (
        written.expr.kind == "tuple" and written.expr.items and whole[start - 1 : start] + whole[end : end + 1] == "()"
    ):
        inner = text.rstrip().removesuffix(",") if len(written.expr.items) == 1 else text
        edit = Edit(Span(start - 1, end + 1), f"[{inner}]")
    else:
        return None
    return Fix("make it a list", (FileEdit(place.path, edit),))


def _identity(op: MagiOp, wanted: _Outputs) -> Iterator[Diagnostic]:
    seen = 1 if wanted.count is None or _hides_tuple(op) else wanted.count
    tensors = [leaf for leaf in op.lowering.leaves if may_be_one(leaf)]
    function = op.body.function
    place = function.returns.span if function is not None and function.returns is not None else None
    if not (is_plain(op) or lowers(op)) and wanted.count is not None and seen != wanted.count:
        return
    reason = ""
    if len(tensors) < seen:
        reason = f"takes {len(tensors) or 'no'} tensor{'s' * (len(tensors) != 1)} to be like"
    elif not wanted.takes(seen):
        hidden = wanted.count is not None and seen != wanted.count
        reason = (
            "has its annotation as a string, so that one tensor is made"
            if hidden
            else "is taken to return one like its first tensor"
        )
    if reason and place is not None:
        message = (
            f"`{op.function_name}()` returns {wanted} and {reason}: tracing it raises; give `infer_output_meta_fn`"
        )
        yield Diagnostic(message, op.body.at(place), registered(op), ops=(op.title,))


def _hides_tuple(op: MagiOp) -> bool:
    """Whether the return annotation is a string where the decorator reads it: it is resolved only when the signature is lowered."""
    function = op.body.function
    quoted_ = function is not None and function.returns is not None and isinstance(function.returns.value, str)
    return is_plain(op) and (quoted_ or postponed(op.body.file))


def may_be_one(leaf: Leaf) -> bool:
    """Whether a lowered parameter may be a single tensor, and not a list."""
    form = leaf.lowered_type
    parts = (form, *form.args) if form is not None and form.kind == "union" else (form,)
    return any(item is None or item.is_tensor or item.kind in ("unresolved", "text") for item in parts)


def _returned(op: MagiOp) -> tuple[Related, ...]:
    function = op.body.function
    if function is None or function.returns is None:
        return registered(op)
    return (Related(op.body.at(function.returns), "its return type"),)
