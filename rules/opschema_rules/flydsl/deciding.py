"""Parameters by which a function may decide in Python, found by its text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opschema_cli.source.python import Param

_WORD = re.compile(r"[A-Za-z_]\w*")
_DECIDING = re.compile(r"\b(?:if|while|assert|range)\b([^\n]*)")


def deciding(text: str, params: Iterable[Param]) -> set[str]:
    """The parameters that stand behind a word by which Python may decide."""
    said = {word for match in _DECIDING.finditer(text) for word in _WORD.findall(match[1])}
    return {item.name for item in params if item.name in said}
