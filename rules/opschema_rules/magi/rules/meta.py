"""``infer_output_meta_fn``: what tracing takes for the op's outputs, against what it returns."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace as with_fields

from opschema_cli.evaluation.namespaces import postponed
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_cli.source.text import Edit, Span
from opschema_cli.suggestions import near_names
from opschema_rules.magi.as_torch import as_operator
from opschema_rules.magi.given import Lambda, Meta, Named
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.outputs import Difference, difference
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.reporting import (
    by_keyword,
    defined,
    is_known,
    is_plain,
    is_refused,
    is_sound,
    lowers,
    registered,
)
from opschema_rules.magi.signature import Branch, Leaf
from opschema_rules.magi.usage import is_called_to_fail, is_never_traced
from opschema_rules.torchlib.rules.signatures import fake_signature


def _is_judged(op: MagiOp) -> bool:
    """Whether the op is registered, its signature known, and nothing tells that it is never traced: then its meta function runs."""
    return (
        is_sound(op)
        and not is_refused(op)
        and op.lowering.complete
        and not is_called_to_fail(op)
        and not is_never_traced(op)
    )


@rule("MAG320", "meta-name", fixable="safe", proof=CALLS)
def meta_name(op: MagiOp) -> Iterator[Diagnostic]:
    """A list in `infer_output_meta_fn` that names what is no tensor parameter.

    `infer_output_meta_fn=["x"]` says that the output is like the tensor `x`. Names are those of the lowered signature:
    the tensor `w` in the dataclass `config` is `config__w`. Another name raises when the op is traced, so under
    `torch.compile` only.

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
    if _is_judged(op) and isinstance(meta, Meta):
        for item in meta.names:
            leaf = op.lowering.leaf(item.name)
            if leaf is None or not leaf.may_be_tensor:
                yield _misnamed(op, item, leaf)


def _misnamed(op: MagiOp, item: Named, leaf: Leaf | None) -> Diagnostic:
    node = op.lowering.node(item.name)
    function = op.body.function
    names = quoted(op.lowering.tensors) or "none"
    reason = "is no parameter of the op"
    place = op.body.at(function.span) if function is not None else op.registration.place
    if isinstance(node, Branch):
        reason, place = f"is the dataclass `{node.dataclass.name}`, no tensor", node.place
    elif leaf is not None:
        reason, place = f"is no tensor, but `{leaf.lowered_type}`", leaf.place
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
    """A meta that makes another number of outputs than the op returns.

    A list of one name makes one tensor, one of several a tuple of as many. Without `infer_output_meta_fn` the outputs
    are like the first tensors among the op's parameters, as many as the return annotation's tuple has; those in its
    dataclasses count. An op that returns `None`, a number, a list or a tuple of one needs a function. So does, before
    commit e68e0b0, one that returns a tuple in a module whose annotations are strings (`from __future__ import
    annotations`): its tuple is not seen. A tuple for the list is taken for a function, and called. All of it raises
    when the op is traced only, with words that do not say why.

    Bad:

    ```python
    @magi_register_custom_op("kit::split", infer_output_meta_fn=["x"])
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

    Bad (nothing, before e68e0b0):

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
    if not _is_judged(op) or not isinstance(meta, Meta) or wanted is None:
        return
    if meta.kind == "other" and meta.written is not None:
        yield _no_function(op, meta)
    elif meta.kind == "names" and meta.written is not None and not wanted.takes(len(meta.names)):
        made = "one tensor" if len(meta.names) == 1 else f"a tuple of {len(meta.names)}"
        message = f"this list makes {made}, and `{op.function_name}()` returns {wanted}: tracing it raises"
        yield Diagnostic(message, meta.written.place, _returned(op), ops=(op.title,))
    elif meta.kind == "identity":
        yield from _identity(op, wanted)


class _Outputs:
    """The outputs of an op: ``count`` values in a tuple, None if it is no tuple; ``kind`` names its type."""

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
    message = f"`{text}` is no list of names, so it is called as a function: tracing `{op.function_name}()` raises"
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
    tensors = [leaf for leaf in op.lowering.leaves if _may_be_one(leaf)]
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


def _may_be_one(leaf: Leaf) -> bool:
    """Whether a lowered parameter may be a tensor, no list of them."""
    form = leaf.lowered_type
    parts = (form, *form.args) if form is not None and form.kind == "union" else (form,)
    return any(item is None or item.is_tensor or item.kind in ("unresolved", "text") for item in parts)


def _returned(op: MagiOp) -> tuple[Related, ...]:
    function = op.body.function
    if function is None or function.returns is None:
        return registered(op)
    return (Related(op.body.at(function.returns), "what it returns"),)


@rule("MAG322", "identity-meta")
def identity_meta(op: MagiOp) -> Iterator[Diagnostic]:
    """An op that returns another shape or type than that of its first tensor, and says nothing of it.

    Without `infer_output_meta_fn`, and with a list of names, tracing takes the outputs for tensors like those
    parameters. Where the body returns a sum, a product of matrices or a comparison, the compiled program computes with
    the wrong shape, without an error. Only what a `return` plainly says is looked at. A product of matrices, `cat`,
    `view` and their like may happen to keep the shape: they are a warning, and none where a list names the tensor.

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
    if not _is_judged(op) or not isinstance(meta, Meta) or meta.kind not in ("identity", "names"):
        return
    likes = _likes(op, meta)
    for found in difference(op, likes) if likes else ():
        if found.sure or meta.kind == "identity":
            yield _unlike(op, meta, found)


