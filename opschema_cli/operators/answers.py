"""Answers of an operator's code to declared workloads, as a pack's interpreter finds them."""

from __future__ import annotations

import msgspec

from opschema_cli.source.text import Place


class RowAnswer(msgspec.Struct, frozen=True):
    """The answer of an operator's code to a workload. ``refused`` is the error that it certainly raises, or empty; ``accepted``
    is false if it is not certain that it accepts the workload.
    """

    accepted: bool = False
    refused: str = ""
    place: Place | None = None
