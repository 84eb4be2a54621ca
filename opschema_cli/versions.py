"""Versions of opschema and of all that it runs with, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, requires, version

from packaging.requirements import Requirement

from opschema_cli import __version__
from opschema_cli.cache import Cache, cache_folder
from opschema_cli.errors import DISTRIBUTION
from opschema_cli.lint.installed import installed_packs


def versions() -> Iterator[str]:
    """Versions of opschema, of Python, of the platform, of dependencies and of packs, a line each."""
    yield f"opschema, version {__version__}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()}, {_shown(sys.executable)})"
    yield f"platform: {platform.platform()}"
    yield f"encodings: file system {sys.getfilesystemencoding()}, standard output {sys.stdout.encoding}"
    yield f"cache: {_shown(str(cache_folder()))}"
    yield from (f"{name}: {_version(name)}" for name in _dependencies())
    yield from (_pack(pack.name, pack.distribution) for pack in installed_packs(Cache(None)))


def _shown(path: str) -> str:
    return path.replace(os.path.expanduser("~"), "~", 1)


def _dependencies() -> list[str]:
    """Names of the packages that opschema and its extras for users ask for, in the order of its metadata."""
    try:
        asked = [Requirement(text) for text in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        return []
    names = dict.fromkeys(item.name for item in asked if item.marker is None or _is_for_users(str(item.marker)))
    return [name for name in names if name != DISTRIBUTION]


def _is_for_users(marker: str) -> bool:
    return not any(f'extra == "{extra}"' in marker for extra in ("dev", "test", "bench"))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _pack(name: str, owner: str) -> str:
    if owner in ("", DISTRIBUTION):
        return f"pack {name}: built in" if owner else f"pack {name}"
    return f"pack {name}: {distribution(owner).name} {_version(owner)}"
