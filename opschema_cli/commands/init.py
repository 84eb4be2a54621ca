"""``opschema init``."""

from __future__ import annotations

from pathlib import Path

import click

from opschema_cli import __version__
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.reporters.unified import unified_diff
from opschema_cli.session import Session, open_session

PRE_COMMIT = f"""\
  - repo: https://github.com/opschema/opschema
    rev: v{__version__}
    hooks:
      - id: opschema
"""


@click.command(short_help="Write a configuration and the pre-commit entry for this repository.")
@click.option("--dry-run", is_flag=True, help="Print what would be written.")
def init(dry_run: bool) -> int:
    """Detect which packs apply, and write `[tool.opschema]` and the pre-commit entry, where they are not there yet."""
    session = open_session(Path.cwd())
    options = resolve_settings(session.config, session.registry).pack_options
    packs = session.detected(session.project(), options)
    for pack in session.registry.packs:
        click.echo(f"{'found' if pack in packs else '-':<6} {pack.name:<10} {pack.summary}")
    if not packs:
        raise OpschemaError(f"nothing to lint in {session.root}: none of the packs above found a file of its kind")
    _write_config(session, [pack.name for pack in packs], dry_run)
    _write_pre_commit(session.root / ".pre-commit-config.yaml", dry_run)
    return 0


def _write_config(session: Session, packs: list[str], dry_run: bool) -> None:
    if session.config_path is not None:
        click.echo(f"kept   {session.config_path.name}: it configures opschema already")
        return
    names = ", ".join(f'"{name}"' for name in packs)
    pyproject = session.root / "pyproject.toml"
    if pyproject.is_file():
        text = pyproject.read_text(encoding="utf-8")
        _save(pyproject, text.rstrip("\n") + f"\n\n[tool.opschema]\npacks = [{names}]\n", dry_run)
    else:
        _save(session.root / "opschema.toml", f"packs = [{names}]\n", dry_run)


def _write_pre_commit(path: Path, dry_run: bool) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if "id: opschema" in text:
        click.echo(f"kept   {path.name}: it runs opschema already")
    elif not text:
        _save(path, "repos:\n" + PRE_COMMIT, dry_run)
    else:
        _save(path, _with_hook(text), dry_run)


def _with_hook(text: str) -> str:
    """The pre-commit configuration with the hook as the last of its ``repos``; its own text stays byte for byte."""
    from opschema_cli.source.yaml import YamlSyntaxError, compose

    try:
        root = compose(text).root
    except YamlSyntaxError as error:
        raise OpschemaError(f".pre-commit-config.yaml is not YAML: {error.reason}") from None
    repos = root.get("repos") if root is not None else None
    if repos is None or not repos.is_sequence or repos.style != "block" or not repos.items:
        raise OpschemaError(".pre-commit-config.yaml has no list of repos to add to; add this to it:\n" + PRE_COMMIT)
    line_start = text.rfind("\n", 0, repos.items[0].start) + 1
    indent = text[line_start : repos.items[0].start].partition("-")[0]
    end = text.find("\n", repos.end)
    end = len(text) if end < 0 else end
    hook = "".join(f"{indent}{line[2:]}\n" for line in PRE_COMMIT.splitlines())
    return text[:end] + "\n" + hook.rstrip("\n") + (text[end:] or "\n")


def _save(path: Path, text: str, dry_run: bool) -> None:
    if dry_run:
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        click.echo("\n".join(unified_diff(path.name, before, text)))
    else:
        path.write_text(text, encoding="utf-8")
        click.echo(f"wrote  {path.name}")
