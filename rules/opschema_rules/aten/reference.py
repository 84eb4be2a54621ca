"""Finds PyTorch's own operators, which a backend's YAML is checked against.

They are those of the release that the option ``torch`` names, else, the first that there is: the file that the configuration
names, a native_functions.yaml in the tree, the installed torch. That is looked up by paths alone; nothing of it is imported,
and no file of the tree leads to one outside of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.regular_files import content_digest
from opschema_cli.requirements import Version, dotted, nearest_release, read_version
from opschema_cli.sequences import shared_start
from opschema_cli.source.yaml import Document, YamlFile
from opschema_cli.workspace import join
from opschema_rules.aten.catalogue import Catalogue
from opschema_rules.aten.catalogue_reading import catalogue_of
from opschema_rules.aten.dialects import OWN_LISTS
from opschema_rules.aten.entry import string
from opschema_rules.aten.installed import ENVIRONMENT, InstalledTorch
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import BackendFile, NativeFile, Reference
from opschema_rules.aten.native import is_of_other_generator, read_native
from opschema_rules.aten.native_table import native_path, native_text
from opschema_rules.aten.pins import pins_of
from opschema_rules.aten.releases import Torchgens
from opschema_rules.aten.torchgen import Torchgen
from opschema_rules.aten.torchgen_table import known_releases, torchgen_of

_IN_ATEN = re.compile(r"(?:^|/)ATen/native/native_functions\.yaml$")

MISSING = 3
"""So many names that a native_functions.yaml lacks, or a tenth of all, may be mistakes; of more it is another project's."""

MANY = 100
"""Entries of the shortest native_functions.yaml that is taken for a copy of PyTorch's."""

_Key: TypeAlias = tuple[str, str, str]
_OUTSIDE: dict[_Key, NativeFile] = {}
"""Files of installed torches with all that was derived from them, by path, content and torchgen. Each is read once for a process:
tests and editors lint many trees beside one installed torch.
"""
_KEPT = 4


