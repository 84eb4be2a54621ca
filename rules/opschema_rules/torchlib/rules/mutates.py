"""``mutates_args``: names that it may contain, its comparison with the written schema, and needless names."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.text import Edit
from opschema_rules.torchlib.model import Operator, Problem, Registration
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.proofs import REGISTRATION
from opschema_rules.torchlib.storage import implementations, rebound, tensors_of


@rule("REG108", "mutates-names", fixable="safe", proof=REGISTRATION)
def mutates_args(operator: Operator) -> Iterator[Diagnostic]:
    """A `mutates_args` with a name that the function cannot write to.

    It lists names of parameters that are tensors, `Optional[Tensor]` or lists of tensors, or is the string `"unknown"`, for
    all of them. Any other string is rejected: `("x")` is the string `"x"`; the tuple is `("x",)`. So is a name that no
    parameter has, and the name of a number.

    Bad:

    ```python
    @torch.library.custom_op("kit::clear", mutates_args=("x"))
    def clear(x: Tensor) -> None:
        x.zero_()
    ```

    Bad:

    ```python
    @torch.library.custom_op("kit::fill", mutates_args=("output",))
    def fill(out: Tensor, value: float) -> None:
        out.fill_(value)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::clear", mutates_args=("x", "more"))
    def clear(x: Tensor, more: Optional[List[Tensor]] = None) -> None:
        x.zero_()


    @torch.library.custom_op("kit::fill", mutates_args="unknown")
    def fill(out: Tensor, value: float) -> None:
        out.fill_(value)
    ```
    """
    definition, function = operator.definition, operator.definition.function
    if _lacks_mutates(operator) and definition.call is not None and definition.body is not None:
        at = definition.body.at(definition.call.items[0])
        yield Diagnostic(
            "`mutates_args` is missing: write `mutates_args=()` if nothing is written", at, ops=(operator.title,)
        )
    if _is_none(operator) and definition.mutates_place is not None:
        message = "`mutates_args` is `None`: write `()` if nothing is written"
        edit = FileEdit(definition.mutates_place.path, Edit(definition.mutates_place.span, "()"))
        fix = Fix("write `()`", (edit,), "unsafe", "`()` says that the function writes none of its arguments")
        yield Diagnostic(message, definition.mutates_place, fix=fix, ops=(operator.title,))
    side = (Related(function.at(function.function.span), "the function"),) if function and function.function else ()
    for item in operator.definition.problems:
        if item.kind == "mutates-string":
            message = (
                f'`mutates_args` is the string `"{item.written}"`: only `"unknown"` may be one; list names in a tuple'
            )
            yield Diagnostic(message, item.place, side, _tuple_fix(operator, item), (operator.title,))
        elif item.kind == "mutates-name":
            message = f"`mutates_args` names `{item.name}`, and the function has no such parameter"
            yield Diagnostic(message, item.place, side, ops=(operator.title,))
        elif item.kind == "mutates-type":
            message = f"`mutates_args` names `{item.name}`, which is not a tensor: it is `{item.written}` in the schema"
            related = (Related(item.place, "the parameter"),)
            place = operator.definition.mutates_place or item.place
            yield Diagnostic(message, place, related, ops=(operator.title,))


@rule("REG109", "mutates-schema")
def mutates_schema(operator: Operator) -> Iterator[Diagnostic]:
    """A `mutates_args` that does not match the arguments that the schema marks as written.

    For `custom_op` with `schema=`, torch requires that `mutates_args` names exactly the arguments with `(a!)`; `"unknown"`
    is not accepted. Otherwise it raises when the module is imported.

    Bad:

    ```python
    @torch.library.custom_op("kit::fill", mutates_args=(), schema="(Tensor(a!) out, float value) -> ()")
    def fill(out, value):
        out.fill_(value)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::fill", mutates_args=("out",), schema="(Tensor(a!) out, float value) -> ()")
    def fill(out, value):
        out.fill_(value)
    ```
    """
    definition = operator.definition
    schema, place = definition.schema, definition.mutates_place
    if definition.api != "custom_op" or not definition.explicit or not isinstance(schema, OperatorSchema) or not place:
        return
    marked = {item.name for item in schema.mutated}
    if definition.mutates_unknown:
        message = (
            '`mutates_args` is `"unknown"`, which torch does not accept with `schema=`: name the written arguments'
        )
        yield Diagnostic(message, place, declared(operator, schema.mutated), ops=(operator.title,))
    elif definition.mutates is not None and definition.mutates != marked:
        yield _unlike(operator, schema, definition.mutates, marked, place)


def _unlike(
    operator: Operator, schema: OperatorSchema, named: frozenset[str], marked: set[str], place: Place
) -> Diagnostic:
    more, fewer = sorted(named - marked), sorted(marked - named)
    parts = [f"`mutates_args` names {quoted(more)}, which the schema does not mark as written"] if more else []
    parts += [f"the schema marks {quoted(fewer)} as written, and `mutates_args` does not name it"] if fewer else []
    sides = [item for item in schema.arguments if item.name in (*more, *fewer)]
    return Diagnostic("; ".join(parts), place, declared(operator, sides), ops=(operator.title,))


def _is_none(operator: Operator) -> bool:
    """Whether ``mutates_args=None`` is written."""
    definition = operator.definition
    given = definition.call.keyword("mutates_args") if definition.call is not None else None
    custom = definition.api in ("custom_op", "triton_op") and given is not None
    return custom and given is not None and given.kind == "const" and given.value is None


def _lacks_mutates(operator: Operator) -> bool:
    """Whether a ``custom_op`` lacks ``mutates_args``."""
    definition = operator.definition
    if definition.call is None or definition.body is None or definition.call.kind != "call":
        return False
    callee = operator.tree.bodies.external(definition.body, definition.call.callee)
    told = {"mutates_args", "**"} & set(definition.call.keywords)
    return callee in ("torch.library.custom_op", "torch.library.triton_op") and not told


def _tuple_fix(operator: Operator, item: Problem) -> Fix | None:
    function, source = operator.definition.function, operator.tree.project.source(item.place.path)
    if function is None or source is None or item.written not in {param.name for param in function.params}:
        return None
    start, end = item.place.span
    written = source.text[start:end]
    if written[:1] not in "'\"" or written[1:-1] != item.written:
        return None
    bracketed = source.text[:start].endswith("=(") and source.text[end : end + 1] == ")"
    text = f"{written}," if bracketed else f"({written},)"
    return Fix(f"write `({written},)`", (FileEdit(item.place.path, Edit(item.place.span, text)),))


@rule("REG404", "unused-mutation", severity="info", needs=(CPP,))
def unused_mutation(operator: Operator) -> Iterator[Diagnostic]:
    """An argument that is marked as written, but that no kernel uses.

    `torch.compile` then copies a tensor, or does not move other operations around the operator, without need.

    Bad:

    ```python
    @torch.library.custom_op("kit::copy_to", mutates_args=("out", "x"))
    def copy_to(x: Tensor, y: Tensor, out: Tensor) -> None:
        out.copy_(y)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::copy_to", mutates_args=("out",))
    def copy_to(x: Tensor, y: Tensor, out: Tensor) -> None:
        out.copy_(y)
    ```
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or not schema.mutated or not operator.complete:
        return
    kernels = _all_kernels(operator)
    bound = [{item.name: name for name, item in tensors_of(operator, *pair).items()} for pair in kernels]
    for argument in schema.mutated if kernels and not operator.definition.mutates_unknown else ():
        names = [item.get(argument.name) for item in bound]
        if None not in names and not any(_reads(body, name) for (body, _), name in zip(kernels, names, strict=True)):
            yield Diagnostic(
                f"`{argument.name}` is marked as written in the schema of `{operator.title}`, and no kernel uses it",
                declared(operator, [argument])[0].place,
                ops=(operator.title,),
            )


def _all_kernels(operator: Operator) -> list[tuple[Body, Registration | None]]:
    """Return every kernel; empty if one of them is not known, or does nothing."""
    found = list(implementations(operator))
    registered = (item for item in operator.registrations if item.role in ("kernel", "other"))
    foreign = any(not isinstance(item.function, Body) for item in registered)
    stub = any(body.function is not None and body.function.stub for body, _ in found)
    return [] if foreign or stub else found


def _reads(function: Body, name: str | None) -> bool:
    names = {use.name.partition(".")[0] for scope in function.scope.walk() for use in scope.uses}
    return name in names or bool(names & {"locals", "vars", "eval", "exec"}) or name in rebound(function)
