"""Importing the package of an op library once for all ops of a side: a forkserver does it, and workers are forked from that.

A worker imports the recipes, then the packages around the op's module, then the module. The first two are the same for all ops of a
package, so a fork of a process that did them is as good as a new one, as long as they left nothing behind that a fork lacks or
shares: threads, child processes, open files, shared memory, handlers of signals, the number of the process. If they did, or
raised, each worker imports by itself.
"""

from __future__ import annotations

import importlib
import os
import random
import re
import signal
import sys
import time
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from opschema_cli.verify.loading import forget_start_folder, keep_import_path, package_seconds, see_tree
from opschema_cli.verify.model import Target
from opschema_cli.verify.recipes import execute_once

_SLOW = 1.0
"""The shortest import of a package, in seconds, that is worth preloading."""

_MOST = 0.75
"""The smallest part of an op's import time that its package must take."""

_LOOKS, _BETWEEN = 5, 0.02
"""The number of times that traces are polled, and the seconds in between."""

_SHARED = re.compile(r"\S+ .w.s ")
"""Writable memory in ``/proc/self/maps`` that forks share."""


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
    forget_start_folder()
    target = Target(root=package.root, module="", name="", paths=package.paths)
    earlier, modules, numbers = _traces(), set(sys.modules), random.getstate()
    try:
        see_tree(target)
        if package.recipe:
            execute_once(Path(package.root, package.recipe))
            see_tree(target)  # recipes may put other places before it
        importlib.import_module(package.name)  # those around it first
    except (Exception, SystemExit):  # a worker meets the same, and reports it
        return False
    if not _leaves_only(earlier) or any(map(_has_own_number, sys.modules.keys() - modules)):
        return False
    package_seconds.clear()
    keep_import_path(target)
    if random.getstate() != numbers:  # Python seeds it anew in each fork
        os.register_at_fork(after_in_child=partial(random.setstate, random.getstate()))
    return True


def _leaves_only(earlier: object) -> bool:
    """Whether nothing is left beside ``earlier`` traces. A thread that was joined may take a moment to end."""
    for _ in range(_LOOKS):
        if _traces() == earlier:
            return True
        time.sleep(_BETWEEN)
    return False


def _traces() -> tuple[object, ...]:
    """Threads, children, open files, shared memory and signal handlers of this process, which its forks would lack or share."""
    tasks = sorted(os.listdir("/proc/self/task"))
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    handlers = [signal.getsignal(number) for number in sorted(signal.valid_signals())]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    files = {number: _file(number) for number in os.listdir("/proc/self/fd")}
    known = {number: name for number, name in files.items() if name}
    memory = [line for line in Path("/proc/self/maps").read_text().splitlines() if _SHARED.match(line)]
    return tasks, children.read_text() if children.exists() else "", handlers, blocked, known, memory


def _has_own_number(module: str) -> bool:
    """Whether a module holds the number of this process in a variable, to find out later that it was forked."""
    found = sys.modules.get(module)
    values = list(vars(found).values()) if isinstance(found, ModuleType) else []
    return any(type(value) is int and value == os.getpid() for value in values)


def _file(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # that of the listing itself
        return ""
