"""The start of every command: the workspace, its configuration, the packs, the cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.cache import Cache
from opschema_cli.config import Config, load_config
from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_python
from opschema_cli.lint.baseline import DEFAULT_NAME
from opschema_cli.lint.registry import Registry, code_of_packs, load_registry
from opschema_cli.lint.replay import code_stamp
from opschema_cli.lint.settings import pack_options
from opschema_cli.plugins import Plugin, check_allowed, read_plugins
from opschema_cli.project import Project
from opschema_cli.root import find_root
from opschema_cli.transaction import JOURNAL
from opschema_cli.workspace import Workspace

if TYPE_CHECKING:
    from opschema_cli.source.python_workers import Parsers

MANY_MODULES = 40
"""Files from which on a second process is likely to pay for its start."""

MAX_JOBS = 8
"""Maximum number of processes unless the user requests more."""

Progress = Callable[[int, int], None]


class Session(msgspec.Struct, dict=True):
    """One run of the program."""

    root: Path
    config: Config
    config_path: Path | None
    workspace: Workspace
    cache: Cache
    jobs: int | None = None
    run_plugins: bool = True
    as_implemented: frozenset[str] = frozenset()
    """Operators that are checked as if they were implemented."""
    threaded: bool = False
    """Whether the program has other threads, so that no process can be forked."""
    helpers: ExitStack = msgspec.field(default_factory=ExitStack)
    """The exit stack of the processes that help this run."""

    @cached_property
    def plugins(self) -> list[Plugin]:
        """The plugins that run: those that config names, unless none may.

        Raises:
            OpschemaError: one cannot be read, or the user has not allowed it.
        """
        found = self.read_plugins() if self.run_plugins else []
        check_allowed(found, self.root)
        return found

    def read_plugins(self) -> list[Plugin]:
        """The plugins that config names, whether they may run or not.

        Raises:
            OpschemaError: one cannot be read.
        """
        found: list[Plugin] = []
        for name in self.config.plugins:
            with self.config.placed(name):
                found += read_plugins(self.workspace, [name])
        return found

    @property
    def partial(self) -> bool:
        """Whether config names plugins that do not run."""
        return bool(self.config.plugins) and not self.run_plugins

    @cached_property
    def registry(self) -> Registry:
        """All packs and their rules; importing them costs more than all else that a replayed run does.

        Raises:
            OpschemaError: a pack cannot be loaded.
        """
        plugins = self.plugins
        with self.config.placed():
            return load_registry(plugins, self.config.packs, partial=self.partial, cache=self.cache)

    def registry_for(self, project: Project, *, prefetch: bool = False, but: Registry | None = None) -> Registry:
        """Return a registry in which only packs that find something in a project are enabled, except those that ``but`` has
        enabled; see :meth:`Registry.found_in`.

        Raises:
            OpschemaError: the configuration is wrong, or a pack cannot be loaded.
        """
        options = pack_options(self.config, self.registry)
        left_out = but.used if but is not None and but.used is not None else frozenset[str]()
        return self.registry.found_in(project, options, prefetch=prefetch, but=left_out)

    def prefetch(self, registry: Registry, project: Project) -> None:
        """Start parsing the files that the enabled packs are known to need."""
        registry.prefetch(project, pack_options(self.config, registry))

    def forked(self) -> Session:
        """Return a copy of the session for a process forked from its own."""
        other = msgspec.structs.replace(self, cache=self.cache.reopened(), helpers=ExitStack())
        other.__dict__.update(registry=self.registry, code_stamp=self.code_stamp)
        return other

    @property
    def forks(self) -> bool:
        """Whether packs may run in two processes: there are processors for it, and the system forks processes soundly."""
        return sys.platform == "linux" and self.processes > 1 and not self.threaded

    @property
    def processes(self) -> int:
        """The maximum number of concurrent processes."""
        return self.jobs or min(os.cpu_count() or 1, MAX_JOBS)

    def project(
        self, overlay: Mapping[str, str | None] | None = None, progress: Progress | None = None, stamp: str = ""
    ) -> Project:
        """The workspace parsed, with ``overlay`` on top; ``stamp`` identifies opschema's own code."""
        workspace = self.workspace.with_overlay(overlay) if overlay else self.workspace
        return Project(workspace, self.cache, lambda: self.parsers, progress, stamp, self.as_implemented)

    @cached_property
    def parsers(self) -> Parsers:
        """The processes that parse Python; they end with the program."""
        # Not at the top: a replayed run does without.
        from opschema_cli.source.python_workers import Parsers

        return Parsers(self.processes, threaded=self.threaded)

    def close(self) -> None:
        """End the processes that run for this."""
        try:
            self.helpers.close()
        finally:
            self.workspace.close()
            if "parsers" in self.__dict__:
                self.parsers.close()

    def warm_up(self, changed: Sequence[str] | None) -> None:
        """Start the processes that parse Python before the files are known: all of them for a large workspace without a cache,
        and otherwise one. Start none if the ``changed`` files are known and none of them is Python.
        """
        modules = sum(map(is_python, self.workspace.files if changed is None else changed))
        if modules:
            self.parsers.start(self.parsers.jobs if self.cache.empty and modules > MANY_MODULES else 1)

    @cached_property
    def code_stamp(self) -> str:
        """Identity of the code that decides a run's result: the engine, the packages of the packs, the plugins."""
        folders = sorted({Path(__file__).parent, *code_of_packs(self.cache)})
        return code_stamp(folders, [plugin.digest for plugin in self.plugins])

    def baseline_path(self) -> Path | None:
        """The configured baseline; else the one under the usual name, if it is there.

        Raises:
            OpschemaError: it leads out of the workspace.
        """
        usual = self.root / DEFAULT_NAME
        if self.config.baseline or self.workspace.is_file(DEFAULT_NAME) or usual.is_symlink():
            with self.config.placed(self.config.baseline or None):
                return self.workspace.locate(self.config.baseline or DEFAULT_NAME)
        return None


