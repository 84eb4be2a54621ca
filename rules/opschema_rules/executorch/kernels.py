"""Matches the kernels that lists name with the C++ functions of the tree.

The code generator declares ``a::native::f(KernelRuntimeContext&, ...)`` for the kernel ``a::f`` and calls it, so that a
function of another name, namespace or type does not link.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.cpp_definitions import CppDefinitions
from opschema_cli.cpp_units import DECLARATIONS, Declared
from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.cpp_namespaces import Namespaces, is_within
from opschema_cli.source.cpp_text import only_code
from opschema_rules.executorch.kernel_types import argument_type, arguments_of, returned_type
from opschema_rules.executorch.model import Kernel, OpEntry, Tree
from opschema_rules.torchlib.cpp_executorch import takes_context, takes_other_context, with_aten_types
from opschema_rules.torchlib.cpp_signature import CppSignature, signature_of


class Candidate(msgspec.Struct, frozen=True):
    """A function that may be the kernel, with ATen's types, and its differences from the declaration for the schema.

    ``context`` says that it takes the context first. ``count`` is the number of other parameters if that is wrong, ``wrong``
    are the indexes of parameters of another type, ``returns`` says that it returns what breaks the call, ``hidden`` why
    other files do not see it; empty if they do. ``template`` says that it is a template, which a call of
    a function does not reach.
    """

    signature: CppSignature
    context: bool
    count: int | None = None
    wrong: tuple[int, ...] = ()
    returns: bool = False
    hidden: str = ""
    template: bool = False

    @property
    def fits(self) -> bool:
        """Whether the call may reach it."""
        reached = not self.hidden and not self.template
        return reached and self.context and self.count is None and not self.wrong and not self.returns


class KernelCheck(msgspec.Struct, frozen=True, eq=False):
    """A kernel of an entry, and the functions of its name.

    ``here`` are those in the namespace where the code generator declares it, ``elsewhere`` the namespaces that define one.
    ``missing`` says that the tree defines it nowhere, though it defines most kernels of that namespace. Unless ``certain``, there
    may be others in that namespace. ``hidden`` says why other files do not see some of them. ``mentioned`` says that a
    macro may define another one.
    """

    entry: OpEntry
    kernel: Kernel
    here: tuple[Declared, ...] = ()
    elsewhere: tuple[Declared, ...] = ()
    missing: bool = False
    certain: bool = True
    hidden: Mapping[Place, str] = {}
    mentioned: bool = False


def read_kernels(tree: Tree) -> Iterator[KernelCheck]:
    """The kernels of all lists that can be compared with C++."""
    named = [(entry, kernel) for entry in tree.entries for kernel in entry.kernels if kernel.symbol.isidentifier()]
    if named:
        yield from _Search(tree.project, [kernel for _, kernel in named]).checks(named)


class _Search(msgspec.Struct, dict=True):
    project: Project
    kernels: Sequence[Kernel]

    def checks(self, named: Iterable[tuple[OpEntry, Kernel]]) -> Iterator[KernelCheck]:
        found = {kernel.full: self._defined(kernel) for kernel in self.kernels}
        there = Counter((kernel.namespace, bool(found[kernel.full])) for kernel in self.kernels)
        for entry, kernel in named:
            here = found[kernel.full]
            if here:
                hidden = {item.place: self._hidden(item) for item in here}
                made = any(item.function.template for item in here) and self._may_be_made(kernel)
                yield KernelCheck(entry, kernel, here, (), False, self._is_certain(kernel), hidden, made)
                continue
            known = there[kernel.namespace, True] > there[kernel.namespace, False]
            elsewhere, mentioned = self._elsewhere(kernel)
            missing = known and not mentioned and not self._tree.is_pasted(kernel.symbol)
            yield KernelCheck(entry, kernel, (), elsewhere, missing, not mentioned)

    @cached_property
    def _tree(self) -> CppDefinitions:
        """The functions in files with a namespace ``native`` whose names are those of kernels."""
        return CppDefinitions(self.project, frozenset(kernel.symbol for kernel in self.kernels), b"native")

    def _defined(self, kernel: Kernel) -> tuple[Declared, ...]:
        """Return the definitions of a kernel; for one that is only declared, and mentioned elsewhere, the declarations."""
        found = [
            item for item in self._tree.functions.get(kernel.symbol, ()) if item.function.owner == kernel.namespace
        ]
        defined = tuple(item for item in found if item.function.defined)
        return defined or (tuple(found) if found and self._elsewhere(kernel)[1] else ())

    def _may_be_made(self, kernel: Kernel) -> bool:
        """Whether a macro may define the function of a kernel."""
        return self._elsewhere(kernel)[1] or self._tree.is_pasted(kernel.symbol)

    def _hidden(self, item: Declared) -> str:
        """Return why other files do not see a function; empty if they do."""
        source, function, around = self.project.source(item.path), item.function, self._namespaces(item.path)
        text = source.text[function.span.start : function.name_span.start] if source is not None else ""
        words = set(_SPECIFIER.findall(only_code(text)))
        if "static" in words or around.is_unnamed(function.name_span.start):
            return "is static or in a namespace without a name: other files do not see it"
        if around.is_of_c(function.span.start):
            return 'is `extern "C"`: the generated code calls a C++ function'
        kept = not words.isdisjoint(_EMITTED) or any(map(_MACRO.fullmatch, words))
        if "inline" in words and not kept and not self._is_used(function.name):
            return "is inline and never used, so compilers leave it out"
        return ""

    def _is_used(self, name: str) -> bool:
        """Whether the tree may use a function: C++ mentions it otherwise than in its declarations, or may be made to."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        known = {(item.path, item.function.name_span.end) for item in self._tree.functions.get(name, ())}
        paths = (path for path in self._tree.paths if name.encode() in self.project.workspace.peek(path))
        mentioned = any((path, one.end()) not in known for path in paths for one in word.finditer(self._code(path)))
        return mentioned or self._tree.is_pasted(name) or self._is_used_elsewhere(name)

    def _is_used_elsewhere(self, name: str) -> bool:
        """Whether a file that may be included in C++, or become some, mentions a function."""
        word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
        peek = self.project.workspace.peek
        others = (path for path in self.project.workspace.files if not is_cpp(path) and not path.endswith(_NO_CPP))
        return any(word.search(peek(path)) for path in others)

    def _is_certain(self, kernel: Kernel) -> bool:
        """Whether no other function of the name may be in the namespace."""
        named = (item for item in self._tree.functions.get(kernel.symbol, ()) if item.function.defined)
        return not any(
            item.function.owner != kernel.namespace and self._may_be_in(item, kernel.namespace) for item in named
        )

    def _elsewhere(self, kernel: Kernel) -> tuple[tuple[Declared, ...], bool]:
        """Return the functions of that name in other namespaces, and whether the C++ code mentions the name in other ways: then
        a macro, or a file that is not understood, may define the kernel.
        """
        if kernel.full not in self._looked:
            self._looked[kernel.full] = self._look(kernel)
        return self._looked[kernel.full]

    @cached_property
    def _looked(self) -> dict[str, tuple[tuple[Declared, ...], bool]]:
        return {}

    def _look(self, kernel: Kernel) -> tuple[tuple[Declared, ...], bool]:
        word = kernel.symbol.encode()
        paths = [path for path in self._tree.paths if word in self.project.workspace.peek(path)]
        read = self.project.cpp_readings(DECLARATIONS, paths)
        named = [
            Declared(path, item) for path, one in read.items() for item in one.functions if item.name == kernel.symbol
        ]
        words = re.compile(rf"\b{re.escape(kernel.symbol)}\b")
        places: dict[str, set[int]] = {}
        for item in named:
            places.setdefault(item.path, set()).add(item.function.name_span.end)
        mentioned = len(read) < len(paths) or any(
            self._mentions(path, words, places.get(path, set()), kernel.namespace) for path in paths
        )
        # One whose namespaces are not known may be in the right one.
        unknown = any(item.function.defined and self._may_be_in(item, kernel.namespace) for item in named)
        others = (item for item in named if item.function.defined and not self._may_be_in(item, kernel.namespace))
        return tuple(others), mentioned or unknown

    def _may_be_in(self, item: Declared, namespace: str) -> bool:
        """Whether a function may be in a namespace nested in the known one: an error in its file hides namespaces, a macro may
        open one, and a file without a namespace may be included in one.
        """
        owner = item.function.owner
        if any(map(_MACRO.fullmatch, owner.split("::"))):
            return True
        around = self._namespaces(item.path)
        exact = around.known and around.at(item.function.name_span.start) == owner
        included = not owner and not item.path.endswith(_COMPILED)
        return included or (is_within(namespace, owner) and (not exact or self._is_opened_by_macro(item)))

    def _is_opened_by_macro(self, item: Declared) -> bool:
        """Whether a macro before a function may open a namespace."""
        source = self.project.source(item.path)
        before = source.text[: item.function.name_span.start] if source is not None else ""
        return _OPENING.search(before) is not None

    def _namespaces(self, path: str) -> Namespaces:
        if path not in self._read:
            source = self.project.source(path)
            self._read[path] = Namespaces(source.text if source is not None else "")
        return self._read[path]

    @cached_property
    def _read(self) -> dict[str, Namespaces]:
        return {}

    def _code(self, path: str) -> str:
        if path not in self._codes:
            source = self.project.source(path)
            self._codes[path] = only_code(source.text) if source is not None else ""
        return self._codes[path]

    @cached_property
    def _codes(self) -> dict[str, str]:
        return {}

    def _mentions(self, path: str, words: re.Pattern[str], declared: set[int], namespace: str) -> bool:
        """Whether a file has a name, where a macro may define the function in the namespace: in a directive, or in the namespace
        itself outside of functions.
        """
        text, around = self._code(path), self._namespaces(path)
        for found in words.finditer(text):
            start, end = found.span()
            line = text[max(text.rfind("\n", 0, start) + 1, start - MAX_LINE) : start].lstrip()
            if line.startswith("#"):
                return True
            if end in declared or not around.declares(start) or _USING.fullmatch(line):
                continue
            if not around.known or is_within(namespace, around.at(start)):
                return True
        return False


