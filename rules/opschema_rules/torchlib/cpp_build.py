"""Targets of a tree's build files and its configuration, and the macros that they define for C++ sources.

They are read when a source file first asks for one: CMake files, ``setup.py``, tables of ``pyproject.toml``, the
``build.toml`` of kernel-builder, and the build files of Bazel and Buck.
"""

from __future__ import annotations

import bisect
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from itertools import islice, takewhile
from typing import NamedTuple

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.gitignore import glob_spec
from opschema_cli.globs import MalformedPattern, read_glob
from opschema_cli.project import Project
from opschema_cli.regular_files import content_digest
from opschema_cli.source.cmake.conditions import ALWAYS, Origin, are_together
from opschema_cli.source.cmake.run import CMakeFile, CMakeTree, Variables
from opschema_cli.source.cmake.targets import Target
from opschema_cli.source.preprocessor import Macro
from opschema_cli.source.python import PythonFile
from opschema_cli.source.starlark.load_script import LoadScript, with_calls
from opschema_cli.source.starlark.setup_script import Made, SetupScript, as_function
from opschema_cli.source.starlark.targets import BUILD_FILES, StarlarkTree
from opschema_cli.source.text import Span
from opschema_cli.word_search import WordSearch
from opschema_rules.torchlib.hub_kernels import hub_kernels
from opschema_rules.torchlib.toml_tables import items, read_toml, table, text_of

EXTENSION_NAME = "TORCH_EXTENSION_NAME"

_EXTENSION = re.compile(r"\b\w*Extension\b")
_EXTENSION_CALL = re.compile(r"\b\w*Extension\(")
_NAME_ARGUMENT = re.compile(r"""\s*(?:name\s*=\s*)?["']([\w.]+)["']""")
_SOURCE = re.compile(r"""["']([\w./+*-]+\.(?:cpp|cc|cxx|cu|hip))["']""")
_BRACKET = re.compile(r"""[()]|#.*|"[^"\n]*"|'[^'\n]*'""")
_LIST = re.compile(r"""\[(?:[\s,]|#.*|"[^"\n]*"|'[^'\n]*')*\](?!\s*(?:if|for)\b)""")
_DEFINE_ARGUMENT = re.compile(r"""\(\s*["'](\w+)["']\s*,\s*["'](\w+)["']\s*\)|["']-D(\w+)=(\w+)["']""")

MAX_GLOBS = 500
"""Maximum number of source globs to match with the files of a tree."""


class Build:
    """Macros and targets by source file; ``namespaces`` maps path patterns to the namespace in the configuration."""

    def __init__(self, project: Project, namespaces: Mapping[str, str]) -> None:
        self.project = project
        self.namespaces = [(glob_spec([pattern]), name) for pattern, name in namespaces.items()]

    def macros(self, path: str) -> dict[str, Macro]:
        """Macros of a source file that have the same value in all of its targets."""
        values: dict[str, set[str]] = {}
        for target in self._targets.get(path, ()):
            own = (EXTENSION_NAME, target.name.rpartition(".")[2])
            for name, value in (*target.macros, own) if target.extension else target.macros:
                values.setdefault(name, set()).add(value)
        found = {name: next(iter(item)) for name, item in values.items() if len(item) == 1 and "" not in item}
        named = self.namespace(path)
        if named is not None:
            found[EXTENSION_NAME] = named
        return {name: Macro(name, None, value, Span(0, 0)) for name, value in found.items()}

    def namespace(self, path: str) -> str | None:
        """Return the configured namespace of a source file."""
        return next((name for spec, name in self.namespaces if spec.ignores(path)), None)

    def targets(self, path: str) -> frozenset[str]:
        """Names of the targets that a source file is part of; empty when they are not known."""
        names = {target.name for target in self._targets.get(path, ())}
        return frozenset(names) if "" not in names else frozenset()

    def is_extension(self, path: str) -> bool:
        """Whether a target of a source file is an extension of torch."""
        return any(target.extension for target in self._targets.get(path, ()))

    def unfollowed_call(self, path: str) -> str:
        """Return the function that builds a source file without a target and that no file of the tree defines; empty if there is
        none.
        """
        name, build_file = (
            _read(self.project).unfollowed.get(path, ("", "")) if not self._targets.get(path) else ("", "")
        )
        return f"`{name}()` in {build_file}, which no file here defines" if name else ""

    def target_of_both(self, path: str, other: str) -> str:
        """Return the target whose builds compile two source files together; empty if none is certain to."""
        known = {id(target): origin for target, origin in self._origins.get(path, ())}
        for target, origin in self._origins.get(other, ()):
            if target.name and are_together(origin, known.get(id(target))):
                return target.name
        return ""

    @cached_property
    def with_sources(self) -> frozenset[str]:
        """The names of the targets with a known source file."""
        return frozenset(target.name for targets in self._targets.values() for target in targets)

    @cached_property
    def _targets(self) -> dict[str, list[Target]]:
        """Targets by their source files."""
        return {path: [target for target, _ in found] for path, found in self._origins.items()}

    @property
    def _origins(self) -> dict[str, list[tuple[Target, Origin]]]:
        """The targets by source file, each with the conditions under which the file is part of it."""
        return _read(self.project).origins


