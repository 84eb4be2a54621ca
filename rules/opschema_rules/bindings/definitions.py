"""Whether the C++ functions behind bindings are declared and defined in the tree, as far as its C++ shows that.

A function that is mentioned in any other way than by declarations may come from a macro, and is left alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from opschema_cli.cpp_definitions import CppDefinitions
from opschema_cli.cpp_units import CppUnits, Declared
from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.text import Span
from opschema_cli.suggestions import nearest
from opschema_rules.bindings.functions import function_name
from opschema_rules.bindings.model import Binding, Module
from opschema_rules.torchlib.cpp_signature import signature_of


class Lost(msgspec.Struct, frozen=True, eq=False):
    """A binding whose function the tree does not declare, or declares and does not define with the same parameters.

    ``declared`` is a declaration; ``defined`` the definitions of its name with other parameters. ``near`` is a function of a
    similar name.
    """

    binding: Binding
    name: str
    declared: Declared | None = None
    defined: tuple[Declared, ...] = ()
    near: str | None = None


def lost_functions(project: Project, modules: Iterable[Module]) -> Iterator[Lost]:
    """The bindings of such functions."""
    bindings = [
        item for module in modules for one in module.all() for item in one.bindings if item.exact and is_cpp(item.path)
    ]
    yield from FunctionSearch(project, bindings).lost()


class FunctionSearch(msgspec.Struct, dict=True):
    """The functions of the tree that have the names of bound ones."""

    project: Project
    bindings: Sequence[Binding]

    def definition(self, binding: Binding) -> Declared | None:
        """The definition of a binding's function in its own file, or the only one of the tree; None if there is none such."""
        signature = binding.signature
        known = self._tree.functions.get(signature.name.rpartition("::")[2], ()) if signature is not None else ()
        wanted = signature.types[:-1] if signature is not None else ()
        found = [
            item
            for item in known
            if item.function.defined
            and item.function.owner == (signature.name.rpartition("::")[0] if signature else "")
            if signature_of(item).types[:-1] == wanted
        ]
        own = [item for item in found if item.path == binding.path]
        found = own or found
        return found[0] if len(found) == 1 else None

    def lost(self) -> Iterator[Lost]:
        """The bindings whose functions are missing."""
        states = [(item, self._state(item)) for item in self.bindings]
        counts = Counter((item.path, state is None) for item, state in states)
        for item, state in states:
            if state is None:
                continue
            # Most functions of a file are somewhere else where none of them is found.
            if state.defined or counts[item.path, True] > counts[item.path, False]:
                yield state

    def _state(self, binding: Binding) -> Lost | None:
        full = function_name(binding)
        qualifier, _, name = full.rpartition("::")
        if not name or "<" in binding.step.value or binding.step.branch:
            return None
        there = [item for item in self._tree.functions.get(name, ()) if _is_in(item, qualifier)]
        if any(item.function.unsure for item in self._tree.functions.get(name, ())):
            return None
        defined = [item for item in there if item.function.defined]
        if not there:
            return self._undeclared(binding, name, qualifier)
        declared = next((item for item in there if self._is_of(item, binding)), None)
        if declared is None or declared.function.defined:
            return None
        if not defined:
            made = name in self._mentioned or self._tree.may_be_made(name)
            return Lost(binding, full, declared) if not made else None
        wanted = _types(declared)
        same_owner = [item for item in defined if item.function.owner == declared.function.owner]
        if None in wanted or len(same_owner) < len(defined) or name in self._mentioned:
            return None
        others = [_types(item) for item in defined]
        certain = all(None not in one for one in others)
        return Lost(binding, full, declared, tuple(defined)) if certain and wanted not in others else None

    def _is_of(self, item: Declared, binding: Binding) -> bool:
        """Whether a declaration is that which a binding sees."""
        signature = binding.signature
        return (
            signature is not None
            and signature.place.path == item.path
            and signature.place.span == item.function.name_span
        )

    def _undeclared(self, binding: Binding, name: str, qualifier: str) -> Lost | None:
        if qualifier or self._tree.functions.get(name) or name in self._mentioned:
            return None
        if not self._sees_all(binding.path) or self._tree.may_be_made(name):
            return None
        seen = {item.function.name for item in self.units.functions(binding.path, self._words(binding.path))}
        return Lost(binding, name, None, (), nearest(name, seen))

    def _words(self, path: str) -> set[str]:
        return {_own_name(item) or "." for item in self.bindings if item.path == path}

    def _sees_all(self, path: str) -> bool:
        """Whether all files that a file includes in quotes lie in the tree."""
        files = self.units.files(path)
        names = {item.rpartition("/")[2] for item in files}
        source = self.project.source(path)
        quoted = re.findall(r'(?m)^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', source.text) if source is not None else [""]
        return all(item.rpartition("/")[2] in names for item in quoted)

    @cached_property
    def units(self) -> CppUnits:
        """The files of the tree with what they include."""
        return CppUnits(self.project)

    @cached_property
    def _tree(self) -> CppDefinitions:
        return CppDefinitions(self.project, frozenset(_own_name(item) for item in self.bindings))

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """The names that the C++ mentions otherwise than in declarations and bindings."""
        bound: dict[tuple[str, str], list[Span]] = {}
        for item in self.bindings:
            bound.setdefault((item.path, _own_name(item)), []).append(item.step.value_span)
        return self._tree.mentioned(bound)


def _own_name(binding: Binding) -> str:
    return function_name(binding).rpartition("::")[2]


def _is_in(item: Declared, qualifier: str) -> bool:
    owner = f"::{item.function.owner}::"
    return not qualifier or owner.endswith(f"::{qualifier}::")


def _types(item: Declared) -> tuple[str | None, ...]:
    parameters = item.function.parameters
    return tuple(spelling(one.type) for one in parameters) if [one.type for one in parameters] != ["void"] else ()
