"""Places that may define or register more operators than are known."""

from __future__ import annotations

import msgspec

from opschema_cli.lint.diagnostic import Place


class Gap(msgspec.Struct, frozen=True):
    """A place that may define or register more than is known, in ``namespace``, or in any when that is None.

    ``names`` are the operators' names without namespace and overload; None when they may be any that begin with ``start``.
    """

    place: Place
    reason: str
    namespace: str | None = None
    names: frozenset[str] | None = None
    start: str = ""
    defines: bool = True
    registers: bool = True

    @property
    def is_anything(self) -> bool:
        """Whether neither the namespace nor anything of the names is known."""
        return self.namespace is None and self.names is None and not self.start
