"""The FlyDSL release that the kernels are for: what a tensor argument becomes changed three times in three days of May 2026.

| era | ``from_dlpack(t)`` | a raw tensor | shape in the cache key |
|---|---|---|---|
| ``baked``, to 0.1.8 | static | static | no |
| ``dynamic``, commit 250c11d | dynamic | dynamic | no |
| ``split``, commit 801fc4e6, 0.2.0 | static | dynamic | of what is static |
| ``current``, from 0.2.2, with ``from_torch_tensor`` | static | dynamic | of what is static |
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import msgspec
from packaging.version import InvalidVersion, Version

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.requirements import requirements
from opschema_rules.flydsl.api_table import read_releases
from opschema_rules.flydsl.detection import own_sources

RELEASES = read_releases()
"""The releases on PyPI that are known."""


class Era(IntEnum):
    """Eras of compiling tensor arguments; later eras are greater."""

    BAKED = 0
    DYNAMIC = 1
    SPLIT = 2
    CURRENT = 3


class Contract(msgspec.Struct, frozen=True):
    """The eras that the kernels may meet, and the releases; ``source`` is the file or setting that says so.

    ``own`` when the workspace is FlyDSL itself: what its API has is then read from its files. Nothing is known when there is
    no source.
    """

    eras: frozenset[Era]
    releases: tuple[Version, ...] = ()
    source: str = ""
    own: bool = False

    def surely(self, *eras: Era) -> bool:
        """Whether only these eras are possible."""
        return bool(self.source) and self.eras <= set(eras)

    @property
    def name(self) -> str:
        """The eras in words."""
        return " or ".join(era.name.lower() for era in sorted(self.eras)) if self.source else "unknown"


UNKNOWN = Contract(frozenset(Era))


def find_contract(project: Project, option: str) -> Contract:
    """The contract of a workspace: as configured, as its own FlyDSL shows, or as its requirements pin it.

    Raises:
        OpschemaError: the option is not a version.
    """
    if option:
        return _of_releases((_configured(option),), "the configuration")
    own = own_sources(project)
    if len(own) == 1:
        era = _era_of(_text(project, own[0]))
        return UNKNOWN if era is None else Contract(frozenset({era}), (), own[0], own=True)
    pins = [(path, pin) for path, pin, _ in requirements(project.workspace, "flydsl", anywhere=True)]
    if not pins or own:
        return UNKNOWN
    pins.sort(key=lambda item: (item[0].count("/"), item[0]))
    admitted = [item for item in RELEASES if all(item in pin for _, pin in pins)]
    return _of_releases(tuple(admitted), pins[0][0]) if admitted else UNKNOWN


def _configured(option: str) -> Version:
    try:
        return Version(option)
    except InvalidVersion:
        raise OpschemaError(
            f"tool.opschema.flydsl: `version` is `{option}`, which is not a version such as `{RELEASES[-1]}`"
        ) from None


def _of_releases(releases: tuple[Version, ...], source: str) -> Contract:
    return Contract(frozenset(map(_era, releases)), releases, source)


def _era(release: Version) -> Era:
    if release < Version("0.1.9"):
        return Era.BAKED
    return Era.SPLIT if release < Version("0.2.2") else Era.CURRENT


def _era_of(text: str) -> Era | None:
    """Return the era of a FlyDSL, by the file that makes arguments of tensors; None if its form is unknown."""
    if "def from_torch_tensor(" in text:
        return Era.CURRENT
    if "dynamic_layout" in text:
        return Era.SPLIT
    _, found, adaptor = text.partition("class TensorAdaptor")
    if not found:
        return None
    initializer = adaptor[: adaptor.find("\n    def ", adaptor.find("def __init__") + 1)]
    return Era.DYNAMIC if "mark_layout_dynamic(" in initializer else Era.BAKED


def _text(project: Project, path: str) -> str:
    return project.workspace.peek(path).decode("utf-8", "replace")


def known(releases: Iterable[Version]) -> str:
    """Format releases as a range: the first and the last."""
    found = sorted(releases)
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else "".join(map(str, found))
