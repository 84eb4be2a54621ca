"""Parameters, fields and returned values whose types the decorator, or torch behind it, refuses."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.namespaces import postponed
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
    refusals,
    registered,
    taken,
    type_place,
)
from opschema_rules.magi.signature import Branch, Leaf, Problem, ProblemKind
from opschema_rules.magi.types_of_torch import dataclass_in, dataclass_of, is_returned, is_taken
from opschema_rules.torchlib.annotations import Annotations
from opschema_rules.torchlib.inference import Inferrer, Mutates
from opschema_rules.torchlib.type_table import known_releases


def _problems(op: MagiOp, *kinds: ProblemKind) -> Iterator[Problem]:
    """The refusals of these kinds."""
    if is_sound(op):
        yield from (problem for problem in refusals(op) if problem.kind in kinds)


@rule("MAG301", "mutable-dataclass", fixable="safe", proof=CALLS)
def mutable_dataclass(op: MagiOp) -> Iterator[Diagnostic]:
    """A dataclass that an op takes, and that is not frozen.

    An op takes a dataclass as the tensors, numbers and strings in it, and makes it anew from them. What code wrote to
    the first one could be lost, so the decorator takes frozen dataclasses only, and raises a `TypeError` for others,
    also for one that is a field of another. `frozen=True` is a safe fix where no code of the tree assigns one of its
    fields, and nothing inherits from it.

    Before commit e68e0b0 MagiCompiler's ops take no dataclasses at all: see `annotation`.

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

    Good (a class that is no dataclass of the op):

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
    for problem in _problems(op, "mutable-dataclass"):
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

    Schemas of torch have lists of one type, no tuples and no dicts: the decorator raises. A tuple may become a `list`,
    or several parameters; the values of a dict become fields.

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
    for problem in _problems(op, "tuple", "dict"):
        advice = "take a `list`, or several" if problem.kind == "tuple" else "take its values one by one"
        yield Diagnostic(
            f"{problem.where} is a {problem.kind}, `{problem.type}`, and a schema has none: {advice}",
            annotation_place(op, problem),
            registered(op),
            ops=(op.title,),
        )


@rule("MAG303", "annotation")
def annotation(op: MagiOp) -> Iterator[Diagnostic]:
    """A parameter, a field or a return value without an annotation, or with one that schemas have no type for.

    The op's schema is made from the annotations, so every parameter and the return value need one, and `*args` and
    `**kwargs` have no place in it. A field whose annotation is a string with names that its module does not have is
    refused, too, as is a dataclass that holds itself; and, before commit e68e0b0, every dataclass. A type that torch
    does not know, such as `dict` or `Any`, raises as well.

    Bad:

    ```python
    @magi_register_custom_op("kit::add")
    def add(x, *more: Tensor):
        return x + more[0]
    ```

    Bad (a type that no schema has):

    ```python
    from typing import Any


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, options: Any, names: list[str]) -> Tensor:
        return x * options.scale
    ```

    Bad (a dataclass, before they were taken):

    ```toml
    [magi]
    magi = "plain"
    ```

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    from collections.abc import Sequence


    @magi_register_custom_op("kit::add")
    def add(x: "Tensor", sizes: Sequence[int], more: list[Tensor], other: Optional[Tensor] = None) -> Tensor:
        return x + more[0]
    ```
    """
    words: dict[ProblemKind, str] = {
        "variadic": "is variadic, and a schema has no such parameters: write them out",
        "no-annotation": "has no annotation, and the schema needs its type",
        "no-return": "has no annotation, and the schema needs its type",
        "text-field": "has an annotation that stays a string: the module of its class does not have the names in it",
        "recursive": "is a dataclass that holds itself: it is flattened without an end",
    }
    for problem in _problems(op, "variadic", "no-annotation", "no-return", "text-field", "recursive"):
        yield Diagnostic(
            f"{problem.where} {words[problem.kind]}", annotation_place(op, problem), registered(op), ops=(op.title,)
        )
    if is_sound(op):
        yield from _unknown_types(op)
        yield from _plain_dataclasses(op)


def _unknown_types(op: MagiOp) -> Iterator[Diagnostic]:
    known = {problem.place for problem in refusals(op)}
    for leaf in op.lowering.leaves:
        form = leaf.lowered_type
        if form is not None and leaf.place not in known and not _is_listed(form.origin) and is_taken(op, form) is False:
            reason = "torch's schemas have no such type"
            if form.kind == "text":
                reason = "that names nothing where the op is registered: it stays a string"
            message = f"{called(leaf)} is `{form}`, and {reason}"
            yield Diagnostic(message, type_place(leaf), taken(op, leaf) or registered(op), ops=(op.title,))
    returns, function = op.returns, op.body.function
    if returns is not None and function is not None and function.returns is not None and is_returned(returns) is False:
        message = f"`{op.function_name}()` returns `{returns}`, and torch's schemas have no such type of return value"
        yield Diagnostic(message, op.body.at(function.returns), registered(op), ops=(op.title,))
    if is_plain(op):
        yield from _unresolved(op)


