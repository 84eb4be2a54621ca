"""The report of ``opschema verify``, printed and written to files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from opschema_cli.commands.output import write_text
from opschema_cli.commands.verify_options import VerifyOptions
from opschema_cli.errors import OpschemaError
from opschema_cli.phrases import count
from opschema_cli.reporters.escape import visible
from opschema_cli.verify.results import Results, read_results


def report(results: Results, options: VerifyOptions, seconds: float) -> None:
    """Print the report and write the files; a reader that closes the output does not affect the result of the run."""
    for message, cells in _grouped(results.errors).items():
        more = f", and for {count(len(cells) - 1, 'more cell')}" if len(cells) > 1 else ""
        told = ", ".join(message.splitlines())
        click.echo(f"opschema: {visible(cells[0])}{more}: {visible(told)}", err=True)
    if results.stopped:
        left = count(len(results.missing), "cell")
        click.echo(f"opschema: --fail-fast: stopped at the first cell that failed; {left} not run", err=True)
    if any("before" in cell.unimported for cell in results.cells.values()) and not _is_folder(options.before):
        click.echo(
            f"opschema: {visible(str(options.before))} was exported from git, without built extensions and other files that git "
            "does not track; if the tree before needs some, build them in a folder (git worktree add) and name it with --before",
            err=True,
        )
    try:
        _print(results, options, seconds)
    except (BrokenPipeError, SystemExit):  # which of them depends on the library that writes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if options.report is not None:
        from opschema_cli.reporters.verification.html import write_pages

        earlier = [read_results(path) for path in options.earlier]
        page = write_pages(results, options.report, seconds, earlier)
        click.echo(f"opschema: wrote {visible(str(page))}", err=True)


def _is_folder(before: str | None) -> bool:
    """Whether the earlier tree is a folder, as far as that is known."""
    return before is None or Path(before).is_dir()


def _print(results: Results, options: VerifyOptions, seconds: float) -> None:
    if options.output_format == "json":
        from opschema_cli.reporters.verification import json

        write_text(json.render(results, seconds), options.output_file)
        return
    from opschema_cli.reporters.text import open_console
    from opschema_cli.reporters.verification import text

    if options.output_file is None:
        text.write(results, open_console(sys.stdout), seconds)
        sys.stdout.flush()
        return
    try:
        with options.output_file.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            text.write(results, open_console(stream), seconds)
    except OSError as error:
        raise OpschemaError(f"{options.output_file} cannot be written: {error.strerror or error}") from None


def _grouped(errors: Sequence[str]) -> dict[str, list[str]]:
    """Return the failures of the harness by message: the cells that failed with it."""
    found: dict[str, list[str]] = {}
    for error in errors:
        cell, _, message = error.partition(": ")
        found.setdefault(message, []).append(cell)
    return found
