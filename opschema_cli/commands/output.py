"""How commands write: finished texts, and progress on a terminal for runs over a second."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from opschema_cli.errors import OpschemaError

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET_SECONDS = 1.0
"""Runs shorter than this show no progress."""


def write_text(text: str, target: Path | None) -> None:
    """Write a finished report to a file, or to standard output as UTF-8 whatever the locale says.

    Raises:
        OpschemaError: the file cannot be written.
    """
    if target is not None:
        try:
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


class ParseProgress:
    """A progress bar on standard error, shown once a run takes long; nothing without a terminal."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled and sys.stderr.isatty()
        self.started = time.monotonic()
        self.bar: Progress | None = None

    def __enter__(self) -> ParseProgress:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` files are parsed."""
        if not self.enabled or time.monotonic() - self.started < QUIET_SECONDS:
            return
        if self.bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            from opschema_cli.reporters.text import open_console

            columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
            self.bar = Progress(*columns, console=open_console(sys.stderr), transient=True, auto_refresh=False)
            self.bar.start()
            self.bar.add_task("reading", total=total)
        self.bar.update(self.bar.task_ids[0], completed=done, total=total, refresh=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()


def write_page(text: str) -> None:
    """Print a page of Markdown: rendered on a terminal, as it is elsewhere."""
    if not sys.stdout.isatty():
        write_text(text, None)
        return
    from rich.markdown import Markdown

    from opschema_cli.reporters.text import open_console

    open_console(sys.stdout).print(Markdown(text))
