"""The release of torch against which a command checks a tree: ``--torch 2.15``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click
import msgspec

from opschema_cli.config import Config
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.registry import Registry
from opschema_cli.session import Session

torch_option = click.option(
    "--torch",
    default="",
    metavar="RELEASE",
    help="Check against this release of PyTorch, for example 2.15, regardless of what the tree requires and what is installed.",
)


def aim_at(session: Session, release: str) -> None:
    """Set the option ``torch`` of every pack that has it.

    Raises:
        OpschemaError: the release is not known.
    """
    session.config = aimed(session.config, session.registry, release)


def aimed(config: Config, registry: Registry, release: str) -> Config:
    """A configuration for a release of torch.

    Raises:
        OpschemaError: the release is not known.
    """
    name = known_name(release, known_releases(registry))
    packs = [pack.name for pack in registry.all_packs if pack.releases]
    options = {pack: {**config.pack_options.get(pack, {}), "torch": name} for pack in packs}
    return msgspec.structs.replace(config, pack_options={**config.pack_options, **options})


def known_releases(registry: Registry) -> list[str]:
    """The releases of torch that a pack knows, the oldest first."""
    found = {name for pack in registry.all_packs for name in pack.releases}
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")])


def known_name(release: str, known: Sequence[str]) -> str:
    """Return the known name of a release: ``2.15`` for ``2.15.0`` or ``v2.15``.

    Raises:
        OpschemaError: it is not known; the message names those that are.
    """
    match = re.fullmatch(r"v?(\d+\.\d+)(?:\.\d+)?(?:\+\w+)?", release)
    if match is None or match[1] not in known:
        names = ", ".join(known) or "none: no pack that reads PyTorch's operators is installed"
        raise OpschemaError(f"`{release}` is not a release of torch that opschema knows; known releases: {names}")
    return match[1]
