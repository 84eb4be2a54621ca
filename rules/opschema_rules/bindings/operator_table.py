"""The pack's operators for the table: bound functions with their parameters in Python and in C++."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.operators.model import Argument, Declaration, Implementation, Operator, Return, Use
from opschema_cli.project import Project
from opschema_cli.sequences import grouped
from opschema_rules.bindings.calls import BoundCall
from opschema_rules.bindings.load import read_tree
from opschema_rules.bindings.model import Binding
from opschema_rules.torchlib.cpp_signature import table_signature

if TYPE_CHECKING:
    from opschema_rules.bindings.detection import BindingsOptions


def operators(project: Project, options: BindingsOptions) -> Iterator[Operator]:
    """Yield the bound functions of all modules, each name once; equal names from two files are distinguished by the paths."""
    tree = read_tree(project, options)
    calls = grouped((id(binding), call) for call in tree.uses.calls for binding in call.bindings)
    taken: set[str] = set()
    for module in (one for item in tree.modules for one in item.all()):
        for name, bindings in module.by_name.items():
            full = f"{module.shown}.{name}"
            full = full if full not in taken else f"{module.root.path.removesuffix('.cpp')}:{name}"
            taken.add(full)
            yield _operator(full, name, bindings, [call for item in bindings for call in calls.get(id(item), ())])


def _operator(full: str, name: str, bindings: Sequence[Binding], calls: Sequence[BoundCall]) -> Operator:
    first = bindings[0]
    declaration = Declaration(
        first.module.library,
        first.place,
        _arguments(first),
        (Return(type=first.signature.returns),) if first.signature is not None else None,
        unresolved=first.unresolved
        or ("" if first.parameters is not None else "its `py::arg`s do not match the parameters of its function"),
    )
    uses = tuple(Use("call", call.use.place, call.use.text(call.use.call)) for call in dict.fromkeys(calls))
    return Operator(
        full,
        declaration,
        aliases=(name,),
        implementations=tuple(_implementation(item) for item in bindings),
        uses=uses,
    )


def _arguments(binding: Binding) -> tuple[Argument, ...] | None:
    if binding.parameters is None:
        return None
    return tuple(
        Argument(
            item.name or item.cpp_name or f"arg{index}",
            item.type,
            item.kind,
            default=item.default,
            mutated=None,
            place=binding.at(item.annotation.span) if item.annotation is not None else item.place,
        )
        for index, item in enumerate(binding.parameters)
    )


def _implementation(binding: Binding) -> Implementation:
    signature = binding.signature
    return Implementation(
        "kernel",
        binding.function,
        signature.place if signature is not None else None,
        signatures=(table_signature(signature),) if signature is not None else (),
        registered=binding.place,
        conditional=bool(binding.conditions) or binding.step.branch,
        unresolved=binding.unresolved,
    )
