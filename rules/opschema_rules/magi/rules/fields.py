"""Fields of dataclasses that ops take: written though they are frozen, or read though there are none."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import expects_failure, is_handled
from opschema_cli.evaluation.statements import all_statements, bound_by, own_expressions, targets
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.magi.as_torch import as_operator
from opschema_rules.magi.dataclass_variables import Holder, branch_of, holders
from opschema_rules.magi.instance_attributes import attributes_of, is_patched
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.reporting import by_keyword
from opschema_rules.magi.signature import Branch
from opschema_rules.magi.usage import is_called_to_fail


@rule("MAG362", "frozen-field")
def frozen_field(op: MagiOp) -> Iterator[Diagnostic]:
    """An assignment to a field of a frozen dataclass that an op takes.

    An op accepts only frozen dataclasses, and an assignment to an attribute of one raises. The rule checks the op's body,
    its meta, setup and backward functions, and callers that create the instance. Create a new one with
    `dataclasses.replace()`.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        config.scale *= 2
        return x * config.scale
    ```

    Bad (in a setup function):

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def setup(ctx, inputs, output):
        x, config = inputs
        config.scale = 1.0
        ctx.config = config


    def backward(ctx, grad):
        return grad * ctx.config.scale, None


    @magi_register_custom_op("kit::scale", setup_context_fn=setup, backward_fn=backward)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    from dataclasses import replace


    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        config = replace(config, scale=config.scale * 2)
        return x * config.scale
    ```
    """
    for holder in _judged(op):
        for place, text in _writes(op, holder.body):
            found = branch_of(holder.variables, text)
            if found is not None and len(found[1]) == 1 and _is_frozen(op, found[0], found[1][0]):
                made = found[0].dataclass
                yield Diagnostic(
                    f"`{text}` is written, and `{made.name}` is frozen, so that this raises; make a new one with"
                    " `dataclasses.replace()`",
                    place,
                    (Related(made.maker_place, "frozen here"),),
                    ops=(op.title,),
                )


@rule("MAG363", "missing-field")
def missing_field(op: MagiOp) -> Iterator[Diagnostic]:
    """A read of a field that the dataclass of an op does not have.

    The rule checks the op's body, its meta, setup and backward functions, and callers that create the instance. Methods,
    properties, class variables and what `__post_init__` adds are attributes as well. Nothing is reported for a class whose
    attributes are not known, or for a variable whose attributes or type the code tests.

    Bad:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.factor
    ```

    Bad (in a backward function):

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float


    def setup(ctx, inputs, output):
        ctx.config = inputs[1]


    def backward(ctx, grad):
        config = ctx.config
        return grad * config.factor, None


    @magi_register_custom_op("kit::scale", setup_context_fn=setup, backward_fn=backward)
    def scale(x: Tensor, config: Config) -> Tensor:
        return x * config.scale
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Config:
        scale: float
        kind: ClassVar[str] = "plain"

        @property
        def half(self):
            return self.scale / 2

        def twice(self):
            return self.scale * 2


    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor, config: Config) -> Tensor:
        offset = config.offset if hasattr(config, "offset") else 0
        return x * config.half * config.twice() + offset
    ```
    """
    for holder in _judged(op):
        for expr in _reads(op, holder.body):
            found = branch_of(holder.variables, expr.text)
            if found is not None and _lacks(op, found[0], found[1][0]):
                made = found[0].dataclass
                near = near_name(found[1][0], [item.name for item in made.fields])
                yield Diagnostic(
                    f"`{made.name}` has no `{found[1][0]}`{did_you_mean(near)}",
                    holder.body.at(expr),
                    (Related(made.place, "the dataclass"),),
                    ops=(op.title,),
                )


def _judged(op: MagiOp) -> Iterator[Holder]:
    if as_operator(op) is not None and by_keyword(op) and not is_called_to_fail(op):
        yield from (holder for holder in holders(op) if holder.variables)


def _writes(op: MagiOp, body: Body) -> Iterator[tuple[Place, str]]:
    """The attributes that a body assigns or deletes, and that nothing keeps from raising."""
    for item in body.scope.assigns:
        declared = item.value is None and item.annotation is not None
        if "." in item.target and not declared and not _is_meant(op, body, item.start):
            yield body.at(item.span), item.target
    for part in all_statements(body.statements):
        for expr in part.exprs if part.kind == "delete" else ():
            if expr.kind == "name" and "." in expr.text and not _is_meant(op, body, expr.start):
                yield body.at(expr), expr.text


def _reads(op: MagiOp, body: Body) -> Iterator[Expr]:
    """The dotted names that a body reads, and that nothing keeps from raising."""
    for item in all_statements(body.statements):
        written = {id(part) for target in targets(item) for part in target.walk()}
        exprs = list(own_expressions(item))
        inner = {
            name for expr in exprs if expr.kind == "for" and item.kind != "for" for name in bound_by(expr.items[0])
        }
        for expr in exprs:
            first, _, rest = expr.text.partition(".") if expr.kind == "name" else ("", "", "")
            plain = rest and first not in inner and id(expr) not in written
            if plain and not _is_meant(op, body, expr.start):
                yield expr


def _is_meant(op: MagiOp, body: Body, at: int) -> bool:
    """Whether the exception raised at a place is caught, or expected by a test."""
    return is_handled(op.tree.bodies, body, at) or expects_failure(op.tree.bodies, body, at)


def _is_frozen(op: MagiOp, branch: Branch, name: str) -> bool:
    """Whether an assignment to an attribute raises: to any of an instance of the frozen class itself, else to a field."""
    made = branch.dataclass
    return made.made == made.ref or (
        made.field(name) is not None and op.tree.lowerer.classes.method(made.ref, "__setattr__") is None
    )


def _lacks(op: MagiOp, branch: Branch, name: str) -> bool:
    ref = branch.dataclass.ref
    names = attributes_of(op.tree, ref)
    hidden = name.startswith("__") or names is None or name in names
    return not hidden and not is_patched(op.tree, ref, name)
