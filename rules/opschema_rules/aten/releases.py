"""Choice of the torchgen that reads a file; made nowhere else.

That of the release that the option ``torch`` names, else the first of these that there is: the torchgen of the tree; for
PyTorch's own native_functions.yaml the release whose operators it has; the installed torch, if the tree's requirements admit
it; the newest known release that they admit; the newest known. Where the release is known and that torch is installed, the
installed text counts, and not the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.project import Project
from opschema_cli.requirements import Release, Version, admits, read_version, required_release
from opschema_cli.source.yaml import YamlFile
from opschema_rules.aten.bindings import Bindings
from opschema_rules.aten.entry import string
from opschema_rules.aten.exceptions import Exceptions
from opschema_rules.aten.installed import ENVIRONMENT, InstalledTorch, find_torch, is_present
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import NativeFile, Reference
from opschema_rules.aten.native import WHOLE, is_older, read_native, read_tags
from opschema_rules.aten.torchgen import Home, Torchgen, in_doubt, modules_of, read_torchgen, with_autograd
from opschema_rules.aten.torchgen_table import (
    fitting_release,
    known_release,
    known_releases,
    newest_torchgen,
    release_of_part,
    torchgen_of,
)

_FOLDER = re.compile(r"(?:^|/)v(\d)r(\d+)/[^/]*\Z")
"""The folders of op-plugin, one for each release of torch: ``config/v2r1/derivatives.yaml``."""

_MODEL = re.compile(r"(.*/|)(torchgen|tools/codegen)/model\.py")


class Torchgens(msgspec.Struct, dict=True):
    """The torchgens of one workspace; ``use_installed`` allows that of an installed torch, ``release`` names the one to use."""

    project: Project
    use_installed: bool = True
    release: str = ""

    @cached_property
    def chosen(self) -> Version | None:
        """The release that the options name; None without one.

        Raises:
            OpschemaError: it is not known.
        """
        return known_release(self.release) if self.release else None

    def check(self) -> None:
        """Check the paths in the environment and the options, even if nothing needs them.

        Raises:
            OpschemaError: it is not a torch, or no known release.
        """
        if self.project.workspace.variable(ENVIRONMENT):
            _ = self.installed
        _ = self.chosen

    def of_native(self, file: YamlFile) -> Torchgen:
        """The torchgen that reads a native_functions.yaml."""
        own = self.of_tree(file.path)
        if own is not None or self.chosen is not None:
            return own or self.assumed
        names = _names(file)
        if len(names) <= WHOLE:
            return self.assumed
        part = release_of_part(frozenset(names)) if "autogen:" in file.source.text else None
        if part is not None:
            return self._of_release(part)
        fit = fitting_release(frozenset(names))
        found = self._of_release(fit.version)
        if is_older(read_native(file, None, found)):  # a torchgen before 1.12, which generated no variants
            found = replace(found, bindings=Bindings(), exceptions=Exceptions())
        return in_doubt(found, fit.doubt) if fit.doubt else found

    def of_derivatives(self, path: str, native: NativeFile | None) -> Torchgen:
        """The torchgen that reads a derivatives.yaml: the generator beside it counts more than that of its operators."""
        found = native.torchgen if native is not None else self.of_tree(path) or self._of_folder(path) or self.assumed
        beside = Home("", f"{path.rpartition('/')[0]}/".lstrip("/"))
        return with_autograd(self.project, found, beside)

    def is_before_known(self, path: str) -> bool:
        """Whether the folder of a file names a release that is older than all that are known."""
        named = folder_release(path) if self.chosen is None else None
        return named is not None and named < known_releases()[0]

    def _of_folder(self, path: str) -> Torchgen | None:
        """The torchgen of the release that the folder of a file names."""
        named = folder_release(path) if self.chosen is None else None
        return self._of_release(named) if named in known_releases() and named is not None else None

    def of_backend(self, path: str, reference: Reference | None) -> Torchgen:
        """Return the torchgen that reads a backend's YAML: the tree's, or that of the operators that it is checked against."""
        return self.of_tree(path) or (reference.torchgen if reference is not None else self.assumed)

    def of_tree(self, path: str) -> Torchgen | None:
        """Return the tree's own torchgen for the file at ``path``: the nearest above it, or the only one; None if the options
        name a release.
        """
        if self.chosen is not None:
            return None
        above = [folder for folder in self._own if path.startswith(folder)]
        if above:
            return self._own[max(above, key=len)]
        return next(iter(self._own.values())) if len(self._own) == 1 else None

    @cached_property
    def assumed(self) -> Torchgen:
        """The torchgen for files that do not show their release."""
        if self.chosen is not None:
            return torchgen_of(self.chosen)
        installed, required = self.installed, self.required
        if installed is not None and self._of_installed is not None:
            version = read_version(installed.version)
            if version is not None and admits(self.project.workspace, "torch", installed.version) is not False:
                return self._of_installed
        if required is None:
            return newest_torchgen()
        found = self._of_release(required.version)
        return in_doubt(found, required.doubt) if required.doubt else found

    @cached_property
    def required(self) -> Release | None:
        """The release that the tree requires."""
        return required_release(self.project, "torch", known_releases())

    @cached_property
    def installed(self) -> InstalledTorch | None:
        """The installed torch.

        Raises:
            OpschemaError: the variable of the environment names none.
        """
        return find_torch(self.project.workspace) if self.use_installed and self.chosen is None else None

    def of_torch(self, torch: InstalledTorch) -> Torchgen | None:
        """Return the torchgen of a torch outside of the tree; None if it has none."""
        if torch.home is None:
            return None
        workspace = self.project.workspace
        present = [path for path in modules_of(torch.home) if is_present(workspace, path)]
        version = read_version(torch.version)
        fallback = torchgen_of(version) if version is not None else newest_torchgen()
        found = read_torchgen(self.project, torch.home, present, fallback)
        if found is None:
            return None
        tags = self.project.yaml(torch.home.tags) if is_present(workspace, torch.home.tags) else None
        names = read_tags(tags).names if tags is not None else None
        digest = f"{found.digest} {tags.source.digest if tags is not None else ''} {torch.origin}"
        return replace(found, tags=names, origin=torch.origin, digest=digest)

    @cached_property
    def _of_installed(self) -> Torchgen | None:
        return self.of_torch(self.installed) if self.installed is not None else None

    def _of_release(self, version: Version) -> Torchgen:
        installed = self.installed
        if installed is not None and read_version(installed.version) == version and self._of_installed is not None:
            return self._of_installed
        return torchgen_of(version)

    @cached_property
    def _own(self) -> Mapping[str, Torchgen]:
        """The torchgens of the tree, by the folder that each lies in."""
        present = self.project.workspace.file_set
        found: dict[str, Torchgen] = {}
        for path in self.project.workspace.files:
            match = _MODEL.fullmatch(path) if path.endswith("/model.py") else None
            if match is not None:
                home = Home(f"{match[1]}{match[2]}/", f"{match[1]}tools/autograd/")
                torchgen = read_torchgen(
                    self.project, home, [item for item in modules_of(home) if item in present], newest_torchgen()
                )
                if torchgen is not None:
                    found[match[1]] = replace(torchgen, origin="the tree's own torchgen")
        return found


def folder_release(path: str) -> Version | None:
    """The release of torch that the folder of a file is named after."""
    found = _FOLDER.search(path)
    return (int(found[1]), int(found[2])) if found is not None else None


def _names(file: YamlFile) -> Sequence[str]:
    """The names of the operators of a native_functions.yaml."""
    found = (string(file.document.follow(node)) for item in items_of(file) if (node := item.get("func")) is not None)
    return [text.partition("(")[0].strip().removeprefix("aten::") for text in found if text is not None]
