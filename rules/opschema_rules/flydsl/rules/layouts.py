"""Shapes, strides and tiles that FlyDSL does not accept."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import excerpt
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.operands import LONGEST
from opschema_rules.flydsl.possible_types import may_be_floats
from opschema_rules.flydsl.rebinding import is_bound_around
from opschema_rules.flydsl.usage import is_unsure
from opschema_rules.flydsl.value_classes import plain_name

_LAYOUTS = {"make_layout": "stride", "make_ordered_layout": "order"}
"""Functions that take a shape and a second argument with an entry for each of its parts, and the name of that parameter."""

_TILED = frozenset({"zipped_divide", "logical_divide", "flat_divide", "tiled_divide"})
_SIZED = frozenset(
    {"make_tile", "make_rmem_tensor", "make_shape", "make_coord", "make_int_tuple", "make_identity_layout"}
)
_ALL = frozenset({*_LAYOUTS, *_TILED, *_SIZED})
_DISPLAYS = ("tuple", "list")


@rule("FLY235", "layout-shape", pure=True)
def layout_shape(file: FlyFile) -> Iterator[Diagnostic]:
    """A shape that does not fit its strides or its order, or that has a float in it.

    `make_layout()` takes a stride for each size, nested as the shape is: `(4, 1)` with `(1, 4, 4)`, with `((1, 4), 4)` or with `1`
    raises `ValueError` when the function is traced. `make_ordered_layout()` takes a number for each size, or one for a part of the
    shape. A float, as `/` gives one, raises in a tile, and ends the process in a layout.

    Only tuples and lists as they are written and numbers that are known are compared.

    Bad:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor):
        layout = fx.make_layout((4, 16), (16, 1, 1))
        order = fx.make_ordered_layout((4, 16), (1, 0, 2))
        tiles = fx.zipped_divide(A, (8, 24 / 2))
    ```

    Good:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, tile: fx.Constexpr[tuple]):
        layout = fx.make_layout((4, (2, 8)), (16, (8, 1)))
        layout = fx.make_layout((tile, 16), ((16, 1), 1))
        order = fx.make_ordered_layout((4, (2, 8)), (1, 0))
        order = fx.make_ordered_layout((4, 16), 0)
        tiles = fx.zipped_divide(A, (8, 24 // 2))
        tiles = fx.zipped_divide(A, (None, tile))
    ```
    """
    tree = file.tree
    for each in tree.files:
        if tree.bodies.program.module_name(each.path).partition(".")[0] != ROOT:
            for body in tree.bodies.calling(each, _ALL):
                yield from _wrong(tree, body)


def _wrong(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    for call in body.scope.calls:
        word = call.callee.rpartition(".")[2]
        if word not in _ALL or not any(
            item.kind in ("tuple", "list", "const", "binary", "name") for item in call.items[1:]
        ):
            continue
        for at, message in _faults(tree, body, call, word):
            if plain_name(tree.names.full(body, call.callee)) == word and not is_unsure(tree, body, call):
                yield Diagnostic(message, body.at(at), ops=(word,))


def _faults(tree: FlyTree, body: Body, call: Expr, word: str) -> Iterator[tuple[Expr, str]]:
    """Yield the faults in the arguments of a call, each with its place."""
    given = call.positional() if "*" not in call.keywords else []
    sizes = given[1:] if word in _TILED else given[:1] if word == "make_rmem_tensor" else given
    floats = [part for item in sizes for part in _leaves(item) if _is_float(tree, body, part)]
    if floats:
        effect = "it raises" if word in _TILED or word == "make_tile" else "it ends the process"
        written = excerpt(body.file.text(floats[0]), LONGEST)
        yield (
            floats[0],
            f"`{written}` is a float, and `{word}()` takes integers: {effect} when it is traced; divide with `//`",
        )
    elif word in _LAYOUTS:
        named = _LAYOUTS[word]
        shape = given[0] if given else call.keyword("shape")
        other = given[1] if len(given) > 1 else call.keyword(named)
        if shape is not None and other is not None and not _fits(tree, body, shape, other, word == "make_layout"):
            texts = [_shown(body, item) for item in (shape, other)]
            yield (
                other,
                f"the {named} `{texts[1]}` is not nested as the shape `{texts[0]}` is: `{word}()` raises `ValueError`",
            )


def _shown(body: Body, expr: Expr) -> str:
    """Return a shape or stride as it is written, including the brackets of a tuple."""
    text = excerpt(body.file.text(expr), LONGEST)
    return f"({text})" if expr.kind == "tuple" else text


def _leaves(expr: Expr) -> Iterator[Expr]:
    if expr.kind in _DISPLAYS:
        for item in expr.items:
            yield from _leaves(item)
    else:
        yield expr


def _is_float(tree: FlyTree, body: Body, expr: Expr) -> bool:
    """Whether a number is known to be a float."""
    may_be = may_be_floats(body, (expr.text,)) if expr.kind == "name" else _may_be_float(expr)
    return may_be and isinstance(_known(tree, body, expr), float)


def _may_be_float(expr: Expr) -> bool:
    """Whether a number may be a float, by its form."""
    return isinstance(expr.value, float) or (expr.kind == "binary" and expr.text == "/")


def _known(tree: FlyTree, body: Body, expr: Expr) -> object:
    """Return the value of a number that is the same in every run; None if it is not known."""
    names = ((item.text.partition(".")[0], item.start) for item in expr.walk() if item.kind == "name")
    if any(is_bound_around(body, *item) for item in names):
        return None
    found = tree.evaluator.fold(body, expr)
    return found.value if isinstance(found, Folded) and not found.symbol else None


def _fits(tree: FlyTree, body: Body, shape: Expr, other: Expr, exact: bool) -> bool:
    """Whether strides may be nested like a shape; without ``exact``, one stride may stand for several sizes."""
    if other.kind in _DISPLAYS and shape.kind in _DISPLAYS:
        if any(item.kind == "starred" for item in (*shape.items, *other.items)):
            return True
        same = len(shape.items) == len(other.items)
        return same and all(_fits(tree, body, *pair, exact) for pair in zip(shape.items, other.items, strict=True))
    if other.kind in _DISPLAYS:
        return not _is_number(tree, body, shape)
    return not exact or shape.kind not in _DISPLAYS or not _is_number(tree, body, other)


def _is_number(tree: FlyTree, body: Body, expr: Expr) -> bool:
    """Whether an expression is known to be a single number."""
    value = expr.value if expr.kind == "const" else _known(tree, body, expr)
    return isinstance(value, int) and not isinstance(value, bool)
