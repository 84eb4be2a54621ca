"""Executes a run under pytest, in one or several processes, and collects the results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.gathering import Gathering, ResultOptions
from opschema_cli.verify.plugin import item_name, result_of
from opschema_cli.verify.results import Results
from opschema_cli.verify.run import SUFFIX, Run, write_run

_PLUGIN = "opschema_cli.verify.plugin"
_JUNIT = "junit.xml"


class _Gatherer:
    """Takes the results that reports carry."""

    def __init__(self, gathering: Gathering) -> None:
        self.gathering = gathering
        self._names = {item_name(name): name for name in gathering.results.header.cells}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = result_of(report)
        if result is not None:
            self.gathering.take(result)
        elif report.failed:
            item = report.nodeid.rpartition("::")[2]
            self.gathering.results.errors.append(f"{self._names.get(item, item)}: {report.longreprtext}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.gathering.results.errors.append(report.longreprtext)


def run_cells(
    run: Run, *, jobs: Sequence[str] = (), junit: Path | None = None, options: ResultOptions | None = None
) -> Results:
    """Run all cells. Cells without a result are missing in the returned results.

    ``jobs`` are options of pytest-xdist (``-n``, ``--tx``); without, everything is run from this process.

    Raises:
        OpschemaError: pytest failed otherwise than by a cell, or the recipes cannot be read.
        KeyboardInterrupt: the run was stopped.
    """
    gathering = Gathering(run, options or ResultOptions())
    folder = Path(run.folder)
    path = folder / f"cells{SUFFIX}"
    write_run(gathering.run, path)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    try:
        code = _pytest(path, jobs, folder / _JUNIT if junit is not None else None, _Gatherer(gathering))
    finally:
        gathering.close()
    if junit is not None:
        gathering.results.unwritten.extend(_copied(folder / _JUNIT, junit))
    if gathering.stopped:
        return gathering.settled()
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise OpschemaError("\n".join([f"pytest ended with exit code {int(code)}", *gathering.results.errors]))
    return gathering.settled()


def _copied(file: Path, target: Path) -> Iterator[str]:
    """Copy a file that pytest has written, if it has. Yield the reason if the copy cannot be written."""
    if file.exists():
        try:
            target.write_bytes(file.read_bytes())
        except OSError as error:
            yield f"{target} cannot be written: {error.strerror or error}"


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
    if gatherer.gathering.options.fail_fast:
        arguments += ["--maxfail=1"]
    if junit is not None:
        arguments += [f"--junitxml={junit}", "-o", "junit_suite_name=opschema verify"]
    kept = {name: os.environ.pop(name, None) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        return pytest.main(arguments, plugins=[gatherer])
    finally:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        os.environ.update({name: value for name, value in kept.items() if value is not None})
