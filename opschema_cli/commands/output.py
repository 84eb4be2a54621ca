"""Output of commands: finished texts, and progress on a terminal for runs over a second."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from opschema_cli.errors import OpschemaError
from opschema_cli.phrases import count, duration
from opschema_cli.reporters.escape import visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from opschema_cli.lint.registry import Registry
    from opschema_cli.project import Project

WHAT_IS_FOUND = "`opschema init` lists what it looks for"
"""The advice if a command found nothing of its kind."""

QUIET_SECONDS = 1.0
"""Runs shorter than this show no progress of parsing."""


LINE_SECONDS = 10.0
"""Seconds between two lines of progress where there is no terminal."""

_KNOWN = 0.02
"""The fraction of the work after which the remaining time is shown: the first units may import or compile a lot."""


def write_text(text: str, target: Path | None) -> None:
    """Write a finished report to a file, or to standard output, as UTF-8 regardless of the locale.

    Raises:
        OpschemaError: the file cannot be written.
    """
    if target is not None:
        try:
            if target.exists() and not os.stat(target).st_mode & stat.S_IWUSR:
                raise PermissionError("it is marked read-only")  # also for root, whom the system lets write it
            target.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise OpschemaError(f"{target} cannot be written: {error.strerror or error}") from None
        return
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is not None:
        buffer.write(text.encode("utf-8", "backslashreplace"))
        buffer.flush()
    else:
        sys.stdout.write(text)


def report_broken(registry: Registry) -> None:
    """Name the installed packs that cannot be used, for commands without a report."""
    for pack in registry.broken:
        click.echo(f"opschema: {visible(pack.message)} ({visible(pack.hint)})", err=True)


def missing_from(project: Project) -> list[str]:
    """Return lines that name the missing parsers and the files that could not be read without them."""
    groups: dict[tuple[str, str], set[str]] = {}
    for item in project.missing:
        groups.setdefault((item.reason, item.hint), set()).update(item.files)
    return [f"{reason}: {count(len(files), 'file')} not read ({hint})" for (reason, hint), files in groups.items()]


def report_missing(project: Project) -> None:
    """Print what could not be read, for commands without a report."""
    for line in missing_from(project):
        click.echo(f"opschema: {visible(line)}", err=True)


class ProgressBar:
    """A progress bar on standard error, in ``units``, shown once a run takes longer than ``quiet`` seconds.

    Without a terminal there is nothing, or with ``lines``, for long work, a line every :data:`LINE_SECONDS`; the bar then shows the
    time that is left, too.
    """

    def __init__(
        self, title: str, units: str, *, enabled: bool = True, quiet: float = QUIET_SECONDS, lines: bool = False
    ) -> None:
        self.title, self.units = title, units
        self.is_terminal = sys.stderr.isatty()
        self.enabled = enabled and (self.is_terminal or lines)
        self.lines = lines
        self.started = time.monotonic()
        self.shows_at = self.started + (quiet if self.is_terminal else LINE_SECONDS)
        self.first: int | None = None
        self.bar: Progress | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, done: int, total: int, title: str = "") -> None:
        """Report that ``done`` of ``total`` units are done, the last one with that title if it has its own."""
        if self.first is None:
            self.first = done - 1
        if not self.enabled or time.monotonic() < self.shows_at:
            return
        if not self.is_terminal:
            self._write_line(done, total, title)
            return
        if self.bar is None:
            self.bar = self._start(total)
        shown = visible(title or self.title)
        self.bar.update(self.bar.task_ids[0], completed=done, total=total, description=shown, refresh=True)

    def _write_line(self, done: int, total: int, title: str) -> None:
        now = time.monotonic()
        self.shows_at = now + LINE_SECONDS
        new = done - (self.first or 0)
        left = duration((now - self.started) / max(new, 1) * (total - done))
        known = f", about {left} left" if new >= max(2, _KNOWN * total) else ""
        last = f", last of {visible(title)}" if title else ""
        click.echo(f"opschema: {self.title}: {done} of {total} {self.units}{known}{last}", err=True)

    def _start(self, total: int) -> Progress:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from opschema_cli.reporters.text import open_console

        title = TextColumn("{task.description}", markup=False)
        left = (TimeRemainingColumn(),) if self.lines else ()
        columns = (title, BarColumn(), MofNCompleteColumn(), TextColumn(self.units), *left)
        bar = Progress(*columns, console=open_console(sys.stderr), transient=True, auto_refresh=False)
        bar.start()
        bar.add_task(self.title, total=total)
        return bar

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()


def write_page(text: str) -> None:
    """Print a page of Markdown: rendered on a terminal, otherwise unchanged."""
    if not sys.stdout.isatty():
        write_text(text, None)
        return
    from rich.markdown import Markdown

    from opschema_cli.reporters.text import open_console

    open_console(sys.stdout).print(Markdown(text))