def _unresolved(op: MagiOp) -> Iterator[Diagnostic]:
    """Further refusals of torch, which resolves annotations in another way, where it gets them unchanged."""
    nodes = [node for node in op.lowering.nodes if isinstance(node, Leaf)]
    typed = [(node, node.type) for node in nodes if node.type is not None]
    judged = {type_place(node): is_taken(op, form) for node, form in typed if node.enum is None}
    judged.update((type_place(node), True) for node, _ in typed if node.enum is not None and _is_quoted_twice(op, node))
    inferrer = Inferrer(Annotations(op.tree.evaluator), known_releases()[-1])
    for problem in inferrer.infer(op.body, Mutates({})).problems:
        if problem.kind in ("type", "string-annotation") and judged.get(problem.place):
            message = (
                f"parameter `{problem.name}` is `{problem.written}` as torch gets it, and its schemas have no such type"
            )
            yield Diagnostic(message, problem.place, registered(op), ops=(op.title,))
        elif problem.kind in ("return-type", "string-annotation") and not problem.name and _is_returned(op):
            message = f"`{op.function_name}()` returns `{problem.written}` as torch gets it, and its schemas have no such type"
            yield Diagnostic(message, problem.place, registered(op), ops=(op.title,))


def _is_returned(op: MagiOp) -> bool:
    return op.returns is not None and is_returned(op.returns) is True


def _is_quoted_twice(op: MagiOp, leaf: Leaf) -> bool:
    """Whether an annotation stays a string when the string that it is, is evaluated."""
    annotation = leaf.source.annotation
    return postponed(op.body.file) and annotation is not None and isinstance(annotation.value, str)


def _is_listed(origin: str) -> bool:
    return origin in ("tuple", "dict")


def _plain_dataclasses(op: MagiOp) -> Iterator[Diagnostic]:
    """Dataclasses as parameters where the decorator does not lower them."""
    for node in op.lowering.nodes if is_plain(op) else ():
        found = node.dataclass if isinstance(node, Branch) else dataclass_of(op, node.type)
        param = op.body.function.param(node.name) if op.body.function is not None else None
        if found is not None and param is not None and param.annotation is not None:
            yield Diagnostic(
                f"parameter `{node.name}` is the dataclass `{found.name}`: this MagiCompiler hands it to torch, which takes none",
                op.body.at(param.annotation),
                (Related(found.place, "the dataclass"),),
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
    for problem in _problems(op, "dataclass-return"):
        if problem.dataclass is not None:
            yield Diagnostic(
                f"`{op.function_name}()` returns the dataclass `{problem.dataclass.name}`: return a tuple of tensors",
                problem.place,
                (Related(problem.dataclass.place, "the dataclass"),),
                ops=(op.title,),
            )


@rule("MAG305", "closed-values")
def closed_values(op: MagiOp) -> Iterator[Diagnostic]:
    """A `Literal` or an enumeration of other values than strings.

    The decorator makes `str` of a `Literal` or an `Enum` whose values are all strings, and raises for others. Before
    commit e68e0b0 every `Literal` raises, and every enumeration is handed on as it is, which torch 2.13 takes.

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
    for problem in _problems(op, "literal", "enum"):
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
                message = f"parameter `{leaf.name}` is `{leaf.type}`: this MagiCompiler hands it to torch as it is; take `str`"
                yield Diagnostic(message, type_place(leaf), registered(op), ops=(op.title,))


@rule("MAG313", "optional-dataclass")
def optional_dataclass(op: MagiOp) -> Iterator[Diagnostic]:
    """A dataclass inside another type: `Optional[Config]`, `Config | None`, `list[Config]`.

    Only a parameter or field that is the dataclass itself is flattened. Any other type with it goes to torch, which
    says that it does not support it. Give the parameter a default that stands for "none", or take a flag besides.

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
    if found is None or leaf.type is None or _is_listed(leaf.type.origin):
        return
    yield Diagnostic(
        f"{called(leaf)} is `{leaf.type}`: only a dataclass by itself is flattened, and torch has no such type",
        type_place(leaf),
        (Related(found.place, "the dataclass"), *taken(op, leaf)),
        ops=(op.title,),
    )


@rule("MAG314", "none-return")
def none_return(op: MagiOp) -> Iterator[Diagnostic]:
    """An op that returns `None`, where the decorator makes `NoneType` of it.

    Since commit e68e0b0 the decorator resolves annotations with `typing.get_type_hints`, which turns `None` into
    `NoneType`; torch refuses that as a return type. Return a tensor that is new. Before, `-> None` works.

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
