"""Dataclasses that do not survive being taken apart and made anew, as an op does with each."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import argument_for
from opschema_cli.source.resolution import ClassRef
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.idempotence import changing
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import made_class, meant_calls
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.reporting import by_keyword, is_sound
from opschema_rules.magi.signature import Branch
from opschema_rules.magi.usage import is_called_to_fail


def rebuilt(op: MagiOp) -> Iterator[Branch]:
    """The dataclasses that an op takes apart and makes anew."""
    if is_sound(op) and by_keyword(op) and not op.lowering.problems and not is_called_to_fail(op):
        yield from op.lowering.branches


def _taken(op: MagiOp, branch: Branch) -> tuple[Related, ...]:
    function = op.body.function
    param = function.param(branch.path[0]) if function is not None else None
    return (Related(op.body.at(param.full_span), "taken here"),) if param is not None else ()


@rule("MAG309", "post-init-twice")
def post_init_twice(op: MagiOp) -> Iterator[Diagnostic]:
    """A `__post_init__` that changes a field each time it runs.

    A call of the op takes the dataclass apart, and its body gets a new one, created from the fields: `__post_init__` runs
    again, on fields that it has already changed. A scale that it multiplies is multiplied twice, without an error. Compute
    in a `classmethod` that creates the instance, or in a property.

    Only plain arithmetic on the field itself is checked, by trying it with numbers: an operation that changes nothing the
    second time, such as a clamp or rounding up, is fine.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float

        def __post_init__(self):
            object.__setattr__(self, "scale", self.scale**-0.5)


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float

        @classmethod
        def of(cls, size):
            return cls(size**-0.5)


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good (the second time changes nothing):

    ```python
    ALIGN = 16


    @dataclass(frozen=True)
    class Config:
        size: int
        low: float = 0.0

        def __post_init__(self):
            object.__setattr__(self, "size", (self.size + ALIGN - 1) // ALIGN * ALIGN)
            object.__setattr__(self, "low", max(self.low, 0.5))


    @magi_register_custom_op("kit::pad")
    def pad(x: Tensor, config: Config) -> Tensor:
        return x * config.size
    ```
    """
    for branch in rebuilt(op):
        for body, call, name in changing(op.tree.evaluator, branch.dataclass):
            yield Diagnostic(
                f"`{branch.dataclass.name}.__post_init__` changes `{name}` each time it runs, and an op runs it again",
                body.at(call),
                _taken(op, branch),
                ops=(op.title,),
            )


@rule("MAG310", "not-rebuildable")
def not_rebuildable(op: MagiOp) -> Iterator[Diagnostic]:
    """A dataclass that cannot be created from its fields.

    The op's body gets a new instance of the dataclass, created with every field, by name. `field(init=False)` is not a
    parameter of `__init__`, so every call raises; so does an `InitVar` without a default, and a custom `__init__` that
    takes other names.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float
        half: float = field(init=False, default=0.5)


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float
        seed: InitVar[int]


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float
        seed: InitVar[int] = 0
        _: KW_ONLY
        kind: ClassVar[str] = "scale"
        half: float = field(default=0.5)


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```
    """
    for branch in rebuilt(op):
        found = branch.dataclass
        for place, reason in [*_unfilled(found), *_own_init(op, found)]:
            message = f"{reason}: an op rebuilds `{found.name}` from all its fields, and every call raises"
            yield Diagnostic(message, place, _taken(op, branch), ops=(op.title,))


def _unfilled(found: Dataclass) -> Iterator[tuple[Place, str]]:
    for item in found.fields:
        if item.init is False:
            yield item.place, f"field `{found.name}.{item.name}` is not a parameter of `__init__`"
    for item in found.init_vars:
        if not item.has_default:
            yield item.place, f"`{item.name}` is an `InitVar` without a default"


def _own_init(op: MagiOp, found: Dataclass) -> Iterator[tuple[Place, str]]:
    own = found.own_init
    body = op.tree.bodies.function(own) if own is not None and (own.owner == found.ref or found.init is False) else None
    if body is None or body.function is None or any(item.init is not True for item in found.fields):
        return
    names = [item.name for item in found.fields]
    params = body.params[1:]
    taken = {item.name for item in params if item.kind in ("normal", "kwonly")}
    lost = [] if any(item.kind == "kwarg" for item in params) else [name for name in names if name not in taken]
    more = [item.name for item in params if item.by_name and item.default is None and item.name not in names]
    if lost or more:
        told = f"does not take {quoted(lost)}" if lost else f"requires {quoted(more)}"
        yield body.at(body.function.span), f"`{found.name}.__init__` {told}"


@rule("MAG311", "subclass-passed", severity="warning")
def subclass_passed(op: MagiOp) -> Iterator[Diagnostic]:
    """A call that passes an instance of a subclass of the dataclass.

    The body gets an instance of the class in the annotation, created from the fields of that class: what the subclass adds
    or overrides is lost, without an error.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float

        def factor(self):
            return self.scale


    @dataclass(frozen=True)
    class Squared(Config):
        def factor(self):
            return self.scale**2


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.factor()


    def scaled(x):
        return scale(x, Squared(3.0))
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @dataclass(frozen=True)
    class Named(Config):
        pass


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale


    def scaled(x, config):
        return scale(scale(scale(x, Config(3.0)), Named(2.0)), config)
    ```
    """
    for branch in rebuilt(op):
        if len(branch.path) == 1:
            for item in meant_calls(op):
                if item.through == "handle":
                    value = argument_for(item.call, op.params, branch.name)
                    yield from _sliced(op, branch, Written(item.body, value) if value is not None else None)


def _sliced(op: MagiOp, branch: Branch, value: Written | None) -> Iterator[Diagnostic]:
    made = made_class(op, value) if value is not None else None
    if value is None or made is None or made == branch.dataclass.ref:
        return
    line = op.tree.lowerer.classes.line(made)
    between = _between(line, branch.dataclass.ref)
    if any(ref.cls.body.functions or ref.cls.body.assigns for ref in between):
        yield Diagnostic(
            f"`{made.name}` is passed for `{branch.name}`, and the body gets a `{branch.dataclass.name}` made from its fields",
            value.place,
            (
                Related(branch.place, "its type"),
                Related(Place(made.file.path, made.cls.span), "its own members are lost"),
            ),
            ops=(op.title,),
        )


def _between(line: object, base: ClassRef) -> list[ClassRef]:
    """The classes before ``base`` in a method resolution order; nothing when it is not in it."""
    refs = [item for item in line if isinstance(item, ClassRef)] if isinstance(line, list) else []
    return refs[: refs.index(base)] if base in refs else []
