"""Findings as data, independent of how they are shown."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from opschema_cli.source.text import Edit
from opschema_cli.source.text import Place as Place


class Severity(str, Enum):
    """Severity of a finding; ``--fail-on`` compares by rank."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error."""
        return ("info", "warning", "error").index(self.value)


class Related(msgspec.Struct, frozen=True, array_like=True):
    """The other side of a finding: a place, and its description."""

    place: Place
    message: str


class FileEdit(msgspec.Struct, frozen=True, array_like=True):
    """An edit and the file it belongs to."""

    path: str
    edit: Edit


class Fix(msgspec.Struct, frozen=True, array_like=True):
    """Edits that cure one diagnostic, over one or more files, applied together or not at all.

    ``title`` is an imperative ("add `default: 1e-6`"). An unsafe fix says in ``why_unsafe`` what may change.
    """

    title: str
    edits: tuple[FileEdit, ...]
    safety: Literal["safe", "unsafe"] = "safe"
    why_unsafe: str = ""


class Diagnostic(msgspec.Struct, frozen=True, array_like=True):
    """One finding.

    A rule fills ``message``, ``place`` and, where it can, ``related``, ``fix`` and ``ops``, and ``severity`` where one
    finding counts less than the rule's others; the runner fills ``code`` and ``name``, and takes the lower of both
    severities unless config sets one. Findings of one rule with
    the same place and message are one finding whose ``ops`` are joined, so a message about shared
    code names no op.
    """

    message: str
    place: Place
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    ops: tuple[str, ...] = ()
    code: str = ""
    name: str = ""
    severity: Severity = Severity.ERROR


class Unread(msgspec.Struct, frozen=True, array_like=True):
    """Number of unread declarations of one kind, and of their files; ``example`` is the first of these.

    ``noun`` names the declarations, as fits their number.
    """

    noun: str
    count: int
    files: int
    example: str


class NotUnderstood(msgspec.Struct, frozen=True, array_like=True):
    """A registration, a call or a file that a pack reads and cannot follow, with the reason; nothing that depends on it is
    reported.
    """

    place: Place
    reason: str


CPP = "c++"
"""The need of rules and migrations that look at C++."""


class Missing(msgspec.Struct, frozen=True, array_like=True):
    """Something that is not there, and the ``files`` that are not read for it.

    ``need`` is its name in the ``needs`` of rules and migrations, such as :data:`CPP`. ``reason`` says what is missing, ``hint``
    how to get it. ``module`` is the module that could not be imported, if that is the reason.
    """

    need: str
    reason: str
    hint: str
    files: tuple[str, ...] = ()
    module: str = ""


class NotChecked(msgspec.Struct, frozen=True, array_like=True):
    """Reason why a run was incomplete: the missing part, the unread ``files``, and the ``rules`` that did not run or saw less.

    The runner fills ``code`` and ``name``, and raises ``severity`` to that of the rule; ``ignored`` is set if the
    configuration ignores it.
    """

    reason: str
    hint: str
    rules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    module: str = ""
    code: str = ""
    name: str = ""
    severity: Severity = Severity.WARNING
    ignored: bool = False
