"""The pack's operators for the table: entries with the C++ functions that are their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opschema_cli.operators.model import Declaration, Implementation, Operator
from opschema_cli.operators.schemas import arguments_of, returns_of, schema_text
from opschema_cli.project import Project
from opschema_cli.sequences import grouped
from opschema_rules.executorch.kernels import KernelCheck, read_kernels
from opschema_rules.executorch.load import read_tree
from opschema_rules.executorch.model import OpEntry

if TYPE_CHECKING:
    from opschema_rules.executorch.detection import ExecutorchOptions


def operators(project: Project, options: ExecutorchOptions) -> Iterator[Operator]:
    """The operators of all lists, each once."""
    tree = read_tree(project, options)
    checks = grouped((check.entry.qualified, check) for check in read_kernels(tree))
    for name, entries in tree.by_name.items():
        yield _operator(name, entries, checks)


def _operator(name: str, entries: list[OpEntry], checks: Mapping[str, list[KernelCheck]]) -> Operator:
    first = next((entry for entry in entries if entry.schema_text is not None), entries[0])
    schema, text = first.schema, first.schema_text
    if schema is None:
        declaration = Declaration("listed", first.place, None, None, unresolved="its schema is not known")
    else:
        declaration = Declaration(
            "declared" if text is not None else "listed",
            first.place,
            arguments_of(schema, lambda item: text.place(item.span) if text is not None else None),
            returns_of(schema, lambda item: text.place(item.span) if text is not None else None),
            schema=schema_text(schema),
        )
    return Operator(
        name,
        declaration,
        aliases=(name.partition("::")[2],),
        implementations=tuple(_kernels(checks.get(name, ()))),
    )


def _kernels(checks: Sequence[KernelCheck]) -> Iterator[Implementation]:
    for check in checks:
        place = next((item.place for item in check.here), None)
        yield Implementation("kernel", check.kernel.full, place, registered=check.entry.at(check.kernel.name_node))
