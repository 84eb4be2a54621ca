"""Questions about code of other files, each with a short answer: what a name means, whether FlyDSL has it.

Like the questions about words, they are noted when they are asked. What is found with an answer is kept while the answer stays
the same, whatever else changes in the files that it follows from. Answers are cached themselves, with these files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from typing import Literal, NamedTuple

from opschema_cli.code_values import Group, kept_value
from opschema_cli.project import Project
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.program import (
    ClassRef,
    External,
    FunctionRef,
    Missing,
    ModuleRef,
    Program,
    Resolution,
    Unresolved,
    ValueRef,
)
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.word_index import called_word
from opschema_cli.workspace import ReadError
from opschema_rules.flydsl.api_classes import Signature
from opschema_rules.flydsl.api_table import first_missing
from opschema_rules.flydsl.deciding import deciding
from opschema_rules.flydsl.own_package import OwnPackage

PACKAGE = "package"
"""Name of the contents of the workspace's own FlyDSL, which answers depend on."""

_OF_MODULES = ("name", "parameters", "wrapping", "deciding")
"""Question kinds that concern the names of one module."""

_Groups = Callable[[str], Group[bytes]]


class Meaning(NamedTuple):
    """The meaning of a name; ``name`` is the full name with the defining module, and is empty if there is none."""

    kind: Literal["class", "function", "value", "module", "missing", "external", "other", "unresolved"]
    name: str = ""


class Answers:
    """Answers questions about the code of a workspace.

    ``note`` is given the name of every question that is asked; :meth:`state` answers it by that name.
    """

    def __init__(
        self,
        project: Project,
        package: OwnPackage,
        groups: _Groups,
        note: Callable[[str], None] = lambda question: None,
    ) -> None:
        self._project = project
        self._package = package
        self._groups = groups
        self._note = note
        self._known: dict[str, str | None] = {}

    def noting(self, note: Callable[[str], None]) -> Answers:
        """Return a copy that records its questions elsewhere."""
        other = copy(self)
        other._note = note
        return other

    @staticmethod
    def is_question(name: str) -> bool:
        """Whether a dependency of a cached value is one of these questions."""
        return name.startswith("?")

    def meaning(self, path: str, dotted: str) -> Meaning:
        """The meaning of a dotted name in a module; without a name, the meaning of the module."""
        kind, _, name = (self._ask(f"?name {path} {dotted}") or "").partition(" ")
        return Meaning(kind, name)  # type: ignore[arg-type]

    def parameters(self, path: str, dotted: str) -> tuple[Param, ...] | None:
        """The parameters, without their places, of the function that a dotted name in a module refers to; None if it is not a
        function.
        """
        found = self._ask(f"?parameters {path} {dotted}")
        return tuple(_parameter(*item.split(":")) for item in found.split()) if found is not None else None

    def signature(self, full: str) -> tuple[frozenset[str], tuple[Param, ...]] | None:
        """The last words of the decorators, and the parameters without their places, of a function of the tree's own FlyDSL or of a
        method called on its class.
        """
        return self._signature(f"?signature {full}")

    def mark(self, wrapper: str, name: str) -> tuple[frozenset[str], tuple[Param, ...]] | None:
        """The signature, without the instance, of a method of the object that a wrapper of the tree's own FlyDSL returns."""
        return self._signature(f"?mark {wrapper} {name}")

    def _signature(self, question: str) -> tuple[frozenset[str], tuple[Param, ...]] | None:
        found = self._ask(question)
        if found is None:
            return None
        decorators, _, params = found.partition(";")
        return frozenset(decorators.split()), tuple(_parameter(*item.split(":")) for item in params.split())

    def wrapping(self, path: str, dotted: str) -> frozenset[str] | None:
        """The last words of the decorators of the function that a dotted name in a module refers to; None if it is not a function,
        or if its own file may pass it to another function first.
        """
        found = self._ask(f"?wrapping {path} {dotted}")
        return frozenset(found.split()) if found is not None else None

    def deciding(self, path: str, dotted: str) -> set[str]:
        """The parameters that the function behind a dotted name may use in a Python decision."""
        return set((self._ask(f"?deciding {path} {dotted}") or "").split())

    def first_absent(self, full: str) -> str:
        """The first part of a name that the workspace's own FlyDSL does not have; empty if every known part exists."""
        return self._ask(f"?absent {full}") or ""

    def has_member(self, wrapper: str, word: str) -> bool | None:
        """Whether the object that a wrapper of the workspace's own FlyDSL returns has an attribute; None if that is not known."""
        return _boolean(self._ask(f"?member {wrapper} {word}"))

    def may_have(self, kind: str, name: str) -> bool:
        """Whether a class of that name in the workspace's own FlyDSL, or a related class, may have an attribute."""
        return self._ask(f"?attribute {kind} {name}") == "True"

    def refuses(self, name: str, call: Expr) -> bool:
        """Whether every method of that name in the language of the workspace's own FlyDSL rejects the arguments of a call."""
        found = (self._ask(f"?methods {name}") or "").split("|")[:-1]
        signatures = (tuple(_parameter(*item.split(":")) for item in text.split()) for text in found)
        return bool(found) and all(any(misfits(call, params)) for params in signatures)

    def definition(self, name: str) -> FunctionRef | None:
        """The only function of that name at the top level of a module of the workspace's own FlyDSL."""
        self._ask(f"?definition {name}")
        return self._package.definition(name)

    def compiler_holds(self, file: str, text: str) -> bool | None:
        """Whether a file of the compiler in the workspace's own FlyDSL contains a text; None if it cannot be read."""
        return _boolean(self._ask(f"?compiler {file} {text}"))

    def state(self, question: str) -> str:
        """The answer to a question, as text."""
        return repr(self._answer(question))

    def _ask(self, question: str) -> str | None:
        self._note(question)
        return self._answer(question)

    def _answer(self, question: str) -> str | None:
        if question not in self._known:
            self._known[question] = self._find(*question[1:].partition(" ")[::2])
        return self._known[question]

    def _find(self, kind: str, rest: str) -> str | None:
        if kind in _OF_MODULES:
            return self._of_module(kind, *rest.rpartition(" ")[::2])
        group = self._groups("answers of the package")
        group.reads_value(PACKAGE)

        def find() -> list[str | None]:
            return [self._of_package(kind, rest)]

        return kept_value(group, f"{kind} {rest}", list[str | None], find)[0]

    def _of_module(self, kind: str, path: str, dotted: str) -> str | None:
        group = self._groups(f"names in {path}")
        program = group.program

        def find() -> list[str | None]:
            found = program.module_member(path, dotted) if dotted else ModuleRef(path)
            if kind == "name":
                return [" ".join(meaning_of(program, found))]
            return [_of_function(kind, found) if isinstance(found, FunctionRef) else None]

        return kept_value(group, f"{kind} {dotted}", list[str | None], find)[0]

    def _of_package(self, kind: str, rest: str) -> str | None:
        package = self._package
        first, _, second = rest.partition(" ")
        match kind:
            case "absent":
                return first_missing(rest, package.api)
            case "member":
                members = package.api.members(first)
                return str(second in members) if members is not None else None
            case "attribute":
                return str(second in package.api.attributes(first))
            case "methods":
                return "".join(f"{_params(item)}|" for item in package.api.methods(rest))
            case "signature":
                return _written(package.api.signature(rest))
            case "mark":
                return _written(package.api.mark(first, second))
            case "definition":
                found = package.definition(rest)
                if found is None:
                    return None
                return f"{found.file.path} {found.function.start} {found.file.text(found.function.outer)}"
        try:
            return str(second.encode() in self._project.workspace.data(package.compiler_file(first)))
        except ReadError:
            return None


