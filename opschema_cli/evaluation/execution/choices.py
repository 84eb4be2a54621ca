"""Decisions on unknown conditions: an execution follows one path, and is repeated for the others."""

from __future__ import annotations

from opschema_cli.evaluation.execution.signals import Undecided
from opschema_cli.evaluation.limits import MAX_PATHS
from opschema_cli.source.text import Place


class Choices:
    """The decisions of one path: first those of ``script``, then always true."""

    def __init__(self, script: tuple[bool, ...] = ()) -> None:
        self.script = script
        self.made: list[bool] = []
        self.exceeded = False
        """Whether there were too many of them."""
        self.reason = ""
        self.place: Place | None = None

    def choose(self, reason: str, place: Place | None) -> bool:
        """Return the next decision; ``reason`` says why it is not known.

        Raises:
            Undecided: there are too many of them.
        """
        if len(self.made) >= MAX_PATHS:
            self.exceeded = True
            raise Undecided(reason, place)
        self.reason, self.place = reason, place
        self.made.append(self.script[len(self.made)] if len(self.made) < len(self.script) else True)
        return self.made[-1]

    @property
    def others(self) -> list[tuple[bool, ...]]:
        """The scripts of the paths that branch off after the end of the script."""
        found = range(len(self.script), len(self.made))
        return [(*self.made[:index], False) for index in found]
