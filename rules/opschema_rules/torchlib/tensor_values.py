"""Values of Python code that surely are one tensor."""

from __future__ import annotations

from opschema_cli.evaluation.tensors.results import torch_names
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.model import Tree


def followed(function: Body, value: Expr) -> Expr:
    """The value of a name that is surely assigned once."""
    assigns = [item for item in function.scope.assigns if item.target == value.text]
    if value.kind != "name" or len(assigns) != 1 or not assigns[0].sure or not function.values(value.text):
        return value
    return assigns[0].value or value


def is_made_by_torch(tree: Tree, function: Body, value: Expr) -> bool:
    """Whether a value is a call of a function of torch that returns one tensor."""
    external = tree.bodies.external(function, value.callee) if value.callee else ""
    return external.startswith("torch.") and external.removeprefix("torch.") in torch_names("functions")
