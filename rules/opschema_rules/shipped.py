"""The packs that ship with opschema, as their ``detection`` modules declare them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opschema_cli.lint.builtin import PAGES
from opschema_cli.lint.lazy_pack import CATALOGUE, LazyPack
from opschema_cli.lint.pack import Speed
from opschema_cli.lint.unread import Sighting
from opschema_cli.project import Project


def shipped_pack(
    detection: str,
    detect: Callable[[Project, Any], bool],
    options: type[Any],
    claims: Callable[[Project, Any, str], bool],
    *,
    speed: Speed | None = None,
    unread: tuple[Sighting, ...] = (),
    releases: tuple[str, ...] = (),
) -> LazyPack:
    """The pack of the folder in which the module called ``detection`` stands; its module ``pack`` holds the rest."""
    package = detection.rpartition(".")[0]
    catalogue = Path(str(sys.modules[detection].__file__)).with_name(CATALOGUE)
    name = package.rpartition(".")[2]
    return LazyPack(
        name, detect, options, f"{package}.pack", catalogue, speed or Speed(), unread, PAGES, claims, releases
    )
