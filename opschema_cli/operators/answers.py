"""Answers of an operator's code to declared workloads, as a pack's interpreter finds them."""

from __future__ import annotations

import msgspec

from opschema_cli.source.text import Place


class RowAnswer(msgspec.Struct, frozen=True):
    """The answer of an operator's code to a workload: ``refused`` is the error with which it certainly refuses it, empty
    otherwise; ``accepted`` is false where that is not known either.
    """

    accepted: bool = False
    refused: str = ""
    place: Place | None = None
