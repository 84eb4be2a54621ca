"""The refusals that a search meets, counted by their kind: the place and the words of the error, without sizes and dtypes."""

from __future__ import annotations

import re
from collections import Counter

from opschema_cli.phrases import count

_VALUES = re.compile(
    r"\[[^\[\]]*\]|\([\d,\s]*\)|\b(?:torch\.)?(?:b?float|u?int|complex|bool|float8_e)\w*\b|\b(?:Half|Float|Double|BFloat16|Long|Int|Short|"
    r"Byte|Char|Bool)\b|-?\d+(?:\.\d+)?(?:e-?\d+)?"
)


_WHATEVER = re.compile(
    r"\b(?:NameError|UnboundLocalError|ImportError|ModuleNotFoundError|FileNotFoundError|AttributeError|NotImplementedError): "
    r"|not compiled with CUDA|No CUDA GPUs are available|Found no NVIDIA driver"
)
"""Errors of code that cannot run here or is broken, whatever it is called with."""


class RefusalCounts:
    """Counts the refusals of one search."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._since_new = 0

    def add(self, reason: str) -> bool:
        """Count one; return whether its kind is new."""
        kind = _VALUES.sub("#", reason)
        is_new = kind not in self._kinds
        self._since_new = 0 if is_new else self._since_new + 1
        self._kinds[kind] += 1
        self._first.setdefault(kind, reason)
        return is_new

    @property
    def since_new(self) -> int:
        """The number of refusals since one of a new kind."""
        return self._since_new

    @property
    def kinds(self) -> int:
        """The number of kinds."""
        return len(self._kinds)

    @property
    def whatever_is_passed(self) -> bool:
        """Whether the first refusal is an error that no argument causes."""
        return any(_WHATEVER.search(reason) for reason in list(self._first.values())[:1])

    def summary(self) -> str:
        """The number of refusals and the most frequent one."""
        (kind, times), total = self._kinds.most_common(1)[0], self._kinds.total()
        often = "it" if total == 1 else "all" if times == total else f"{times} of them"
        verb = "was" if total == 1 else "were"
        return f"in {count(total, 'call')}; {often} {verb} refused{' alike' * (times > 1)}: {self._first[kind]}"
