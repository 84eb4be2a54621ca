"""The C++ functions of registrations: the arguments of ``m.impl`` and ``m.def``, resolved to a signature.

Templates, overloads, macros and functions of other libraries are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from opschema_cli.cpp_units import CppUnits, Declared
from opschema_cli.lint.diagnostic import Place
from opschema_cli.readings import Reading
from opschema_cli.schema.cpp_inference import split_arguments
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.cpp_functions import CppFunction, CppParameterText
from opschema_cli.source.cpp_namespaces import may_mean
from opschema_cli.source.cpp_text import without_comments
from opschema_cli.source.preprocessor import Condition, exclusive
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Span
from opschema_rules.torchlib.cpp_executorch import WRAPPED, with_aten_types
from opschema_rules.torchlib.cpp_made import Made, MadeFunctions
from opschema_rules.torchlib.cpp_signature import CppSignature, signature_of

_CLASS = re.compile(
    rb"\b(?:class|struct)\s+(?:\w+\s+){0,8}(?:\w+\s*::\s*){0,8}((?!final\b)\w+)\s*(?:(?:final\s*)?(?:\Z|:(?!:))|(<))"
)
_TEMPLATE_END = re.compile(rb">\s*(?:final\s*)?(?:\Z|:(?!:))")


def _classes(data: bytes) -> list[str]:
    found: set[str] = set()
    for text in data.split(b"{")[:-1]:
        head = text[max(text.rfind(b";"), text.rfind(b"}")) + 1 :]
        if b"class" not in head and b"struct" not in head:
            continue
        end = max((match.start() for match in _TEMPLATE_END.finditer(head)), default=-1)
        for match in _CLASS.finditer(head):
            if match[2] is None or end >= match.end():
                found.add(match[1].decode("ascii", "replace"))
    return sorted(found)


CLASSES = Reading("cpp-class-heads", _classes, list[str])
"""The classes that the text of a C++ file seems to define, without namespaces."""


class Asked(msgspec.Struct, frozen=True):
    """A function as passed to a library: its text, its file, the namespaces around it, and its conditions.

    ``runtime`` says that the library is that of ExecuTorch's runtime.
    """

    text: str
    path: str
    place: Place
    namespace: str = ""
    conditions: tuple[Condition, ...] = ()
    stable: bool = False
    runtime: bool = False

    @property
    def of_executorch(self) -> bool:
        """Whether it has the types of ExecuTorch."""
        return self.runtime or WRAPPED.search(self.text) is not None


_WRAPPER = re.compile(
    r"(?:TORCH_FN|TORCH_BOX|(?:::)?(?:(?:torch|c10)::)*CppFunction"
    r"(?:::makeFromUnboxed(?:Function|Lambda|RuntimeFunction))?)\s*[({]\s*(.*?)\s*[)}]",
    re.DOTALL,
)
_NAME = re.compile(r"(?:::)?\s*([A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)")
_TEMPLATED = re.compile(rf"({_NAME.pattern})\s*<(.*)>", re.DOTALL)
_CAST = re.compile(r"static_cast\s*<(.*)\(\s*\*\s*\)\s*\((.*)\)\s*>\s*\(\s*&?\s*(.*?)\s*\)", re.DOTALL)
_C_CAST = re.compile(r"\((.*)\(\s*\*\s*\)\s*\((.*)\)\s*\)\s*&?\s*([\w:]+)", re.DOTALL)
_LAMBDA = re.compile(r"\+?\s*\[")
_MACRO = re.compile(r"[A-Z][A-Z0-9_]+")


def unwrapped(text: str) -> str:
    """A function without its wrappers: ``&f`` and ``TORCH_FN(f)`` are ``f``."""
    text = without_comments(text).strip()
    while True:
        wrapped = _WRAPPER.fullmatch(text) or WRAPPED.fullmatch(text)
        inner = wrapped[1] if wrapped is not None else text[1:] if text.startswith("&") else text
        bare = inner[1:-1].strip() if inner.startswith("(") and inner.endswith(")") else ""
        if _NAME.fullmatch(bare) or _TEMPLATED.fullmatch(bare):
            inner = bare
        inner = inner.strip()
        if inner == text:
            return text
        text = inner


def name_of(text: str) -> str:
    """Return the qualified name of a function that is passed by name, or of its template; empty for any other."""
    text = unwrapped(text)
    named = _NAME.fullmatch(text) or _TEMPLATED.fullmatch(text)
    return re.sub(r"\s+|^::", "", named[1]) if named is not None else ""


def cast_name(text: str) -> str:
    """The qualified name of a function that a cast chooses among overloads; empty for others."""
    cast = _CAST.fullmatch(text) or _C_CAST.fullmatch(text)
    return name_of(cast[3]) if cast is not None else ""


def _template_arguments(text: str) -> tuple[str, ...]:
    """Return the arguments of a template whose function is passed."""
    templated = _TEMPLATED.fullmatch(text)
    return tuple(item.strip() for item in split_arguments(templated[3])) if templated is not None else ()


def _is_boxed(signature: CppSignature) -> bool:
    """Whether a kernel of the stable ABI takes the stack, as it had to before ``TORCH_BOX``."""
    first = signature.parameters[0].type if signature.parameters else ""
    return signature.stable and re.fullmatch(r"(?:(?:::)?(?:\w+::)*)StableIValue\s*\*", first.strip()) is not None


class CppKernels:
    """The functions of one tree's registrations; ``names`` are those that each file refers to."""

    def __init__(self, units: CppUnits, asked: Iterable[Asked], made: Mapping[str, Sequence[Made]] = {}) -> None:
        self.units = units
        self.made = MadeFunctions(units.project, made)
        self.names: dict[str, set[str]] = {}
        for item in asked:
            name = (name_of(item.text) or cast_name(unwrapped(item.text))).rpartition("::")[2]
            if name:
                self.names.setdefault(item.path, set()).add(name)
        units.expected = frozenset().union(*self.names.values())

    def find(self, asked: Asked) -> tuple[CppSignature, ...] | Unresolved:
        """The signatures of a function, one for each build that compiles another; or why it is not followed."""
        text = unwrapped(asked.text)
        name = name_of(text)
        if name:
            return self._named(asked, name)
        cast = _CAST.fullmatch(text) or _C_CAST.fullmatch(text)
        found = (
            self._cast(cast, text, asked) if cast is not None else _lambda(text, asked) if _LAMBDA.match(text) else None
        )
        if found is None:
            return Unresolved("its function is not followed")
        return (self._resolved(asked.path, found),)

    def _named(self, asked: Asked, name: str) -> tuple[CppSignature, ...] | Unresolved:
        qualifier, _, own = name.rpartition("::")
        known = [item for item in self._functions(asked.path).get(own, ()) if may_mean(qualifier, item.function.owner)]
        known = [item for item in known if not exclusive(item.function.conditions, asked.conditions)]
        found = _nearest(known, qualifier, asked.namespace) or [
            item for item in known if self._is_used(asked.path, item)
        ]
        if not found:
            return Unresolved(f"no `{name}` is declared in the files of the workspace that it sees")
        given = _template_arguments(unwrapped(asked.text))
        if any(_is_doubtful(item.function, given) for item in found):
            return Unresolved(f"`{name}` is a template, or not understood")
        signatures = [self._signature(asked, item, given) for item in found]
        if asked.of_executorch:
            signatures = list(map(with_aten_types, signatures))
        if any(map(_is_boxed, signatures)):
            return Unresolved(f"`{name}` is boxed: it takes its arguments from a stack")
        return _alternatives(signatures, found) or Unresolved(f"`{name}` has several overloads")

    def _cast(self, match: re.Match[str], text: str, asked: Asked) -> CppSignature | None:
        """Return the overload that a cast selects: its declaration, or the types of the cast if there is none. None for a
        qualified name cast to a type without a known result, since it may be a method.
        """
        found = _read(f"{match[1]} f({match[2]});", text, asked)
        qualifier, _, own = cast_name(text).rpartition("::")
        for item in self._functions(asked.path).get(own, ()) if found is not None else ():
            same = found is not None and signature_of(item).types[:-1] == found.types[:-1]
            if same and not item.function.unsure and may_mean(qualifier, item.function.owner):
                return signature_of(item, stable=asked.stable)
        return None if qualifier and match[1].strip() == "auto" else found

    def is_method(self, asked: Asked) -> bool:
        """Whether a function is a method of a class of the tree, which is called with an object."""
        text = unwrapped(asked.text)
        qualifier, _, own = (name_of(text) or cast_name(text)).rpartition("::")
        name = qualifier.rpartition("::")[2].partition("<")[0]
        if not name:
            return False
        project = self.units.project
        if name not in self._classes(asked.path):
            return False
        for item in self.units.functions(asked.path, {own}):
            same = item.function.name == own and may_mean(qualifier, item.function.owner)
            source = project.source(item.path) if same else None
            before = source.text[item.function.span.start : item.function.name_span.start] if source is not None else ""
            if re.search(r"\bstatic\b", before):
                return False
        return True

    def _signature(self, asked: Asked, item: Declared, given: tuple[str, ...]) -> CppSignature:
        signature = signature_of(item, stable=asked.stable)
        if not given:
            return self._resolved(asked.path, signature)
        # A type that depends on another parameter of the template stays unknown: it is not an alias of the same name.
        return signature.with_aliases(dict(zip(item.function.template, given, strict=False)))

    def _is_used(self, path: str, item: Declared) -> bool:
        """Whether a file that is seen brings a function from its namespace (``using``)."""
        space, name = re.escape(item.function.owner.rpartition("::")[2]), re.escape(item.function.name)
        using = re.compile(rf"\busing\s+(?:namespace\s+[\w:]*\b{space}|[\w:]*\b{space}::{name})\s*;".encode())
        peek = self.units.project.workspace.peek
        return any(using.search(peek(file)) for file in self.units.files(path))

    def _functions(self, path: str) -> dict[str, list[Declared]]:
        if path not in self._known:
            found: dict[str, list[Declared]] = {}
            names = self.names.get(path, {"."})
            for item in self.units.functions(path, names):
                found.setdefault(item.function.name, []).append(item)
            for item in (one for file in self.units.files(path) for one in self.made.functions(file, names)):
                found.setdefault(item.function.name, []).append(item)
            self._known[path] = found
        return self._known[path]

    def is_own_type(self, path: str, name: str) -> bool:
        """Whether a file sees a type of the tree under a name that torch has for one of its types."""
        meant = spelling(name)
        if meant is None:
            return False
        return name in self._classes(path) or spelling(self._aliases_of(path).get(name, name)) != meant

    def _classes(self, path: str) -> frozenset[str]:
        """The classes that a file sees, without namespaces."""
        if path not in self._class_names:
            heads = self.units.project.scan(CLASSES, self.units.files(path))
            self._class_names[path] = frozenset(name for _, found in heads for name in found)
        return self._class_names[path]

    @cached_property
    def _class_names(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def _known(self) -> dict[str, dict[str, list[Declared]]]:
        return {}

    @cached_property
    def _aliases(self) -> dict[str, dict[str, str]]:
        return {}

    def _resolved(self, path: str, signature: CppSignature) -> CppSignature:
        """A signature with the type aliases of the tree in place of their names."""
        return signature.with_aliases(self._aliases_of(path))

    def _aliases_of(self, path: str) -> dict[str, str]:
        if path not in self._aliases:
            self._aliases[path] = self.units.aliases(path, self.names.get(path, {"."}))
        return self._aliases[path]


def _nearest(found: Sequence[Declared], qualifier: str, namespace: str) -> list[Declared]:
    """Of functions without a qualifier those of the innermost namespace around."""
    if qualifier or not found:
        return list(found)
    parts = namespace.split("::") if namespace else []
    for count in range(len(parts), -1, -1):
        around = "::".join(parts[:count])
        inner = [item for item in found if item.function.owner == around]
        if inner:
            return inner
    return []


def _is_doubtful(function: CppFunction, given: tuple[str, ...]) -> bool:
    """Whether a function is not known in full with the arguments of its template, or takes a macro."""
    if function.unsure and not (given and len(given) <= len(function.template)):
        return True
    return _takes_macro(function)


def _takes_macro(function: CppFunction) -> bool:
    """Whether a parameter may be a macro for several."""
    return any(not item.name and _MACRO.fullmatch(item.type) for item in function.parameters)


def _alternatives(signatures: Sequence[CppSignature], found: Sequence[Declared]) -> tuple[CppSignature, ...]:
    """Return signatures that differ, each compiled in separate builds; empty if two may be overloads."""
    kept: list[tuple[CppSignature, Declared]] = []
    for signature, item in zip(signatures, found, strict=True):
        same = next((at for at, other in enumerate(kept) if _is_same(other, (signature, item))), None)
        if same is None:
            kept.append((signature, item))
        elif item.function.defined and not kept[same][1].function.defined:
            kept[same] = (signature, item)
    for at, (_, item) in enumerate(kept):
        if any(not exclusive(item.function.conditions, other.function.conditions) for _, other in kept[at + 1 :]):
            return ()
    return tuple(signature for signature, _ in kept)


def _is_same(one: tuple[CppSignature, Declared], other: tuple[CppSignature, Declared]) -> bool:
    """Whether two signatures are those of one function: only in separate builds may the results differ."""
    types, others = one[0].types, other[0].types
    apart = exclusive(one[1].function.conditions, other[1].function.conditions)
    return types == others if apart else types[:-1] == others[:-1]


def _lambda(text: str, asked: Asked) -> CppSignature | None:
    """Return the signature of a lambda; its result is unknown if it is not written."""
    from opschema_cli.source.cpp import CppError, parse_cpp

    try:
        tree = parse_cpp(f"auto f = {text};")
    except CppError:
        return None
    node = next((item for item in tree.root.walk() if item.kind == "lambda_expression"), None)
    declarator = node.field("declarator") if node is not None else None
    if node is None or declarator is None or declarator.has_error:
        return None
    return _read(f"auto f{declarator.text};", text, asked)


def _read(declaration: str, text: str, asked: Asked) -> CppSignature | None:
    from opschema_cli.source.cpp import CppError, parse_cpp
    from opschema_cli.source.cpp_functions import read_functions

    try:
        found = read_functions(parse_cpp(declaration)).functions
    except CppError:
        return None
    if len(found) != 1 or found[0].unsure or _takes_macro(found[0]):
        return None
    if "auto" in " ".join(item.type for item in found[0].parameters):
        return None
    here = tuple(CppParameterText(item.type, item.name, Span(0, 0)) for item in found[0].parameters)
    return CppSignature("", found[0].returns, here, asked.place, tuple(asked.place for _ in here), asked.stable)
