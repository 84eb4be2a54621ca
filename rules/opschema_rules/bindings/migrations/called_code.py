"""The code that bound functions run: their bodies, and those of the functions and macros of the tree that they call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

import msgspec

from opschema_cli.cpp_definitions import CppDefinitions
from opschema_cli.cpp_units import MACROS, Declared
from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.source.cpp_namespaces import may_mean
from opschema_cli.source.cpp_text import end_of_braces, only_code
from opschema_rules.bindings.migrations.plain_code import bare_names, called_names, doubts, is_known
from opschema_rules.bindings.migrations.python_code import PythonCode, mentions_python

MAX_DEPTH = 12
"""Maximum length of a chain of calls to follow."""

_LONGEST = 100_000
"""Maximum number of characters of a body."""

_MEMORY = re.compile(
    r"data_ptr|accessor|<<<|AT_DISPATCH|#pragma\s+omp|parallel_for|getCurrent\w{0,20}Stream|(?:CUDA|HIP)\w{0,20}Guard|\bdata\s*<"
    r"|\bcu(?:blas|dnn|sparse|solver|fft|rand)\w{0,60}\s*\(|\b(?:cuda|hip)[A-Z]\w{0,60}\s*\("
)
_APPLY = re.compile(r"(?<!\w)(\w{1,200})\s{0,20}(?:<[^<>()]{0,200}>)?\s{0,20}::\s{0,20}apply\s{0,20}\(")
_CLASS = re.compile(rb"\b(?:class|struct)\s+(\w+)[^;{}]*\Z")
_FUNCTION = b"autograd::Function"
_BEFORE = 300
"""Number of bytes to examine before the base class of an autograd function."""


class CalledCode(msgspec.Struct, frozen=True):
    """The code that a function may run: its own body, and those of the functions and macros that it calls.

    ``doubt`` is the first thing in it whose effects are not known; ``differentiates`` an autograd function of C++ that it applies;
    ``python`` its first use of Python; each is empty if there is none.
    """

    bodies: tuple[str, ...]
    doubt: str = ""
    differentiates: str = ""
    python: str = ""

    @property
    def accesses_memory(self) -> bool:
        """Whether it certainly accesses the memory of tensors: autograd and tracers do not see what it does then."""
        return any(map(_accesses_memory, self.bodies))


@lru_cache(maxsize=4096)
def _accesses_memory(body: str) -> bool:
    return _MEMORY.search(body) is not None


class CallSearch(msgspec.Struct, dict=True):
    """Finds the code that functions of a tree run."""

    project: Project

    def definition(self, declared: Declared) -> tuple[str, str]:
        """Return the parameters and the body of a definition, without comments and literals; empty if it has no body."""
        code = self._code_of(declared.path)
        opening = code.find("{", declared.function.span.end)
        end = end_of_braces(code, opening, _LONGEST) if opening >= 0 else -1
        return (code[declared.function.name_span.end : opening], code[opening:end]) if end >= 0 else ("", "")

    def code(self, body: str) -> CalledCode:
        """Return all the code that a body may run."""
        self.learn([body])
        found = dict.fromkeys([body])
        waiting = [body]
        while waiting:
            current = waiting.pop()
            for name in (*called_names(current), *bare_names(current)):
                new = [text for text in self._known.get(name, ()) if text not in found]
                found.update(dict.fromkeys(new))
                waiting += new
        applied = {match[1] for text in found for match in _APPLY.finditer(text)}
        python = next(filter(None, map(self._python.first_use, found)), "")
        return CalledCode(
            tuple(found), next(self._doubts(found), ""), min(applied & self._autograd, default=""), python
        )

    def _doubts(self, bodies: Iterable[str]) -> Iterator[str]:
        """Yield the functions that some bodies call and that are not known, and then what else in them may have effects."""
        called = (name for body in bodies for name in called_names(body))
        yield from (f"{name}()" for name in called if not self._known.get(name) and not is_known(name))
        for body in bodies:
            yield from doubts(body)

    def learn(self, bodies: Iterable[str]) -> None:
        """Find the functions and macros that some bodies call, and what these call."""
        waiting = list(bodies)
        for _ in range(MAX_DEPTH):
            names = {name for body in waiting for name in (*called_names(body), *bare_names(body))} - self._known.keys()
            if not names:
                return
            search = CppDefinitions(self.project, frozenset(name.rpartition("::")[2] for name in names))
            waiting = []
            for name in sorted(names):
                qualifier, _, plain = name.rpartition("::")
                defined = [
                    item
                    for item in search.functions.get(plain, ())
                    if item.function.defined and may_mean(qualifier, item.function.owner)
                ]
                texts = [*filter(None, map("".join, map(self.definition, defined))), *self._macros.get(name, ())]
                self._known[name] = tuple(dict.fromkeys(texts))
                waiting += self._known[name]

    @cached_property
    def _known(self) -> dict[str, tuple[str, ...]]:
        """The bodies of functions and macros, by name; none for one that the tree does not define."""
        return {}

    @cached_property
    def _codes(self) -> dict[str, str]:
        return {}

    def _code_of(self, path: str) -> str:
        if path not in self._codes:
            source = self.project.source(path)
            self._codes[path] = only_code(source.text) if source is not None else ""
        return self._codes[path]

    @cached_property
    def _paths(self) -> list[str]:
        return [path for path in self.project.workspace.files if is_cpp(path)]

    @cached_property
    def _macros(self) -> dict[str, list[str]]:
        """The bodies of the macros, by name; their parameters are written like those of a function."""
        found: dict[str, list[str]] = {}
        for macro in (item for items in self.project.readings(MACROS, self._paths).values() for item in items):
            body = only_code(macro.body)
            if macro.parameters is not None or "(" in body or ";" in body or self._python.first_use(body):
                given = ", ".join(f"auto {name}" for name in macro.parameters or ())
                found.setdefault(macro.name, []).append(f"({given}) {body};")
        return found

    @cached_property
    def _python(self) -> PythonCode:
        return PythonCode(
            self._code_of(path) for path in self._paths if mentions_python(self.project.workspace.peek(path))
        )

    @cached_property
    def _autograd(self) -> frozenset[str]:
        """The autograd functions that the tree's C++ defines."""
        return frozenset(name for path in self._paths for name in _autograd_in(self.project.workspace.peek(path)))


def _autograd_in(data: bytes) -> Iterator[str]:
    at = -1
    while (at := data.find(_FUNCTION, at + 1)) >= 0:
        match = _CLASS.search(data, max(0, at - _BEFORE), at)
        if match is not None:
            yield match[1].decode()
