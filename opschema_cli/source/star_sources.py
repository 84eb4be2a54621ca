"""Decides which modules may provide a name through ``import *``, by their facts alone."""

from __future__ import annotations

from collections.abc import Callable

from opschema_cli.source.modules import Modules
from opschema_cli.source.python import Import, PythonFile


class StarSources:
    """The modules that the files of one workspace import ``*`` from."""

    def __init__(self, modules: Modules, load: Callable[[str], PythonFile | None]) -> None:
        self._modules = modules
        self._load = load
        self._paths: dict[tuple[str, int], str | None] = {}
        self._closed: dict[str, bool] = {}

    def may_have(self, file: PythonFile, item: Import) -> bool:
        """Whether the module of an import may have the requested name."""
        key = (file.path, item.start)
        if key not in self._paths:
            module = self._modules.absolute_module(file, item)
            self._paths[key] = self._modules.module_path(module) if module is not None else None
        path = self._paths[key]
        source = self._load(path) if path is not None and path != file.path else None
        if source is None or item.name in source.body.named or item.name in source.body.deleted:
            return True
        if path not in self._closed:
            self._closed[source.path] = _is_closed(source)
        return not self._closed[source.path] or item.name in source.rebound


def _is_closed(file: PythonFile) -> bool:
    """Whether a module only has the names that its statements bind."""
    may_hold_more = file.path.endswith("__init__.py") or "*" in file.body.named
    return not may_hold_more and file.body.function("__getattr__") is None and not writes_globals(file, "")


def writes_globals(file: PythonFile, name: str) -> bool:
    """Whether a module may bind ``name`` other than by its own statements."""
    if any(call.callee in ("vars", "setattr", "locals") for call in file.body.calls):
        return True
    if name in file.rebound:
        return True
    return file.runs_code
