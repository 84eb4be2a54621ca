"""Importing the package of an op library once for all ops of a side: a forkserver does it, and workers are forked from that.

A worker imports the recipes, then the packages around the op's module, then the module. The first two are the same for all ops of a
package, so a fork of a process that did them is as good as a new one, as long as they left nothing behind that a fork lacks or
shares: threads, child processes, open files, handlers of signals. If they did, or raised, each worker imports by itself.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from opschema_cli.verify.loading import package_seconds, see_tree
from opschema_cli.verify.model import Target
from opschema_cli.verify.recipes import execute_once

_SLOW = 1.0
"""The shortest import of a package, in seconds, that is worth preloading."""

_MOST = 0.75
"""The smallest part of an op's import time that its package must take."""


class Package(NamedTuple):
    """The first imports of the workers of several ops: the recipes, and the packages around a module."""

    root: str
    paths: tuple[str, ...]
    recipe: str
    name: str


def slow_package(seconds: float) -> str:
    """The outermost package that took most of the ``seconds`` of an op's import; empty if none did, or if it was fast."""
    return next((name for name, spent in package_seconds.items() if spent >= max(_SLOW, _MOST * seconds)), "")


def package_of(target: Target, name: str) -> Package | None:
    """The package of a target by its name; None if something else is imported before it, or the target does not lie in it."""
    if not name or not target.module.startswith(f"{name}.") or target.imports or target.cuda_imports:
        return None
    return Package(target.root, target.paths, target.recipe, name)


def preload(package: Package) -> bool:
    """Import a package into this process, and return whether its forks are as good as new processes."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = sys.stderr
    if sys.path and os.path.realpath(sys.path[0]) == os.getcwd():
        del sys.path[0]
    earlier = _traces()
    try:
        see_tree(Target(root=package.root, module="", name="", paths=package.paths))
        if package.recipe:
            execute_once(Path(package.root, package.recipe))
        importlib.import_module(package.name)  # those around it first
    except (Exception, SystemExit):  # a worker meets the same, and reports it
        return False
    package_seconds.clear()
    return _traces() == earlier


def _traces() -> tuple[object, ...]:
    """Threads, children, open files and signal handlers of this process, which its forks would lack or share."""
    tasks = sorted(os.listdir("/proc/self/task"))
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    handlers = [signal.getsignal(number) for number in sorted(signal.valid_signals())]
    files = {number: _file(number) for number in os.listdir("/proc/self/fd")}
    known = {number: name for number, name in files.items() if name}
    return tasks, children.read_text() if children.exists() else "", handlers, known


def _file(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # that of the listing itself
        return ""
