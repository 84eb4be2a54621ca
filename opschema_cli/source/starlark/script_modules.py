"""Modules that a script makes of other scripts by their paths, as ``importlib.util.spec_from_file_location`` lets it."""

from __future__ import annotations

import posixpath
from abc import abstractmethod
from collections.abc import Callable

import msgspec

from opschema_cli.source.cmake.conditions import ALWAYS
from opschema_cli.source.python import PythonFile
from opschema_cli.source.starlark.run import Runner
from opschema_cli.source.starlark.values import UNKNOWN, FunctionValue, Value

Scripts = Callable[[str], PythonFile | None]
"""A function that returns the script at a path of the tree, as a function; None if there is none."""


def no_script(path: str) -> PythonFile | None:
    """The scripts of a tree without any."""
    return None


class Location(msgspec.Struct, frozen=True):
    """The path of a script, as ``spec_from_file_location`` returns it."""

    path: str


class Module(msgspec.Struct, eq=False):
    """A module that is made of a script."""

    script: ScriptRunner

    def get(self, name: str) -> Value:
        """What the module defines under a name."""
        return self.script.names.get(name, UNKNOWN)


class ScriptRunner(Runner):
    """What runs a script and those of which it makes modules. ``names`` are those that the script defines."""

    def __init__(self, file: PythonFile, folder: str, scripts: Scripts) -> None:
        super().__init__(file)
        self.folder = folder
        self.scripts = scripts
        self.names: dict[str, Value] = {"__name__": "__main__", "__file__": "setup.py"}
        self.loaded: dict[str, ScriptRunner] = {}
        """The scripts of which modules were made, by the paths of their files."""
        self.unfollowed = False
        """Whether a statement ran that may change which others run, or lists that are known by now."""

    @abstractmethod
    def beside(self, file: PythonFile) -> ScriptRunner:
        """What runs another script, whose work and results count as this one's."""

    @abstractmethod
    def execute(self) -> None:
        """Run the statements of the script."""

    def module(self, location: Location) -> Value:
        """The module that is made of a script, whose statements run once."""
        file = self.scripts(posixpath.normpath(posixpath.join(self.folder, location.path)))
        if file is None:
            return UNKNOWN
        if file.path not in self.loaded:
            script = self.beside(file)
            script.names |= {"__name__": "module", "__file__": location.path}
            script.loaded = self.loaded
            self.loaded[file.path] = script
            script.execute()
            self.unfollowed |= script.unfollowed
        return Module(self.loaded[file.path])

    def run(self, value: FunctionValue, positional: list[Value], named: dict[str, Value]) -> Value:
        """The value that a function returns; one of a module runs there."""
        script = self.loaded.get(value.file.path, self)
        if script is self or script.depth:
            return super().run(value, positional, named)
        script.conditions, script.depth = self.conditions, self.depth
        returned = script.run(value, positional, named)
        script.conditions, script.depth = ALWAYS, 0
        self.unfollowed |= script.unfollowed
        return returned
