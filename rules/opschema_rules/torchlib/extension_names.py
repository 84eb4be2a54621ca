"""The names by which Python imports extensions: those of the configuration, of build files and loaders, and of the macro that opens
a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.gitignore import IgnoreSpec, glob_spec
from opschema_cli.project import Project
from opschema_rules.torchlib.cpp_build import EXTENSION_NAME, Build, extensions_of, loaded_extensions


class ExtensionNames(msgspec.Struct, dict=True):
    """The names of the extensions of a workspace, by the C++ file and the argument of its macro.

    ``configured`` gives names by patterns of paths; ``loaders`` are Python files that may compile and load extensions.
    """

    project: Project
    configured: Mapping[str, str]
    loaders: Sequence[str]

    @cached_property
    def build(self) -> Build:
        """The targets of the build files."""
        return Build(self.project, {})

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(name for names in extensions_of(self.project).values() for name in names)

    @cached_property
    def _patterns(self) -> list[tuple[IgnoreSpec, str]]:
        return [(glob_spec([pattern]), name) for pattern, name in self.configured.items()]

    @cached_property
    def _loaded(self) -> dict[str, str]:
        return loaded_extensions(self.project, self.loaders)

    def of(self, path: str, written: str) -> str:
        """The dotted name of the module in a file; empty if it is not known."""
        given = next((name for spec, name in self._patterns if spec.ignores(path)), None)
        if given is not None or not is_cpp(path):
            return given or ""
        return self._of_build(path, written) or self._loaded.get(path, "")

    def _of_build(self, path: str, written: str) -> str:
        targets = self.build.targets(path)
        if written != EXTENSION_NAME and written.isidentifier():
            targets = frozenset({self.built_as(path, written) or written})
        if len(targets) != 1:
            return ""
        own = next(iter(targets))
        if "." in own:
            return own
        same = {name for name in self._listed if name.rpartition(".")[2] == own}  # CMake does not know the package
        return same.pop() if len(same) == 1 else own

    def built_as(self, path: str, written: str) -> str:
        """Return the name in ``setup.py`` of the extension that a module with its own name is part of; empty if there is none."""
        targets = self.build.targets(path)
        own = next(iter(targets)) if len(targets) == 1 and written.isidentifier() else ""
        if written == f"lib{own.rpartition('.')[2]}" and not self.build.is_extension(path):
            return ""  # CMake puts it before the names of libraries
        return own if written != EXTENSION_NAME and own in self._listed else ""

    def by_exclusion(self, named: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """Yield the names of files that have none in ``named``: each is the only remaining extension of the nearest
        ``setup.py``. A file with other known sources is excluded: it may be a module without pybind11.
        """
        setups = extensions_of(self.project)
        nameless: dict[str, list[str]] = {}
        for path in (path for path, name in named.items() if not name):
            above = [setup for setup in setups if path.startswith(setup.removesuffix("setup.py"))]
            if above:
                nameless.setdefault(max(above, key=len), []).append(path)
        for setup, paths in nameless.items():
            free = [name for name in setups[setup] if name not in named.values()]
            if len(free) != 1 or len(paths) != 1:
                continue
            if free[0] in self.build.targets(paths[0]) or free[0] not in self.build.with_sources:
                yield paths[0], free[0]
