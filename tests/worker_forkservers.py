"""Forkservers that the runs of one test session share: importing torch costs seconds, and forking what has imported it nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opschema_cli.verify.forkserver import Forkserver


class Kept(Forkserver):
    """A forkserver that outlives the runs that ask it for workers, each of which ends its own before it closes its forkserver."""

    def close(self) -> None:
        """Nothing ends yet."""

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        super().close()


class Forkservers:
    """What stands for the class ``Forkserver``: one for all runs whose Python finds and imports the same modules."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, ...], Kept] = {}

    def __call__(
        self, environ: dict[str, str], folder: Path, modules: Sequence[str] = (), **options: Any
    ) -> Forkserver:
        if options.get("package") is not None:
            return Forkserver(environ, folder, modules, **options)
        python = sorted(f"{name}={value}" for name, value in environ.items() if name.startswith("PYTHON"))
        key = (*python, *modules)
        if key not in self._known or not self._known[key].lives:
            self._known[key] = Kept(environ, self._folder, modules)
        return self._known[key]

    def end(self) -> None:
        """End all of them."""
        for forkserver in self._known.values():
            forkserver.end()
