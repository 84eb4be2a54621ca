"""The release of torch that a tree is for: that of the option, the newest that its requirements admit, or a pinned one."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.requirements import Release, Version, read_version, release_of, required_release
from opschema_rules.aten.pins import pins_of
from opschema_rules.torchlib.model import NEWEST, OPTION
from opschema_rules.torchlib.type_table import known_releases


def find_release(project: Project, option: str = "") -> Release:
    """Return the release in the option; otherwise the newest that a requirement file in the root admits; otherwise the only one
    that commits, lock files or CI pin; otherwise the newest known.

    Raises:
        OpschemaError: the option is not a version.
    """
    known = known_releases()
    if option:
        version = read_version(option)
        if version is None:
            raise OpschemaError(f"tool.opschema.torchlib: `torch` is `{option}`, which is not a version such as `2.6`")
        return release_of(version, "torch", OPTION, known)
    newest = Release(known[-1], NEWEST)
    return required_release(project, "torch", known) or _pinned(project, known) or newest


def _pinned(project: Project, known: Sequence[Version]) -> Release | None:
    """The release that is pinned elsewhere than in requirements, if it is a known one."""
    pins = pins_of(project.workspace)
    release, paths = pins.release, (*pins.versions.values(), *pins.commits.values())
    if release is None or release not in known or not pins.certain:
        return None
    return Release(release, f"`{paths[0]}`")
