"""``opschema init --backend``: creates a new PyTorch backend."""

from __future__ import annotations

from pathlib import Path

import click

from opschema_cli.commands.output import write_text
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.registry import load_registry


def write_backend(key: str, name: str, *, dry_run: bool) -> int:
    """Write the files of a backend to the current folder, or print them.

    Raises:
        OpschemaError: no pack can, the key or name does not do, or a file is there already.
    """
    registry = load_registry()
    packs = registry.narrowed(pack.name for pack in registry.all_packs if pack.releases).packs
    scaffold = next((pack.scaffold for pack in packs if pack.scaffold is not None), None)
    if scaffold is None:
        raise OpschemaError("no pack that writes backends is installed")
    files, commands = scaffold(key, name)
    present = [path for path in files if Path(path).exists()]
    if present and not dry_run:
        raise OpschemaError(f"{present[0]} is there already; use an empty folder")
    for path, text in files.items():
        if dry_run:
            click.echo(f"--- {path}\n{text}")
        else:
            _write(Path(path), text)
    click.echo("Next:\n" + "\n".join(f"  {line}" for line in commands))
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OpschemaError(f"{path.parent} cannot be made: {error.strerror or error}") from None
    write_text(text, path)
    click.echo(f"wrote  {path}")
