"""Runs a run under pytest, in this process or in several, and gathers what comes of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import CellResult
from opschema_cli.verify.plugin import result_of
from opschema_cli.verify.recipes import UNREADABLE
from opschema_cli.verify.results import Results, Writer
from opschema_cli.verify.run import SUFFIX, Run, write_run

_PLUGIN = "opschema_cli.verify.plugin"

Progress = Callable[[int, int, str], None]
"""Receives the number of cells that have run, the number of all cells, and the op of the last."""


class _Gatherer:
    """Keeps the results that reports carry."""

    def __init__(self, results: Results, writer: Writer | None, progress: Progress | None) -> None:
        self.results, self.writer, self.progress = results, writer, progress
        self.unwritten = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = result_of(report)
        if result is None:
            if report.failed:
                self.results.errors.append(f"{report.nodeid.rpartition('::')[2]}: {report.longreprtext}")
            return
        self.results.cells[result.id] = result
        self._write(result)
        if self.progress is not None:
            self.progress(len(self.results.cells), len(self.results.header.cells), result.op)

    def _write(self, result: CellResult) -> None:
        """Write a result, as long as that is possible: a full disk ends no run."""
        if self.writer is None or self.unwritten:
            return
        try:
            self.writer.add(result)
        except OpschemaError as error:
            self.unwritten = str(error)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.results.errors.append(report.longreprtext)


def run_cells(
    run: Run,
    *,
    jobs: Sequence[str] = (),
    results_file: Path | None = None,
    junit: Path | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run all cells; those that got no result are missing in what is returned.

    ``jobs`` are options of pytest-xdist (``-n``, ``--tx``); without, everything is run from this process.

    Raises:
        OpschemaError: pytest failed otherwise than by a cell, the recipes cannot be read, or the results not be written.
        KeyboardInterrupt: the run was stopped.
    """
    results = Results(run.header)
    folder = Path(run.folder)
    path = folder / f"cells{SUFFIX}"
    write_run(run, path)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    writer = Writer(results_file, run.header) if results_file is not None else None
    gatherer = _Gatherer(results, writer, progress)
    try:
        code = _pytest(path, jobs, junit, gatherer)
    finally:
        if writer is not None:
            writer.close()
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise OpschemaError("\n".join([f"pytest ended with exit code {int(code)}", *results.errors]))
    if gatherer.unwritten:
        raise OpschemaError(gatherer.unwritten)
    return settled(results)


def settled(results: Results) -> Results:
    """The results in the order of the cells.

    Raises:
        OpschemaError: the recipes could not be read.
    """
    broken = next((error for error in results.errors if f": {UNREADABLE}: " in error), "")
    if broken:
        raise OpschemaError(broken[broken.index(UNREADABLE) :])
    results.cells = {name: results.cells[name] for name in results.header.cells if name in results.cells}
    return results


def _pytest(path: Path, jobs: Sequence[str], junit: Path | None, gatherer: _Gatherer) -> int | pytest.ExitCode:
    """Run pytest on nothing but the run's file, whatever the configuration of the repository around it says."""
    arguments = [
        str(path),
        "-c",
        str(path.parent / "pytest.ini"),
        "--rootdir",
        str(path.parent),
        "--noconftest",
        "--basetemp",
        str(path.parent / "pytest"),
    ]
    arguments += ["-p", _PLUGIN, "-p", "no:cacheprovider", "-p", "no:terminal", "--capture=no"]
    if jobs:
        arguments += ["-p", "xdist.plugin", "--dist", "loadscope", "--max-worker-restart=1000", *jobs]
    if junit is not None:
        arguments += [f"--junitxml={junit}", "-o", "junit_suite_name=opschema verify"]
    kept = {name: os.environ.pop(name, None) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        return pytest.main(arguments, plugins=[gatherer])
    finally:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        os.environ.update({name: value for name, value in kept.items() if value is not None})
