"""Libraries that the build files of Bazel and Buck make, through functions of the tree.

A call that is given a ``name`` and sources makes a library if the function is one of the tree that ends in such a call, or has
a name like ``cc_library`` or ``pybind_extension``. Starlark has no side effects outside of a call, and neither loops nor
conditions outside of functions.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from opschema_cli.source.cmake.conditions import ALWAYS, Origin, joined
from opschema_cli.source.cmake.targets import Target
from opschema_cli.source.python import Expr, PythonFile, Statement
from opschema_cli.source.starlark.expressions import Scope, evaluate
from opschema_cli.source.starlark.run import Runner
from opschema_cli.source.starlark.values import UNKNOWN, FunctionValue, ListValue, NamedRule, Value, macros_in, strings

BUILD_FILES = ("BUILD", "BUILD.bazel", "BUCK", "TARGETS")

_LIBRARY = re.compile(r"(?:\w+_)?(?:library|extension|shared_object|solib)")
_GROUP = re.compile(r"(?:\w+_)?(?:filegroup|source_group)")
_EXTENSION = re.compile(r"torch_(?:cpp_|cuda_)?extension")
_FLAGS = re.compile(r"(?:\w+_)?(?:defines|copts|flags)")
_SOURCES = ("srcs", "sources")

MAX_WORK = 1_000_000
"""Maximum number of expressions, statements and items of lists to evaluate in one tree; this takes a few seconds."""

MAX_LOADS = 100
"""Maximum length of a chain of files that load one another."""


class TooMuchWorkError(Exception):
    """Raised if the build files of a tree exceed :data:`MAX_WORK`."""


class StarlarkTree:
    """The build files of a tree and the files that they load; ``glob`` returns the files that match a pattern."""

    def __init__(
        self, files: Mapping[str, PythonFile], glob: Callable[[str], Sequence[str]], is_source: Callable[[str], bool]
    ) -> None:
        self.files = files
        self.glob = glob
        self.is_source = is_source
        self._work_left = MAX_WORK
        self._loading = 0
        self._modules: dict[str, dict[str, Value]] = {}

    def spend(self, work: int) -> None:
        """Count work.

        Raises:
            TooMuchWorkError: it is beyond the limit.
        """
        self._work_left -= work
        if self._work_left < 0:
            raise TooMuchWorkError

    def targets(self) -> list[Target]:
        """The libraries of all build files, except those that take too much work or are nested too deeply."""
        found: list[Target] = []
        for path, file in self.files.items():
            if posixpath.basename(path) in BUILD_FILES:
                with suppress(TooMuchWorkError, RecursionError):
                    found += _Package(self, file).targets()
        return found

    def module(self, file: PythonFile) -> dict[str, Value]:
        """Return the names of a file."""
        known = self._modules.get(file.path)
        if known is None and self._loading < MAX_LOADS:
            known = self._modules[file.path] = {}
            self._loading += 1
            try:
                known.update(_Package(self, file).names())
            finally:
                self._loading -= 1
        return known if known is not None else {}

    def loaded(self, label: str, path: str) -> PythonFile | None:
        """Return the file of the tree that a label refers to in another file."""
        package, _, name = label.rpartition(":")
        repository, slashes, package = package.rpartition("//")
        if not slashes:
            return self.files.get(posixpath.join(posixpath.dirname(path), name))
        parts = [*package.split("/"), name] if package else [name]
        if not repository:
            return self.files.get("/".join(parts))
        tails = ("/".join(parts[at:]) for at in range(max(1, len(parts) - 1)))
        return next((self.files[tail] for tail in tails if tail in self.files), None)


class _Package(Runner):
    """A build file, or a loaded file, which makes the libraries of its folder."""

    def __init__(self, tree: StarlarkTree, file: PythonFile) -> None:
        super().__init__(file)
        self.tree = tree
        self.folder = posixpath.dirname(file.path)
        self.found: list[tuple[str, list[tuple[str, Origin]], tuple[tuple[str, str], ...], bool]] = []
        self.groups: dict[str, list[tuple[str, Origin]]] = {}

    def targets(self) -> list[Target]:
        """The libraries that the file makes."""
        scope = self.tree.module(self.file)
        inner = {
            (item.start, item.end) for call in self.file.facts.body.calls for part in call.items for item in part.walk()
        }
        for call in self.file.facts.body.calls:
            if (call.start, call.end) not in inner:
                self.call(call, scope)
        return [
            Target(name, self._files(sources), macros, extension) for name, sources, macros, extension in self.found
        ]

    def names(self) -> dict[str, Value]:
        """The names that the file defines or loads."""
        body = self.file.facts.body
        found: dict[str, Value] = {item.name: FunctionValue(item, self.file) for item in body.functions}
        for call in body.calls:
            if call.callee == "load" and call.positional() and isinstance(call.positional()[0].value, str):
                loaded = self.tree.loaded(str(call.positional()[0].value), self.file.path)
                names = self.tree.module(loaded) if loaded is not None else {}
                for keyword, item in call.args[1:]:
                    if isinstance(item.value, str):
                        found[keyword or item.value] = names.get(item.value, NamedRule(item.value))
        for assign in body.assigns:
            if assign.value is not None and assign.target.isidentifier():
                known = found.get(assign.target)
                value = evaluate(assign.value, found, self) if assign.sure else UNKNOWN
                found[assign.target] = value if known is None else UNKNOWN
        return found

    def spend(self, work: int) -> None:
        """Count work of the tree."""
        self.tree.spend(work)

    def module_of(self, value: FunctionValue) -> Scope:
        """Return the names of a function's file."""
        return self.tree.module(value.file)

    def ran(self, value: FunctionValue, named: Mapping[str, Value], *, makes: bool) -> None:
        """Treat a function that makes no library as a rule."""
        if not makes and not self.groups.get(str(named.get("name"))):
            self._rule(value.function.name, named)

    def other(self, statement: Statement, local: dict[str, Value], scope: Scope) -> Value | None:
        """Do nothing: Starlark has no further statements that matter."""
        return None

    def outside(self, dotted: str, positional: list[Value], named: dict[str, Value], call: Expr) -> Value:
        """Return the value of a call of a function from outside the tree."""
        name = dotted.rpartition(".")[2]
        if name == "glob":
            return self._glob(named.get("include", positional[0] if positional else UNKNOWN), named.get("exclude"))
        if name == "select":
            return _selected(positional[0] if positional else UNKNOWN, call)
        if name == "struct":
            return named
        if name == "dict":
            first = positional[0] if positional else {}
            return {**(first if isinstance(first, dict) else {}), **named}
        if name in ("list", "sorted", "depset", "tuple") and positional:
            return positional[0]
        self._rule(name, named)
        for value in (*positional, *named.values()):
            if isinstance(value, FunctionValue):  # it calls what it is given
                self.run(value, [], {key: item for key, item in named.items() if item is not value})
        return UNKNOWN

    def _glob(self, include: Value, exclude: Value) -> ListValue:
        listed = list(strings(include))
        left_out = {path for pattern, _ in strings(exclude) for path in self._matching(pattern)}
        found = [(path, origin) for pattern, origin in listed for path in self._matching(pattern)]
        return ListValue([(f"//{path}", origin) for path, origin in found if path not in left_out])

    def _matching(self, pattern: str) -> Sequence[str]:
        return self.tree.glob(posixpath.normpath(posixpath.join(self.folder, pattern)))

    # Libraries

    def _rule(self, name: str, named: Mapping[str, Value]) -> None:
        """Record the library or the group of files that a rule makes."""
        title = named.get("name")
        sources = [item for keyword in _SOURCES for item in strings(named.get(keyword))]
        makes = _LIBRARY.fullmatch(name) or named.get("linkshared") in (True, 1)
        if not isinstance(title, str) or not (makes or _GROUP.fullmatch(name)):
            return
        listed = [(path, joined(origin, self.conditions)) for path, origin in sources]
        if _GROUP.fullmatch(name):
            self.groups[title] = listed
            return
        flags = [flag for keyword, value in named.items() if _FLAGS.fullmatch(keyword) for flag, _ in strings(value)]
        macros = tuple(macros_in(flags))
        self.made += 1
        self.found.append((title, listed, macros, _EXTENSION.fullmatch(name) is not None))

    def _files(self, sources: Iterable[tuple[str, Origin]]) -> tuple[tuple[str, Origin], ...]:
        """Return source files, with groups replaced by their files."""
        found: list[tuple[str, Origin]] = []
        for written, origin in sources:
            for path, own in self.groups.get(written.removeprefix(":"), [(written, ALWAYS)]):
                if self.tree.is_source(path):
                    found.append((f"//{self._path(path)}", joined(own, origin)))
        return tuple(found)

    def _path(self, written: str) -> str:
        if written.startswith("//"):
            return written.lstrip("/").replace(":", "/")
        return posixpath.normpath(posixpath.join(self.folder, written.removeprefix(":")))


def _selected(value: Value, call: Expr) -> Value:
    """Return the values of ``select``, each under its own condition."""
    if not isinstance(value, dict):
        return UNKNOWN
    found = ListValue([])
    for key, item in value.items():
        if isinstance(item, ListValue):
            found = found + item.under(frozenset({(f"select at {call.start} is {key}", True)}))
    return found