class _BuildFiles(NamedTuple):
    """The contents of the build files of a workspace: ``origins`` as in :attr:`Build._origins`, ``extensions`` as in
    :func:`extensions_of`; ``unfollowed`` maps source files without a target to the undefined function that builds them and the
    file that calls it.
    """

    origins: dict[str, list[tuple[Target, Origin]]]
    unfollowed: dict[str, tuple[str, str]]
    extensions: dict[str, list[str]]


def extensions_of(project: Project) -> dict[str, list[str]]:
    """The names of the extensions of each ``setup.py``, in order."""
    return _read(project).extensions


@lru_cache(maxsize=2)
def _read(project: Project) -> _BuildFiles:
    """The build files of a workspace, read once for all packs."""
    found: dict[str, dict[int, tuple[Target, Origin]]] = {}
    unfollowed: dict[str, tuple[str, str]] = {}
    extensions: dict[str, list[str]] = {}
    sources = _Sources(project)
    for number, (folder, target) in enumerate(_targets(project, sources, unfollowed, extensions)):
        for source, origin in dict(target.sources).items():
            for path in sources.of(folder, source):
                found.setdefault(path, {}).setdefault(number, (target, origin))
    return _BuildFiles({path: list(items.values()) for path, items in found.items()}, unfollowed, extensions)


def _targets(
    project: Project,
    sources: _Sources,
    unfollowed: dict[str, tuple[str, str]],
    extensions: dict[str, list[str]],
) -> Iterator[tuple[str, Target]]:
    """Targets of all build files, each with the folder that its sources are relative to; ``unfollowed`` and ``extensions`` are
    filled meanwhile.
    """
    files: dict[str, list[str]] = {}
    for path in project.workspace.files:
        files.setdefault(path.rpartition("/")[2], []).append(path)
    seen: dict[str, Variables] = {}
    yield from _toml_targets(project, files, seen)
    for path in sorted(files.get("setup.py", ())):
        made = list(_setup_targets(project, path, sources))
        extensions[path] = list(dict.fromkeys(item.name for item in made if item.name))
        yield from ((posixpath.dirname(path), target) for target in made)
    yield from (("", target) for target in _starlark_targets(project, files, sources))
    for folder, read in _cmake_files(project, files, seen, sources):
        for call in read.unfollowed:
            for source in call.sources:
                unfollowed.setdefault(source, (call.function, call.path))
        yield from ((folder, target) for target in read.targets)


class _Sources:
    """Files of a workspace that sources of targets name."""

    def __init__(self, project: Project) -> None:
        # A module whose only source is C, and which binds nothing itself, is one as well.
        self.files = frozenset(path for path in project.workspace.files if is_cpp(path) or path.endswith(".c"))
        self.sorted = sorted(self.files)
        self.globs = MAX_GLOBS

    def of(self, folder: str, source: str) -> Iterable[str]:
        """Yield the files that a source refers to; one that begins with ``//`` is a path in the tree."""
        exact = source.startswith("//")
        path = source.lstrip("/")
        bases = (posixpath.relpath(path, folder or "."), path) if exact else (posixpath.join(folder, path), path)
        places = [posixpath.normpath(place) for place in (reversed(bases) if exact else bases)]
        if "*" not in source:
            return [place for place in places if place in self.files][:1]
        return next(filter(None, map(self.matching, places)), ())

    def matching(self, pattern: str) -> list[str]:
        """The files that match a pattern."""
        self.globs -= 1
        if self.globs < 0:
            return []
        try:
            glob = read_glob(pattern)
        except MalformedPattern:
            return []
        letters = re.split(r"[*?\[\\]", pattern, maxsplit=1)[0]
        start = bisect.bisect_left(self.sorted, letters)
        near = takewhile(lambda path: path.startswith(letters), islice(self.sorted, start, None))
        return list(filter(glob.matches, near))


