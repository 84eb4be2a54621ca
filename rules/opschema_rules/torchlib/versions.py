"""The release of torch that a tree is for: the newest that its requirements admit, or the option's."""

from __future__ import annotations

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.requirements import Release, read_version, release_of, required_release
from opschema_rules.torchlib.model import NEWEST, OPTION
from opschema_rules.torchlib.type_table import known_releases


def find_release(project: Project, option: str = "") -> Release:
    """The release that the option names, else the newest that a requirement file in the root admits, else the newest known.

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
    return required_release(project, "torch", known) or newest
