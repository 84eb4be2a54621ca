"""Kernels that ``EXECUTORCH_LIBRARY`` registers for operators of the lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.resolution import Unresolved
from opschema_rules.executorch.model import OpEntry, Tree
from opschema_rules.torchlib.cpp_executorch import runtime_misfits, takes_context
from opschema_rules.torchlib.cpp_signature import CppSignature


class LibraryKernel(msgspec.Struct, frozen=True, eq=False):
    """The function that a call at ``place`` registers for the operator of an entry."""

    entry: OpEntry
    schema: OperatorSchema
    place: Place
    signature: CppSignature

    @property
    def misfits(self) -> Sequence[tuple[str, int | None]]:
        """The differences from the schema, and the parameters that have them."""
        return list(runtime_misfits(self.signature, self.schema, self.entry.name))

    @property
    def may_fit(self) -> bool:
        """Whether it fits the schema, or does not take the context first and so is not compared."""
        return not takes_context(self.signature) or not self.misfits


def library_kernels(tree: Tree) -> Iterator[LibraryKernel]:
    """The kernels that fit no entry of their operators; not those of operators that torch.library defines, to which another pack
    compares them.
    """
    paths = [path for path, names in tree.libraries.items() if not tree.by_name.keys().isdisjoint(names)]
    if not paths:
        return
    # Not at the top: few lists have such operators.
    from opschema_rules.torchlib.cpp import read_cpp
    from opschema_rules.torchlib.detection import TorchlibOptions
    from opschema_rules.torchlib.graph import graph_of

    found = graph_of(tree.project, TorchlibOptions()).tree
    defined = {name for operator in found.operators for name in operator.names or ()}
    for item in read_cpp(tree.project, paths, {}, found.torch).runtime_kernels:
        entries = [(one, one.schema) for one in tree.by_name.get(item.name, ()) if one.schema is not None]
        kernels = item.registration.kernels
        if item.name in defined or kernels is None or isinstance(kernels, Unresolved):
            continue
        place = item.registration.place
        made = [LibraryKernel(entry, schema, place, kernel) for entry, schema in entries for kernel in kernels]
        if not any(kernel.may_fit for kernel in made):
            yield from made[:1]
