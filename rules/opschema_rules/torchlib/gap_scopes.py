"""Operators that a registration of an unknown name in an unknown namespace may be for: by target, folder and name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project

_WORD = re.compile(rb"[A-Za-z_]\w*")
_BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")


class Scopes:
    """The scopes of registrations in some files.

    A registration in C++ may be for the operators of its own library; where the libraries are not known, for those of the folders
    below and above it. One in Python may be for those of its package. Either may be for operators of the other language in the
    same distribution, and for those whose names its file holds.
    """

    def __init__(self, project: Project, targets: Callable[[str], frozenset[str]], paths: Iterable[str]) -> None:
        self._files = frozenset(project.workspace.files)
        self.targets = targets
        paths = sorted(set(paths))
        cpp, python = [path for path in paths if is_cpp(path)], [path for path in paths if not is_cpp(path)]
        self._of_targets = frozenset[str]().union(*map(targets, cpp))
        self._loose = _Folders(path for path in cpp if not targets(path))
        self._cpp, self._python = _Folders(cpp), _Folders(python)
        self._packages = {self._package(path) for path in python}
        self._cpp_roots, self._python_roots = ({self._root(path) for path in some} for some in (cpp, python))
        self._words = {word.decode() for path in paths for word in _WORD.findall(project.workspace.peek(path))}

    def may_touch(self, path: str, names: Iterable[str]) -> bool:
        """Whether one of the registrations may be for an operator of these names that is defined in a file."""
        if not self._words.isdisjoint(names):
            return True
        if not is_cpp(path):
            near = self._python.are_near(path) or self._package(path) in self._packages
            return near or self._root(path) in self._cpp_roots
        return self._is_near_cpp(path) or self._root(path) in self._python_roots

    def _is_near_cpp(self, path: str) -> bool:
        targets = self.targets(path) if self._cpp else None
        if not targets:
            return self._cpp.are_near(path)
        return bool(targets & self._of_targets) or self._loose.are_near(path)

    def _package(self, path: str) -> str:
        """Return the outermost package around a Python file; its folder if there is none."""
        found = folder = posixpath.dirname(path)
        for item in takewhile(lambda item: self._holds(item, "__init__.py"), _upward(folder)):
            found = item
        return found

    def _root(self, path: str) -> str:
        """The folder of the distribution that a file belongs to."""
        around = _upward(posixpath.dirname(path))
        return next((item for item in around if any(self._holds(item, name) for name in _BUILD_FILES)), "")

    def _holds(self, folder: str, name: str) -> bool:
        return posixpath.join(folder, name) in self._files


class _Folders:
    """The folders of some files."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.folders = {posixpath.dirname(path) for path in paths}
        self.around = {item for folder in self.folders for item in _upward(folder)}

    def __bool__(self) -> bool:
        return bool(self.folders)

    def are_near(self, path: str) -> bool:
        """Whether one of the folders is that of a file, or around it, or in it."""
        folder = posixpath.dirname(path)
        return folder in self.around or any(item in self.folders for item in _upward(folder))


def _upward(folder: str) -> Iterator[str]:
    """A folder and those around it, inside out."""
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder
