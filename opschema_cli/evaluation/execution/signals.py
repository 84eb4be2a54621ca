"""Events that leave the code being executed: an exception of its own, and a value that has to be known and is not."""

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
    """An iterable is used whose elements are not known; what is made of them is opaque."""


class NotJoinedError(Exception):
    """Two branches cannot be joined; the path begins again, and decides."""


def forget_frames(error: BaseException) -> None:
    """Let go of the frames that an exception has left, once it is caught: some of them lead back to it, so that only a search for
    cycles, which a run does without, would free them.
    """
    current: BaseException | None = error
    while current is not None:
        current.__traceback__ = None
        current = current.__context__
