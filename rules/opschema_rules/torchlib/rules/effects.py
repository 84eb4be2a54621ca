"""Kernels that return or write their input tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from opschema_cli.evaluation.statements import all_statements, own_expressions, targets
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_rules.torchlib.model import Operator, Registration, Tree
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.storage import (
    Tensors,
    gives_itself,
    implementations,
    only_value,
    sharing,
    tensors_of,
    writes_itself,
)
from opschema_rules.torchlib.triton_writes import passed_for_writing

_COMPOSITE = frozenset({"CompositeImplicitAutograd", "CompositeExplicitAutograd", "default"})


@rule("REG402", "returned-input", needs=(CPP,))
def returned_input(operator: Operator) -> Iterator[Diagnostic]:
    """A kernel that returns one of its arguments, or a view of one.

    An output of an operator may not share its storage with an input. `custom_op` raises at each call that reaches such a
    `return`; an operator of `define` only misleads `torch.compile`, which is a warning here. Return a copy (`x.clone()`),
    or, if the operator writes to `x`, return nothing. Views are recognised by their method (`x.view(-1)`, `x[0]`, `x.t()`);
    nothing is reported for `x.contiguous()`, `x.to(...)` and `x.reshape(...)`, which may or may not copy.

    Bad:

    ```python
    @torch.library.custom_op("kit::add_", mutates_args=("x",))
    def add_(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        return x
    ```

    Bad (a view):

    ```python
    @torch.library.custom_op("kit::first", mutates_args=())
    def first(x: Tensor, rows: int) -> Tensor:
        if rows == 0:
            return x[:0]
        return x[:rows].clone()
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::add_", mutates_args=("x",))
    def add_(x: Tensor, y: Tensor) -> None:
        x.add_(y)


    @torch.library.custom_op("kit::flat", mutates_args=())
    def flat(x: Tensor) -> Tensor:
        x = x.clone()
        return x.view(-1)
    ```
    """
    definition, schema = operator.definition, operator.definition.schema
    if not isinstance(schema, OperatorSchema) or definition.tags != frozenset():
        return
    if any(item.alias is not None for item in schema.returns):
        return
    for function, tensors, registration in _kernels(operator, _may_return_argument):
        checked = definition.api in ("custom_op", "triton_op")
        if registration is not None and not (
            _is_of_definition(registration) if checked else _is_of_device(registration)
        ):
            continue
        for item in _twice(operator, function, tensors) if checked else ():
            message = f"`{operator.title}` returns `{item.text}` twice: torch raises; return a copy the second time"
            yield Diagnostic(message, function.at(item), ops=(operator.title,))
        for item in returned_values(function):
            name = shared_argument(function, item, tensors)
            if name:
                yield _returns(operator, function, item, name, tensors, checked=checked)


_WRITES = re.compile(r"[A-Za-z0-9]_(?:\.\w+)?\(|\][^\n=]*=|[-+*/%&|^@>]=|\bout\s*=|\]\s*\(")


def _may_return_argument(function: Body) -> bool:
    """Whether a function returns anything that looks like an argument, or a view of one."""
    return any(_looks_given(function, value) for value in function.scope.returns)


def _looks_given(function: Body, value: Expr) -> bool:
    if value.kind in ("tuple", "list"):
        names = [item.text for item in value.items if item.kind == "name"]
        return len(set(names)) < len(names) or any(_looks_given(function, item) for item in value.items)
    if value.kind == "call":
        return gives_itself(value.items[0].text.rpartition(".")[2])
    if value.kind == "name" and "." not in value.text and value.text not in {item.name for item in function.params}:
        assigns = [item.value for item in function.scope.assigns if item.target == value.text]
        only = assigns[0] if len(assigns) == 1 else None
        return only is not None and (only.kind == "name" or _looks_given(function, only))
    return value.kind in ("name", "subscript", "attribute", "ifexp", "walrus", "other")


def _may_write(function: Body) -> bool:
    """Whether a function's text contains anything that looks like a write to an argument."""
    outer = function.function.outer if function.function is not None else None
    return outer is not None and _WRITES.search(function.file.source.text, outer.start, outer.end) is not None


def _kernels(operator: Operator, may: Callable[[Body], bool]) -> Iterator[tuple[Body, Tensors, Registration | None]]:
    """Yield the Python kernels in which the effect may occur at all."""
    for function, registration in implementations(operator):
        if may(function):
            yield function, tensors_of(operator, function, registration), registration


def _is_of_definition(registration: Registration) -> bool:
    """Whether a kernel belongs to the ``custom_op`` itself, whose results torch checks."""
    call = registration.call
    return call is not None and call.items[0].text.rpartition(".")[2] == "register_kernel"