class References(msgspec.Struct, dict=True):
    """The references of one workspace; ``named`` is the pack's option."""

    torchgens: Torchgens
    natives: Sequence[NativeFile]
    named: str = ""

    @property
    def project(self) -> Project:
        """The workspace with its files parsed."""
        return self.torchgens.project

    def of_derivatives(self, file: YamlFile) -> NativeFile | None:
        """Return the native_functions.yaml of the tree that derivatives belong to: the one at PyTorch's own place, or the nearest
        that has most of their operators; None if that is not known.
        """
        if self.configured is not None:
            return self.configured.native
        named = (string(item.get("name")) for item in items_of(file))
        names = {name.partition("(")[0].strip() for name in named if name is not None}
        return self._of_names(file.path, names, lambda native: native.by_name)

    def of_copy(self, native: NativeFile) -> Reference | None:
        """The reference that a native_functions.yaml may be a copy of; None for PyTorch's own."""
        found = self.chosen or self.configured or self._of_aten
        if _IN_ATEN.search(native.path) or (found is not None and found.path == native.path):
            return None
        return found or (self.torch if len(native.entries) >= MANY else None)

    def of_backend(self, backend: BackendFile) -> Reference | None:
        """Reference operators for a backend's YAML."""
        found = self.chosen or self.configured
        if found is None:
            names = {item.name for item in backend.items if item.section not in OWN_LISTS}
            own = self._of_names(backend.path, names, lambda native: _complete(self._in_tree(native).catalogue))
            found = self._in_tree(own) if own is not None else None
        return found or self.torch

    def _of_names(
        self, path: str, names: Collection[str], known: Callable[[NativeFile], Container[str] | None]
    ) -> NativeFile | None:
        """Return the native_functions.yaml of the tree that a file with the names of operators belongs to: the one at PyTorch's
        own place, unless one nearer to the file has more of them; without it, the nearest that has most of them; None if that is
        not known. ``known`` returns the operators of a file that may be meant.
        """
        aten = self._of_aten.native if self._of_aten is not None else None
        if aten is not None and len(self.natives) == 1:
            return aten
        own: dict[str, int] = {}
        for item in self.natives:
            operators = known(item) if item.entries else None
            missing = sum(name not in operators for name in names) if operators is not None else len(names)
            if operators is not None and missing <= max(MISSING, len(names) // 10):  # which may be mistakes
                own[item.path] = missing
        shared = {one: shared_start(one.split("/"), path.split("/")) for one in own}
        if aten is not None and aten.path in own:
            near, least = shared[aten.path], own[aten.path]
            shared = {one: count for one, count in shared.items() if count > near and own[one] < least}
        nearest = [item for item in self.natives if item.path in shared and shared[item.path] == max(shared.values())]
        return nearest[0] if len(nearest) == 1 else aten

    def of_aten(self, version: Version) -> Reference:
        """Operators for kernels that are registered in the namespace ``aten``; those of a release where none else are known, of
        an unknown one those of the nearest.
        """
        found = self.chosen or self._of_aten or self.torch
        known = nearest_release(version, known_releases())
        certain = known == version and pins_of(self.project.workspace).agree(dotted(version), "")
        return found or replace(self.of_release(known), certain=certain)

    @cached_property
    def chosen(self) -> Reference | None:
        """The operators of the release that the options name."""
        version = self.torchgens.chosen
        return self.of_release(version) if version is not None else None

    def of_release(self, version: Version) -> Reference:
        """The operators of a known release, whose native_functions.yaml comes with opschema."""
        path = self.project.workspace.provide(native_path(version), native_text(version))
        found = self._outside(InstalledTorch(path, dotted(version)), certain=True, torchgen=torchgen_of(version))
        assert found is not None
        return replace(found, origin=f"torch {dotted(version)}")

    @cached_property
    def configured(self) -> Reference | None:
        """The file that the configuration names.

        Raises:
            OpschemaError: it is not a file of the workspace, or cannot be read.
        """
        if not self.named:
            return None
        path = join(".", self.named)
        own = next((item for item in self.natives if item.path == path), None)
        if own is not None:
            return self._in_tree(own)
        there = self.project.workspace.is_file(path)
        found = self._outside(InstalledTorch(path), certain=True) if there else None
        if found is None:
            raise OpschemaError(f"tool.opschema.aten: native-functions: `{self.named}` is not a file of the workspace")
        return found

    @cached_property
    def _of_aten(self) -> Reference | None:
        """The only one at PyTorch's own place."""
        own = [item for item in self.natives if _IN_ATEN.search(item.path) and not is_of_other_generator(item)]
        return self._in_tree(own[0]) if len(own) == 1 else None

    def _in_tree(self, native: NativeFile) -> Reference:
        path, digest = native.path, native.file.source.digest
        listed = _summary(self.project)
        return Reference(path, digest, f"`{path}`", True, lambda: native, listed, native.torchgen)

    @cached_property
    def torch(self) -> Reference | None:
        """The operators of the installed torch; of the release that the tree pins, if that is a different known one; None if it is
        older than all known ones.

        Raises:
            OpschemaError: the variable of the environment names none.
        """
        torch, pins = self.torchgens.installed, pins_of(self.project.workspace)
        version, pinned = read_version(torch.version) if torch is not None else None, pins.release
        named = torch is not None and self.project.workspace.variable(ENVIRONMENT)
        if pinned in known_releases() and pinned is not None and pinned != version and not named:
            return replace(self.of_release(pinned), certain=pins.certain)
        if torch is None or (not named and pins.are_before(known_releases()) and pinned != version):
            return None
        certain = bool(torch.version) and pins.agree(torch.version, torch.commit)
        return self._outside(torch, certain=certain)

    def _outside(self, torch: InstalledTorch, *, certain: bool, torchgen: Torchgen | None = None) -> Reference | None:
        """Return the file of a torch, which is not a subject of the pack, and the torchgen that reads it."""
        project, path = self.project, torch.native
        source = project.source(path)
        if source is None:
            return None
        reader = torchgen or self.torchgens.of_torch(torch) or self.torchgens.assumed

        def read() -> NativeFile:
            key = (path, source.digest, reader.digest)
            if key in _OUTSIDE:
                return _OUTSIDE[key]
            file = project.yaml(path)
            native = read_native(file or YamlFile(source, Document(None, {})), None, reader)
            if file is not None:
                _keep(key, native)
            return native

        return Reference(
            path,
            source.digest,
            torch.origin,
            certain,
            read,
            _summary(project),
            reader,
            version=torch.version,
        )


def _keep(key: _Key, native: NativeFile) -> None:
    """Keep a file for later runs of this process, in place of the oldest if there are many."""
    if len(_OUTSIDE) >= _KEPT:
        del _OUTSIDE[next(iter(_OUTSIDE))]
    _OUTSIDE[key] = native


def _complete(catalogue: Catalogue) -> Container[str] | None:
    """The operators of a native_functions.yaml; None of an excerpt."""
    return catalogue.by_name if not catalogue.excerpt else None


# -- reading it --------------------------------------------------------------------------------------------------------


def _summary(project: Project) -> Callable[[Reference], Catalogue]:
    def summary(reference: Reference) -> Catalogue:
        name = f"aten-catalogue/{content_digest(reference.torchgen.digest.encode())}"
        reading: Reading[str, Catalogue] = Reading(name, lambda _: catalogue_of(reference.native), Catalogue)
        return project.readings(reading, [reference.path]).get(reference.path) or Catalogue(
            [], [], complete=False, excerpt=False
        )

    return summary
