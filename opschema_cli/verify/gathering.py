"""The results of a run as they come: kept, written to a file, reported as progress; those of an earlier run of the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import CellResult
from opschema_cli.verify.recipes import UNREADABLE
from opschema_cli.verify.results import FAILED, Header, Results, Writer, difference, read_results
from opschema_cli.verify.run import Run

Progress: TypeAlias = "Callable[[int, int, str], None]"
"""Receives the number of cells that have a result, the number of all cells, and a title: the op of the last cell, and how many
cells so far failed or were not checked.
"""


class ResultOptions(msgspec.Struct, frozen=True):
    """Options for results: the file that they go to, whether it has some of the same run already (``resume``), the progress that is
    reported, and whether the run ends with the first failure.
    """

    file: Path | None = None
    resume: bool = False
    progress: Progress | None = None
    fail_fast: bool = False


class Gathering:
    """The results of one run."""

    def __init__(self, run: Run, options: ResultOptions) -> None:
        """Open the file of results.

        Raises:
            OpschemaError: it cannot be written, or is that of another run.
        """
        self.options = options
        self.results = Results(run.header)
        earlier = earlier_results(options.file, run.header) if options.resume and options.file is not None else {}
        complete = [plan for plan in run.plans if plan.names and all(name in earlier for name in plan.names)]
        names = {name for plan in complete for name in plan.names}
        self.results.cells.update((name, result) for name, result in earlier.items() if name in names)
        self.run = msgspec.structs.replace(run, plans=tuple(plan for plan in run.plans if plan not in complete))
        self._failed = sum(result.verdict in FAILED for result in self.results.cells.values())
        self._unchecked = sum(result.verdict == "not-checked" for result in self.results.cells.values())
        self._writer = (
            Writer(options.file, run.header, self.results.cells.values()) if options.file is not None else None
        )

    @property
    def stopped(self) -> bool:
        """Whether the run ends here, since a cell has failed."""
        return self.options.fail_fast and self._failed > 0

    def take(self, result: CellResult) -> None:
        """Keep a result; a full disk ends no run."""
        self.results.cells[result.id] = result
        self._failed += result.verdict in FAILED
        self._unchecked += result.verdict == "not-checked"
        if self._writer is not None and not self.results.unwritten:
            try:
                self._writer.add(result)
            except OpschemaError as error:
                self.results.unwritten.append(str(error))
        if self.options.progress is not None:
            self.options.progress(len(self.results.cells), len(self.results.header.cells), self._title(result.op))

    def _title(self, op: str) -> str:
        counts = ((self._failed, "failed"), (self._unchecked, "not checked"))
        found = ", ".join(f"{number:,} {what}" for number, what in counts if number)
        return f"{op} ({found})" if found else op

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()

    def settled(self) -> Results:
        """The results in the order of the cells.

        Raises:
            OpschemaError: the recipes could not be read.
        """
        results = self.results
        broken = next((error for error in results.errors if f": {UNREADABLE}: " in error), "")
        if broken:
            raise OpschemaError(broken[broken.index(UNREADABLE) :])
        results.cells = {name: results.cells[name] for name in results.header.cells if name in results.cells}
        results.stopped = self.stopped and bool(results.missing)
        return results


def earlier_results(path: Path, header: Header) -> dict[str, CellResult]:
    """Return the results in the file of an earlier identical run, or nothing if there is no file.

    Raises:
        OpschemaError: it is of another run, or no file of results.
    """
    if not path.exists():
        return {}
    found = read_results(path)
    same = (found.header.run, found.header.shard, found.header.shards) == (header.run, header.shard, header.shards)
    if not same or found.header.device != header.device:
        why = (
            difference(found.header, header)
            if not same
            else f"it ran on {found.header.device}, this one on {header.device}"
        )
        raise OpschemaError(f"{path} cannot be resumed: {why}; without --resume it is overwritten")
    return found.cells