def meaning_of(program: Program, found: Resolution) -> Meaning:
    """The meaning of a resolved name."""
    match found:
        case External(name=name):
            return Meaning("external", name)
        case FunctionRef(file=file, function=function, owner=None):
            return Meaning("function", f"{program.module_name(file.path)}.{function.name}")
        case ClassRef(file=file, cls=cls):
            return Meaning("class", f"{program.module_name(file.path)}.{cls.name}")
        case ValueRef(file=file, assign=assign, owner=None):
            return Meaning("value", f"{program.module_name(file.path)}.{assign.target}")
        case ModuleRef(path=path):
            return Meaning("module", program.module_name(path))
        case Missing(module=module, name=name):
            return Meaning("missing", f"{program.module_name(module)}.{name}")
    return Meaning("unresolved" if isinstance(found, Unresolved) else "other")


def _of_function(kind: str, found: FunctionRef) -> str | None:
    function, file = found.function, found.file
    match kind:
        case "parameters":
            return _params(function.params)
        case "deciding":
            return " ".join(sorted(deciding(file.text(function.outer), function.params)))
    if kind == "wrapping" and _passes(file.source.text, function.name):
        return None
    return " ".join(called_word(item) for item in function.decorators)


def _written(signature: Signature | None) -> str | None:
    return f"{' '.join(signature.decorators)};{_params(signature.params)}" if signature is not None else None


def _params(params: Iterable[Param]) -> str:
    return " ".join(f"{item.kind}:{item.name}:{'=' * (item.default is not None)}" for item in params)


def _passes(text: str, name: str) -> bool:
    """Whether a text may pass a function to another one first."""
    return re.search(rf"\(\s*(?:\w+\.)*{name}\b", text) is not None


def _parameter(kind: str, name: str, default: str) -> Param:
    return Param(name, kind, 0, 0, 0, default=Expr("other", 0, 0) if default else None)  # type: ignore[arg-type]


def _boolean(answer: str | None) -> bool | None:
    return None if answer is None else answer == "True"
