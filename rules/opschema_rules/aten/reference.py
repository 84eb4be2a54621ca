"""Finds PyTorch's own operators, by which a backend's YAML is judged.

They are, the first that there is: the file that the configuration names, a native_functions.yaml in the tree, the installed
torch. That is looked up by paths alone; nothing of it is imported, and no file of the tree leads to one outside of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.yaml import Document, YamlFile
from opschema_cli.workspace import Workspace, join
from opschema_rules.aten.catalogue import Catalogue, catalogue_of
from opschema_rules.aten.dialects import OWN_LISTS
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import BackendFile, NativeFile, Reference, string
from opschema_rules.aten.native import read_native
from opschema_rules.aten.pins import pins_of
from opschema_rules.aten.vocabulary import TORCH, Vocabulary, read_vocabulary

T = TypeVar("T")

ENVIRONMENT = "OPSCHEMA_TORCH"
"""The variable that names an installation of torch, a checkout of PyTorch, or a native_functions.yaml."""

_PACKAGED = "torchgen/packaged/ATen/native/native_functions.yaml"
_CHECKOUT = "aten/src/ATen/native/native_functions.yaml"
_IN_ATEN = re.compile(r"(?:^|/)ATen/native/native_functions\.yaml$")

_PYTHONS = range(8, 20)
"""Minor versions of Python 3 in whose folders an environment may hold packages."""

MISSING = 3
"""So many names that a native_functions.yaml lacks, or a tenth of all, may be mistakes; of more it is another project's."""

MANY = 100
"""Entries of the shortest native_functions.yaml that is taken for a copy of PyTorch's."""


class References(msgspec.Struct, dict=True):
    """The references of one workspace; ``named`` and ``installed`` are the pack's options."""

    project: Project
    natives: Sequence[NativeFile]
    named: str = ""
    installed: bool = True

    def of_derivatives(self, file: YamlFile) -> NativeFile | None:
        """The native_functions.yaml of the tree to which derivatives belong: the only one, if it has most of their operators;
        None if that is not known.
        """
        found = self.configured or self._of_aten
        if found is not None:
            return found.native
        named = (string(item.get("name")) for item in items_of(file))
        names = {name.partition("(")[0].strip() for name in named if name is not None}
        own = self.natives[0] if len(self.natives) == 1 else None
        return own if own is not None and _holds(own.by_name, names) else None

    def of_copy(self, native: NativeFile) -> Reference | None:
        """What a native_functions.yaml may be a copy of; None of PyTorch's own."""
        found = self.configured or self._of_aten
        if _IN_ATEN.search(native.path) or (found is not None and found.path == native.path):
            return None
        return found or (self.torch if len(native.entries) >= MANY else None)

    def of_backend(self, backend: BackendFile) -> Reference | None:
        """What a backend's YAML is judged by."""
        found = self.configured or self._of_aten
        if found is None:
            filled = [native for native in self.natives if native.entries]
            own = [item for item in map(self._in_tree, filled) if _is_for(item.catalogue, backend)]
            found = own[0] if len(own) == 1 else None
        return found or self.torch

    @cached_property
    def configured(self) -> Reference | None:
        """The file that the configuration names.

        Raises:
            OpschemaError: it is no file of the workspace, or cannot be read.
        """
        if not self.named:
            return None
        path = join(".", self.named)
        own = next((item for item in self.natives if item.path == path), None)
        if own is not None:
            return self._in_tree(own)
        there = self.project.workspace.is_file(path)
        found = _outside(self.project, path, f"`{path}`", certain=True) if there else None
        if found is None:
            raise OpschemaError(f"tool.opschema.aten: native-functions: `{self.named}` is no file of the workspace")
        return found

    @cached_property
    def _of_aten(self) -> Reference | None:
        """The only one that lies where PyTorch keeps it."""
        own = [item for item in self.natives if _IN_ATEN.search(item.path)]
        return self._in_tree(own[0]) if len(own) == 1 else None

    def _in_tree(self, native: NativeFile) -> Reference:
        path, digest = native.path, native.file.source.digest
        listed = _summary(self.project)
        return Reference(path, digest, f"`{path}`", True, lambda: native, listed, vocabulary=native.vocabulary)

    @cached_property
    def torch(self) -> Reference | None:
        """The installed torch.

        Raises:
            OpschemaError: the variable of the environment names none.
        """
        workspace = self.project.workspace
        path = _installed(workspace) if self.installed else None
        if path is None:
            return None
        root = path.removesuffix(_PACKAGED).removesuffix(_CHECKOUT)
        version, commit = _version(workspace, root) if root != path else ("", "")
        certain = bool(version) and pins_of(workspace).agree(version, commit)
        origin = f"the installed torch {version}" if version else f"`{path}`"
        return _outside(self.project, path, origin, certain=certain, version=version, torchgen=f"{root}torchgen/")


def _is_for(catalogue: Catalogue, backend: BackendFile) -> bool:
    """Whether a native_functions.yaml holds what a backend lists, but for what may be mistakes."""
    names = {item.name for item in backend.items if item.section not in OWN_LISTS}
    return not catalogue.excerpt and _holds(catalogue.by_name, names)


