"""What kernels do to the tensors that they are given: return them, write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.function_tree import FunctionTree, function_tree
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.model import Operator, Registration
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.storage import Tensors, gives_itself, implementations, sharing, tensors_of, writes_itself

_COMPOSITE = frozenset({"CompositeImplicitAutograd", "CompositeExplicitAutograd", "default"})


@rule("REG402", "returned-input", needs=(CPP,))
def returned_input(operator: Operator) -> Iterator[Diagnostic]:
    """A kernel that returns what it was given, or a view of it.

    What an operator returns may not share its storage with what it was given. `custom_op` raises at each call that
    comes to such a `return`; an operator of `define` only lies to `torch.compile`, which is a warning here. Return a
    copy (`x.clone()`), or, where the operator writes `x`, return nothing. Views are known by their method
    (`x.view(-1)`, `x[0]`, `x.t()`); nothing is said of `x.contiguous()`, `x.to(...)` and `x.reshape(...)`, which copy
    or not.

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
    for tree, tensors, registration in _kernels(operator, _may_return_argument):
        checked = definition.api in ("custom_op", "triton_op")
        if registration is not None and not (
            _is_of_definition(registration) if checked else _is_of_device(registration)
        ):
            continue
        for node in _twice(operator, tree, tensors) if checked else ():
            message = (
                f"`{operator.title}` returns `{ast.unparse(node)}` twice: torch raises; return a copy the second time"
            )
            yield Diagnostic(message, tree.place(node), ops=(operator.title,))
        for node in returned_values(tree):
            name = shared_argument(tree, node, tensors)
            if name:
                yield _returns(operator, tree, node, name, tensors, checked=checked)


_WRITES = re.compile(r"[A-Za-z0-9]_\(|\][^\n=]*=|[-+*/%&|^@>]=|\bout\s*=")


def _may_return_argument(function: Body) -> bool:
    """Whether a function returns anything that looks like what it was given, or a view of it."""
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
    """Whether there is anything in a function's text that looks like a write to what it holds."""
    outer = function.function.outer if function.function is not None else None
    return outer is not None and _WRITES.search(function.file.source.text, outer.start, outer.end) is not None


def _kernels(
    operator: Operator, may: Callable[[Body], bool]
) -> Iterator[tuple[FunctionTree, Tensors, Registration | None]]:
    """The kernels in Python in which what is looked for may be at all."""
    for function, registration in implementations(operator):
        tree = function_tree(function) if may(function) else None
        if tree is not None:
            yield tree, tensors_of(operator, tree, registration), registration


def _is_of_definition(registration: Registration) -> bool:
    """Whether a kernel is one of the ``custom_op`` itself, whose results torch checks."""
    call = registration.call
    return call is not None and call.items[0].text.rpartition(".")[2] == "register_kernel"


def _is_of_device(registration: Registration) -> bool:
    """Whether a kernel is for a device: a composite one may return what the operators in it do."""
    return bool(registration.keys) and not (registration.keys or frozenset()) & _COMPOSITE


def returned_values(tree: FunctionTree) -> Iterator[ast.expr]:
    """Each value that a function returns, of a tuple or list each."""
    for node in tree.nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            yield from node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]


def _twice(operator: Operator, tree: FunctionTree, tensors: Tensors) -> Iterator[ast.expr]:
    """New tensors that are returned a second time in one tuple or list."""
    for node in tree.nodes:
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple | ast.List):
            seen: set[str] = set()
            for item in node.value.elts:
                if isinstance(item, ast.Name) and item.id in seen and _is_new_tensor(operator, tree, item.id, tensors):
                    yield item
                seen.update([item.id] if isinstance(item, ast.Name) else [])


def _is_new_tensor(operator: Operator, tree: FunctionTree, name: str, tensors: Tensors) -> bool:
    """Whether a name surely is a tensor that the function makes: a copy, or one of ``torch.empty`` and its like."""
    value = _only_value(tree, name)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr in ("clone", "new_empty", "new_zeros"):
        return bool(sharing(value.func.value, tensors))
    external = operator.tree.bodies.external(tree.body, ast.unparse(value.func))
    return external in ("torch.empty_like", "torch.empty", "torch.zeros_like", "torch.zeros", "torch.ones_like")


def shared_argument(tree: FunctionTree, node: ast.expr, tensors: Tensors) -> str:
    """The argument that a returned value shares its storage with; a name that is given a value once stands for it."""
    if isinstance(node, ast.Name) and node.id not in tensors:
        return sharing(_only_value(tree, node.id), tensors)
    return sharing(node, tensors)


