"""The C++ functions of bindings that the tree does not declare or define."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.cpp_missing import FunctionSearch, FunctionUse, MissingFunction
from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.sequences import grouped
from opschema_rules.bindings.functions import function_name, is_local
from opschema_rules.bindings.model import Binding


class Lost(msgspec.Struct, frozen=True, eq=False):
    """A binding whose function is missing."""

    binding: Binding
    function: MissingFunction


def function_use(binding: Binding) -> FunctionUse:
    """The function in the ``def`` of a binding. That of a template, or under an ``if``, may be another one."""
    step, signature = binding.step, binding.signature
    return FunctionUse(
        function_name(binding),
        binding.path,
        step.value_span,
        signature.place if signature is not None else None,
        certain="<" not in step.value and not step.branch,
    )


def lost_functions(project: Project, bindings: Iterable[Binding]) -> Iterator[Lost]:
    """The bindings whose functions are missing."""
    named = (item for item in bindings if item.exact and is_cpp(item.path) and not is_local(item))
    by_use = grouped((function_use(item), item) for item in named)
    for function in FunctionSearch(project, list(by_use)).missing():
        yield from (Lost(binding, function) for binding in by_use[function.use])
