"""Errors that a user can mend, and the exit codes of the command line."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INTERNAL = 3
EXIT_INTERRUPTED = 130


class OpschemaError(Exception):
    """Something the user can mend: usage, configuration, or input that cannot be read. Ends with exit code 2."""
