"""The part of a run on a cluster that runs on its nodes: a process that checks ops, one after the other."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from opschema_cli import __version__
from opschema_cli.verify.loading import HarnessError
from opschema_cli.verify.model import CellResult
from opschema_cli.verify.parcels import Parcel, moved, unpacked
from opschema_cli.verify.prepare import Device, device_label
from opschema_cli.verify.run import Run
from opschema_cli.verify.scratch import scratch_folder


class Report(msgspec.Struct, frozen=True):
    """The outcome of one cell: its result, or why the harness failed."""

    cell: str
    result: CellResult | None = None
    error: str = ""


class Versions(msgspec.Struct, frozen=True):
    """The versions of opschema and torch that a node has."""

    opschema: str
    torch: str


class Checker:
    """Checks ops of one run on a node. The driver makes it an actor; :meth:`close` may be called while :meth:`check` runs."""

    def __init__(self, run: Run, device: Device, roots: Sequence[str], *parcels: Parcel) -> None:
        # Not at the top: it imports torch, and the driver needs none of it.
        from opschema_cli.verify.harness import Harness

        places = {root: unpacked(parcel, shared_folder(run)) for root, parcel in zip(roots, parcels, strict=True)}
        self._scratch = ExitStack()
        folder = self._scratch.enter_context(scratch_folder())
        header = msgspec.structs.replace(run.header, device=device_label(device))
        self._run = msgspec.structs.replace(moved(run, places), header=header, folder=str(folder))
        self._harness = Harness(self._run)
        self._closed = False

    def check(self, index: int) -> Iterator[bytes]:
        """The reports on the cells of the plan at ``index``, each when its cell has run."""
        plan = self._run.plans[index]
        for cell in plan.cells:
            try:
                report = Report(cell.id, self._harness.check(plan, cell))
            except HarnessError as error:
                report = Report(cell.id, error=str(error))
            if self._closed:
                return
            yield msgspec.msgpack.encode(report)

    def close(self) -> None:
        """End all processes of this one."""
        self._closed = True
        self._harness.close()
        self._scratch.close()


def shared_folder(run: Run) -> Path:
    """The folder for the trees of a run on a node."""
    return Path(tempfile.gettempdir()) / f"opschema-trees-{run.header.run}"


def forget(run: Run) -> None:
    """Remove the files of a run from this node."""
    shutil.rmtree(shared_folder(run), ignore_errors=True)


def versions() -> Versions:
    """The versions on this node."""
    import torch

    return Versions(__version__, torch.__version__)
