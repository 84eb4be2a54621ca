"""The pre-commit hook: where it can be installed from, and which packages it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points

import msgspec

from opschema_cli.errors import DISTRIBUTION
from opschema_cli.lint.installed import GROUP

REPOSITORY = "https://github.com/opschema/opschema"


class Origin(msgspec.Struct, frozen=True):
    """Origin of an installed distribution: a package index, unless ``url`` names something else.

    ``commit`` is that of a Git repository that others can reach; without it, ``url`` is a path or file of this machine.
    """

    name: str
    version: str
    url: str = ""
    commit: str = ""

    @property
    def is_public(self) -> bool:
        """Whether another machine can install the same."""
        return not self.url or bool(self.commit)

    @property
    def requirement(self) -> str:
        """Requirement with which pip installs the same."""
        return f"{self.name} @ git+{self.url}@{self.commit}" if self.commit else f"{self.name}=={self.version}"


class _Vcs(msgspec.Struct):
    vcs: str
    commit_id: str


class _DirectUrl(msgspec.Struct):
    """PEP 610's ``direct_url.json``."""

    url: str
    vcs_info: _Vcs | None = None
    subdirectory: str = ""


def origin_of(found: Distribution) -> Origin:
    """Origin of an installed distribution, as pip or uv recorded it."""
    origin = Origin(found.name, found.version)
    text = found.read_text("direct_url.json")
    if text is None:
        return origin
    try:
        direct = msgspec.json.decode(text, type=_DirectUrl)
    except msgspec.DecodeError:
        return msgspec.structs.replace(origin, url="direct_url.json")
    public = re.match(r"(https?|ssh)://", direct.url) and not direct.subdirectory
    commit = direct.vcs_info.commit_id if direct.vcs_info and direct.vcs_info.vcs == "git" and public else ""
    return msgspec.structs.replace(origin, url=direct.url, commit=commit)


def installed_origins(packs: Iterable[str]) -> list[Origin]:
    """The origins of opschema and of the other distributions that the packs come from; opschema's is the first."""
    try:
        own = origin_of(distribution(DISTRIBUTION))
    except PackageNotFoundError:  # it runs from a checkout that is not installed
        own = Origin(DISTRIBUTION, "", "checkout")
    points = [point for point in entry_points(group=GROUP) if point.name in set(packs) and point.dist is not None]
    others = {point.dist.name: origin_of(point.dist) for point in points if point.dist is not None}
    return [own, *(origin for name, origin in sorted(others.items()) if name != DISTRIBUTION)]


def hook_entry(origins: Sequence[Origin]) -> str:
    """Return the item for ``repos``, indented by two: this project's hook, if other machines can install the packages installed
    here; otherwise a hook that runs the installed command.
    """
    own, *others = origins
    if not all(origin.is_public for origin in origins):
        return _LOCAL
    needs = (
        f"        additional_dependencies: {json.dumps([origin.requirement for origin in others])}\n" if others else ""
    )
    revision = own.commit or f"v{own.version}"
    return f"  - repo: {own.url or REPOSITORY}\n    rev: {revision}\n    hooks:\n      - id: opschema\n{needs}"


_LOCAL = """\
  - repo: local
    hooks:
      - id: opschema
        name: opschema lint
        entry: opschema lint
        language: system
        always_run: true
        pass_filenames: false
        require_serial: true
"""


def explanation(origins: Sequence[Origin]) -> str:
    """One line that explains the written entry."""
    own, *others = origins
    private = [origin.name for origin in origins if not origin.is_public]
    if private:
        names = " and ".join(private)
        return (
            f"it runs the installed `opschema`, since {names} was not installed from a release or a public repository"
        )
    beside = f" with {' and '.join(origin.requirement for origin in others)}" if others else ""
    return f"it installs {own.requirement}{beside}"