def open_session(
    start: Path,
    overlay: Mapping[Path, str] | None = None,
    *,
    cache: bool = True,
    jobs: int | None = None,
    run_plugins: bool = True,
    writes: bool = False,
) -> Session:
    """Find the workspace of ``start`` and load its configuration. Without ``run_plugins`` none that it names runs.

    A run that ``writes`` completes or discards first what an earlier one left; others never touch the tree.

    Raises:
        OpschemaError: the configuration is wrong, or an earlier run left files half changed.
    """
    if not start.exists():
        raise OpschemaError(f"{start}: no such file or folder")
    root = find_root(start)
    if os.path.lexists(root / JOURNAL):
        _see_to_journal(root, writes=writes)
    store = Cache.for_workspace(root) if cache else Cache(None)
    config, config_path = load_config(root, store, overlay)
    with config.placed("exclude"):
        workspace = Workspace(root, exclude=config.exclude)
    texts = {workspace.relative(path): text for path, text in (overlay or {}).items()}
    if texts:
        workspace = workspace.with_overlay(texts)
    return Session(root, config, config_path, workspace, store, jobs, run_plugins)


def _see_to_journal(root: Path, *, writes: bool) -> None:
    # Not at the top: hardly any run finds one.
    from opschema_cli.transaction.apply import check_finished, recover

    if not writes:
        check_finished(root)
        return
    recovered = recover(root)
    if recovered:
        print(f"opschema: {recovered}", file=sys.stderr)


def path_filter(session: Session, paths: Sequence[Path]) -> frozenset[str] | None:
    """Return the workspace files that path arguments select, or None if they select everything.

    Raises:
        OpschemaError: a path does not exist or lies outside the workspace.
    """
    chosen: set[str] = set()
    everything = not paths
    for path in paths:
        relative = session.workspace.relative(path)
        if relative not in session.workspace.overlay and not path.exists():
            raise OpschemaError(f"{path}: no such file or folder")
        chosen.update(session.workspace.under(relative) if path.is_dir() else [relative])
        everything |= relative == "."
    return None if everything else frozenset(chosen)
