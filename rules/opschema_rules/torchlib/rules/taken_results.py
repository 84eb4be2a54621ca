"""How callers use an operator's result, against the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.evaluation.expected_errors import allows_any_error
from opschema_cli.evaluation.reaching import bindings, bound_at, guards
from opschema_cli.evaluation.statements import all_statements
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import LEAVING, Assign, Unpack, Use
from opschema_cli.suggestions import did_you_mean
from opschema_rules.torchlib.gradients import gradients
from opschema_rules.torchlib.model import OpCall, Operator, StrayUse
from opschema_rules.torchlib.rules.autograd import times
from opschema_rules.torchlib.rules.op_calls import has_namesakes, is_meant, other_definitions
from opschema_rules.torchlib.rules.results import python_functions, values_returned


@rule("REG405", "taken-results", needs=(CPP,))
def taken_results(operator: Operator) -> Iterator[Diagnostic]:
    """Code that takes another number of results than the operator's schema has.

    A call is unpacked into another number of names than the operator returns, or the result of an operator that returns
    nothing replaces the tensor that was passed to it, which is `None` from then on. A `setup_context` that unpacks `output` is
    checked, too, unless it does so under a condition. One tensor may be unpacked into its rows, and a list of tensors into its
    elements.

    Bad:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x[:1].clone(), x[1:].clone()


    def halves(x):
        first, second, rest = torch.ops.kit.split(x)
        return first, second
    ```

    Bad (`x` is `None` when it is returned):

    ```python
    @torch.library.custom_op("kit::scale_", mutates_args=("x",))
    def scale_(x: Tensor, factor: float) -> None:
        x.mul_(factor)


    def scaled(x):
        x = scale_(x, 2.0)
        return x + 1
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x[:1].clone(), x[1:].clone()


    @torch.library.custom_op("kit::scale_", mutates_args=("x",))
    def scale_(x: Tensor, factor: float) -> None:
        x.mul_(factor)


    def halves(x):
        first, *_ = torch.ops.kit.split(x)
        scale_(first, 2.0)
        return first
    ```
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or schema.varret or schema.name_only:
        return
    found = list(_found(operator, len(values_returned(schema))))
    schemas = [item.definition.schema for item in other_definitions(operator)] if found else []
    alike = all(isinstance(item, OperatorSchema) and len(item.returns) == len(schema.returns) for item in schemas)
    if found and alike and not has_namesakes(operator):
        yield from found


def _found(operator: Operator, count: int) -> Iterator[Diagnostic]:
    for call in operator.calls if count != 1 else ():
        if isinstance(call.taken, Unpack) and _differs(call.taken, count) and not _fits_a_kernel(operator, call.taken):
            allowed = allows_any_error(operator.tree.bodies, call.body, call.taken.start)
            if not allowed and is_meant(operator, call):
                yield _unpacked(operator, call.body.at(call.taken.span), call.taken, count, "is unpacked")
        elif isinstance(call.taken, Assign) and not count and _replaces(call, call.taken) and is_meant(operator, call):
            yield Diagnostic(
                f"`{operator.title}` returns nothing, so that `{call.taken.target}` is `None` from here on; call it without"
                " assigning its result",
                call.body.at(call.taken.span),
                related=(Related(operator.definition.written, "its schema"),),
                ops=(operator.title,),
            )
    for setup in _setups(operator) if count > 1 else ():
        for unpack in setup.scope.unpacks:
            plain = unpack.value.kind == "name" and unpack.value.text == "output"
            if plain and _differs(unpack, count) and not any(guards(setup.scope, unpack.start)):
                yield _unpacked(operator, setup.at(unpack.span), unpack, count, "is unpacked by `setup_context`")


def _unpacked(operator: Operator, place: Place, unpack: Unpack, count: int, how: str) -> Diagnostic:
    return Diagnostic(
        f"the result of `{operator.title}` {how} into {times(len(unpack.targets), 'name')}; the schema returns"
        f" {times(count, 'value') if count else 'nothing'}",
        place,
        related=(Related(operator.definition.written, "its schema"),),
        ops=(operator.title,),
    )


def _differs(unpack: Unpack, count: int) -> bool:
    targets = len(unpack.targets)
    return targets - 1 > count if unpack.starred else targets != count


def _fits_a_kernel(operator: Operator, unpack: Unpack) -> bool:
    """Whether a Python kernel returns as many values, which torch hands on; the kernel is at fault then."""
    values = (value for _, function in python_functions(operator) for value in function.scope.returns)
    return any(len(value.elements or ()) == len(unpack.targets) for value in values if value.kind in ("tuple", "list"))


def _replaces(call: OpCall, assign: Assign) -> bool:
    """Whether the result takes the place of an argument that is used afterwards."""
    if all(item.kind != "name" or item.text != assign.target for item in call.call.items[1:]):
        return False
    body, start = call.body, assign.statement.end
    behind = (bound_at(item) for item in bindings(body.scope, assign.target))
    end = min((place for place in behind if place > start), default=len(body.file.source.text))
    uses = [use for use in _uses(body).get(assign.target, ()) if start <= use.start < end]
    tested = any(_TESTED.match(body.file.source.text, use.end) for use in uses)
    return bool(uses) and not tested and not _leaves(body, assign)


_TESTED = re.compile(r"\s*(?:is|==|!=)\s+(?:not\s+)?None\b")


@lru_cache(maxsize=16)
def _uses(body: Body) -> dict[str, list[Use]]:
    """The uses of each name and its attributes in a body."""
    found: dict[str, list[Use]] = {}
    for use in body.scope.uses:
        found.setdefault(use.name.partition(".")[0], []).append(use)
    return found


def _leaves(body: Body, assign: Assign) -> bool:
    """Whether the branch in which a name is assigned leaves the code after it."""
    end = min((span.end for span in guards(body.scope, assign.start)), default=assign.end)
    return any(assign.end <= start < end for start in _leaving(body))


@lru_cache(maxsize=16)
def _leaving(body: Body) -> list[int]:
    return [item.start for item in all_statements(body.statements) if item.kind in LEAVING]


def _setups(operator: Operator) -> Iterator[Body]:
    """Yield the ``setup_context`` functions whose parameter ``output`` is torch's argument."""
    for gradient in gradients(operator):
        setup = gradient.setup
        if setup is not None and all(item.target != "output" for item in setup.scope.assigns):
            yield setup


@rule("REG406", "unknown-operator", needs=(CPP,))
def unknown_operator(use: StrayUse) -> Iterator[Diagnostic]:
    """A misspelt operator name after `torch.ops`.

    `torch.ops.kit.name` raises an `AttributeError` if no operator `kit::name` is defined. Other packages may define operators in
    the namespaces of the tree, so only names that differ from the name of an operator of the tree by one letter, by underscores
    between letters or by the `s` of a plural are reported, and only if the name occurs in no YAML, no string and no argument of
    a macro in C++. It is a warning if the tree uses other operators of the namespace that it does not define, and for plurals.
    Code whose errors are caught or expected is not checked. Names after the
    `ops` module that kernel-builder generates for a kernel of the Hugging Face Hub are checked in the same way.

    Bad:

    ```python
    @torch.library.custom_op("kit::rms_norm", mutates_args=())
    def rms_norm(x: Tensor, eps: float) -> Tensor:
        return x / (x.norm() + eps)


    def forward(x):
        return torch.ops.kit.rmsnorm(x, 1e-6)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::rms_norm", mutates_args=())
    def rms_norm(x: Tensor, eps: float) -> Tensor:
        return x / (x.norm() + eps)


    def forward(x):
        if hasattr(torch.ops.kit, "rms_norms"):
            return torch.ops.kit.rms_norms([x], 1e-6)[0]
        return torch.ops.kit.rms_norm(x, 1e-6)
    ```
    """
    message = (
        f"nothing defines `{use.name}`, so that this raises" if use.sure else f"the tree does not define `{use.name}`"
    )
    yield Diagnostic(
        f"{message}{did_you_mean(use.meant)}",
        use.place,
        related=tuple(Related(item.place, "its definition") for item in use.tree.by_name[use.meant][:1]),
        ops=(use.meant,),
        severity=Severity.ERROR if use.sure else Severity.WARNING,
    )
