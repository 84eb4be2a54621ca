"""The pack's subjects: extension modules, their bindings, and the signatures of the C++ functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.sequences import grouped
from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.python import Expr, Param, ParamKind
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Span
from opschema_rules.bindings.facts import Annotation, Block, Library, Step
from opschema_rules.torchlib.cpp_signature import CppSignature

VARIADIC: dict[str, ParamKind] = {"args": "vararg", "Args": "vararg", "kwargs": "kwarg", "KWArgs": "kwarg"}
"""Classes of pybind11 and nanobind that take any arguments."""

_VARIADIC = re.compile(r"(?:::)?(?:\w+::)*(?:(args|kwargs)|(Args|KWArgs)\s*<.*>)", re.DOTALL)
_OF_LIBRARY = re.compile(r"(?:const\s+)?(?:::)?(?:py|pybind11|nb|nanobind)::")


class Binding(msgspec.Struct, eq=False, dict=True):
    """A function that is bound to a name. ``found`` holds the known signatures of the C++ function, one for each build that
    differs, or the reason why there are none. ``exact`` if the places of its parts are in the file and not those of a macro's
    call; ``block`` is the block that binds it, None for one that ``load_inline`` makes.
    """

    module: Module
    path: str
    step: Step
    block: Block | None = None
    exact: bool = True
    found: tuple[CppSignature, ...] | Unresolved = Unresolved("not looked for")

    @property
    def name(self) -> str:
        """The name in Python."""
        return self.step.name

    @property
    def qualified(self) -> str:
        """The name with its module."""
        return f"{self.module.shown}.{self.name}"

    @property
    def function(self) -> str:
        """The C++ function as written, on one line."""
        text = " ".join(self.step.value.split())
        return text if len(text) <= 60 else f"{text[:57]}..."

    @property
    def place(self) -> Place:
        """The name in its ``def``."""
        return Place(self.path, self.step.span)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of the preprocessor under which it is bound."""
        return self.step.conditions

    @property
    def function_place(self) -> Place:
        """The function in its ``def``."""
        return self.at(self.step.value_span)

    def at(self, span: Span) -> Place:
        """A part of its ``def``."""
        return Place(self.path, span if self.exact else self.step.span)

    @property
    def annotations(self) -> tuple[Annotation, ...]:
        """Its ``py::arg``s, without markers."""
        return tuple(item for item in self.step.annotations if not item.is_marker)

    @cached_property
    def signature(self) -> CppSignature | None:
        """The signature of the C++ function; None if it is not known, or depends on the build."""
        return self.found[0] if not isinstance(self.found, Unresolved) and len(self.found) == 1 else None

    @property
    def unresolved(self) -> str:
        """Why the signature is not known."""
        return self.found.reason if isinstance(self.found, Unresolved) else ""

    @cached_property
    def parameters(self) -> tuple[Parameter, ...] | None:
        """The parameters in Python; None if they are not known."""
        return _parameters(self) if self.signature is not None and not self.step.unread else None

    @cached_property
    def params(self) -> list[Param]:
        """The parameters as those of a Python function; one that no keyword can pass has a number as its name."""
        found: list[Param] = []
        for index, item in enumerate(self.parameters or ()):
            keyword = item.kind in ("normal", "kwonly") and item.name not in (one.name for one in found)
            default = Expr("other", 0, 0) if item.default is not None else None
            found.append(Param(item.name if keyword else str(index), item.kind, 0, 0, 0, None, default))
        return found

    @property
    def related(self) -> Related:
        """The place of the binding, as the other side of a finding."""
        return Related(self.place, f"`{self.name}` is bound here")


class Parameter(msgspec.Struct, frozen=True):
    """A parameter as seen by Python: its ``name`` is empty if it has none. ``type`` is that of C++, and ``cpp_name`` and
    ``cpp_default`` are the name and default there, which Python does not see.
    """

    name: str
    type: str
    kind: ParamKind
    default: str | None
    place: Place
    annotation: Annotation | None = None
    cpp_name: str = ""
    cpp_default: str = ""


def variadic(written: str) -> ParamKind | Literal[""]:
    """``vararg`` or ``kwarg`` for the classes ``args`` and ``kwargs`` of any namespace; empty for other types."""
    match = _VARIADIC.fullmatch(re.sub(r"\bconst\b", "", written).strip(" &"))
    return VARIADIC[match[1] or match[2]] if match is not None else ""