MAX_LINE = 1000
"""Maximum number of characters to examine before a name."""

_MACRO = re.compile(r"[A-Z][A-Z0-9_]{2,}")
"""A name that may be a macro."""

_OPENING = re.compile(
    r"(?m)(?:^|[{};])[ \t]*(?=[A-Z0-9_]{0,60}(?:NAMESPACE|BEGIN|OPEN|START|ENTER))[A-Z][A-Z0-9_]*(?:\([^()\n]*\))?[ \t]*$"
)
"""A macro that is not a statement and whose name opens something."""

_COMPILED = (".cpp", ".cc", ".cxx", ".cu", ".c")
"""Files that others do not include."""

_NO_CPP = (".yaml", ".yml", ".md", ".rst", ".txt", ".json", ".toml")
"""Files that become no C++."""

_SPECIFIER = re.compile(r"\w+")
_EMITTED = frozenset({"used", "dllexport", "noinline", "weak"})
"""Words of attributes by which compilers keep an inline function."""

_USING = re.compile(r"using\s+[\w:]*::")


def candidates(check: KernelCheck) -> list[Candidate]:
    """Return the functions in the right namespace, compared with the schema; empty if one of them may match, or is not
    understood.
    """
    schema = check.entry.schema
    if schema is None or not check.here or not check.certain or not all(map(_is_understood, check.here)):
        return []
    if check.mentioned and any(item.function.template for item in check.here):
        return []
    wanted = [argument_type(item) for item in arguments_of(schema)]
    returns = returned_type(schema)
    found = [
        replace(
            _compared(with_aten_types(_signature(check, item)), wanted, returns),
            hidden=check.hidden.get(item.place, ""),
            template=bool(item.function.template),
        )
        for item in check.here
    ]
    return [] if any(item.fits for item in found) else found


