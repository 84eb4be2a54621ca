"""Modules that a script loads from other scripts by path, as with ``importlib.util.spec_from_file_location``, and the values
that functions from outside the scripts may change.
"""

from __future__ import annotations

import posixpath
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from opschema_cli.source.python import PythonFile
from opschema_cli.source.starlark.run import MAX_DEPTH, Runner
from opschema_cli.source.starlark.values import UNKNOWN, ExtensionValue, FunctionValue, ListValue, Value

Scripts = Callable[[str], PythonFile | None]
"""A function that returns the script at a path of the tree as a function; None if there is none."""


def no_script(path: str) -> PythonFile | None:
    """Return no script, for a tree without scripts."""
    return None


class Location(msgspec.Struct, frozen=True):
    """The path of a script and the name of its module, as ``spec_from_file_location`` returns them."""

    name: str
    path: str


class Module(msgspec.Struct, eq=False):
    """A module loaded from a script."""

    script: ScriptRunner

    def get(self, name: str) -> Value:
        """Return the value of a name in the module."""
        return self.script.names.get(name, UNKNOWN)


class ScriptRunner(Runner):
    """Runs a script, and the scripts that it loads as modules. ``names`` holds the values of the script's names."""

    def __init__(self, file: PythonFile, folder: str, scripts: Scripts) -> None:
        super().__init__(file)
        self.folder = folder
        self.scripts = scripts
        self.names: dict[str, Value] = {"__name__": "__main__", "__file__": "setup.py"}
        self.loaded: dict[str, ScriptRunner] = {file.path: self}
        """The runners of the first script and of all that were loaded, by the paths of their files."""
        self.unfollowed = False
        """Whether a statement ran that may change which others run, or lists that are known by now."""

    @abstractmethod
    def beside(self, file: PythonFile) -> ScriptRunner:
        """Return a runner for another script, whose work and results count as this one's."""

    @abstractmethod
    def execute(self) -> None:
        """Run the statements of the script."""

    def module(self, location: Location) -> Value:
        """Return the module of a script, whose statements run once."""
        file = self.scripts(posixpath.normpath(posixpath.join(self.folder, location.path)))
        if file is None:
            return UNKNOWN
        if self.depth + 1 >= MAX_DEPTH:  # its calls would not be followed
            self.unfollowed = True
            return UNKNOWN
        if file.path in self.loaded:
            self.unfollowed = True  # it runs once more, for another module
        else:
            script = self.beside(file)
            script.names |= {"__name__": location.name, "__file__": location.path}
            script.loaded = self.loaded
            self.loaded[file.path] = script
            with self._entering(script, self.depth + 1):
                script.execute()
        return Module(self.loaded[file.path])

    def run(self, value: FunctionValue, positional: list[Value], named: dict[str, Value]) -> Value:
        """Return the result of a function; one of another script runs there."""
        script = self.loaded[value.file.path]
        if script is self:
            return super().run(value, positional, named)
        with self._entering(script, self.depth):
            return script.run(value, positional, named)

    @contextmanager
    def _entering(self, script: ScriptRunner, depth: int) -> Iterator[None]:
        """Run another script under the conditions of this one."""
        before = script.conditions, script.depth
        script.conditions, script.depth = self.conditions, depth
        yield
        script.conditions, script.depth = before
        self.unfollowed |= script.unfollowed


def doubt(value: ListValue) -> None:
    """Mark every item of a list as possibly removed, and the list as possibly extended."""
    value.items[:] = [(item, None) for item, _ in value.items]
    value.open = True


def may_change(value: Value, *, extensions: bool) -> None:
    """Doubt the lists, the values of dictionaries, and the sources of ``extensions`` in a value passed to a function from
    outside.
    """
    held = [one for one, _ in value.items] if isinstance(value, ListValue) else []
    if isinstance(value, dict):
        held = list(value.values())
        value.update(dict.fromkeys(value, UNKNOWN))
    for one in (value, *held):
        if isinstance(one, ExtensionValue) and extensions:
            doubt(one.sources)
        elif isinstance(one, ListValue):
            doubt(one)
