"""The operators that the C++ of a tree defines, and its registrations for operators."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from msgspec.structs import replace

from opschema_cli.cpp_units import MACROS, CppUnits
from opschema_cli.file_kinds import is_cpp, is_python
from opschema_cli.project import Project
from opschema_cli.requirements import Version
from opschema_cli.word_search import WordSearch
from opschema_rules.torchlib.cpp_attach import with_kernels
from opschema_rules.torchlib.cpp_build import Build
from opschema_rules.torchlib.cpp_executorch import LIBRARY
from opschema_rules.torchlib.cpp_facts import CppFacts
from opschema_rules.torchlib.cpp_join import Join
from opschema_rules.torchlib.cpp_macros import CAPITALS, EXPANDING, USES, FileMacros
from opschema_rules.torchlib.cpp_model import CppOperators
from opschema_rules.torchlib.cpp_reader import FACTS
from opschema_rules.torchlib.detection import REGISTERS_CPP
from opschema_rules.torchlib.dispatch_keys import DISPATCH_KEYS


def read_cpp(project: Project, paths: Iterable[str], namespaces: Mapping[str, str], torch: Version) -> CppOperators:
    """Operators that the C++ files among some paths define and register for a release of torch, and the C++ in strings of Python
    files; files without a mention of any are not parsed.
    """
    files = [path for path in paths if is_cpp(path) or is_python(path)]
    naming = [path for path, found in project.scan(REGISTERS_CPP, files) if found]
    facts = project.cpp_readings(FACTS, naming)

    def others_with(purpose: str, words: Collection[str], more: Sequence[str] = ()) -> list[str]:
        """The files without facts that hold one of some words."""
        held = WordSearch(project, purpose, frozenset(words)).files([*files, *more]) if words else {}
        return [path for path in held if path not in facts]

    facts.update(project.cpp_readings(FACTS, others_with("macros that register", _registering_macros(facts.values()))))
    facts.update(project.cpp_readings(FACTS, others_with("ExecuTorch's libraries", {LIBRARY})))
    facts |= {path: _uncertain(found) for path, found in facts.items() if is_python(path)}
    unknown = _unknown_macros(facts.values())
    written = [path for path in project.workspace.files if path.endswith(_TEMPLATES)]
    headers = [
        path
        for path in others_with("macros of registrations", unknown, written)
        if _defines(project.workspace.peek(path), unknown)
    ]
    macros = [macro for found in project.readings(MACROS, headers).values() for macro in found]
    unread = [path for path in naming if path not in facts]
    own = {path: item.macros for path, item in facts.items()}
    operators = Join(facts, FileMacros(own, macros, Build(project, namespaces), torch), unread).operators()
    return with_kernels(CppUnits(project, "torchlib"), operators)


_TEMPLATES = (".h.in", ".hpp.in")
"""Headers that CMake writes from these."""


def _uncertain(facts: CppFacts) -> CppFacts:
    """The facts of C++ in strings, which is compiled if the code that does so runs."""
    libraries = [
        replace(library, calls=tuple(replace(call, branch=True) for call in library.calls))
        for library in facts.libraries
    ]
    return replace(facts, libraries=tuple(libraries))


def _defines(data: bytes, names: Container[str]) -> bool:
    return any(match.decode() in names for match in _DEFINED.findall(data))


_DEFINED = re.compile(rb"#[ \t]*define[ \t]+([A-Za-z_]\w*)")


def _registering_macros(facts: Iterable[CppFacts]) -> set[str]:
    """The macros that register, however indirectly."""
    macros = [macro for item in facts for macro in item.macros if macro.name not in EXPANDING]
    return {macro.name for macro in macros if USES.search(macro.body)}


def _unknown_macros(facts: Iterable[CppFacts]) -> set[str]:
    """Names that may be macros which files use and do not define."""
    items = list(facts)
    known = {macro.name for item in items for macro in item.macros}
    libraries = [library for item in items for library in item.libraries]
    texts = [" ".join(library.arguments) for library in libraries if not _TAKES_WORD.fullmatch(library.macro)]
    texts += [call.text for library in libraries for call in library.calls if call.text]
    return {name for text in texts for name in CAPITALS.findall(text)} - known - DISPATCH_KEYS


_TAKES_WORD = re.compile(r"(?:STABLE_)?TORCH_LIBRARY")
"""Macros that do not expand their namespace argument."""
