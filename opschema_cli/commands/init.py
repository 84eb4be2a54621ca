"""``opschema init``."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import click

from opschema_cli.commands.output import report_broken, write_text
from opschema_cli.commands.plugins import open_workspace
from opschema_cli.commands.pre_commit import explanation, hook_entry, installed_origins
from opschema_cli.errors import OpschemaError
from opschema_cli.reporters.unified import unified_diff
from opschema_cli.session import Session
from opschema_cli.source.text import Source
from opschema_cli.workspace import ReadError
from opschema_cli.write import write_all


@click.command(short_help="Write a configuration and the pre-commit hook for this repository.")
@click.option("--dry-run", is_flag=True, help="Print what would be written.")
@click.option(
    "--backend",
    metavar="KEY",
    help="Write a minimal PyTorch backend instead, for example for PrivateUse1: its YAML, C++ and Python package.",
)
@click.option("--name", help="With --backend: the name of the device [mydevice].")
def init(dry_run: bool, backend: str | None, name: str | None) -> int:
    """Detect which packs apply, and write `[tool.opschema]` and the pre-commit hook unless they exist."""
    if name is not None and backend is None:
        raise click.UsageError("--name goes with --backend")
    if backend is not None:
        # Not at the top: few ask for it.
        from opschema_cli.commands.new_backend import write_backend

        return write_backend(backend, name or "mydevice", dry_run=dry_run)
    with closing(open_workspace(Path.cwd(), no_plugins=True)) as session:
        packs = [pack.name for pack in session.registry_for(session.project()).packs]
        for pack in session.registry.packs:
            click.echo(f"{'found' if pack.name in packs else '-':<6} {pack.name:<10} {pack.summary}")
        report_broken(session.registry)
        if not packs:
            raise OpschemaError(f"nothing to lint in {session.root}: none of the packs above found a file of its kind")
        _write_config(session, packs, dry_run)
        _write_pre_commit(session, packs, dry_run)
    return 0


def _write_config(session: Session, packs: list[str], dry_run: bool) -> None:
    if session.config_path is not None:
        click.echo(f"kept   {session.config_path.name}: it configures opschema already")
        return
    names = ", ".join(f'"{name}"' for name in packs)
    pyproject = _read(session, "pyproject.toml")
    if pyproject is None:
        _save(session, "opschema.toml", f"packs = [{names}]\n", dry_run)
    else:
        table = f"\n\n[tool.opschema]\npacks = [{names}]\n".replace("\n", pyproject.newline)
        _save(session, "pyproject.toml", pyproject.text.rstrip("\r\n") + table, dry_run)


def _write_pre_commit(session: Session, packs: list[str], dry_run: bool) -> None:
    name = ".pre-commit-config.yaml"
    source = _read(session, name)
    if source is not None and "id: opschema" in source.text:
        click.echo(f"kept   {name}: it runs opschema already")
        return
    origins = installed_origins(packs)
    entry = hook_entry(origins)
    if source is None or not source.text:
        text = "repos:\n" + entry
    else:
        text = _with_hook(source.text, source.newline, entry)
    _save(session, name, text, dry_run, explanation(origins))


def _read(session: Session, name: str) -> Source | None:
    if not session.workspace.is_file(name):
        return None
    try:
        return session.workspace.source(name)
    except ReadError as error:
        raise OpschemaError(str(error)) from None


def _with_hook(text: str, newline: str, entry: str) -> str:
    """Return the pre-commit configuration with the hook as the last of its ``repos``; the other text is unchanged."""
    from opschema_cli.source.yaml import YamlSyntaxError
    from opschema_cli.source.yaml_compose import compose

    try:
        root = compose(text).root
    except YamlSyntaxError as error:
        raise OpschemaError(f".pre-commit-config.yaml is not YAML: {error.reason}") from None
    if root is None:
        end = re.search(r"^\.\.\.", text, re.MULTILINE)
        before, after = (text[: end.start()], text[end.start() :]) if end is not None else (text, "")
        break_before = newline if before and not before.endswith(newline) else ""
        return before + break_before + f"repos:\n{entry}".replace("\n", newline) + after
    repos = root.get("repos")
    if repos is None or not repos.is_sequence or repos.style != "block" or not repos.items:
        raise OpschemaError(
            ".pre-commit-config.yaml has no list of repos to add to; write this under its `repos`:\n" + entry
        )
    line_start = text.rfind("\n", 0, repos.items[0].start) + 1
    indent = text[line_start : repos.items[0].start].partition("-")[0]
    hook = "".join(f"{indent}{line[2:]}{newline}" for line in entry.splitlines())
    at = text.find("\n", repos.end) + 1
    return text[:at] + hook + text[at:] if at else text + newline + hook


def _save(session: Session, name: str, text: str, dry_run: bool, why: str = "") -> None:
    there = _read(session, name)
    if dry_run:
        click.echo("\n".join(unified_diff(name, "" if there is None else there.text, text)))
        return
    if there is None:
        write_text(text, session.workspace.locate(name))
    else:
        write_all(session.workspace, {name: text})
    click.echo(f"wrote  {name}: {why}" if why else f"wrote  {name}")
