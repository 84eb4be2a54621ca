"""Python values that are known to be one tensor, and schemas for which `None` is a value."""

from __future__ import annotations

from opschema_cli.evaluation.tensors.results import torch_names
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.model import Tree


def followed(function: Body, value: Expr) -> Expr:
    """Return the value of a name that is assigned exactly once."""
    assigns = [item for item in function.scope.assigns if item.target == value.text]
    if value.kind != "name" or len(assigns) != 1 or not assigns[0].sure or not function.values(value.text):
        return value
    made = assigns[0].value or value
    return value if made.kind == "list" and _may_change(function, value) else made


def _may_change(function: Body, value: Expr) -> bool:
    """Whether a function uses a list elsewhere than at one place, and may append to it."""
    uses = (use for scope in function.scope.walk() for use in scope.uses)
    return any(use.name.partition(".")[0] == value.text and use.start != value.start for use in uses)


def gives_tensor(call: Expr, name: str, field: str) -> bool:
    """Whether a call of a function or method of torch by some name returns one tensor; ``field`` says which of the two it is."""
    return name in torch_names(field) and not {"as_tuple", "**"}.intersection(call.keywords)


def is_made_by_torch(tree: Tree, function: Body, value: Expr) -> bool:
    """Whether a value is a call of a function of torch that returns one tensor."""
    external = tree.bodies.external(function, value.callee) if value.callee else ""
    return external.startswith("torch.") and gives_tensor(value, external.removeprefix("torch."), "functions")


def takes_none(schema: OperatorSchema) -> bool:
    """Whether a function may return `None` for a schema: for no value, or for one that may be `None`."""
    if len(schema.returns) > 1:
        return False
    return all(item.type.optional or item.type.name == "Any" for item in schema.returns)