def _parameters(binding: Binding) -> tuple[Parameter, ...] | None:
    signature = binding.signature
    if signature is None:
        return None
    kinds = [variadic(item.type) for item in signature.parameters]
    if any(kind and not _OF_LIBRARY.match(item.type) for kind, item in zip(kinds, signature.parameters, strict=True)):
        return None  # perhaps a class of the tree
    plain = [index for index, kind in enumerate(kinds) if not kind]
    named = binding.annotations
    if named and len(named) != len(plain):
        return None
    given = dict(zip(plain, named, strict=False))
    keyword, positional = _marked(binding.step.annotations)
    found = []
    for index, (item, place) in enumerate(zip(signature.parameters, signature.places, strict=True)):
        own, count = given.get(index), plain.index(index) if index in plain else -1
        after = any(kind == "vararg" for kind in kinds[:index])
        kind: ParamKind = kinds[index] or ("kwonly" if after or 0 <= keyword <= count else "normal")
        if own is None or not own.name or (kind == "normal" and count < positional):
            kind = "posonly" if kind == "normal" else kind
        name = item.name if kinds[index] else own.name or "" if own is not None else ""
        default = own.default if own is not None else None
        found.append(Parameter(name, item.type, kind, default, place, own, item.name, item.default))
    return tuple(found)


def _marked(annotations: Sequence[Annotation]) -> tuple[int, int]:
    """The number of arguments before ``kw_only``, -1 without; and before ``pos_only``."""
    keyword, positional, count = -1, 0, 0
    for item in annotations:
        if item.name == "*":
            keyword = count
        elif item.name == "/":
            positional = count
        count += not item.is_marker
    return keyword, positional


class Alias(msgspec.Struct, frozen=True, eq=False):
    """``m.attr("name") = m.attr("target")``; ``earlier`` are the names that exist at that point, None if they are not known."""

    module: Module
    path: str
    step: Step
    earlier: frozenset[str] | None

    @property
    def name(self) -> str:
        """The new name."""
        return self.step.name

    @property
    def target(self) -> str:
        """The name that it refers to."""
        return self.step.value


class Module(msgspec.Struct, eq=False, dict=True):
    """An extension module of one file: its bindings in order, and other names.

    ``name`` is the dotted name by which Python imports it, empty if that is not known; ``local`` the name of a submodule in the
    module ``parent``. Unless it is ``closed``, it may have further names. ``built_as`` is the name in ``setup.py``, where
    ``written`` is another name in C++, at ``name_span``.
    """

    path: str
    span: Span
    written: str
    library: Library
    name: str = ""
    parent: Module | None = None
    local: str = ""
    closed: bool = True
    of_tensors: bool = True
    built_as: str = ""
    title: str = ""
    name_span: Span = Span(0, 0)
    bindings: list[Binding] = msgspec.field(default_factory=list)
    aliases: list[Alias] = msgspec.field(default_factory=list)
    names: set[str] = msgspec.field(default_factory=set)
    submodules: dict[str, Module] = msgspec.field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The name in findings: its dotted name, or its file without the extension."""
        if self.parent is not None:
            return f"{self.parent.shown}.{self.local}"
        return self.name or self.title or self.path.rpartition("/")[2].partition(".")[0]

    @property
    def place(self) -> Place:
        """The macro that opens it."""
        return Place(self.path, self.span)

    def open(self) -> None:
        """Record that it may have further names."""
        self.closed = False

    @property
    def root(self) -> Module:
        """The module that is imported; itself unless it is a submodule."""
        return self if self.parent is None else self.parent.root

    def all(self) -> Iterator[Module]:
        """The module and its submodules."""
        yield self
        for item in self.submodules.values():
            yield from item.all()

    @cached_property
    def by_name(self) -> dict[str, list[Binding]]:
        """The bindings by their names, those of aliases included."""
        found = grouped((item.name, item) for item in self.bindings)
        for alias in self.aliases:
            if alias.target in found:
                found.setdefault(alias.name, found[alias.target])
        return found

    @cached_property
    def known(self) -> frozenset[str]:
        """All names that it is known to have."""
        own = (*self.by_name, *self.names, *self.submodules)
        return frozenset(own).union(item.name for item in self.aliases)
