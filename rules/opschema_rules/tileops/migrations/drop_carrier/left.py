"""What stops a migration of some ops: the place that shows it, and why."""

from __future__ import annotations

from opschema_cli.lint.diagnostic import Place


class LeftAlone(Exception):  # noqa: N818 - an answer, not a fault
    """Some ops cannot be migrated with certainty; nothing of them is changed."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason
