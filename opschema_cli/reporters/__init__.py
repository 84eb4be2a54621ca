"""Reports: the model that every format reads, and the formats by name.

``text`` draws on a rich console; each other format is a module whose ``write`` turns a report into a
string. A format's module is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, NotChecked, NotUnderstood, Severity, Unread
from opschema_cli.source.text import Source

MACHINE_FORMATS = ("concise", "json", "sarif", "github", "gitlab", "junit", "html")
FORMATS = ("text", *MACHINE_FORMATS)
DESCRIBING = frozenset({"sarif", "html"})
"""The formats that show the pages of rules, or lead to them."""


class Summary(msgspec.Struct, frozen=True):
    """The counts of one run; ``seconds`` is wall time. With ``nothing`` there was nothing to lint, so that no finding means
    nothing. ``files`` are all that were read, ``unresolved`` the places that were not understood, ``mostly`` the most frequent
    reason, and ``partly`` the operators that are not fully known.
    """

    errors: int
    warnings: int
    infos: int
    suppressed: int
    baselined: int
    ops: int
    files: int
    fixed: int = 0
    seconds: float = 0.0
    nothing: bool = False
    not_shown: int = 0
    unresolved: int = 0
    partly: int = 0
    mostly: str = ""


class RuleInfo(msgspec.Struct, frozen=True):
    """A rule as reports show it: ``summary`` is its first docstring line, ``doc`` its page in Markdown, ``uri`` the page's
    address, if it has one, ``pack`` the name of the pack that it is from.
    """

    name: str
    summary: str
    doc: str
    severity: Severity = Severity.ERROR
    uri: str = ""
    pack: str = ""


class Report(msgspec.Struct, frozen=True):
    """A finished run.

    ``diagnostics`` are sorted by (path, position, code). ``sources`` gives the text of a path, or None
    where it cannot be read; it is called for every place, so it must answer from memory. ``rules`` are
    keyed by code. ``unread`` are the declarations that no pack reads, ``not_checked`` is what the run could not look at, without
    what the configuration ignores. ``unresolved`` are the places that were not understood, if they are to be listed.
    """

    diagnostics: Sequence[Diagnostic]
    summary: Summary
    sources: Callable[[str], Source | None]
    rules: Mapping[str, RuleInfo]
    root: Path
    unread: Sequence[Unread] = ()
    not_checked: Sequence[NotChecked] = ()
    unresolved: Sequence[NotUnderstood] = ()


Writer: TypeAlias = Callable[[Report], str]


def load_writer(name: str) -> Writer:
    """Return the writer for one of ``MACHINE_FORMATS``. Its output is empty or ends with a newline.

    Raises:
        KeyError: there is no such format.
    """
    if name not in MACHINE_FORMATS:
        raise KeyError(name)
    writer: Writer = import_module(f"{__name__}.{name}").write
    return writer
