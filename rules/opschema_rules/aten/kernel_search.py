"""Finds the class that seems to hold a backend's kernels where none has the expected name in the expected namespace."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.text import Span
from opschema_rules.aten.kernel_tree import Method, find_class

FEWEST = 3
"""Minimum number of kernels in a class for it to count as the intended one."""

_DEFINED = re.compile(rb"(?m)^(?:[A-Za-z_][\w:<>,&*\t ]*[\s&*])?([A-Za-z_][\w:]*)::([A-Za-z_]\w*)\(")
"""A method's definition: at the start of a line, as calls are not."""


class Definition(msgspec.Struct, frozen=True, array_like=True):
    """The definition of a method: its class with the namespaces that are written, its name, and the place of both in bytes."""

    owner: str
    name: str
    start: int
    end: int


class ClassFound(msgspec.Struct, frozen=True):
    """A class that defines kernels: its name, the place of the first of them, and the names of all."""

    name: str
    place: Place
    kernels: frozenset[str]


def in_other_namespace(
    project: Project, name: str, kernels: Collection[str], files: Sequence[str] = ()
) -> ClassFound | None:
    """Return the class of that name in any namespace that defines most kernels; None if it defines none."""
    methods: dict[str, list[Method]] = {}
    for method in find_class(project, name, "", files).defined:
        if method.name in kernels:
            methods.setdefault(method.written.owner, []).append(method)
    owner = max(methods, key=lambda item: len({method.name for method in methods[item]}), default=None)
    if owner is None:
        return None
    return ClassFound(owner, methods[owner][0].place, frozenset(method.name for method in methods[owner]))


def of_other_name(
    project: Project, kernels: Collection[str], files: Sequence[str] = (), *, taken: Collection[str] = ()
) -> ClassFound | None:
    """The class of any name but those that are ``taken`` that defines most kernels, if these are more than a few."""
    names: dict[str, set[str]] = {}
    first: dict[str, tuple[str, Definition]] = {}
    for path, definitions in project.scan(_READING, cpp_files(project, files)):
        for item in definitions:
            if item.name in kernels and item.owner not in taken:
                names.setdefault(item.owner, set()).add(item.name)
                first.setdefault(item.owner, (path, item))
    owner = max(names, key=lambda item: (len(names[item]), item), default="")
    if not owner or len(names[owner]) < min(FEWEST, len(kernels)):
        return None
    path, definition = first[owner]
    return ClassFound(owner, Place(path, _span(project, path, definition)), frozenset(names[owner]))


def has_cpp(project: Project, files: Sequence[str] = ()) -> bool:
    """Whether there is a C++ file in which kernels may be."""
    return any(True for _ in cpp_files(project, files))


def cpp_files(project: Project, files: Sequence[str] = ()) -> Iterable[str]:
    """The C++ files of a tree; of ``files`` only (paths or patterns), if there are any."""
    paths = (path for path in project.workspace.files if is_cpp(path))
    return (path for path in paths if not files or any(fnmatchcase(path, item) for item in files))


def _span(project: Project, path: str, definition: Definition) -> Span:
    """The characters of a place that is known in bytes."""
    data = project.workspace.peek(path)
    start = len(data[: definition.start].decode("utf-8", "replace"))
    return Span(start, start + len(data[definition.start : definition.end].decode("utf-8", "replace")))


def _definitions(data: bytes) -> list[Definition]:
    found = _DEFINED.finditer(data) if b"::" in data else ()
    return [Definition(item[1].decode(), item[2].decode(), item.start(1), item.end(2)) for item in found]


_READING: Reading[bytes, list[Definition]] = Reading("aten: definitions of methods", _definitions, list[Definition])
