"""Reports of failures of opschema itself for users to attach to an issue: they contain no text of the linted tree."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from opschema_cli.versions import versions

_HEAD = """\
opschema failed. This report holds versions, the command line, and the places in the code of opschema and of packs where it
failed; no file contents and no messages of exceptions, which may quote them. Read it before you attach it.

"""


def report_crash(traces: Sequence[str]) -> None:
    """Write a report, and print its path."""
    path = _write(_HEAD + "\n".join([*versions(), f"command: {' '.join(sys.argv)}", "", *traces]) + "\n")
    if path is not None:
        click.echo(f"opschema: a report to attach to an issue, without your source text, is in {path}", err=True)


def _write(text: str) -> Path | None:
    """Write a text to a new temporary file; None where none can be written."""
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="opschema-report-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return Path(name)
    return None