def _likes(op: MagiOp, meta: Meta) -> list[Leaf]:
    """The tensors that the outputs are taken to be like; none when that is not known."""
    count = op.output_count
    if meta.kind == "names":
        named = [op.lowering.leaf(item.name) for item in meta.names]
        found = [leaf for leaf in named if leaf is not None]
    else:
        found = []
        for leaf in op.lowering.leaves:
            if _may_be_one(leaf) and not leaf.is_tensor:
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


@rule("MAG323", "meta-signature", fixable="safe", proof=CALLS)
def meta_signature(op: MagiOp) -> Iterator[Diagnostic]:
    """A meta function that does not take what it is given.

    Where no parameter of the op is a dataclass, torch calls the meta function like a fake: by place, without the
    arguments at the end that equal their defaults; its names do not matter, order and defaults do. With a dataclass it
    is called by name, with every original parameter of the op: the names have to be the same.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def scale_meta(a, options):
        return torch.empty_like(a)


    @magi_register_custom_op("kit::scale", infer_output_meta_fn=scale_meta)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Bad (no default, where the op has one):

    ```python
    def shift_meta(x, by):
        return torch.empty_like(x)


    @magi_register_custom_op("kit::shift", infer_output_meta_fn=shift_meta)
    def shift(x: Tensor, by: float = 1.0) -> Tensor:
        return x + by
    ```

    Bad:

    ```python
    @magi_register_custom_op("kit::pad", infer_output_meta_fn=lambda x: torch.empty_like(x))
    def pad(x: Tensor, size: int) -> Tensor:
        return x + size
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def scale_meta(config, x, **more):
        return torch.empty_like(x)


    @magi_register_custom_op("kit::scale", infer_output_meta_fn=scale_meta)
    def scale(x: Tensor, config: Config, bias: float = 0.0) -> Tensor:
        return x * config.scale + bias


    @magi_register_custom_op("kit::pad", infer_output_meta_fn=lambda input, n: torch.empty_like(input))
    def pad(x: Tensor, size: int) -> Tensor:
        return x + size
    ```
    """
    meta = op.meta
    if not _is_judged(op) or not isinstance(meta, Meta) or meta.function is None or not is_known(op):
        return
    if isinstance(meta.function, Lambda):
        yield from _lambda(op, meta.function)
    elif by_keyword(op):
        yield from _named(op, meta.function)
    else:
        operator = as_operator(op)
        if operator is not None:
            for found in fake_signature(operator):
                yield with_fields(found, message=_worded(found.message))


def _worded(message: str) -> str:
    """A message of torch's rule in the words of this decorator."""
    words = {
        "the fake of": "the meta function of", "which the schema passes": "which is passed",
        "where the schema passes": "where the op passes", "the schema's default": "the op's default",
        "and the schema passes it": "and is passed",
    }  # fmt: skip
    for old, new in words.items():
        message = message.replace(old, new)
    return message


def _named(op: MagiOp, function: Body) -> Iterator[Diagnostic]:
    names = [item.name for item in op.params]
    taken = {item.name for item in function.params if item.kind in ("normal", "kwonly")}
    open_end = any(item.kind == "kwarg" for item in function.params)
    lost = [] if open_end else [name for name in names if name not in taken]
    more = [item for item in function.params if item.by_name and item.default is None and not _is_passed(item, names)]
    if (lost or more) and function.function is not None:
        told = [f"requires {quoted(item.name for item in more)}"] if more else []
        told += [f"does not take {quoted(lost)}"] if lost else []
        yield Diagnostic(
            f"the meta function of `{op.title}` {' and '.join(told)}: it is called by name with {quoted(names)}",
            function.at((more[0] if more else function.function).span),
            defined(op.body, "the op's parameters"),
            ops=(op.title,),
        )


def _is_passed(item: Param, names: list[str]) -> bool:
    return item.kind != "posonly" and item.name in names


def _lambda(op: MagiOp, function: Lambda) -> Iterator[Diagnostic]:
    """A lambda whose parameters are all plain and required."""
    head = function.written.body.file.text(function.written.expr).partition(":")[0]
    names = [item.name for item in op.params]
    if "*" in head or "=" in head or "/" in head or any(item.kind == "kwonly" for item in op.params):
        return
    by_name = by_keyword(op)
    wrong = set(function.params) != set(names) if by_name else len(function.params) != len(names)
    if wrong and (by_name or not any(item.default is not None for item in op.params)):
        how = "by name" if by_name else "by place"
        place: Place = function.written.place
        taken = quoted(function.params) or "nothing"
        message = f"the meta function of `{op.title}` takes {taken}, and is called {how} with {quoted(names)}"
        yield Diagnostic(message, place, defined(op.body, "the op's parameters"), ops=(op.title,))