def _toml_targets(
    project: Project, found: dict[str, list[str]], seen: dict[str, Variables]
) -> Iterator[tuple[str, Target]]:
    """Targets of TOML files, each with the folder of its file; ``seen`` gets variables for CMake."""
    for kernel in hub_kernels(project):
        listed = tuple((source, ALWAYS) for source in kernel.sources)
        yield kernel.folder, Target(kernel.namespace, listed, extension=True)
    for path in found.get("pyproject.toml", ()):
        folder = posixpath.dirname(path)
        tools = read_toml(project, path)
        seen[folder] = _cmake_variables(tools)
        yield from ((folder, target) for target in _pyproject_targets(tools))


def _cmake_files(
    project: Project, found: dict[str, list[str]], seen: dict[str, Variables], sources: _Sources
) -> list[tuple[str, CMakeFile]]:
    """The CMake files of a tree that no other one leads to, each with its folder, those above others first.

    They are cached under the contents of all CMake files and the names of all source files.
    """
    cmake = sorted(path for name, paths in found.items() if name.endswith(".cmake") for path in paths)
    lists = sorted(found.get("CMakeLists.txt", ()), key=lambda path: path.count("/"))
    digests = [(path, project.workspace.digest(path)) for path in (*lists, *cmake)]
    key = content_digest(msgspec.msgpack.encode((digests, sources.sorted, seen)))
    shelf = project.shelf("cmake files", list[tuple[str, CMakeFile]])
    read = shelf.get(key)
    if read is None:
        read = list(_run_cmake(project, lists, cmake, seen, sources))
        shelf.put(key, read)
    return read


def _run_cmake(
    project: Project, lists: Sequence[str], cmake: Sequence[str], seen: dict[str, Variables], sources: _Sources
) -> Iterator[tuple[str, CMakeFile]]:
    tree = CMakeTree({path: text_of(project, path) for path in (*lists, *cmake)}, sources.matching, is_cpp)
    for path in (*lists, *(path for path in cmake if tree.effects.makes_targets(tree.commands[path]))):
        if path not in tree.reached:
            folder = posixpath.dirname(path)
            read = tree.read(path, _variables_above(seen, folder))
            if path.endswith(".txt"):
                seen[folder] = read.variables
            yield folder, read


def _starlark_targets(project: Project, found: dict[str, list[str]], sources: _Sources) -> Iterable[Target]:
    """The libraries of Bazel and Buck."""
    builds = [path for name in BUILD_FILES for path in found.get(name, ())]
    loaded = [path for name, paths in found.items() if name.endswith(".bzl") for path in paths] if builds else []
    files = project.starlark((*builds, *loaded))
    return StarlarkTree(files, sources.matching, is_cpp).targets() if files else ()


def _variables_above(seen: Mapping[str, Variables], folder: str) -> Variables:
    while folder and folder not in seen:
        folder = posixpath.dirname(folder)
    return seen.get(folder, {})


# pyproject.toml


def _cmake_variables(tools: dict[str, object]) -> Variables:
    """Variables that scikit-build-core passes to CMake."""
    given = table(tools, "tool", "scikit-build", "cmake", "define")
    named = {**given, "SKBUILD_PROJECT_NAME": table(tools, "project").get("name")}
    return {name: {value: ALWAYS} for name, value in named.items() if isinstance(value, str)}


def _pyproject_targets(tools: dict[str, object]) -> Iterator[Target]:
    """Extensions of setuptools."""
    modules = table(tools, "tool", "setuptools").get("ext-modules")
    for module in items(modules):
        name, sources, macros = (table(module).get(key) for key in ("name", "sources", "define-macros"))
        if isinstance(name, str):
            pairs = (item for item in items(macros) if isinstance(item, list) and len(item) == 2)
            defined = tuple((str(macro), str(value)) for macro, value in pairs)
            listed = tuple((str(source), ALWAYS) for source in items(sources))
            yield Target(name, listed, defined, extension=True)


# setup.py


