"""Finds an installed torch, or the one that the environment names, by paths alone; nothing is imported from it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.workspace import Workspace
from opschema_rules.aten.torchgen import Home

ENVIRONMENT = "OPSCHEMA_TORCH"
"""The variable that names an installation of torch, a checkout of PyTorch, or a native_functions.yaml."""

PACKAGED = "torchgen/packaged/ATen/native/native_functions.yaml"
CHECKOUT = "aten/src/ATen/native/native_functions.yaml"

_PYTHONS = range(8, 20)
"""Minor versions of Python 3 in whose folders an environment may hold packages."""

_ENTRY = re.compile(r"(?m)^- func:")


class InstalledTorch(msgspec.Struct, frozen=True):
    """A torch outside of the tree: its native_functions.yaml, its version and commit (may be empty), and its torchgen, None if
    there is only a native_functions.yaml.
    """

    native: str
    version: str = ""
    commit: str = ""
    home: Home | None = None

    @property
    def origin(self) -> str:
        """Name for messages."""
        return f"the installed torch {self.version}" if self.version else f"`{self.native}`"


def find_torch(workspace: Workspace) -> InstalledTorch | None:
    """The torch that the environment names, else the one of the active environment, `.venv`, or beside opschema.

    Raises:
        OpschemaError: the environment names what is none.
    """
    path = _named(workspace) or _installed(workspace)
    if path is None:
        return None
    if path.endswith(f"/{PACKAGED}"):
        root = path.removesuffix(PACKAGED)
        home = Home(f"{root}torchgen/", f"{root}torchgen/packaged/autograd/", f"{path.rpartition('/')[0]}/tags.yaml")
    elif path.endswith(f"/{CHECKOUT}"):
        root = path.removesuffix(CHECKOUT)
        home = Home(f"{root}torchgen/", f"{root}tools/autograd/", f"{path.rpartition('/')[0]}/tags.yaml")
    else:
        return InstalledTorch(path)
    return InstalledTorch(path, *_version(workspace, root), home)


def _named(workspace: Workspace) -> str | None:
    """Return the native_functions.yaml that the environment names; None if it names none.

    Raises:
        OpschemaError: the environment names what is none.
    """
    named = workspace.variable(ENVIRONMENT)
    if not named:
        return None
    found = next((path for path in _places(Path(named).expanduser()) if is_present(workspace, path)), None)
    if found is None:
        raise OpschemaError(
            f"{ENVIRONMENT}: there is no native_functions.yaml of PyTorch in `{named}`; name a Python environment or a folder"
            " of packages with torch, a checkout of PyTorch, or a native_functions.yaml, or unset the variable"
        )
    if _ENTRY.search(text_of(workspace, found)) is None:
        raise OpschemaError(
            f"{ENVIRONMENT}: `{found}` has no entries `- func: ...`, so that it is not a native_functions.yaml"
        )
    return found


def _places(place: Path) -> Iterator[str]:
    """Yield candidate places of the file, from the environment's value: the file, a folder of packages or one of these packages,
    a checkout, an environment.
    """
    base = place.absolute().as_posix()
    if base.endswith((".yaml", ".yml")):
        yield base
        return
    yield from (f"{base}/{PACKAGED}", f"{base}/{CHECKOUT}", f"{place.absolute().parent.as_posix()}/{PACKAGED}")
    yield from (f"{folder}/{PACKAGED}" for folder in _packages(base))


def _installed(workspace: Workspace) -> str | None:
    prefixes = [*filter(None, map(workspace.variable, ("VIRTUAL_ENV", "CONDA_PREFIX"))), ".venv", sys.prefix]
    places = (f"{folder}/{PACKAGED}" for prefix in prefixes for folder in _packages(prefix))
    return next((path for path in places if is_present(workspace, path)), None)


def _packages(prefix: str) -> Iterator[str]:
    """Folders of an environment's packages."""
    yield f"{prefix}/Lib/site-packages"
    for minor in _PYTHONS:
        yield f"{prefix}/lib/python3.{minor}/site-packages"
    yield f"{prefix}/lib/python3/dist-packages"


def is_present(workspace: Workspace, path: str) -> bool:
    """Whether there is such a file: in the workspace for a relative path, else in the user's own installation."""
    return workspace.is_file(workspace.admit(Path(path)) if Path(path).is_absolute() else path)


def text_of(workspace: Workspace, path: str) -> str:
    """Return the text of such a file; empty if there is none."""
    return workspace.peek(path).decode("utf-8", "replace") if is_present(workspace, path) else ""


_VERSION = re.compile(r"(?m)^__version__\b[^=\n]*=\s*[\"']([^\"'\n]+)")
_GIT_VERSION = re.compile(r"(?m)^git_version\b[^=\n]*=\s*[\"']([0-9a-f]{40})")


def _version(workspace: Workspace, root: str) -> tuple[str, str]:
    """The version and the commit of the torch in ``root``; empty where they are not written down."""
    text = text_of(workspace, f"{root}torch/version.py")
    version, commit = _VERSION.search(text), _GIT_VERSION.search(text)
    plain = "" if version is not None else text_of(workspace, f"{root}version.txt").strip()
    return (version[1] if version is not None else plain), (commit[1] if commit is not None else "")
