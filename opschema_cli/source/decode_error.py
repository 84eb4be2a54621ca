"""The error for bytes that are not text."""

from __future__ import annotations


class DecodeError(ValueError):
    """A file is not text in its declared encoding; ``offset`` counts bytes from 0."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset
