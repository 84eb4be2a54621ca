"""Outcomes of executing a function: it returns, it raises, or the result is unknown."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from opschema_cli.source.text import Place


class Returned(msgspec.Struct, frozen=True):
    """The function returns ``value``. Parts of a container or object may be ``Opaque``, the value itself is not."""

    value: object


class Raised(msgspec.Struct, frozen=True):
    """The function raises: ``exception`` is the name of the class, ``message`` its text; None if it is not known."""

    exception: str
    message: str | None = None
    place: Place | None = None


class Unresolved(msgspec.Struct, frozen=True):
    """The result cannot be known, with the reason and the place where it is lost."""

    reason: str
    place: Place | None = None


Outcome: TypeAlias = "Returned | Raised | Unresolved"
