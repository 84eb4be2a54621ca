"""``Literal`` and enumerations, which become ``str`` when an op is lowered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Edit, Span
from opschema_rules.magi.classes import EnumKind
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import meant_calls, passed
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.reporting import called, is_sound, lowers, type_place
from opschema_rules.magi.signature import Leaf
from opschema_rules.magi.usage import is_called_to_fail, is_tested


def lowered_enums(op: MagiOp) -> Iterator[tuple[Leaf, EnumKind]]:
    """The lowered parameters that are strings instead of members of an enumeration."""
    if is_sound(op) and lowers(op) and not op.lowering.problems and not is_called_to_fail(op):
        for leaf in op.lowering.leaves:
            if leaf.enum is not None and leaf.enum.values == "str":
                yield leaf, leaf.enum


@rule("MAG306", "plain-enum", fixable="unsafe", proof=CALLS)
def plain_enum(op: MagiOp) -> Iterator[Diagnostic]:
    """An enumeration whose members are not strings, where the op takes a `str`.

    Since commit e68e0b0 the decorator turns an enumeration whose values are strings into `str`. A member of
    `class Mode(Enum)` is not a string: the op is registered, but every call with a member raises. Members of
    `class Mode(str, Enum)` are strings. Before, members are passed as they are.

    Nothing is reported when every call in the tree passes a string.

    Bad:

    ```python
    class Mode(Enum):
        ADD = "add"


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, mode: Mode) -> Tensor:
        return x + 1 if mode == Mode.ADD else x * 2
    ```

    Good:

    ```python
    class Mode(str, Enum):
        ADD = "add"


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, mode: Mode) -> Tensor:
        return x + 1 if mode == Mode.ADD else x * 2
    ```

    Good (strings are passed):

    ```python
    class Mode(Enum):
        ADD = "add"


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, mode: Mode) -> Tensor:
        return x + 1 if mode == "add" else x * 2


    def double(x):
        return run(x, Mode.ADD.value)
    ```
    """
    for leaf, enum in lowered_enums(op):
        if not enum.mixed and not _only_strings(op, leaf):
            yield Diagnostic(
                f"{called(leaf)} is lowered to `str`, and members of `{enum.ref.name}` are not strings: every call with one raises",
                type_place(leaf),
                (Related(Place(enum.ref.file.path, enum.ref.cls.span), "the enumeration"),),
                _mixing(enum),
                (op.title,),
            )


def _only_strings(op: MagiOp, leaf: Leaf) -> bool:
    values = [passed(op, item, leaf) for item in meant_calls(op)]
    return bool(values) and all(value is not None and _is_string(op, value) for value in values)


def _is_string(op: MagiOp, value: Written) -> bool:
    if value.expr.kind == "name" and value.expr.text.endswith(".value"):
        return True
    return op.tree.evaluator.texts(value.body, value.expr) is not None


def _mixing(enum: EnumKind) -> Fix | None:
    base = enum.sole_base
    if base is None or enum.ref.cls.bases[0].text.rpartition(".")[2] != "Enum":
        return None
    edit = Edit(Span(base.start, base.start), "str, ")
    why = "members become equal to their values, and are written otherwise"
    return Fix(f"make members of `{enum.ref.name}` strings", (FileEdit(enum.ref.file.path, edit),), "unsafe", why)


@rule("MAG307", "enum-identity", fixable="safe", proof=CALLS)
def enum_identity(op: MagiOp) -> Iterator[Diagnostic]:
    """A body that treats a `str` as the member of an enumeration.

    The op's body receives the member's value, a plain `str`: `mode is Mode.ADD` is false, without an error, and
    `mode.value` and `mode.name` do not exist. `==` holds for members of `class Mode(str, Enum)`, and never for those of
    `class Mode(Enum)`: compare with `Mode.ADD.value`. Or convert it to a member first: `mode = Mode(mode)`.

    Bad:

    ```python
    class Mode(str, Enum):
        ADD = "add"


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, mode: Mode) -> Tensor:
        if mode is not Mode.ADD:
            return x * 2
        return x + 1
    ```

    Bad:

    ```python
    class Mode(str, Enum):
        ADD = "add"


    @dataclass(frozen=True)
    class Config:
        mode: Mode


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, config: Config) -> Tensor:
        return x + 1 if config.mode.value == "add" else x * 2
    ```

    Bad (members that are not strings):

    ```python
    class Mode(Enum):
        ADD = "add"


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, mode: Mode) -> Tensor:
        return x + 1 if mode == Mode.ADD else x * 2


    def added(x):
        return run(x, Mode.ADD.value)
    ```

    Good:

    ```python
    class Mode(str, Enum):
        ADD = "add"


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, mode: Mode, other: Mode) -> Tensor:
        other = Mode(other)
        if mode == Mode.ADD and other is Mode.ADD:
            return x + 1
        return x * 2
    ```
    """
    for leaf, enum in lowered_enums(op):
        if not is_written(op, leaf) and not is_tested(op.body, ".".join(leaf.path)):
            constant = _IDENTITY if enum.mixed or not _only_strings(op, leaf) else {**_IDENTITY, **_EQUALITY}
            for expr in (part for item in all_statements(op.body.statements) for part in own_expressions(item)):
                yield from _comparison(op, leaf, enum, expr, constant)
                yield from _attribute(op, leaf, expr)


def is_written(op: MagiOp, leaf: Leaf) -> bool:
    """Whether the body assigns the parameter anew."""
    return any(item.target == leaf.path[0] for scope in op.body.scope.walk() for item in scope.assigns)


_IDENTITY = {"is": ("is", "==", "false"), "is-not": ("is not", "!=", "true")}
_EQUALITY = {"==": ("==", "==", "false"), "!=": ("!=", "!=", "true")}
"""Comparisons of a string with a member: as written, the replacement, and their result."""


def _comparison(
    op: MagiOp, leaf: Leaf, enum: EnumKind, expr: Expr, constant: Mapping[str, tuple[str, str, str]]
) -> Iterator[Diagnostic]:
    if expr.kind != "compare" or expr.text not in constant or len(expr.items) != 2:
        return
    name = ".".join(leaf.path)
    sides = [item.text if item.kind == "name" else "" for item in expr.items]
    member = next((item for item, side in zip(expr.items, sides, strict=True) if side != name), expr)
    dotted = member.text if member.kind == "name" else ""
    holder = op.tree.bodies.resolve(op.body, dotted.rpartition(".")[0]) if "." in dotted else None
    if name not in sides or not isinstance(holder, ClassRef) or holder != enum.ref:
        return
    word, instead, outcome = constant[expr.text]
    advice = f"write `{instead}`" if enum.mixed else f"compare with `{dotted}.value`"
    yield Diagnostic(
        f"`{name}` is a plain `str` here: `{name} {word} {dotted}` is always {outcome}; {advice}",
        op.body.at(expr),
        (Related(type_place(leaf), "lowered to `str`"),),
        _equality(op, expr, instead, None if enum.mixed else member),
        (op.title,),
    )


def _equality(op: MagiOp, expr: Expr, instead: str, member: Expr | None) -> Fix | None:
    """Compare with ``==``, and with the value of ``member`` if the enumeration's members are not strings."""
    left, right = expr.items
    between, path = Span(left.end, right.start), op.body.file.path
    old = op.body.file.text(between)
    text = re.sub(r"\bis(?:\s+not)?\b", instead, old, count=1)
    if "#" in text:
        return None
    edits = [FileEdit(path, Edit(between, text))] if text != old else []
    if member is not None:
        edits.append(FileEdit(path, Edit(Span(member.end, member.end), ".value")))
    return Fix(f"compare with `{instead}`" if member is None else "compare with the value", tuple(edits))


def _attribute(op: MagiOp, leaf: Leaf, expr: Expr) -> Iterator[Diagnostic]:
    name = ".".join(leaf.path)
    word = expr.text.removeprefix(f"{name}.").partition(".")[0] if expr.text.startswith(f"{name}.") else ""
    if expr.kind != "name" or word not in ("value", "name"):
        return
    place = op.body.at(Span(expr.start, expr.start + len(f"{name}.{word}")))
    plain = expr.end - expr.start == len(expr.text)
    edit = Edit(place.span, name)
    fix = (
        Fix(f"take `{name}`, which is the value", (FileEdit(place.path, edit),)) if word == "value" and plain else None
    )
    yield Diagnostic(
        f"`{name}` is a plain `str` here, which has no `{word}`: every call raises",
        place if plain else op.body.at(expr),
        (Related(type_place(leaf), "lowered to `str`"),),
        fix,
        (op.title,),
    )