def _holds(known: Container[str], names: Collection[str]) -> bool:
    """Whether all but a few of some operators are known, so that the others may be mistakes."""
    return sum(name not in known for name in names) <= max(MISSING, len(names) // 10)


# -- reading it --------------------------------------------------------------------------------------------------------


def _outside(
    project: Project, path: str, origin: str, *, certain: bool, version: str = "", torchgen: str = ""
) -> Reference | None:
    """The file at ``path``, which is none of the pack's subjects, and the torchgen that reads it, if it is there."""
    source = project.source(path)
    if source is None:
        return None
    vocabulary = _read_beside(project, torchgen and f"{torchgen}model.py", _VOCABULARY) or TORCH
    takes_options = _read_beside(project, torchgen and f"{torchgen}gen_backend_stubs.py", _TAKES_OPTIONS)

    def read() -> NativeFile:
        file = project.yaml(path) or YamlFile(source, Document(None, {}))
        return read_native(file, None, vocabulary)

    return Reference(
        path,
        source.digest,
        origin,
        certain,
        read,
        _summary(project),
        version=version,
        vocabulary=vocabulary,
        takes_options=takes_options,
    )


def _summary(project: Project) -> Callable[[Reference], Catalogue]:
    def summary(reference: Reference) -> Catalogue:
        name = f"aten-catalogue/{reference.vocabulary.digest}"
        reading: Reading[str, Catalogue] = Reading(name, lambda _: catalogue_of(reference.native), Catalogue)
        return project.readings(reading, [reference.path]).get(reference.path) or Catalogue(
            [], [], complete=False, excerpt=False
        )

    return summary


def _read_beside(project: Project, path: str, reading: Reading[str, T]) -> T | None:
    """What a reading tells of a file beside an installed one; None where that is not there."""
    if not path or not _present(project.workspace, path):
        return None
    return project.readings(reading, [path]).get(path)


_VOCABULARY = Reading("aten-vocabulary", read_vocabulary, Vocabulary)
_TAKES_OPTIONS: Reading[str, bool] = Reading(
    "aten-takes-options",
    lambda text: re.search(r"isinstance\((?!yaml_values\b)\w+, \(?(?:dict|Mapping)\b", text) is not None,
    bool,
)


# -- finding it --------------------------------------------------------------------------------------------------------


def _installed(workspace: Workspace) -> str | None:
    """The native_functions.yaml of the installed torch, or that of the one that the environment names.

    Raises:
        OpschemaError: the environment names what is none.
    """
    named = workspace.variable(ENVIRONMENT)
    if named:
        found = next((path for path in _named(Path(named).expanduser()) if _present(workspace, path)), None)
        if found is None:
            raise OpschemaError(f"{ENVIRONMENT}: there is no native_functions.yaml of PyTorch in `{named}`")
        return found
    prefixes = [*filter(None, map(workspace.variable, ("VIRTUAL_ENV", "CONDA_PREFIX"))), ".venv", sys.prefix]
    places = (f"{folder}/{_PACKAGED}" for prefix in prefixes for folder in _packages(prefix))
    return next((path for path in places if _present(workspace, path)), None)


def _named(place: Path) -> Iterator[str]:
    """Where the file may be, seen from what the environment names: the file, a folder of packages or one of these
    packages, a checkout, an environment.
    """
    base = place.absolute().as_posix()
    if base.endswith((".yaml", ".yml")):
        yield base
        return
    yield from (f"{base}/{_PACKAGED}", f"{base}/{_CHECKOUT}", f"{place.absolute().parent.as_posix()}/{_PACKAGED}")
    yield from (f"{folder}/{_PACKAGED}" for folder in _packages(base))


def _packages(prefix: str) -> Iterator[str]:
    """Where an environment keeps its packages."""
    yield f"{prefix}/Lib/site-packages"
    for minor in _PYTHONS:
        yield f"{prefix}/lib/python3.{minor}/site-packages"
    yield f"{prefix}/lib/python3/dist-packages"


def _present(workspace: Workspace, path: str) -> bool:
    """Whether there is such a file: in the workspace for a relative path, else in the user's own installation."""
    return workspace.is_file(workspace.admit(Path(path)) if Path(path).is_absolute() else path)


_VERSION = re.compile(r"(?m)^__version__\b[^=\n]*=\s*[\"']([^\"'\n]+)")
_GIT_VERSION = re.compile(r"(?m)^git_version\b[^=\n]*=\s*[\"']([0-9a-f]{40})")


def _version(workspace: Workspace, root: str) -> tuple[str, str]:
    """The version and the commit of the torch in ``root``; empty where they are not written down."""
    text = _text(workspace, f"{root}torch/version.py")
    version, commit = _VERSION.search(text), _GIT_VERSION.search(text)
    if version is None:
        return _text(workspace, f"{root}version.txt").strip()[:40], ""
    return version[1], commit[1] if commit is not None else ""


def _text(workspace: Workspace, path: str) -> str:
    return workspace.peek(path).decode("utf-8", "replace") if _present(workspace, path) else ""
