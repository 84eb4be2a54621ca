"""Gradient registrations of an operator: what ``setup_context`` stores on ``ctx`` and ``backward`` reads from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

import msgspec

from opschema_cli.evaluation.expected_errors import allows_any_error
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr, Unpack, Use
from opschema_rules.torchlib.model import Operator, Registration
from opschema_rules.torchlib.tensor_values import followed, gives_tensor, is_made_by_torch

CONTEXT = frozenset(
    {"saved_tensors", "saved_variables", "needs_input_grad", "save_for_backward", "save_for_forward", "mark_dirty"}
    | {"mark_non_differentiable", "set_materialize_grads", "materialize_grads", "non_differentiable", "dirty_tensors"}
    | {"to_save", "saved_for_forward", "next_functions", "metadata", "name", "register_hook", "register_prehook"}
    | {"requires_grad", "mark_shared_storage", "apply", "apply_boxed", "apply_jvp"}
    | {"maybe_clear_saved_tensors", "clear_saved_tensors_on_access", "_get_compiled_autograd_symints", "__class__"}
)
"""Attributes that autograd's own context has."""


class Gradient(msgspec.Struct, frozen=True):
    """An operator's gradient: its registration, ``backward`` and ``setup_context`` where they are known, and the schema."""

    operator: Operator
    registration: Registration
    schema: OperatorSchema
    backward: Body | None
    setup: Body | None

    @property
    def sets_up(self) -> bool:
        """Whether a ``setup_context`` is registered, known or not."""
        return self.registration.setup is not None


def gradients(operator: Operator) -> Iterator[Gradient]:
    """Every gradient registered for an operator whose schema is known."""
    schema = operator.definition.schema
    if isinstance(schema, OperatorSchema) and not schema.vararg:
        for item in operator.of_role("autograd"):
            backward = item.function if isinstance(item.function, Body) else None
            setup = item.setup if isinstance(item.setup, Body) else None
            yield Gradient(operator, item, schema, backward, setup)


_MOST = 1000
"""Maximum number of values that are counted."""


def spread(value: Expr, kinds: Collection[str] = ("tuple",)) -> tuple[Expr, ...] | None:
    """Return the elements of a tuple, with those that ``+``, ``*`` and unpacking (``*((None,) * 3)``) add to it; None if they are
    not evident.
    """
    if value.kind in kinds:
        parts = [
            spread(item.items[0], ("tuple", "list")) if item.kind == "starred" else (item,) for item in value.items
        ]
    elif value.kind == "binary" and value.text == "+":
        parts = [spread(item, kinds) for item in value.items]
    elif (
        value.kind == "binary"
        and value.text == "*"
        and type(count := value.items[1].value) is int
        and 0 < count <= _MOST
    ):
        parts = [spread(value.items[0], kinds)] * count
    else:
        return None
    known = [part for part in parts if part is not None]
    return tuple(chain(*known)) if len(known) == len(parts) and sum(map(len, known)) <= _MOST else None


def is_gradient(gradient: Gradient, backward: Body, value: Expr) -> bool:
    """Whether an expression is clearly a tensor: a gradient passed to ``backward``, arithmetic with one, a method of one or a
    torch function that returns a tensor, or a name for such a value.
    """
    return _is_tensor(gradient, backward, followed(backward, value))


def _is_tensor(gradient: Gradient, backward: Body, value: Expr) -> bool:
    if value.kind == "binary" and value.text in ("*", "/", "-", "+", "@"):
        return any(_is_tensor(gradient, backward, item) for item in value.items)
    if value.kind == "call":
        owner = value.items[0].owner
        of_gradient = owner is not None and _is_tensor(gradient, backward, owner)
        by_method = of_gradient and gives_tensor(value, value.items[0].member, "methods")
        return by_method or is_made_by_torch(gradient.operator.tree, backward, value)
    plain = [item for item in backward.params if item.kind in ("posonly", "normal")]
    tensors = {
        param.name
        for param, item in zip(plain[1:], gradient.schema.returns, strict=False)
        if str(item.type) == "Tensor"
    }
    written = any(item.target == value.text for scope in backward.scope.walk() for item in scope.assigns)
    return value.kind == "name" and value.text in tensors and not written


def passes_setup_by_place(gradient: Gradient) -> bool:
    """Whether the registering call passes ``setup_context`` without its name."""
    call = gradient.registration.call
    if call is None or not gradient.sets_up or not call.callee.endswith("register_autograd"):
        return False
    return call.keyword("setup_context") is None and not any(word in ("*", "**") for word in call.keywords)


