"""The entry of the command line: loads subcommands on demand, and handles all exceptions."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from opschema_cli import __version__
from opschema_cli.errors import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE, OpschemaError
from opschema_cli.interrupts import is_interrupted, noted_interrupts
from opschema_cli.suggestions import near_name

COMMANDS = {
    "lint": "Check the declarations of operators against each other and against the code.",
    "migrate": "Rewrite the entire workspace: list, show, apply or check migrations.",
    "verify": "Run ops before and after a change, and compare their results.",
    "upgrade": "List what must change in this repository for another release of PyTorch.",
    "diff": "List what changed for users of the operators since another revision.",
    "stubs": "Generate a backend's declarations and registrations: show, apply or check them.",
    "list": "List the operators: where each is declared and implemented.",
    "show": "Show one operator: its declaration beside its implementation.",
    "server": "Run a language server for editors, over standard input and output.",
    "schema": "Print a JSON Schema: of the configuration, or of files of a pack.",
    "rules": "List all rules.",
    "rule": "Explain one rule.",
    "stats": "Count findings by rule, pack and file, now and over the git history.",
    "baseline": "Accept the current findings, so that only new ones count.",
    "init": "Write a configuration and the pre-commit hook for this repository.",
    "new-pack": "Create a package for your own pack, as a starting point.",
    "plugins": "Allow a repository's plugins to run; list and revoke permissions.",
}


class _Lazy(click.Group):
    """Imports a command's module when the command is used: `--help` and `--version` stay fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        collects = gc.isenabled()
        gc.disable()  # what is imported stays
        try:
            command: click.Command = getattr(import_module(f"opschema_cli.commands.{module}"), module)
        finally:
            if collects:
                gc.enable()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = near_name(args[0], COMMANDS)
            hint = f" Did you mean `{close}`?" if close else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None


def _keep_verbose(context: click.Context, param: click.Parameter, value: bool) -> None:
    context.meta["opschema.verbose"] = value


def _print_version(context: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    lines = [f"opschema, version {__version__}"]
    if context.meta["opschema.verbose"]:
        # Not at the top: it imports what most runs do without.
        from opschema_cli.versions import versions

        lines = list(versions())
    click.echo("\n".join(lines))
    context.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--verbose", is_flag=True, is_eager=True, expose_value=False, hidden=True, callback=_keep_verbose)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit; with --verbose also those of Python, dependencies and packs, for bug reports.",
)
def cli() -> None:
    """Find and fix differences between what operators declare and what their code does.

    Start with `opschema init` and `opschema lint`.

    Exit codes: 0 nothing found, 1 findings, 2 wrong usage, configuration or unreadable input, 3 a failure of opschema
    itself, 130 interrupted.
    """


def main() -> NoReturn:
    """Run the command line and exit."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start; no file may take its place
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))
    code = run(sys.argv[1:])
    # A command that collects no garbage holds a large tree of objects; Python would spend a tenth of the run to take it apart.
    if not gc.isenabled() and not _is_watched() and threading.active_count() == 1:
        _leave(code)
    sys.exit(code)


def _is_watched() -> bool:
    """Whether a profiler or debugger waits for the end."""
    tools = getattr(sys, "monitoring", None)  # of Python 3.12
    watching = tools is not None and any(tools.get_tool(number) for number in range(6))
    return bool(watching) or sys.getprofile() is not None or sys.gettrace() is not None


def _leave(code: int) -> NoReturn:
    """End the process immediately, but like Python for all observers: exit handlers run."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(args: list[str]) -> int:
    """Run the command line on ``args``. Return the exit code."""
    with noted_interrupts():
        code = _run(args)
        if is_interrupted() and code != EXIT_INTERRUPTED:
            return _interrupted()
        return code


def _interrupted() -> int:
    click.echo("opschema: interrupted", err=True)
    return EXIT_INTERRUPTED


def _run(args: list[str]) -> int:
    try:
        result = cli.main(args, prog_name="opschema", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except OpschemaError as error:
        from opschema_cli.reporters.escape import visible

        click.echo("opschema: " + "\n".join(map(visible, str(error).split("\n"))), err=True)
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        return _interrupted()
    except (BrokenPipeError, SystemExit):
        # The reader of our output went away (click makes that a SystemExit); keep Python from complaining again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERRUPTED
    except Exception as error:
        import traceback

        from opschema_cli.crash_report import report_crash
        from opschema_cli.crash_traces import trace_of

        click.echo(traceback.format_exc(), err=True)
        click.echo(f"opschema {__version__} failed; this is a defect of opschema.", err=True)
        report_crash([trace_of(error)])
        return EXIT_INTERNAL
