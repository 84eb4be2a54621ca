"""Options that do not fit the tree."""

from __future__ import annotations

from opschema_cli.errors import OpschemaError


class OptionError(OpschemaError):
    """An option of a migration that does not fit the tree; the message says which and why."""