def _only_value(tree: FunctionTree, name: str) -> ast.expr | None:
    """The one value that a name is given, at the top of the function; None for a name of several or of none."""
    assigns = [item for item in tree.nodes if isinstance(item, ast.Assign) and _binds(item, name)]
    stores = [item for item in ast.walk(tree.node) if isinstance(item, ast.Name) and item.id == name]
    writes = [item for item in stores if not isinstance(item.ctx, ast.Load)]
    at_top = len(assigns) == 1 and assigns[0] in tree.node.body
    return assigns[0].value if at_top and len(writes) == 1 else None


def _binds(item: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in item.targets)


def _returns(
    operator: Operator, tree: FunctionTree, node: ast.expr, name: str, tensors: Tensors, *, checked: bool
) -> Diagnostic:
    what = (
        f"`{name}` itself" if isinstance(node, ast.Name) and node.id == name else f"what shares the storage of `{name}`"
    )
    effect = "torch raises" if checked else "`torch.compile` takes it for a new tensor"
    written = tensors[name].is_write
    do = "return nothing, or a copy" if written else "return a copy"
    return Diagnostic(
        f"`{operator.title}` returns {what}: {effect}; {do}",
        tree.place(node),
        related=declared(operator, [tensors[name]]),
        ops=(operator.title,),
        severity=Severity.ERROR if checked else Severity.WARNING,
    )


@rule("REG403", "undeclared-mutation", needs=(CPP,))
def undeclared_mutation(operator: Operator) -> Iterator[Diagnostic]:
    """A kernel that writes an argument that the schema does not mark as written.

    Nothing tells: the call works, and `torch.compile`, which takes the argument for unchanged, moves and drops code
    around it. Name the argument in `mutates_args`, or write `Tensor(a!)` in the schema. Looked at are writes to the
    parameter itself: `x.add_(1)`, `x[0] = 1`, `x += 1`, `torch.relu_(x)`, `torch.add(a, b, out=x)`, and those through
    a view of it. Nothing is said where the function puts back what it took (`kept = x[i].clone()`, then `x[i] = kept`).

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
    for tree, tensors, _ in _kernels(operator, _may_write):
        unmarked = {name: item for name, item in tensors.items() if not item.is_write}
        for node, name in first_writes(operator, tree, unmarked):
            if _puts_back(tree, name):
                continue
            yield Diagnostic(
                f"`{name}` is written here, and the schema of `{operator.title}` does not mark it as written: {_do(operator)}",
                tree.place(node),
                related=declared(operator, [unmarked[name]]),
                ops=(operator.title,),
            )


def _puts_back(tree: FunctionTree, name: str) -> bool:
    """Whether items of an argument are given values that were taken from it: after ``kept = x[i].clone()``, ``x[i] = kept``."""
    assigns = [item for item in tree.nodes if isinstance(item, ast.Assign)]
    taken = {
        target.id
        for item in assigns
        for target in item.targets
        if isinstance(target, ast.Name)
        and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(item.value))
    }
    return any(
        isinstance(item.value, ast.Name) and item.value.id in taken and _is_item_of(target, name)
        for item in assigns
        for target in item.targets
    )


def _is_item_of(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name


def _do(operator: Operator) -> str:
    return "write `Tensor(a!)`" if operator.definition.explicit else "name it in `mutates_args`"


def first_writes(operator: Operator, tree: FunctionTree, tensors: Tensors) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The first write to each of some arguments."""
    seen: set[str] = set()
    for node in tree.nodes:
        for written, name in _written(operator, tree, node, tensors):
            if name and name not in seen:
                seen.add(name)
                yield written, name


def _written(
    operator: Operator, tree: FunctionTree, node: ast.AST, tensors: Tensors
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.Assign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [item for target in targets for item in (target.elts if isinstance(target, ast.Tuple) else [target])]
        for target in parts:
            if isinstance(target, ast.Subscript):
                yield target, sharing(target.value, tensors)
            elif isinstance(node, ast.AugAssign) and isinstance(target, ast.Name):
                yield target, sharing(target, tensors)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _called(operator, tree, node, node.func, tensors)


def _called(
    operator: Operator, tree: FunctionTree, node: ast.Call, callee: ast.Attribute, tensors: Tensors
) -> Iterator[tuple[ast.expr, str]]:
    if writes_itself(callee.attr):
        yield node, sharing(callee.value, tensors)
    if not operator.tree.bodies.external(tree.body, ast.unparse(callee)).startswith("torch."):
        return
    if writes_itself(callee.attr) and node.args:
        yield node, sharing(node.args[0], tensors)
    for word in node.keywords:
        if word.arg == "out":
            for value in word.value.elts if isinstance(word.value, ast.Tuple) else [word.value]:
                yield value, sharing(value, tensors)