def _setup_targets(project: Project, path: str, sources: _Sources) -> Iterator[Target]:
    """Extensions of a ``setup.py``: as it makes them, and for calls that cannot be followed those that are written in them."""
    text = text_of(project, path)
    if not _EXTENSION.search(text):
        return
    made = _made_by(SetupScript, project, path, text, sources)
    yield from (item.target for item in made if item.target.name or item.target.sources)
    known = {item.at for item in made if item.complete and item.target.name}
    yield from (target for at, target in _written_targets(text) if at not in known)


def _made_by(kind: type[SetupScript], project: Project, path: str, text: str, sources: _Sources) -> list[Made]:
    """The extensions that a script makes, whose text may be that of its file with calls."""

    def script(other: str) -> PythonFile | None:
        if other not in project.workspace.files:
            return None
        return _as_function(project, other, text_of(project, other), "module")

    file = _as_function(project, path, text, kind.__name__)
    if file is None:
        return []
    return kind(file, posixpath.dirname(path), sources.matching, script).extensions()


def _as_function(project: Project, path: str, text: str, purpose: str) -> PythonFile | None:
    """A script as a function; its text may be another one than that of its file."""
    name = f"<statements of {path} {project.workspace.digest(path)} {purpose}>.py"
    project.workspace.provide(name, as_function(text))
    return project.starlark([name]).get(name)


def loaded_extensions(project: Project, paths: Iterable[str]) -> dict[str, str]:
    """Return the names under which some Python files compile and load extensions and others import them, by C++ file; empty for
    a file with several.
    """
    sources = _Sources(project)
    made = [
        (path, item.target)
        for path in paths
        for item in _made_by(LoadScript, project, path, with_calls(text_of(project, path)), sources)
        if item.target.name.isidentifier()
    ]
    users = _users(project, {target.name for _, target in made})
    found: dict[str, set[str]] = {}
    for path, target in made:
        for source, _ in target.sources if users[target.name] - {path} else ():
            for one in sources.of(posixpath.dirname(path), source):
                found.setdefault(one, set()).add(target.name)
    return {path: next(iter(names)) for path, names in found.items() if len(names) == 1}


def _users(project: Project, names: Set[str]) -> Mapping[str, set[str]]:
    """The Python files that import a module, or name it in a string, by its name."""
    found: dict[str, set[str]] = {name: set() for name in names}
    python = (path for path in project.workspace.files if path.endswith(".py") and names)
    for path in WordSearch(project, "loaded extensions", frozenset(names)).files(python):
        for word in found.keys() & {word.decode() for word in _USED.findall(project.workspace.peek(path))}:
            found[word].add(path)
    return found


_USED = re.compile(rb"(?:\b(?:import|from)\s+|[\"'](?=\w+[\"']))(\w+)")


def _written_targets(text: str) -> Iterator[tuple[int, Target]]:
    """Extensions of a ``setup.py`` whose names and sources are literals, each with the end of the name that makes it."""
    calls = list(_EXTENSION_CALL.finditer(text))
    ends = [item.start() for item in calls] + [len(text)]
    for call, end in zip(calls, ends[1:], strict=True):
        name = _NAME_ARGUMENT.match(text, call.end(), end)
        if name is not None:
            inside = _call_end(text, call.end(), end)
            lists = [item.span() for item in _LIST.finditer(text, call.end(), inside)]
            written = list(_SOURCE.finditer(text, call.end(), inside)) or _SOURCE.finditer(text, call.end(), end)
            sources = tuple((item[1], _list_of(item.start(), lists)) for item in written)
            defined = (item.groups() for item in _DEFINE_ARGUMENT.finditer(text, call.end(), end))
            macros = tuple((first or third, second or fourth) for first, second, third, fourth in defined)
            yield call.end() - 1, Target(name[1], sources, macros, extension=True)


def _call_end(text: str, start: int, end: int) -> int:
    """The end of a call, or the first bracket that does not fit."""
    depth = 1
    for item in _BRACKET.finditer(text, start, end):
        depth += (item[0] == "(") - (item[0] == ")")
        if depth == 0:
            return item.start()
    return start


def _list_of(at: int, lists: Sequence[tuple[int, int]]) -> Origin:
    """The origin of a source: the list that it is written in, if that holds nothing but strings."""
    found = next((start for start, end in lists if start <= at < end), None)
    return frozenset({(f"list at {found}", True)}) if found is not None else None