def _signature(check: KernelCheck, item: Declared) -> CppSignature:
    """The signature of a function; types that its file does not know are followed through aliases."""
    found = signature_of(item)
    if all(spelling(one) is not None for one in (*found.parameter_types[1:], found.returns)):
        return found
    return found.with_aliases(check.entry.owner.tree.units.aliases(item.path, {item.function.name}))


def _is_understood(item: Declared) -> bool:
    return not item.function.unsure or bool(item.function.template)


def _compared(signature: CppSignature, wanted: Sequence[str | None], returns: str | None) -> Candidate:
    # A first parameter of an unknown type may be an alias of the context.
    first = signature.parameters[0].type if signature.parameters else ""
    alias = bool(first) and spelling(first) is None and not takes_other_context(signature)
    context = takes_context(signature) or alias
    types = [_INTEGERS.get(item.type.strip(), spelling(item.type)) for item in signature.parameters][context:]
    if len(types) != len(wanted):
        return Candidate(signature, context, len(types))
    wrong = tuple(
        index
        for index, (one, other) in enumerate(zip(types, wanted, strict=True))
        if one is not None and other is not None and one != other
    )
    return Candidate(signature, context, None, wrong, _breaks(spelling(signature.returns), returns))


def _breaks(found: str | None, wanted: str | None) -> bool:
    """Whether a caller that expects another type fails: one of the types is returned in memory of the caller, and the other is not.

    A function without a result in place of one that returns a reference is called like it.
    """
    if found is None or wanted is None or found == wanted:
        return False
    return not (found == "void" and (wanted.endswith("&") or wanted in _SCALARS))


_INTEGERS = {"long long": "int64_t"}
"""The type that ``int64_t`` is on 32-bit targets and those of Apple."""

_SCALARS = ("int64_t", "bool", "double")
