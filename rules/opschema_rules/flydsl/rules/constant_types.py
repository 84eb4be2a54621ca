"""Types that a ``Constexpr`` cannot have."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.api_guards import is_guarded_around
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.model import FlyTree, Kind, Traced
from opschema_rules.flydsl.rules.annotations import STRINGS_SINCE
from opschema_rules.flydsl.usage import is_meant_to_fail

_PLAIN = "list dict set frozenset bytes bytearray complex object type"
_TYPING = "Any Dict FrozenSet Iterable List Literal Mapping Optional Sequence Set Type Union"
_REFUSED = frozenset({*_PLAIN.split(), *(f"typing.{name}" for name in _TYPING.split())})
_CHECKS = ("_is_supported_annotation", "__class_getitem__")
"""Methods of ``Constexpr`` that reject a type, unless a file redefines them."""

_OTHER_PACKAGES = frozenset({"torch", "numpy"})
"""Packages whose names are not types that FlyDSL accepts, unless they are aliases of Python's own."""


@rule("FLY230", "constexpr-type", pure=True)
def constexpr_type(file: FlyFile) -> Iterator[Diagnostic]:
    """A `Constexpr` of a type that FlyDSL does not take.

    From 0.2.0 on `fx.Constexpr[...]` takes `int`, `bool`, `float`, tuples, callables and, from 0.2.3 on, `str`. Any other
    type, such as a list, an enumeration, a dataclass, `torch.dtype` or `Optional[int]`, raises `TypeError` where the function
    is defined, even before it is called.

    So does `fx.Constexpr(int)` with parentheses.

    Pass what the kernel needs of the value instead: the members of an enumeration or a dataclass as numbers or strings, a list
    as a tuple, a dtype as its name. Or let the function capture it, in a factory.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, dtype: fx.Constexpr[torch.dtype]):
        print(A, dtype)
    ```

    Bad:

    ```python
    from dataclasses import dataclass


    @dataclass(frozen=True)
    class Tile:
        rows: int = 64


    @flyc.jit
    def launch(A: fx.Tensor, tile: fx.Constexpr[Tile]):
        print(A, tile.rows)
    ```

    Good:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, dtype: fx.Constexpr[str], sizes: fx.Constexpr[tuple[int, ...]], rows: fx.Constexpr):
        print(A, dtype, sizes, rows)
    ```
    """
    tree = file.tree
    refuses = tree.contract.surely(Era.SPLIT, Era.CURRENT) and not any(map(tree.words.is_replaced, _CHECKS))
    for traced in tree.traced if refuses else ():
        for item in traced.parameters:
            annotation = item.param.annotation
            if annotation is not None and _is_called(tree, traced, annotation) and not _may_be_left(tree, traced):
                message = (
                    f"`{item.name}` of `{traced.title}` calls `Constexpr`, which raises where the function is defined"
                )
                yield Diagnostic(f"{message}: write `Constexpr[...]`", traced.body.at(annotation), ops=(traced.title,))
            if item.kind is not Kind.CONSTEXPR or annotation is None or annotation.kind != "subscript":
                continue
            given = annotation.items[1] if len(annotation.items) == 2 else annotation
            if _is_refused(tree, traced.body.parent or traced.body, given) and not _may_be_left(tree, traced):
                message = (
                    f"`{item.name}` of `{traced.title}` is a `Constexpr` of `{traced.body.file.text(given)}`, which raises "
                    "`TypeError` where the function is defined: FlyDSL takes `int`, `bool`, `float`, tuples, callables and, from "
                    f"{STRINGS_SINCE} on, `str`"
                )
                yield Diagnostic(message, traced.body.at(given), ops=(traced.title,))


def _is_called(tree: FlyTree, traced: Traced, annotation: Expr) -> bool:
    """Whether an annotation calls `Constexpr` with a type instead of subscripting it."""
    if annotation.kind != "call" or len(annotation.items) < 2:
        return False
    return tree.names.full(traced.body.parent or traced.body, annotation.callee).endswith(".Constexpr")


def _is_refused(tree: FlyTree, body: Body, given: Expr) -> bool:
    """Whether a type is known to be none of those that FlyDSL accepts."""
    if given.kind == "binary" and given.text == "|":
        return len({body.file.text(item) for item in given.items}) > 1
    head = given.items[0] if given.kind == "subscript" else given
    if head.kind != "name":
        return False
    external = tree.names.external(body, head.text)
    if external == "str":
        return all(release < STRINGS_SINCE for release in tree.contract.releases) and bool(tree.contract.releases)
    other = external.partition(".")[0] in _OTHER_PACKAGES and "." in external
    if (
        external == "typing.Union"
        and given.kind == "subscript"
        and given.items[1].kind != "tuple"
        and len(given.items) == 2
    ):
        return False
    return external in _REFUSED or other or (head is given and _is_class(tree, body, head.text))


def _is_class(tree: FlyTree, body: Body, text: str) -> bool:
    """Whether a name refers to a class of the tree, or to a FlyDSL number or tensor type."""
    own = tree.names.full(body, text).rpartition(".")[2]
    return is_number(own) or own == "Tensor" or (not own and _is_own_class(tree, body, text))


def _is_own_class(tree: FlyTree, body: Body, text: str) -> bool:
    """Whether a name refers to a class of the tree without a decorator of the tree, which might return something else."""
    if tree.names.meaning(body, text).kind != "class":
        return False
    found = tree.bodies.resolve(body, text)
    marks = found.cls.decorators if isinstance(found, ClassRef) else ()
    module = tree.bodies.module(found.file) if isinstance(found, ClassRef) else body
    return all(tree.names.external(module, mark.callee or mark.text) for mark in marks)


def _may_be_left(tree: FlyTree, traced: Traced) -> bool:
    """Whether an error at the definition of a function is expected, handled, or never occurs because the code does not run."""
    around, at = traced.body.parent, traced.function.outer.start
    if around is None or may_pass(tree, around, at) or is_guarded_around(tree, around, at):
        return True
    return expects_failure(tree.bodies, around, at) or is_meant_to_fail(tree, traced.body)
