"""Dataclasses, enums and returned values that the decorator, or torch below it, rejects."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.magi.freezing import freezing
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.reporting import (
    annotation_place,
    called,
    is_plain,
    is_sound,
    lowers,
    problems_of,
    registered,
    taken,
    type_place,
)
from opschema_rules.magi.signature import Leaf
from opschema_rules.magi.types_of_torch import dataclass_in, is_listed


@rule("MAG301", "mutable-dataclass", fixable="safe", proof=CALLS)
def mutable_dataclass(op: MagiOp) -> Iterator[Diagnostic]:
    """A dataclass parameter of an op that is not frozen.

    An op passes a dataclass as the tensors, numbers and strings in it, and creates a new instance from them. Changes to the
    original could be lost, so the decorator accepts only frozen dataclasses, and raises a `TypeError` for others, also for
    one that is a field of another. `frozen=True` is a safe fix if no code of the tree assigns one of its fields, and
    nothing inherits from it.

    Before commit e68e0b0 MagiCompiler's ops do not support dataclasses at all: see `annotation`.

    Bad:

    ```python
    @dataclass
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good (a class that is not a dataclass of the op):

    ```python
    @dataclass
    class Trainer:
        rate: float = 0.1


    @magi_register_custom_op("kit::double")
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```
    """
    if is_plain(op):
        return
    for problem in problems_of(op, "mutable-dataclass"):
        if problem.dataclass is not None:
            yield Diagnostic(
                f"dataclass `{problem.dataclass.name}` is not frozen, and an op takes it: add `frozen=True`",
                problem.dataclass.maker_place,
                (Related(annotation_place(op, problem), "taken here"),),
                freezing(op, problem.dataclass),
                (op.title,),
            )


@rule("MAG302", "container")
def container(op: MagiOp) -> Iterator[Diagnostic]:
    """A parameter or a field that is a tuple or a dict.

    torch schemas have lists of one type, but no tuples or dicts, so the decorator raises. A tuple may become a `list`, or
    several parameters; the values of a dict become fields.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        window: tuple[int, int]


    @magi_register_custom_op("kit::shift")
    def shift(x: Tensor, config: Config) -> Tensor:
        return x + config.window[0]
    ```

    Bad:

    ```python
    @magi_register_custom_op("kit::shift")
    def shift(x: Tensor, sizes: dict[str, int]) -> Tensor:
        return x + sizes["left"]
    ```

    Good (a list, and a tuple that is returned):

    ```python
    @dataclass(frozen=True)
    class Config:
        window: list[int]


    @magi_register_custom_op("kit::shift")
    def shift(x: Tensor, y: Tensor, config: Config) -> tuple[Tensor, Tensor]:
        return x + config.window[0], y + 1
    ```
    """
    for problem in problems_of(op, "tuple", "dict"):
        advice = "take a `list`, or several" if problem.kind == "tuple" else "take its values one by one"
        yield Diagnostic(
            f"{problem.where} is a {problem.kind}, `{problem.type}`, and a schema has none: {advice}",
            annotation_place(op, problem),
            registered(op),
            ops=(op.title,),
        )


@rule("MAG304", "dataclass-return")
def dataclass_return(op: MagiOp) -> Iterator[Diagnostic]:
    """An op that returns a dataclass.

    Only parameters are lowered. Return the tensors in a tuple, and make the dataclass from it in the caller.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Pair:
        left: Tensor
        right: Tensor


    @magi_register_custom_op("kit::split")
    def split(x: Tensor) -> Pair:
        return Pair(x[:1].clone(), x[1:].clone())
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Pair:
        left: Tensor
        right: Tensor


    @magi_register_custom_op("kit::swap")
    def swap(pair: Pair) -> tuple[Tensor, Tensor]:
        return pair.right.clone(), pair.left.clone()
    ```
    """
    for problem in problems_of(op, "dataclass-return"):
        if problem.dataclass is not None:
            yield Diagnostic(
                f"`{op.function_name}()` returns the dataclass `{problem.dataclass.name}`: return a tuple of tensors",
                problem.place,
                (Related(problem.dataclass.place, "the dataclass"),),
                ops=(op.title,),
            )


@rule("MAG305", "closed-values")
def closed_values(op: MagiOp) -> Iterator[Diagnostic]:
    """A `Literal` or an enumeration whose values are not strings.

    The decorator turns a `Literal` or an `Enum` whose values are all strings into `str`, and raises for others. Before
    commit e68e0b0 every `Literal` raises, and every enumeration is passed on unchanged, which torch 2.13 accepts.

    Bad:

    ```python
    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, factor: Literal[1, 2]) -> Tensor:
        return x * factor
    ```

    Bad:

    ```python
    class Mode(Enum):
        ADD = 1
        MUL = 2


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, mode: Mode) -> Tensor:
        return x * 2
    ```

    Good:

    ```python
    class Mode(str, Enum):
        ADD = "add"
        MUL = "mul"


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, mode: Mode, side: Literal["left", "right"]) -> Tensor:
        return x * 2
    ```

    Good (enumerations before they were lowered):

    ```toml
    [magi]
    magi = "plain"
    ```

    ```python
    class Mode(Enum):
        ADD = 1
        MUL = 2


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, mode: Mode) -> Tensor:
        return x * 2
    ```
    """
    for problem in problems_of(op, "literal", "enum"):
        if problem.kind == "literal" or lowers(op):
            kind = "a `Literal`" if problem.kind == "literal" else "an enumeration"
            yield Diagnostic(
                f"{problem.where} is {kind} of other values than strings, `{problem.type}`: take `str` or `int`",
                annotation_place(op, problem),
                registered(op),
                ops=(op.title,),
            )
    if is_sound(op) and is_plain(op):
        for leaf in op.lowering.leaves:
            if len(leaf.path) == 1 and leaf.type is not None and leaf.type.kind == "literal" and leaf.downgraded:
                message = f"parameter `{leaf.name}` is `{leaf.type}`: this MagiCompiler passes it to torch unchanged; use `str`"
                yield Diagnostic(message, type_place(leaf), registered(op), ops=(op.title,))


@rule("MAG313", "optional-dataclass")
def optional_dataclass(op: MagiOp) -> Iterator[Diagnostic]:
    """A dataclass inside another type: `Optional[Config]`, `Config | None`, `list[Config]`.

    Only a parameter or field that is the dataclass itself is flattened. Any other type that contains it is passed to torch,
    which does not support it. Give the parameter a default that represents "none", or add a flag.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float = 1.0


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config | None = None) -> Tensor:
        return x if config is None else x * config.scale
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float = 1.0
        bias: Optional[Tensor] = None


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config = Config()) -> Tensor:
        return x * config.scale
    ```
    """
    if not is_sound(op):
        return
    for leaf in op.lowering.leaves:
        if len(leaf.path) > 1 and is_plain(op):
            continue
        yield from _inside(op, leaf)


def _inside(op: MagiOp, leaf: Leaf) -> Iterator[Diagnostic]:
    found = dataclass_in(op, leaf.type) if leaf.type is not None and leaf.type.kind in ("union", "generic") else None
    if found is None or leaf.type is None or is_listed(leaf.type.origin):
        return
    yield Diagnostic(
        f"{called(leaf)} is `{leaf.type}`: only a dataclass by itself is flattened, and torch has no such type",
        type_place(leaf),
        (Related(found.place, "the dataclass"), *taken(op, leaf)),
        ops=(op.title,),
    )


@rule("MAG314", "none-return")
def none_return(op: MagiOp) -> Iterator[Diagnostic]:
    """An op that returns `None`, which the decorator turns into `NoneType`.

    Since commit e68e0b0 the decorator resolves annotations with `typing.get_type_hints`, which turns `None` into
    `NoneType`; torch rejects that as a return type. Return a new tensor. Before, `-> None` works.

    Bad:

    ```python
    @magi_register_custom_op("kit::clear", mutates_args=("x",))
    def clear(x: Tensor) -> None:
        x.zero_()
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::cleared")
    def cleared(x: Tensor) -> Tensor:
        return torch.zeros_like(x)
    ```

    Good (before):

    ```toml
    [magi]
    magi = "plain"
    ```

    ```python
    @magi_register_custom_op("kit::clear", mutates_args=("x",), infer_output_meta_fn=lambda x: None)
    def clear(x: Tensor) -> None:
        x.zero_()
    ```
    """
    function = op.body.function
    if is_sound(op) and lowers(op) and op.lowering.returns_none_type and function is not None and function.returns:
        yield Diagnostic(
            f"`{op.function_name}()` returns `None`, which the decorator turns into `NoneType`, and torch refuses: return a tensor",
            op.body.at(function.returns),
            registered(op),
            ops=(op.title,),
        )
