"""Order, kinds and defaults of the parameters of an op, and of the signature that it is lowered to."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.python import Param
from opschema_cli.source.resolution import Folded
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import meant_calls, passed
from opschema_rules.magi.printed_members import is_printed_to_calls
from opschema_rules.magi.reporting import called, is_plain, is_sound, lowers, refusals, registered
from opschema_rules.magi.signature import Leaf
from opschema_rules.magi.types_of_torch import dataclass_in, is_taken, type_in_schema
from opschema_rules.magi.usage import is_called_to_fail
from opschema_rules.torchlib.rules.unfit_defaults import unwritable


@rule("MAG312", "default-order")
def default_order(op: MagiOp) -> Iterator[Diagnostic]:
    """A lowered parameter without a default after one that has a default.

    A dataclass becomes its fields, with their defaults, where the parameter stood; a required parameter or field after it
    makes a signature that Python rejects (`non-default argument follows default argument`). Defaults that a schema cannot
    hold, such as a list, are dropped, and keyword-only parameters become plain ones: both may leave a required parameter in
    the wrong place. Put required parameters first.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float = 1.0


    @magi_register_custom_op("kit::scale")
    def scale(config: Config, x: Tensor) -> Tensor:
        return x * config.scale
    ```

    Bad (a default that is dropped):

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float = 1.0
        sizes: list[int] = field(default_factory=list)


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        sizes: list[int] = field(default_factory=list)
        scale: float = 1.0


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config, y: Optional[Tensor] = None) -> Tensor:
        return x * config.scale
    ```
    """
    for problem in op.lowering.problems if is_sound(op) and lowers(op) else ():
        leaf, other = problem.leaf, problem.other
        if problem.kind != "default-order" or leaf is None or other is None or _has_refused_type(op, leaf):
            continue
        yield _behind(op, leaf, other)


def _has_refused_type(op: MagiOp, leaf: Leaf) -> bool:
    """Whether another rule reports the type of a parameter: with another type it is lowered otherwise."""
    others = [item for item in op.lowering.problems if item.kind not in ("default-order", "duplicate-name")]
    form = leaf.lowered_type
    return any(f"{item.where} ".startswith(f"{called(leaf)} ") for item in others) or (
        form is not None and (is_taken(op, form) is False or dataclass_in(op, form) is not None)
    )


def _behind(op: MagiOp, leaf: Leaf, other: Leaf) -> Diagnostic:
    reason = "has no default"
    if leaf.scrubbed:
        reason = f"loses its default `{leaf.written}`, which no schema holds,"
    elif isinstance(leaf.source, Param) and leaf.source.kind == "kwonly":
        reason = "becomes a plain parameter without a default"
    place = leaf.place
    function = op.body.function
    param = function.param(leaf.path[0]) if function is not None else None
    if param is not None and leaf.path[0] != other.path[0]:
        place = op.body.at(param.span)
    return Diagnostic(
        f"{called(leaf)} {reason} and is lowered behind {called(other)}, which has one: put it first",
        place,
        (Related(other.place, f"`{other.lowered}` has a default"), *registered(op)),
        ops=(op.title,),
    )


@rule("MAG317", "lowered-name")
def lowered_name(op: MagiOp) -> Iterator[Diagnostic]:
    """Two lowered parameters with the same name.

    The name of a lowered field is the parameter's and the field's name, joined by two underscores: `config.scale` becomes
    `config__scale`. Another parameter with that name makes a signature that Python rejects.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config__scale: float, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config_scale: float, config: Config) -> Tensor:
        return x * config.scale
    ```
    """
    for problem in op.lowering.problems if is_sound(op) and lowers(op) else ():
        if problem.kind == "duplicate-name" and problem.leaf is not None and problem.other is not None:
            yield Diagnostic(
                f"{called(problem.leaf)} is lowered to `{problem.leaf.lowered}`, as {called(problem.other)} is: rename one",
                problem.leaf.place,
                (Related(problem.other.place, "the other"), *registered(op)),
                ops=(op.title,),
            )


@rule("MAG315", "lowered-kind")
def lowered_kind(op: MagiOp) -> Iterator[Diagnostic]:
    """A keyword-only or positional-only parameter that the op cannot pass on.

    Since commit e68e0b0 every parameter of the lowered signature is a plain one. Without a dataclass, the op's function is
    called with all of them by position, so passing a keyword-only parameter raises; with a dataclass it is called by name,
    so passing a positional-only one raises. Before that, positional-only parameters and keyword-only tensors are rejected,
    and other keyword-only ones work.

    Bad:

    ```python
    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, *, factor: float) -> Tensor:
        return x * factor
    ```

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, /, config: Config) -> Tensor:
        return x * config.scale
    ```

    Bad (before e68e0b0):

    ```toml
    [magi]
    magi = "plain"
    ```

    ```python
    @magi_register_custom_op("kit::add")
    def add(x: Tensor, *, y: Tensor) -> Tensor:
        return x + y
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config, *, factor: float) -> Tensor:
        return x * config.scale * factor


    @magi_register_custom_op("kit::double")
    def double(x: Tensor, /) -> Tensor:
        return x * 2
    ```
    """
    if is_sound(op):
        for item in op.params:
            said = _plain_kind(op, item) if is_plain(op) else _lowered_kind(op, item) if lowers(op) else None
            if said is not None:
                message, severity = said
                yield Diagnostic(message, op.body.at(item.span), registered(op), ops=(op.title,), severity=severity)


def _plain_kind(op: MagiOp, item: Param) -> tuple[str, Severity] | None:
    leaf = op.lowering.node(item.name)
    if item.kind == "posonly":
        return f"`{item.name}` is positional-only, which torch refuses: leave the `/` out", Severity.ERROR
    form = leaf.lowered_type if isinstance(leaf, Leaf) else None
    if item.kind == "kwonly" and form is not None and any(part.is_tensor for part in form.walk()):
        return f"`{item.name}` is a keyword-only tensor, which torch refuses: leave the `*` out", Severity.ERROR
    return None


def _lowered_kind(op: MagiOp, item: Param) -> tuple[str, Severity] | None:
    lowering = op.lowering
    if is_called_to_fail(op):
        return None
    if item.kind == "posonly" and lowering.flattens:
        return f"`{item.name}` is positional-only, and the op passes it by name: every call raises", Severity.ERROR
    leaf = lowering.leaf(item.name)
    if item.kind != "kwonly" or lowering.flattens or not lowering.complete or leaf is None:
        return None
    if leaf.default.kind == "absent":
        return f"`{item.name}` is keyword-only, and the op passes it by position: every call raises", Severity.ERROR
    told = f"every call that passes another value than `{leaf.default}` raises"
    return f"`{item.name}` is keyword-only, and the op passes it by position: {told}", Severity.WARNING


@rule("MAG316", "dropped-default")
def dropped_default(op: MagiOp) -> Iterator[Diagnostic]:
    """A default that a schema cannot hold.

    A schema holds `None`, numbers, strings, dtypes and devices. Since commit e68e0b0 the decorator silently drops any other
    default, so the parameter is required: a call that omits it raises (a warning). Before that, the registration of the op
    raises. If a parameter is a dataclass, calls go through the original signature first, and keep their defaults. Nothing
    is reported when every call in the tree passes it.

    Infinity, a string with `"` or a line break in it, and a number for a list make a schema that torch rejects. A member of
    an enumeration is stored as Python prints it: `Mode.ADD` of `class Mode(str, Enum)` as `"Mode.ADD"` since Python 3.11. The
    body gets this string if a call omits the argument and passes a later one (a warning). Make it the last parameter, or
    inherit from `StrEnum`.

    Bad:

    ```python
    @magi_register_custom_op("kit::pad")
    def pad(x: Tensor, sizes: list[int] = [1, 2]) -> Tensor:
        return x + sizes[0]
    ```

    Bad (infinity):

    ```python
    @magi_register_custom_op("kit::clip")
    def clip(x: Tensor, low: float = -float("inf")) -> Tensor:
        return x.clamp(min=low)
    ```

    Bad (a member that is stored under another name):

    ```python
    class Mode(str, Enum):
        ADD = "add"


    @magi_register_custom_op("kit::run")
    def run(x: Tensor, mode: Mode = Mode.ADD, k: int = 1) -> Tensor:
        return x + k if mode == Mode.ADD else x * k


    def doubled(x):
        return run(x, k=2)
    ```

    Bad (before e68e0b0):

    ```toml
    [magi]
    magi = "plain"
    ```

    ```python
    @magi_register_custom_op("kit::pad")
    def pad(x: Tensor, sizes: list[int] = []) -> Tensor:
        return x + len(sizes)
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::pad")
    def pad(x: Tensor, sizes: Optional[list[int]] = None, dtype: torch.dtype = torch.float32) -> Tensor:
        return x + len(sizes or [1, 2])


    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config, sizes: list[int] = [1, 2]) -> Tensor:
        return x * config.scale
    ```
    """
    if is_sound(op) and not refusals(op):
        yield from _unwritable(op)
        if not op.lowering.flattens and op.lowering.complete:
            yield from _dropped(op) if lowers(op) else _refused(op) if is_plain(op) else ()


def _unwritable(op: MagiOp) -> Iterator[Diagnostic]:
    """Defaults that the decorator keeps, and that make a schema which torch cannot read."""
    for leaf in op.lowering.leaves if not (is_plain(op) and op.lowering.flattens) else ():
        default = leaf.default
        reason = (
            unwritable(type_in_schema(leaf.lowered_type), Folded(default.value)) if default.kind == "constant" else ""
        )
        if reason:
            yield _default_of(op, leaf, f"makes a schema that is refused: {reason}", Severity.ERROR)


def _refused(op: MagiOp) -> Iterator[Diagnostic]:
    for leaf in op.lowering.leaves:
        if leaf.written.kind in ("other", "enum"):
            yield _default_of(op, leaf, "cannot be stored in a schema, and is refused", Severity.ERROR)


def _dropped(op: MagiOp) -> Iterator[Diagnostic]:
    """Defaults that are dropped or changed, and are not always passed. `plain-enum` reports the type of plain enumerations."""
    for leaf in op.lowering.leaves:
        told = ""
        if leaf.scrubbed and leaf.enum is None and not _is_always_passed(op, leaf):
            told = "cannot be stored in a schema, and is dropped: a call without it raises"
        elif leaf.default.kind == "enum" and is_printed_to_calls(op, leaf):
            told = f"is stored as {str(leaf.default)!r} since Python 3.11; calls that omit it but pass a later argument get this"
        if told:
            yield _default_of(op, leaf, told, Severity.WARNING)


def _default_of(op: MagiOp, leaf: Leaf, told: str, severity: Severity) -> Diagnostic:
    name = f"`{leaf.name}`" if isinstance(leaf.source, Param) else called(leaf)
    message = f"the default `{leaf.written}` of {name} {told}"
    place = leaf.written.place or leaf.place
    return Diagnostic(message, place, registered(op), ops=(op.title,), severity=severity)


def _is_always_passed(op: MagiOp, leaf: Leaf) -> bool:
    calls = list(meant_calls(op))
    return bool(calls) and all(passed(op, item, leaf) is not None for item in calls)