def _is_of_device(registration: Registration) -> bool:
    """Whether a kernel is for a device: a composite one may return the results of operators in it."""
    return bool(registration.keys) and not (registration.keys or frozenset()) & _COMPOSITE


def _returns_of(function: Body) -> Iterator[Expr]:
    return (item.exprs[0] for item in all_statements(function.statements) if item.kind == "return" and item.exprs)


def returned_values(function: Body) -> Iterator[Expr]:
    """Each value that a function returns, of a tuple or list each, and each of a conditional expression."""
    for value in (arm for returned in _returns_of(function) for arm in _arms(returned)):
        for item in value.items if value.kind in ("tuple", "list") else [value]:
            yield from _arms(item)


def _arms(value: Expr) -> Iterator[Expr]:
    """The values that a conditional expression may have; another expression itself."""
    if value.kind == "ifexp":
        for arm in value.items[1:]:
            yield from _arms(arm)
    else:
        yield value


def _twice(operator: Operator, function: Body, tensors: Tensors) -> Iterator[Expr]:
    """New tensors that are returned a second time in one tuple or list."""
    for value in _returns_of(function):
        seen: set[str] = set()
        for item in value.items if value.kind in ("tuple", "list") else ():
            if item.kind == "name" and item.text in seen and _is_new_tensor(operator, function, item.text, tensors):
                yield item
            seen.update([item.text] if item.kind == "name" else [])


def _is_new_tensor(operator: Operator, function: Body, name: str, tensors: Tensors) -> bool:
    """Whether a name is known to be a tensor that the function creates: a copy, or the result of ``torch.empty`` and similar
    functions.
    """
    value = only_value(function, name)
    if value is None or value.kind != "call":
        return False
    if value.items[0].member in ("clone", "new_empty", "new_zeros"):
        return bool(sharing(value.items[0].owner, tensors))
    external = operator.tree.bodies.external(function, value.callee)
    return external in ("torch.empty_like", "torch.empty", "torch.zeros_like", "torch.zeros", "torch.ones_like")


def shared_argument(function: Body, value: Expr, tensors: Tensors) -> str:
    """The argument that a returned value shares its storage with; a name assigned once counts as its value."""
    if value.kind == "name" and value.text not in tensors:
        return sharing(only_value(function, value.text), tensors)
    return sharing(value, tensors)


def _returns(
    operator: Operator, function: Body, value: Expr, name: str, tensors: Tensors, *, checked: bool
) -> Diagnostic:
    itself = value.kind == "name" and value.text == name
    what = f"`{name}` itself" if itself else f"data that shares the storage of `{name}`"
    effect = "torch raises" if checked else "`torch.compile` takes it for a new tensor"
    written = tensors[name].is_write
    do = "return nothing, or a copy" if written else "return a copy"
    return Diagnostic(
        f"`{operator.title}` returns {what}: {effect}; {do}",
        function.at(value),
        related=declared(operator, [tensors[name]]),
        ops=(operator.title,),
        severity=Severity.ERROR if checked else Severity.WARNING,
    )


@rule("REG403", "undeclared-mutation", needs=(CPP,))
def undeclared_mutation(operator: Operator) -> Iterator[Diagnostic]:
    """A kernel that writes to an argument that the schema does not mark as written.

    There is no error message: the call works, but `torch.compile` assumes that the argument is unchanged, and moves or removes
    code around the call. Name the argument in `mutates_args`, or write `Tensor(a!)` in the schema. The rule finds writes to
    the parameter itself, such as `x.add_(1)`, `x[0] = 1`, `x += 1`, `torch.relu_(x)` and `torch.add(a, b, out=x)`, and writes
    through a view of it. A tensor that is passed to a Triton kernel (`kernel[grid](x)`) is written if the kernel always stores to
    that parameter. A function that restores the old values (`kept = x[i].clone()`, then `x[i] = kept`) is not reported.

    Bad:

    ```python
    @torch.library.custom_op("kit::step", mutates_args=())
    def step(x: Tensor, rate: float) -> Tensor:
        x.mul_(rate)
        return x.sum()
    ```

    Bad:

    ```python
    torch.library.define("kit::store", "(Tensor cache, Tensor value, int at) -> ()")


    @torch.library.impl("kit::store", "cpu")
    def store(cache, value, at):
        cache[at] = value
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::step", mutates_args=("x",))
    def step(x: Tensor, y: Tensor, rate: float) -> Tensor:
        x.mul_(rate)
        y = y.clone()
        y[0] = 1
        return y.add_(1)
    ```
    """
    definition, schema = operator.definition, operator.definition.schema
    inferred_blindly = not definition.explicit and definition.mutates is None and not definition.mutates_unknown
    if not isinstance(schema, OperatorSchema) or (inferred_blindly and definition.api != "cpp"):
        return
    if any(item.kind == "mutates-name" for item in definition.problems):
        return  # `mutates_args` names what is not there, which is reported and may be meant for what is written
    for function, tensors, _ in _kernels(operator, _may_write):
        unmarked = {name: item for name, item in tensors.items() if not item.is_write}
        for written, name in first_writes(operator, function, unmarked):
            if puts_back(function, name):
                continue
            yield Diagnostic(
                f"`{name}` is written here, and the schema of `{operator.title}` does not mark it as written: {_do(operator)}",
                function.at(written),
                related=declared(operator, [unmarked[name]]),
                ops=(operator.title,),
            )


