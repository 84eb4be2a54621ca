"""Errors that a user can fix, the exit codes of the command line, and the command that installs what is missing."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INTERNAL = 3
EXIT_INTERRUPTED = 130


class OpschemaError(Exception):
    """Something the user can mend: usage, configuration, or input that cannot be read. Ends with exit code 2."""


DISTRIBUTION = "opschema-cli"
"""The name on package indexes; `opschema` is another project's there."""


def install_command(extra: str = "") -> str:
    """The command that installs an extra, or without one the dependencies that are missing."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {DISTRIBUTION}"
