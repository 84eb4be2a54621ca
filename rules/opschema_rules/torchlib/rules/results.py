"""Results of fakes and kernels, and a fake's use of its ``*args``, against the operator's schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.evaluation.tensors.results import torch_names
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement, Unpack
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.passing import mismatches
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.rules.op_calls import misfits
from opschema_rules.torchlib.tensor_values import followed, gives_tensor, is_made_by_torch, takes_none

_TUPLE, _LIST = re.compile(r"(?:typing\.)?[Tt]uple\["), re.compile(r"(?:typing\.)?[Ll]ist\[")
_PLAIN = ("int", "float", "bool")
_NOTHING = ("None", "NoneType")
_NO_TENSORS = ("str", "ScalarType", "Device")  # torch may convert a tensor of one element to a number


@rule("REG210", "returned-count", needs=(CPP,))
def returned_count(operator: Operator) -> Iterator[Diagnostic]:
    """A fake or a kernel that returns something other than the schema says.

    Only values whose type is evident are checked: a literal, `None`, a tensor from a function of torch, an argument that is a
    tensor, and arithmetic or a method of one. One value for several raises, and so do a tuple for one value and a literal of
    another type; more values than the schema returns crash the process, from a fake or a function of `custom_op`. Two values for
    three are handed on, and so is any number from a kernel of `Library.impl`: this raises where a caller takes as many as the
    schema returns, and is a warning if no such caller is known. A list for a tuple is fine, and so is `None` among several values.

    Bad:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x[:1].clone(), x[1:].clone()


    @split.register_fake
    def _(x):
        return torch.empty_like(x)
    ```

    Bad (a fake that returns nothing):

    ```python
    @torch.library.custom_op("kit::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2


    @double.register_fake
    def _(x):
        torch.empty_like(x)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x[:1].clone(), x[1:].clone()


    @split.register_fake
    def _(x):
        return [x.new_empty(1), x.new_empty(x.shape[0] - 1)]


    @torch.library.custom_op("kit::rows", mutates_args=())
    def rows(x: Tensor) -> List[Tensor]:
        return [row.clone() for row in x]


    @rows.register_fake
    def _(x):
        return torch.empty_like(x), torch.empty_like(x)


    def fake_of(out):
        def fake(*args):
            if out is None:
                return None  # for operators that write to their arguments
            return torch.empty_like(args[out])

        return fake


    @torch.library.custom_op("kit::fill", mutates_args=("x",))
    def fill(x: Tensor) -> None:
        x.fill_(1)


    fill.register_fake(fake_of(None))
    ```
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or schema.varret or _one(operator, schema) == "doubtful":
        return
    if _lacks_annotation(operator):  # of what is returned, which REG101 reports
        return
    schema = replace(schema, returns=values_returned(schema))
    for called, function in python_functions(operator):
        for value in _certain_returns(schema, function):
            made = followed(function, value)
            if called == "the function" and made.kind == "name":
                continue  # an argument itself, which REG402 reports
            said = _misfit(operator, schema, function, made)
            if said and not (_is_empty(value) and not schema.returns and called != "the fake"):
                found = _returned(operator, schema, function, f"{called} of `{operator.title}` returns {said}", value)
                yield (
                    replace(found, severity=Severity.WARNING)
                    if _is_handed_on(operator, schema, called, made)
                    else found
                )
        lacks = called == "the fake" and not takes_none(schema) and gives_nothing(function)
        if lacks and function.function is not None:
            message = f"the fake of `{operator.title}` returns nothing"
            yield _returned(operator, schema, function, message, Expr("other", *function.function.span))


def values_returned(schema: OperatorSchema) -> tuple[Return, ...]:
    """The values that a schema returns, without `None`."""
    return tuple(item for item in schema.returns if str(item.type) not in _NOTHING)


def _lacks_annotation(operator: Operator) -> bool:
    """Whether the schema is inferred from a function without a return annotation."""
    body, explicit = operator.definition.function, operator.definition.explicit
    return not explicit and body is not None and body.function is not None and body.function.returns is None


def _is_empty(value: Expr) -> bool:
    """Whether a value is ``()`` or ``[]``, which a kernel may return for nothing, and a fake not."""
    return value.kind in ("tuple", "list") and not value.items


def python_functions(operator: Operator) -> Iterator[tuple[str, Body]]:
    """Yield the Python fakes and kernels, and the decorated function, each with its description."""
    for item in operator.registrations:
        if isinstance(item.function, Body) and item.role in ("fake", "kernel"):
            yield f"the {item.role}", item.function
    definition = operator.definition
    if definition.function is not None and definition.api in ("custom_op", "triton_op"):
        yield "the function", definition.function


def _certain_returns(schema: OperatorSchema, function: Body) -> tuple[Expr, ...]:
    """Return the values that a function returns; empty for one made in another function, which may choose between them, if one
    of them matches.
    """
    values = function.scope.returns
    made = function.parent is not None and function.parent.function is not None
    fits = {len(schema.returns)} & {0 if _is_none(value) else len(value.elements or [value]) for value in values}
    return () if made and len(values) > 1 and fits else values


def _returned(operator: Operator, schema: OperatorSchema, function: Body, message: str, value: Expr) -> Diagnostic:
    returns = ", ".join(str(item.type) for item in schema.returns)
    several = f"({returns}{',' * (len(schema.returns) == 1)})"
    shown = returns if len(schema.returns) == 1 and _one(operator, schema) == "value" else several
    return Diagnostic(f"{message}, and the schema returns `{shown}`", function.at(value), ops=(operator.title,))


def _is_handed_on(operator: Operator, schema: OperatorSchema, called: str, value: Expr) -> bool:
    """Whether torch passes a wrong number of values on to callers unchanged, and no call is known to take as many as the schema
    has.
    """
    count, most = len(value.elements or ()), len(schema.returns)
    of_library = called == "the kernel" and operator.definition.api in ("define", "cpp")
    if value.kind not in ("tuple", "list") or most < 2 or not (of_library or 1 < count < most):
        return False
    taken = (call.taken for call in operator.calls if isinstance(call.taken, Unpack))
    return not any(len(item.targets) == most and not item.starred for item in taken)


def _one(operator: Operator, schema: OperatorSchema) -> Literal["value", "tuple", "doubtful"]:
    """Return whether a schema's only returned value is plain or a tuple of one; only the function's annotation shows that."""
    function = operator.definition.function
    if len(schema.returns) != 1 or operator.definition.explicit or function is None or function.function is None:
        return "value"
    returns = function.function.returns
    text = function.file.text(returns).strip("'\"") if returns is not None else ""
    if _TUPLE.match(text):
        return "tuple"
    plain = text in _PLAIN or operator.tree.bodies.external(function, text) in ("torch.Tensor", "torch._tensor.Tensor")
    return "value" if plain or _LIST.match(text) else "doubtful"


def _misfit(operator: Operator, schema: OperatorSchema, function: Body, value: Expr) -> str:
    """Describe a value that the schema does not return; empty if it fits."""
    count = len(schema.returns)
    one = schema.returns[0].type if count == 1 and _one(operator, schema) == "value" else None
    if value.kind in ("tuple", "list"):
        if value.elements is None:
            return ""
        fits = count == len(value.items) if one is None else one.is_list or not one.name or bool(one.items)
        return "" if fits and count != 0 else _several(value)
    if _is_tensor(operator, function, value):
        return "" if one is not None and not one.is_list and one.name not in _NO_TENSORS else "one tensor"
    if value.kind == "const" and value.value is not None:
        refused = count != 1 or schema.returns[0].type.base == "Tensor" or (one is not None and misfits(one, value))
        return f"`{function.file.text(value)}`" if refused else ""
    return ""


def _several(value: Expr) -> str:
    word = {0: "nothing in", 1: "1 value in"}.get(len(value.items), f"{len(value.items)} values in")
    return f"{word} a {value.kind}"


def _is_tensor(operator: Operator, function: Body, value: Expr) -> bool:
    """Whether a value is known to be one tensor: a parameter that is one, arithmetic or a method of one, or a torch function."""
    if _is_tensor_parameter(operator, function, value):
        return True
    if value.kind == "binary":
        return any(
            _is_tensor_parameter(operator, function, item)
            or (item.kind == "binary" and _is_tensor(operator, function, item))
            for item in value.items
        )
    holder, _, word = value.callee.rpartition(".")
    if word.startswith("new_") and any(item.name == holder for item in function.params):
        return word in torch_names("methods")
    owner = value.items[0].owner if value.kind == "call" else None
    if owner is not None and gives_tensor(value, word, "methods") and _is_tensor_parameter(operator, function, owner):
        return True
    return is_made_by_torch(operator.tree, function, value)


def _is_tensor_parameter(operator: Operator, function: Body, value: Expr) -> bool:
    """Whether a value is a parameter to which torch passes one tensor, and which is not assigned."""
    schema = operator.definition.schema
    names = [item.name for item in function.params]
    if value.kind != "name" or value.text not in names or not isinstance(schema, OperatorSchema):
        return False
    at = names.index(value.text)
    passed = schema.arguments[at] if at < len(schema.arguments) else None
    targets = [item.target for item in function.scope.assigns]
    assigned = value.text in [*targets, *(name for loop in function.scope.loops for name in loop.targets)]
    if passed is None or passed.name != value.text or str(passed.type) != "Tensor" or assigned:
        return False
    return not any(value.text in scope.deleted for scope in function.scope.walk())  # `nonlocal` in a function inside


def gives_nothing(function: Body) -> bool:
    """Whether a function has no ``return``, and neither raises nor yields."""
    if not all(map(_is_none, function.scope.returns)):
        return False
    statements = list(all_statements(function.statements))
    parts = [part for item in statements for part in own_expressions(item)]
    calls = [part.items[0].member for part in parts if part.kind == "call"]
    exits = any("error" in name.lower() or name in ("exit", "fail", "_check") for name in calls)
    away = any(item.kind in ("raise", "while") for item in statements) or any(part.kind in _AWAY for part in parts)
    return not exits and not away


_AWAY = ("yield", "yield-from", "await")


def _is_none(value: Expr) -> bool:
    return value.kind == "const" and value.value is None


@rule("REG211", "swallowed-scalars", needs=(CPP,))
def swallowed_scalars(operator: Operator) -> Iterator[Diagnostic]:
    """A fake whose `*args` takes numbers that it uses as tensors.

    `*args` in a fake takes all arguments after the named parameters: the tensors that were intended, and the numbers and
    strings before or between them. `args[0].shape` then fails if the schema passes an `int` at that position, and a loop
    over all of them fails if there is any.

    Bad:

    ```python
    @torch.library.custom_op("kit::matmul", mutates_args=())
    def matmul(m: int, n: int, threads: int, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


    @matmul.register_fake
    def _(m, n, *inputs):
        return torch.empty((m, n), dtype=inputs[0].dtype, device=inputs[0].device)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::matmul", mutates_args=())
    def matmul(m: int, n: int, threads: int, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


    @matmul.register_fake
    def _(m, n, threads, *inputs):
        return torch.empty((m, n), dtype=inputs[0].dtype, device=inputs[0].device)
    ```
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or schema.vararg:
        return
    for item in operator.of_role("fake"):
        params = item.function.params if isinstance(item.function, Body) else ()
        if item.language == "python" and isinstance(item.function, Body) and not mismatches(schema, params):
            yield from _swallowed(operator, schema, item.function)


def _swallowed(operator: Operator, schema: OperatorSchema, fake: Body) -> Iterator[Diagnostic]:
    rest = next((item.name for item in fake.params if item.kind == "vararg"), "")
    named = {item.name for item in schema.kwarg_only}
    taken = [item for item in fake.params if item.kind in ("posonly", "normal") and item.name not in named]
    passed = schema.positional[len(taken) :]
    if not rest or any(item.target == rest for scope in fake.scope.walk() for item in scope.assigns):
        return
    misused = (
        (part, found) for item in all_statements(fake.statements) for part, found in _misused(item, rest, passed)
    )
    for part, argument in misused:
        yield Diagnostic(
            f"`*{rest}` of the fake takes `{argument.name}`, which is `{argument.type}` in the schema of"
            f" `{operator.title}`, and uses it as a tensor: name the parameters before the tensors",
            fake.at(part.span),
            related=declared(operator, [argument]),
            ops=(operator.title,),
        )
        return


def _is_no_tensor(argument: Argument) -> bool:
    return argument.type.base not in ("Tensor", "") and not argument.type.items


def _misused(item: Statement, rest: str, passed: Sequence[Argument]) -> Iterator[tuple[Statement | Expr, Argument]]:
    """The arguments of ``rest`` that are used as tensors and are none, each with its use."""
    if item.kind == "for":
        body = list(all_statements(item.blocks[0]))
        chosen = any(inner.kind in _CHOOSING for inner in body)
        parts = [part for inner in body for part in own_expressions(inner)]
        target, iterable = item.exprs
        yield from ((item, found) for found in _in_loop(target, iterable, parts, rest, passed) if not chosen)
    for part in own_expressions(item):
        yield from ((part, found) for found in _misused_item(part, rest, passed))
        if part.kind in ("listcomp", "setcomp", "generator") and len(part.items[1].items) == 2:
            target, iterable = part.items[1].items
            parts = list(part.items[0].walk())
            yield from ((part, found) for found in _in_loop(target, iterable, parts, rest, passed))


_CHOOSING = ("if", "try", "continue", "break", "return")


def _misused_item(part: Expr, rest: str, passed: Sequence[Argument]) -> Iterator[Argument]:
    """The argument that ``rest[i]`` is, if it is not a tensor and is used as one."""
    for used in _used_as_tensors(part):
        index = used.items[1].value if used.kind == "subscript" and _is_name(used.items[0], rest) else None
        if isinstance(index, int) and index < len(passed) and _is_no_tensor(passed[index]):
            yield passed[index]


def _in_loop(
    target: Expr, iterable: Expr, parts: Sequence[Expr], rest: str, passed: Sequence[Argument]
) -> Iterator[Argument]:
    """Yield the first one that is not a tensor, if a loop uses all of them as tensors."""
    if not _is_name(iterable, rest) or any(part.kind in ("ifexp", "boolop") for part in parts):
        return
    if any(_is_name(used, target.text) for part in parts for used in _used_as_tensors(part) if target.kind == "name"):
        yield from [item for item in passed if _is_no_tensor(item)][:1]


def _is_name(expr: Expr, name: str) -> bool:
    return expr.kind == "name" and expr.text == name


def _used_as_tensors(expr: Expr) -> Iterator[Expr]:
    """The values that one expression uses as tensors."""
    first, _, rest = expr.text.partition(".")
    if expr.kind == "name" and _is_of_tensors(rest.partition(".")[0]):
        yield Expr("name", expr.start, expr.start + len(first), first)
    if expr.kind == "attribute" and _is_of_tensors(expr.text):
        yield expr.items[0]
    if (
        expr.kind == "call"
        and expr.items[0].member.endswith("_like")
        and expr.items[0].member in torch_names("functions")
    ):
        yield from expr.positional()[:1]


def _is_of_tensors(name: str) -> bool:
    """Whether an attribute is of tensors, and of no number."""
    return name in torch_names("metadata") or (name.startswith("new_") and name in torch_names("methods"))
