"""The plugins that a configuration names: files of the tree, which run only as the user has allowed them, byte by byte."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.permissions import is_allowed, permissions, plugin_digest
from opschema_cli.regular_files import read_regular
from opschema_cli.workspace import Workspace


class Plugin(msgspec.Struct, frozen=True):
    """A file as named in the configuration, its path, and the bytes that were read and are executed."""

    name: str
    path: Path
    data: bytes

    @property
    def digest(self) -> str:
        """The digest that the user allows."""
        return plugin_digest(self.data)

    def run(self) -> ModuleType:
        """Run the plugin, from the bytes that its digest is of: neither from the file again, nor from a compiled one."""
        module = ModuleType(f"opschema_plugin_{self.digest.removeprefix('sha256:')[:16]}_{len(sys.modules)}")
        module.__file__ = str(self.path)
        sys.modules[module.__name__] = module
        exec(compile(self.data, str(self.path), "exec", dont_inherit=True), module.__dict__)
        return module


def read_plugins(workspace: Workspace, names: Iterable[str]) -> list[Plugin]:
    """The plugins of these names.

    Raises:
        OpschemaError: one is not a Python file of the workspace, or cannot be read.
    """
    return [_read(workspace, name) for name in names]


def _read(workspace: Workspace, name: str) -> Plugin:
    if not name.endswith(".py"):
        hint = (
            "`plugins` names Python files of this tree; an installed pack is found by its entry point `opschema.packs`"
        )
        raise OpschemaError(f"the plugin `{name}` is not a file: {hint}")
    path = workspace.locate(name)
    try:
        return Plugin(name, path, read_regular(path))
    except OSError as error:
        raise OpschemaError(f"the plugin `{name}` cannot be read: {error.strerror or error}") from None


def check_allowed(plugins: Sequence[Plugin], root: Path) -> None:
    """Check that the user has allowed all of these plugins of the tree at ``root``.

    Raises:
        OpschemaError: one is not allowed; with what to do.
    """
    refused = [plugin for plugin in plugins if not is_allowed(plugin.digest, root)]
    if refused:
        before = {permission.path for permission in permissions()}
        lines = [_described(plugin, before) for plugin in refused]
        what = "a plugin" if len(refused) == 1 else "plugins"
        paths = " ".join(shlex.quote(_shown(plugin.path)) for plugin in refused)
        hint = f"Read, then allow (by path or digest): `opschema plugins allow {paths}`. Without their rules: `--no-plugins`."
        raise OpschemaError(
            "\n".join([f"the configuration names {what} that you have not allowed to run:", *lines, hint])
        )


def _described(plugin: Plugin, before: set[str]) -> str:
    changed = ", changed since you allowed it" if str(plugin.path) in before else ""
    return f"  {plugin.name} ({plugin.digest}{changed})"


def _shown(path: Path) -> str:
    """Return the shortest form of a path from the current folder."""
    try:
        shown = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return shown if not shown.startswith("..") else str(path)
