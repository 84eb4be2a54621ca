"""One run: executes the cells of all plans on both sides and the reference, and judges them.

A run travels to the processes that share its work as a file, ``*.opschema-run``, which pytest collects. It is msgpack, not
JSON: a param may be infinite.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.compute_sanitizer import Tool
from opschema_cli.verify.model import CellResult, Plan, Target
from opschema_cli.verify.results import Header

SUFFIX = ".opschema-run"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The work of a run: the plans of the tree after, and where each op was before (or why it was nowhere).

    ``compared`` records whether there is a tree before at all. ``seconds`` is the time that one cell has on one side,
    ``folder`` is where tensors and caches go meanwhile; empty, and whoever runs it makes one. With ``sanitizer`` workers run
    under this tool, or what the device has for it.
    """

    header: Header
    plans: tuple[Plan, ...]
    compared: bool
    before: dict[str, Target] = {}
    absent: dict[str, str] = {}
    folder: str
    seconds: float = 120.0
    sanitizer: Tool | None = None

    @property
    def device(self) -> str:
        """The device of the cells: ``cpu`` or ``cuda``."""
        return "cuda" if self.header.device != CPU_LABEL else "cpu"


CPU_LABEL = "cpu-sim"
"""The label of a result on the CPU: weaker evidence than the same on a GPU."""


def write_run(run: Run, path: Path) -> None:
    """Write a run to a file.

    Raises:
        OpschemaError: it cannot be written.
    """
    try:
        path.write_bytes(msgspec.msgpack.encode(run))
    except OSError as error:
        raise OpschemaError(f"{path} cannot be written: {error.strerror or error}") from None


def read_run(path: Path) -> Run:
    """The run that a file describes.

    Raises:
        OpschemaError: it is no such file.
    """
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Run)
    except (OSError, msgspec.DecodeError) as error:
        raise OpschemaError(f"{path}: this is not a run of `opschema verify`: {error}") from None


def unplanned(plan: Plan, device: str) -> Iterator[CellResult]:
    """The results of an op's cells that cannot be run, and of its removed cells."""
    sides = ("after",) if plan.unimported else ()
    for cell, reason in plan.unplanned.items():
        yield CellResult(id=cell, op=plan.op, verdict="not-checked", device=device, reason=reason, unimported=sides)
    for cell, reason in plan.removed.items():
        yield CellResult(id=cell, op=plan.op, verdict="regression", device=device, reason=reason)
