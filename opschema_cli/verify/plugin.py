"""The pytest plugin: a file ``*.opschema-run`` is collected into one item for each cell, below its op.

Cells of one op stay in one process and in their order (``--dist loadscope`` of pytest-xdist), for a stale cache shows only
in it. The verdict travels with the report, so that the process that started the run has them all.

An item passes when its cell is unchanged or within tolerance. It is an expected failure when the cell was wrong already,
and skipped, with the reason, when it was not checked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.loading import HarnessError, place_in_harness
from opschema_cli.verify.model import Cell, CellResult, Plan
from opschema_cli.verify.results import FAILED, finding_lines, result_from_json, to_json
from opschema_cli.verify.run import SUFFIX, Run, read_run, unplanned

if TYPE_CHECKING:
    from opschema_cli.verify.harness import Harness

ATTRIBUTE = "opschema"
"""The attribute of a test report that holds the cell's result, as JSON."""

_HARNESS = pytest.StashKey["dict[Path, Harness]"]()


def pytest_configure(config: pytest.Config) -> None:
    """Make room for the harness of each run."""
    config.stash[_HARNESS] = {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the processes that ran cells. Pytest does not call ``pytest_unconfigure`` after another plugin fails here, as xdist
    does when it loses its connection.
    """
    for harness in session.config.stash.get(_HARNESS, {}).values():
        harness.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> RunFile | None:
    """Collect the files that describe a run."""
    return RunFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


class RunFile(pytest.File):
    """A run: its cells, op by op."""

    def collect(self) -> Iterable[pytest.Collector]:
        """One collector for each op."""
        try:
            run = read_run(self.path)
        except OpschemaError as error:
            raise self.CollectError(str(error)) from None
        for plan in run.plans:
            yield OpCells.from_parent(self, name=plan.op, run=run, plan=plan)

    def harness(self, run: Run) -> Harness:
        """The harness of this process, made for the first cell."""
        from opschema_cli.verify.harness import Harness

        known = self.config.stash[_HARNESS]
        if self.path not in known:
            known[self.path] = Harness(run if run.folder else self._with_folder(run))
        return known[self.path]

    def _with_folder(self, run: Run) -> Run:
        """Return the run with a temporary folder that exists as long as this process works on it."""
        folder = tempfile.TemporaryDirectory(prefix="opschema-", ignore_cleanup_errors=True)
        self.config.add_cleanup(folder.cleanup)
        return msgspec.structs.replace(run, folder=folder.name)


class OpCells(pytest.Collector):
    """The cells of one op, which is their scope."""

    parent: RunFile

    def __init__(self, *, run: Run, plan: Plan, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.run, self.plan = run, plan

    def collect(self) -> Iterable[pytest.Item]:
        """One item for each cell; those that cannot be run are items too."""
        for cell in self.plan.cells:
            yield CellItem.from_parent(self, name=item_name(cell.id), cell=cell)
        for result in unplanned(self.plan, self.run.header.device):
            yield CellItem.from_parent(self, name=item_name(result.id), result=result)

    def check(self, cell: Cell) -> CellResult:
        """Run a cell."""
        return self.parent.harness(self.run).check(self.plan, cell)


def item_name(cell: str) -> str:
    """Return a cell's name for the end of its item's path, without ``::``."""
    return cell.replace("::", ":")


class CellItem(pytest.Item):
    """One cell; ``result`` is there before it runs if it cannot be run."""

    parent: OpCells

    def __init__(self, *, cell: Cell | None = None, result: CellResult | None = None, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.cell, self.result = cell, result

    def runtest(self) -> None:
        """Run the cell and report its verdict."""
        if self.cell is not None:
            self.result = self.parent.check(self.cell)
        result = self.result
        assert result is not None
        if result.verdict in FAILED:
            pytest.fail("\n".join(_lines(result)), pytrace=False)
        if result.verdict == "wrong-already":
            pytest.xfail("; ".join(_lines(result)))
        if result.verdict == "not-checked":
            pytest.skip(result.reason)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the failure to print. For an error that explains itself this is its message; for others also the place in the
        harness, but not pytest's long traceback.
        """
        if isinstance(excinfo.value, HarnessError):
            return str(excinfo.value)
        if isinstance(excinfo.value, Exception):
            return f"the harness failed: {excinfo.exconly(tryshort=True)}\n{place_in_harness(excinfo.value)}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The item's file and name, for pytest's own report."""
        return self.path, None, self.name


def _lines(result: CellResult) -> Iterator[str]:
    yield f"{result.verdict} on {result.device}: {result.reason}"
    yield from finding_lines(result)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the result of a cell on the report of its run."""
    report = yield
    if isinstance(item, CellItem) and report.when == "call" and item.result is not None:
        setattr(report, ATTRIBUTE, to_json(item.result).decode())
    return report


def result_of(report: pytest.TestReport) -> CellResult | None:
    """Return the result in a report, if it is the report of a cell's run."""
    data = getattr(report, ATTRIBUTE, None)
    return result_from_json(data) if data is not None else None
