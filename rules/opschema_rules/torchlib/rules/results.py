"""What fakes and kernels plainly return, and what a fake does with its ``*args``, against the operator's schema."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from opschema_cli.lint.diagnostic import CPP, Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.function_tree import FunctionTree, function_tree, is_name, own_nodes
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.passing import mismatches
from opschema_rules.torchlib.places import declared

_MAKERS = frozenset({"empty", "zeros", "ones", "full", "rand", "randn", "empty_strided"})
_MAKERS_LIKE = frozenset({f"{name}_like" for name in ("empty", "zeros", "ones", "full", "rand", "randn")})
_NEW = frozenset({"new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new_empty_strided"})
_TUPLE, _LIST = re.compile(r"(?:typing\.)?[Tt]uple\["), re.compile(r"(?:typing\.)?[Ll]ist\[")
_PLAIN = ("int", "float", "bool")
_NOTHING = ("None", "NoneType")
_OF_TENSORS = _NEW | {"shape", "dtype", "device", "size", "ndim", "dim", "numel", "stride", "is_cuda", "element_size"}


@rule("REG210", "returned-count", needs=(CPP,))
def returned_count(operator: Operator) -> Iterator[Diagnostic]:
    """A fake or a kernel that plainly returns something else than the schema says.

    Looked at are values that tell by themselves what they are: a tuple or list that is written out, `None`, a tensor
    that `torch.empty` and its like make. Fewer or more values than the schema returns raise in the best case; three
    for two, from a fake or a kernel of a defined operator, ends the process. A list for a tuple is fine, and so is
    `None` among several.

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
    ```
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or schema.varret or _one(operator, schema) == "doubtful":
        return
    schema = replace(schema, returns=tuple(item for item in schema.returns if str(item.type) not in _NOTHING))
    for called, function in _functions(operator):
        values = function.scope.returns
        for value in values:
            said = _misfit(operator, schema, function, _followed(function, value))
            if said and not (_is_empty(value) and not schema.returns and called != "the fake"):
                yield _returned(operator, schema, function, f"{called} of `{operator.title}` returns {said}", value)
        if called == "the fake" and schema.returns and _gives_nothing(function) and function.function is not None:
            message = f"the fake of `{operator.title}` returns nothing"
            yield _returned(operator, schema, function, message, Expr("other", *function.function.span))


def _is_empty(value: Expr) -> bool:
    """Whether a value is ``()`` or ``[]``, which a kernel may return for nothing, and a fake not."""
    return value.kind in ("tuple", "list") and not value.items


def _functions(operator: Operator) -> Iterator[tuple[str, Body]]:
    for item in operator.registrations:
        if isinstance(item.function, Body) and item.role in ("fake", "kernel"):
            yield f"the {item.role}", item.function
    definition = operator.definition
    if definition.function is not None and definition.api in ("custom_op", "triton_op"):
        yield "the function", definition.function


def _returned(operator: Operator, schema: OperatorSchema, function: Body, message: str, value: Expr) -> Diagnostic:
    returns = ", ".join(str(item.type) for item in schema.returns)
    several = f"({returns}{',' * (len(schema.returns) == 1)})"
    shown = returns if len(schema.returns) == 1 and _one(operator, schema) == "value" else several
    return Diagnostic(f"{message}, and the schema returns `{shown}`", function.at(value), ops=(operator.title,))


def _one(operator: Operator, schema: OperatorSchema) -> Literal["value", "tuple", "doubtful"]:
    """Whether a schema's one returned value is one, or a tuple of one, which only the function's annotation tells."""
    function = operator.definition.function
    if len(schema.returns) != 1 or operator.definition.explicit or function is None or function.function is None:
        return "value"
    returns = function.function.returns
    text = function.file.text(returns).strip("'\"") if returns is not None else ""
    if _TUPLE.match(text):
        return "tuple"
    plain = text in _PLAIN or operator.tree.bodies.external(function, text) in ("torch.Tensor", "torch._tensor.Tensor")
    return "value" if plain or _LIST.match(text) else "doubtful"


def _followed(function: Body, value: Expr) -> Expr:
    """What a name stands for that is surely given a value once."""
    assigns = [item for item in function.scope.assigns if item.target == value.text]
    if value.kind != "name" or len(assigns) != 1 or not assigns[0].sure or not function.values(value.text):
        return value
    return assigns[0].value or value


def _misfit(operator: Operator, schema: OperatorSchema, function: Body, value: Expr) -> str:
    """What a value is, if it is none that the schema returns."""
    count = len(schema.returns)
    if value.kind in ("tuple", "list"):
        if value.elements is None:
            return ""
        one = schema.returns[0].type if count == 1 and _one(operator, schema) == "value" else None
        fits = count == len(value.items) if one is None else one.is_list or not one.name or bool(one.items)
        return "" if fits and count != 0 else _several(value)
    if _is_tensor(operator, function, value):
        one = schema.returns[0].type if count == 1 and _one(operator, schema) == "value" else None
        return "" if one is not None and not one.is_list else "one tensor"
    if value.kind == "const" and value.value is not None:
        types = {item.type.base for item in schema.returns}
        return f"`{function.file.text(value)}`" if count != 1 or types == {"Tensor"} else ""
    return ""


def _several(value: Expr) -> str:
    word = {0: "nothing in", 1: "1 value in"}.get(len(value.items), f"{len(value.items)} values in")
    return f"{word} a {value.kind}"


def _is_tensor(operator: Operator, function: Body, value: Expr) -> bool:
    """Whether a value surely is one tensor: a call of one of torch's makers."""
    holder, _, word = value.callee.rpartition(".")
    if word in _NEW and any(item.name == holder for item in function.params):
        return True
    external = operator.tree.bodies.external(function, value.callee) if word in _MAKERS | _MAKERS_LIKE else ""
    return external == f"torch.{word}"


def _gives_nothing(function: Body) -> bool:
    """Whether a function has no ``return``, and neither raises nor yields."""
    tree = function_tree(function) if all(map(_is_none, function.scope.returns)) else None
    if tree is None:
        return False
    away = (ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, ast.While)
    calls = [_last(node.func) for node in tree.nodes if isinstance(node, ast.Call)]
    exits = any("error" in name.lower() or name in ("exit", "fail", "_check") for name in calls)
    return not exits and not any(isinstance(node, away) for node in tree.nodes)


def _is_none(value: Expr) -> bool:
    return value.kind == "const" and value.value is None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@rule("REG211", "swallowed-scalars", needs=(CPP,))
def swallowed_scalars(operator: Operator) -> Iterator[Diagnostic]:
    """A fake whose `*args` takes numbers that it uses as tensors.

    `*args` in a fake takes whatever the schema passes behind the parameters that are named: the tensors that one
    thought of, and the numbers and strings before or between them. `args[0].shape` then fails where the schema passes
    an `int` at that place, and a loop over all of them where there is any.

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
        tree = function_tree(item.function) if any(param.kind == "vararg" for param in params) else None
        if tree is not None and item.language == "python" and not mismatches(schema, tree.body.params):
            yield from _swallowed(operator, schema, tree)


def _swallowed(operator: Operator, schema: OperatorSchema, tree: FunctionTree) -> Iterator[Diagnostic]:
    rest = next((item.name for item in tree.body.params if item.kind == "vararg"), "")
    named = {item.name for item in schema.kwarg_only}
    taken = [item for item in tree.body.params if item.kind in ("posonly", "normal") and item.name not in named]
    passed = schema.positional[len(taken) :]
    if not rest or any(item.target == rest for scope in tree.body.scope.walk() for item in scope.assigns):
        return
    for node in tree.nodes:
        argument = _misused_item(node, rest, passed) or _misused_in_loop(node, rest, passed)
        if argument is not None:
            yield Diagnostic(
                f"`*{rest}` of the fake takes `{argument.name}`, which is `{argument.type}` in the schema of"
                f" `{operator.title}`, and uses it as a tensor: name the parameters before the tensors",
                tree.place(node) if isinstance(node, ast.expr | ast.stmt) else tree.body.at(tree.body.params[-1].span),
                related=declared(operator, [argument]),
                ops=(operator.title,),
            )
            return


def _is_no_tensor(argument: Argument) -> bool:
    return argument.type.base not in ("Tensor", "") and not argument.type.items


def _misused_item(node: ast.AST, rest: str, passed: tuple[Argument, ...]) -> Argument | None:
    """What ``rest[i]`` is, if it is no tensor and is used as one."""
    for used in _used_as_tensors(node):
        if isinstance(used, ast.Subscript) and is_name(used.value, rest) and isinstance(used.slice, ast.Constant):
            index = used.slice.value
            if isinstance(index, int) and index < len(passed) and _is_no_tensor(passed[index]):
                return passed[index]
    return None


def _misused_in_loop(node: ast.AST, rest: str, passed: tuple[Argument, ...]) -> Argument | None:
    """The first that is no tensor, if all are gone through and used as tensors."""
    loop = node.generators[0] if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp) else node
    if not isinstance(loop, ast.For | ast.comprehension) or isinstance(node, ast.comprehension):
        return None
    inside: list[ast.AST] = [node.elt] if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp) else []
    inside += node.body if isinstance(node, ast.For) else []
    nodes = [item for part in inside for item in own_nodes(part)]
    choosing = (ast.If, ast.IfExp, ast.Try, ast.Continue, ast.Break, ast.BoolOp, ast.Return)
    if not is_name(loop.iter, rest) or not isinstance(loop.target, ast.Name):
        return None
    if isinstance(loop, ast.comprehension) and loop.ifs:
        return None
    if any(isinstance(item, choosing) for item in nodes):
        return None
    used = any(is_name(used, loop.target.id) for item in nodes for used in _used_as_tensors(item))
    return next((item for item in passed if _is_no_tensor(item)), None) if used else None


def _used_as_tensors(node: ast.AST) -> Iterator[ast.expr]:
    """The values that one node uses as tensors."""
    if isinstance(node, ast.Attribute) and node.attr in _OF_TENSORS:
        yield node.value
    elif isinstance(node, ast.Call) and _last(node.func) in _MAKERS_LIKE and node.args:
        yield node.args[0]