def puts_back(function: Body, name: str) -> bool:
    """Whether items of an argument are set to values that were read from it: after ``kept = x[i].clone()``, ``x[i] = kept``."""
    assigns = [item for item in all_statements(function.statements) if item.kind == "assign"]
    pairs = [(target, item.exprs[-1]) for item in assigns for target in targets(item)]
    taken = {target.text for target, value in pairs if target.kind == "name" and _uses(value, name)}
    return any(value.text in taken and value.kind == "name" and _is_item_of(target, name) for target, value in pairs)


def _uses(value: Expr, name: str) -> bool:
    return any(part.kind == "name" and f"{part.text}.".startswith(f"{name}.") for part in value.walk())


def _is_item_of(target: Expr, name: str) -> bool:
    return target.kind == "subscript" and target.items[0].kind == "name" and target.items[0].text == name


def _do(operator: Operator) -> str:
    return "write `Tensor(a!)`" if operator.definition.explicit else "name it in `mutates_args`"


def first_writes(operator: Operator, function: Body, tensors: Tensors) -> Iterator[tuple[Expr, str]]:
    """The first write to each of some arguments."""
    seen: set[str] = set()
    for item in all_statements(function.statements):
        for written, name in _written(operator, function, item, tensors):
            if name and name not in seen:
                seen.add(name)
                yield written, name


def _written(operator: Operator, function: Body, item: Statement, tensors: Tensors) -> Iterator[tuple[Expr, str]]:
    assigned = targets(item) if item.kind in ("assign", "augassign") else ()
    for target in [part for one in assigned for part in (one.items if one.kind == "tuple" else [one])]:
        if target.kind == "subscript":
            yield target, sharing(target.items[0], tensors)
        elif item.kind == "augassign" and target.kind == "name" and "." not in target.text:
            yield target, sharing(target, tensors)
    for expr in own_expressions(item):
        if expr.kind == "call" and expr.items[0].owner is not None:
            yield from _called(operator, function, expr, tensors)
        elif expr.kind == "call":
            for value in passed_for_writing(operator.tree.bodies, function, expr):
                yield value, sharing(value, tensors)


def _called(operator: Operator, function: Body, call: Expr, tensors: Tensors) -> Iterator[tuple[Expr, str]]:
    callee = call.items[0]
    if writes_itself(callee.member):
        yield call, sharing(callee.owner, tensors)
    external = operator.tree.bodies.external(function, call.callee)
    if external.startswith("torch.ops.") and not external.startswith("torch.ops.aten."):
        yield from ((value, sharing(value, tensors)) for value in _written_by(operator.tree, external, call))
    elif external.startswith("torch."):
        yield from _called_of_torch(call, tensors)


def _written_by(tree: Tree, name: str, call: Expr) -> Iterator[Expr]:
    """The values that a call of ``torch.ops.ns.name`` passes for what that operator writes by its schema, if that is known."""
    namespace, _, own = name.removeprefix("torch.ops.").removesuffix(".default").partition(".")
    operators = tree.by_name.get(f"{namespace}::{own}", [])
    schema = operators[0].definition.schema if len(operators) == 1 else None
    for at, item in enumerate(schema.arguments) if isinstance(schema, OperatorSchema) else ():
        value = call.argument(item.name, None if item.kwarg_only else at)
        if item.is_write and value is not None:
            yield value


def _called_of_torch(call: Expr, tensors: Tensors) -> Iterator[tuple[Expr, str]]:
    callee = call.items[0]
    if writes_itself(callee.member) and call.positional():
        yield call, sharing(call.positional()[0], tensors)
    out = call.keyword("out")
    for value in out.items if out is not None and out.kind == "tuple" else [out]:
        if value is not None:
            yield value, sharing(value, tensors)
