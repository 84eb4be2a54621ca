"""Macros that a tree's build files and its configuration define for C++ sources, as ``TORCH_EXTENSION_NAME``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from opschema_cli.project import Project
from opschema_cli.source.preprocessor import Macro
from opschema_cli.source.text import Span

EXTENSION_NAME = "TORCH_EXTENSION_NAME"

_COMMAND = re.compile(r"\b(\w+)[ \t]*\(([^()]*)\)")
_WORD = re.compile(r'"([^"\n]*)"|([^\s"]+)')
_LISTED = re.compile(r"\$\{(\w+)\}")
_DEFINED = re.compile(r"(?:-D)?([A-Za-z_]\w*)=([A-Za-z_]\w*)")
_EXTENSION_CALL = re.compile(r"\b\w*Extension\(")
_NAME_ARGUMENT = re.compile(r"""\s*(?:name\s*=\s*)?["']([\w.]+)["']""")
_SOURCE = re.compile(r"""["']([\w./+-]+\.(?:cpp|cc|cxx|cu|hip))["']""")
_MAKES_EXTENSION = re.compile(r"define_(?:gpu_|cpu_)?extension_target|torch_extension")

Defined = dict[str, dict[str, set[str]]]
"""For each source file, each macro's values in the targets that the file is part of."""


class Build:
    """Macros by source file; ``namespaces`` maps patterns of paths to the namespace that the configuration gives."""

    def __init__(self, defined: Defined, namespaces: Mapping[str, str]) -> None:
        self.defined = defined
        self.namespaces = namespaces

    def macros(self, path: str) -> dict[str, Macro]:
        """Macros of a source file that have the same value in all of its targets."""
        found = {name: next(iter(values)) for name, values in self.defined.get(path, {}).items() if len(values) == 1}
        named = self.namespace(path)
        if named is not None:
            found[EXTENSION_NAME] = named
        return {name: Macro(name, None, value, Span(0, 0)) for name, value in found.items()}

    def namespace(self, path: str) -> str | None:
        """The namespace that the configuration gives to a source file."""
        return next((name for pattern, name in self.namespaces.items() if fnmatchcase(path, pattern)), None)


def read_build(project: Project, namespaces: Mapping[str, str]) -> Build:
    """Macros that the CMake files and ``setup.py`` files of a workspace define."""
    defined: Defined = {}
    for path in project.workspace.files:
        name = path.rpartition("/")[2]
        cmake = name == "CMakeLists.txt" or name.endswith(".cmake")
        if cmake or name == "setup.py":
            text = project.workspace.peek(path).decode("utf-8", "replace")
            targets = _cmake_targets(text) if cmake else _setup_targets(text)
            _add(defined, targets, posixpath.dirname(path), project)
    return Build(defined, namespaces)


Target = tuple[list[str], list[tuple[str, str]]]
"""The source files of a library with the macros that are defined for them."""


def _add(defined: Defined, targets: Iterable[Target], folder: str, project: Project) -> None:
    files = set(project.workspace.files)
    for sources, macros in targets:
        for source in sources:
            places = (posixpath.normpath(posixpath.join(base, source)) for base in (folder, ""))
            path = next((place for place in places if place in files), None)
            for name, value in macros if path is not None else ():
                defined.setdefault(path or "", {}).setdefault(name, set()).add(value)


def _cmake_targets(text: str) -> list[Target]:
    """Libraries of a CMake file. Both sides of a condition are read; what is removed from a list stays."""
    lists: dict[str, list[str]] = {}
    targets: dict[str, Target] = {}
    for command, body in _COMMAND.findall(re.sub(r"(?m)#.*", "", text)):
        words = [quoted or plain for quoted, plain in _WORD.findall(body)]
        name = command.lower()
        if name == "set" and words:
            lists.setdefault(words[0], []).extend(_listed(words[1:], lists))
        elif name == "list" and words[:1] == ["APPEND"] and len(words) > 1:
            lists.setdefault(words[1], []).extend(_listed(words[2:], lists))
        elif words and (name in ("add_library", "pybind11_add_module") or _MAKES_EXTENSION.fullmatch(name)):
            sources, macros = targets.setdefault(words[0], ([], []))
            sources += _listed(words[1:], lists)
            if _MAKES_EXTENSION.fullmatch(name):
                macros.append((EXTENSION_NAME, words[0]))
        elif name == "target_compile_definitions" and words:
            given = (_DEFINED.fullmatch(word) for word in words[1:])
            targets.setdefault(words[0], ([], []))[1].extend((item[1], item[2]) for item in given if item is not None)
    return list(targets.values())


def _listed(words: Iterable[str], lists: Mapping[str, list[str]]) -> list[str]:
    """Source files among words, those of lists included."""
    found: dict[str, None] = {}
    for word in words:
        variable = _LISTED.fullmatch(word)
        items = lists.get(variable[1], []) if variable is not None else [word]
        found.update(dict.fromkeys(item for item in items if "." in item))
    return list(found)


def _setup_targets(text: str) -> list[Target]:
    """Extensions of a ``setup.py`` whose names and sources are literals."""
    calls = list(_EXTENSION_CALL.finditer(text))
    ends = [item.start() for item in calls] + [len(text)]
    targets: list[Target] = []
    for call, end in zip(calls, ends[1:], strict=True):
        name = _NAME_ARGUMENT.match(text, call.end(), end)
        if name is not None:
            module = name[1].rpartition(".")[2]
            targets.append((_SOURCE.findall(text, call.end(), end), [(EXTENSION_NAME, module)]))
    return targets
