"""The code of bound functions."""

from __future__ import annotations

from opschema_cli.cpp_missing import FunctionSearch
from opschema_cli.cpp_units import Declared
from opschema_cli.project import Project
from opschema_cli.source.cpp_text import only_code
from opschema_rules.bindings.migrations.called_code import CallSearch
from opschema_rules.bindings.migrations.local_names import LocalNames
from opschema_rules.bindings.model import Binding
from opschema_rules.torchlib.cpp_signature import signature_of


class FunctionBodies:
    """The bodies of bound functions, and the code that these call."""

    def __init__(self, project: Project, search: FunctionSearch) -> None:
        self.calls = CallSearch(project)
        self.locals = LocalNames(project)
        self._search = search
        self._texts: dict[int, tuple[str, str]] = {}

    def of(self, binding: Binding) -> str | None:
        """Return the text of a function's body; None if it is not found."""
        return self._parts(binding)[1] or None

    def whole(self, binding: Binding) -> str:
        """Return the text of a function's parameters and body; empty if it is not found."""
        return "".join(self._parts(binding))

    def _parts(self, binding: Binding) -> tuple[str, str]:
        key = id(binding)  # which the tree keeps alive
        if key not in self._texts:
            self._texts[key] = self._found(binding)
        return self._texts[key]

    def _found(self, binding: Binding) -> tuple[str, str]:
        if binding.step.value.lstrip("+ ").startswith("["):
            return "", only_code(binding.step.value)
        declared = _definition(self._search, binding)
        return self.calls.definition(declared) if declared is not None else ("", "")


def _definition(search: FunctionSearch, binding: Binding) -> Declared | None:
    """Return the definition of a binding's function in its own file, or the only one in the tree; None if there is none."""
    signature = binding.signature
    if signature is None:
        return None
    owner, _, name = signature.name.rpartition("::")
    found = [
        item
        for item in search.definitions(name)
        if item.function.owner == owner and signature_of(item).types[:-1] == signature.types[:-1]
    ]
    found = [item for item in found if item.path == binding.path] or found
    return found[0] if len(found) == 1 else None
