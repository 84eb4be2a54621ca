"""Python kernels of in-place operators that cannot write their tensor: they only compute new tensors from it."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.model import AtenKernel

_READ = frozenset(
    ("shape", "dtype", "device", "layout", "ndim", "is_cuda", "requires_grad", "size", "numel", "dim", "stride")
)
"""Attributes and methods that do not return a tensor."""


def is_unwritten(kernel: AtenKernel, function: Body, name: str) -> bool:
    """Whether a function is known not to write its parameter ``name``: each use of it is an operand of arithmetic, or an
    argument of a torch function that neither writes its arguments nor returns a view of one.
    """
    scope = function.scope
    uses = sum(use.name.partition(".")[0] == name for use in scope.uses)
    bound = name in scope.named or name in scope.deleted
    if not uses or bound or scope.functions or scope.lambdas or scope.classes:
        return False
    statements = list(all_statements(function.statements))
    if any(item.kind == "augassign" and item.exprs[0].text == name for item in statements):
        return False
    parts = [part for item in statements for part in own_expressions(item)]
    return sum(_harmless(kernel, function, name, part) for part in parts) == uses


def _harmless(kernel: AtenKernel, function: Body, name: str, part: Expr) -> int:
    """Return the uses of a name in an expression itself that write nothing."""
    if part.kind in ("binary", "unary"):
        return sum(item.kind == "name" and item.text == name for item in part.items)
    if part.kind == "name":
        first, _, rest = part.text.partition(".")
        return first == name and rest in _READ
    if part.kind != "call" or not part.callee:
        return 0
    owner, _, last = part.callee.rpartition(".")
    passed = sum(item.kind == "name" and item.text == name for _, item in part.args)
    if owner == name:
        own = last not in _READ and _is_pure(kernel, last)
        return (own + passed) if own or last in _READ else 0
    is_torch = function_of_torch(kernel, function, part.callee) == last
    return passed if is_torch and part.keyword("out") is None and _is_pure(kernel, last) else 0


def function_of_torch(kernel: AtenKernel, function: Body, callee: str) -> str:
    """The name of a function in the module ``torch``; empty for another one."""
    full = kernel.tree.bodies.external(function, callee)
    return full.removeprefix("torch.") if full.startswith("torch.") else ""


def _is_pure(kernel: AtenKernel, base: str) -> bool:
    """Whether no overload of a torch function, except those with ``out``, writes an argument or returns a view of one."""
    aten = kernel.tree.aten
    schemas = [schema for name in _overloads(kernel, base) for schema in aten.schemas(name)]
    known = [schema for schema in schemas if not any(item.is_write and item.kwarg_only for item in schema.arguments)]
    return bool(known) and all(item.alias is None for schema in known for item in schema.arguments)


def _overloads(kernel: AtenKernel, base: str) -> Iterator[str]:
    names = kernel.tree.aten.reference.catalogue.by_name
    return (name for name in names if name.partition(".")[0] == base)
