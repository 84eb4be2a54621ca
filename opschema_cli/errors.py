"""Errors that a user can fix, the exit codes of the command line, and the command that installs what is missing."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INTERNAL = 3
EXIT_INTERRUPTED = 130


class OpschemaError(Exception):
    """An error that the user can fix: usage, configuration, or unreadable input. Ends with exit code 2."""


DISTRIBUTION = "opschema-cli"
"""The name on package indexes; `opschema` is another project's there."""


def install_command(extra: str = "") -> str:
    """Return the command that installs an extra, or without one the missing dependencies."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {DISTRIBUTION}"
