"""Converts rules that raised to findings."""

from __future__ import annotations

import msgspec

from opschema_cli.lint.builtin import CRASHED
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.source.text import Span

NOWHERE = Place("", Span(0, 0))
"""The place of a finding without a file."""


class Crash(msgspec.Struct):
    """A rule that raised: the first subject on which it did, its place, the reason, and the number of all such subjects."""

    rule: str
    subject: str
    place: object
    reason: str
    subjects: int = 0

    def diagnostic(self, pack: str) -> Diagnostic:
        """The finding that reports it."""
        others = self.subjects - 1
        more = f" and {others} more {'subject' if others == 1 else 'subjects'}" if others else ""
        message = f"the rule {self.rule} of the pack `{pack}` failed on `{self.subject}`{more}: {self.reason}"
        return Diagnostic(message, self.place if isinstance(self.place, Place) else NOWHERE, code=CRASHED.code)
