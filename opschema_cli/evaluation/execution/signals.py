"""Events that leave the executed code: an exception, or an unknown value that is needed."""

from __future__ import annotations

from opschema_cli.evaluation.execution.values import ErrorValue, Object
from opschema_cli.source.text import Place


class Thrown(Exception):  # noqa: N818 - it is control flow
    """The executed code raises ``error``."""

    def __init__(self, error: ErrorValue | Object, place: Place | None) -> None:
        super().__init__()
        self.error = error
        self.place = place


class Undecided(Exception):  # noqa: N818 - it is control flow
    """The execution cannot go on."""

    def __init__(self, reason: str, place: Place | None) -> None:
        super().__init__()
        self.reason = reason
        self.place = place


class UnknownElementsError(Undecided):
    """An iterable with unknown elements is used; the result is opaque."""


class NotJoinedError(Exception):
    """Two branches cannot be joined; the path restarts and decides."""


def forget_frames(error: BaseException) -> None:
    """Clear the frames of a caught exception. Some of them refer back to it, and only the cycle collector, which is disabled
    during a run, would free them.
    """
    current: BaseException | None = error
    while current is not None:
        current.__traceback__ = None
        current = current.__context__