def context_of(body: Body, place: int = 0) -> str:
    """The name of a function's parameter for the context; empty when it writes that name, or has none."""
    plain = [item for item in body.params if item.kind in ("posonly", "normal")]
    name = plain[place].name if place < len(plain) else ""
    return "" if any(item.target == name for item in body.scope.assigns) else name


def context_uses(body: Body, context: str) -> list[Use] | None:
    """Places where a function, or one inside it, reads an attribute of its context; None when it hands the context on."""
    found: list[Use] = []
    prefix = f"{context}."
    for scope in body.scope.walk():
        written = {item.start for item in scope.assigns if item.target.startswith(prefix)}
        for use in scope.uses:
            if use.name.startswith(prefix):
                found.append(use)
            elif use.name == context and use.start not in written:  # `ctx` in `ctx.a = b` is no use of it
                return None
    return found


def attribute_of(dotted: str) -> str:
    """The attribute of ``ctx.attribute.more``."""
    return dotted.split(".")[1]


def unset_reads(bodies: Bodies, backward: Body, context: str, known: Collection[str]) -> Iterator[Use]:
    """Yield the places where a ``backward`` reads an attribute of its context that is not among the ``known`` ones, without
    allowing an error.
    """
    for use in context_uses(backward, context) or ():
        attribute = attribute_of(use.name)
        allowed = attribute in known or attribute.startswith("_")
        if not allowed and not allows_any_error(bodies, backward, use.start):
            yield use


def misfit_unpacks(bodies: Bodies, backward: Body, context: str, count: int) -> Iterator[Unpack]:
    """Yield the places where a ``backward`` unpacks a number of saved tensors other than ``count``, without allowing an error;
    none if it checks their number.
    """
    for unpack in backward.scope.unpacks if not asks_for_saved(backward, context) else ():
        whole = unpack.value.kind == "name" and unpack.value.text == f"{context}.saved_tensors" and not unpack.starred
        if whole and len(unpack.targets) != count and not allows_any_error(bodies, backward, unpack.start):
            yield unpack


def written_on(body: Body, context: str) -> set[str] | None:
    """The attributes that a function writes on its context; None when others may write more."""
    if context_uses(body, context) is None or _sets_dynamically(body, context):
        return None
    prefix = f"{context}."
    targets = [item.target for scope in body.scope.walk() for item in scope.assigns]
    return {target[len(prefix) :].partition(".")[0] for target in targets if target.startswith(prefix)}


def _sets_dynamically(body: Body, context: str) -> bool:
    scopes = list(body.scope.walk())
    calls = [call for scope in scopes for call in scope.calls]
    special = (f"{context}.__dict__", f"{context}.__setattr__")
    return any(use.name.startswith(special) for scope in scopes for use in scope.uses) or any(
        call.callee in ("setattr", "object.__setattr__", "vars", "exec")
        and any(item.text == context for item in call.items[1:])
        for call in calls
    )


def asks_for_saved(backward: Body, context: str) -> bool:
    """Whether a function checks how many tensors are saved, as one that serves several others does."""
    named = {f"{context}.saved_tensors"}
    for item in backward.scope.assigns:  # `tensors = list(ctx.saved_tensors)`, `count = len(tensors)`
        value = item.value.items[1] if item.value is not None and _counts(item.value) else item.value
        if value is not None and value.text in named:
            named.add(item.target)
    asked = [item.expr for item in backward.scope.conditions]
    asked += [item.items[0] for item in backward.scope.conditional_expressions]
    return any(part.text in named for expr in asked for part in expr.walk())


def _counts(value: Expr) -> bool:
    return value.kind == "call" and value.callee in ("len", "list", "tuple") and len(value.items) == 2


def saved(body: Body, context: str) -> Expr | None:
    """The one ``ctx.save_for_backward(...)`` of a function that always runs; None for none, several, or an unpacked argument."""
    calls = [
        call for scope in body.scope.walk() for call in scope.calls if call.callee == f"{context}.save_for_backward"
    ]
    if len(calls) != 1 or any(calls[0].keywords):
        return None
    guarded = body.scope.guarding.innermost(calls[0].start) is not None
    looped = any(loop.body.start <= calls[0].start < loop.body.end for loop in body.scope.loops)
    return None if guarded or looped or calls[0] not in body.scope.calls else calls[0]
