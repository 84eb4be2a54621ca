"""Joins entries with other declarations of the same operators: in other lists, and in Python and C++ for torch."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_changes import SchemaChange, schema_changes
from opschema_rules.executorch.model import ATEN, OpEntry, Tree

SHOWN = ("argument-renamed", "default", "keyword-only", "positional")
"""Changes invisible to the runtime, which passes all arguments by position, but visible to users of the operator."""

HARMLESS = (*SHOWN, "return-renamed", "symint", "alias", "return-alias")
"""The same changes, and others that nobody sees: the runtime has no `SymInt`."""


class DeclaredTwice(msgspec.Struct, frozen=True, eq=False):
    """An entry with a schema of its own, and another declaration whose schema differs.

    ``where`` says in words what declares the other one.
    """

    entry: OpEntry
    schema: OperatorSchema
    other: OperatorSchema
    place: Place
    where: str
    changes: tuple[SchemaChange, ...]

    @property
    def related(self) -> Related:
        """The other declaration."""
        return Related(self.place, f"it is `{self.other}`")

    @property
    def breaking(self) -> list[SchemaChange]:
        """The changes visible to the runtime."""
        return [item for item in self.changes if item.kind not in HARMLESS]


def declarations(tree: Tree) -> Iterator[DeclaredTwice]:
    """The entries that differ from another declaration of the same operator."""
    for entries in tree.by_name.values():
        own = [entry for entry in entries if entry.schema_text is not None and entry.schema is not None]
        for entry in own[1:]:
            yield from _compared(entry, own[0].schema, own[0].place, f"`{own[0].file.path}`")
    yield from _of_torch(tree)
    yield from _of_aten(tree)


def _of_aten(tree: Tree) -> Iterator[DeclaredTwice]:
    """Entries with a schema of their own for an operator of ATen, which a model is exported with as PyTorch declares it."""
    for name, entries in tree.by_name.items():
        entry = next((one for one in entries if one.schema_text is not None and one.schema is not None), None)
        operator = tree.aten.operator(name.partition("::")[2]) if entry and name.startswith(f"{ATEN}::") else None
        if entry is None or operator is None or tree.aten.may_be_others:
            continue
        if all(map(entry.differs, tree.aten.schemas(operator.name))):
            yield from _compared(entry, operator.schema, operator.place, tree.aten.origin)


def _of_torch(tree: Tree) -> Iterator[DeclaredTwice]:
    """Yield the entries that the tree also defines with torch.library."""
    wanted = {
        name: next((one for one in entries if one.schema_text is not None), None)
        for name, entries in tree.by_name.items()
        if not name.startswith(f"{ATEN}::")
    }
    if not any(wanted.values()):
        return
    # Not at the top: lists of ATen's operators are compared with none of these.
    from opschema_rules.torchlib.detection import TorchlibOptions
    from opschema_rules.torchlib.graph import graph_of

    for operator in graph_of(tree.project, TorchlibOptions()).tree.operators:
        definition = operator.definition
        names = operator.names or frozenset()
        entry = wanted.get(next(iter(names))) if len(names) == 1 else None
        if entry is None or not isinstance(definition.schema, OperatorSchema) or definition.errors:
            continue
        if definition.explicit:
            where = "`TORCH_LIBRARY`" if definition.api == "cpp" else "Python"
            yield from _compared(entry, definition.schema, definition.written, where)


def _compared(entry: OpEntry, other: OperatorSchema | None, place: Place, where: str) -> Iterator[DeclaredTwice]:
    schema = entry.schema
    if schema is None or other is None:
        return
    changes = tuple(schema_changes(other, schema))
    if changes:
        yield DeclaredTwice(entry, schema, other, place, where, changes)
