"""``opschema new-pack``."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Collection, Mapping
from importlib.resources import files
from itertools import chain, product
from pathlib import Path
from string import ascii_uppercase

import click

from opschema_cli import __version__
from opschema_cli.commands.output import write_text
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.installed import InstalledPack
from opschema_cli.lint.registry import load_registry
from opschema_cli.lint.rule import NAME

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "example_pack/__init__.py": "__init__.py",
    "example_pack/model.py": "model.py",
    "example_pack/rules.py": "rules.py",
    "example_pack/migrations.py": "migrations.py",
    "example_pack/pack.py": "pack.py",
    "tests/test_example_pack.py": "test_pack.py",
}
"""The files of a new package, and their templates."""


@click.command("new-pack", short_help="Create a Python package for a new pack.")
@click.argument("name")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def new_pack(name: str, folder: Path | None) -> int:
    """Create a Python package for a new pack NAME in the folder DIR (default: NAME), with a rule, a fix, a migration and a test.

    The pack reads an `ops.yaml` and the Python functions that it names; change it for your kind of repository.
    """
    registry = load_registry()
    _check_name(name, registry.installed)
    target = folder or Path(name)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OpschemaError(
            f"{target} exists and is not an empty folder; name another one: opschema new-pack {name} DIR"
        )
    for path, text in package_files(name, {code[:3] for code in registry.rules}).items():
        try:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OpschemaError(f"{(target / path).parent} cannot be made: {error.strerror or error}") from None
        write_text(text, target / path)
        click.echo(f"wrote  {target / path}")
    click.echo(f"Next: cd {target} && pip install -e '.[test]' && pytest")
    return 0


def package_files(name: str, taken: Collection[str]) -> dict[str, str]:
    """Return the files of a new package by path; ``taken`` are the first letters of codes that other rules use."""
    package, letters = name.replace("-", "_"), _letters(name, taken)
    folder = files("opschema_cli") / "templates"
    found: dict[str, str] = {}
    for path, template in _FILES.items():
        text = (folder / f"{template}.txt").read_text(encoding="utf-8")
        text = text.replace("example-pack", name).replace("EXA", letters).replace("VERSION", __version__)
        found[path.replace("example_pack", package)] = text.replace("example_pack", package)
    return found


def _check_name(name: str, installed: Mapping[str, InstalledPack]) -> None:
    if not NAME.match(name):
        fitting = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")
        hint = f", such as `{fitting}`" if fitting else ""
        raise OpschemaError(f"`{name}` cannot be the name of a pack: it is lower-case-words{hint}")
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        raise OpschemaError(f"`{package}` cannot be the name of a package: Python has that name already")
    if name in installed:
        raise OpschemaError(f"`{name}` is the name of an installed pack ({installed[name].where}); choose another")


def _letters(name: str, taken: Collection[str]) -> str:
    """Return three letters for the codes of rules that no other rule's code begins with, from the name if possible."""
    own = re.sub(r"[^A-Z]", "", name.upper())
    wanted = (own[:3], *("".join(word) for word in product(own[:1], own[1:], own[2:])))
    every = ("".join(word) for word in product(ascii_uppercase, repeat=3))
    return next(word for word in chain(wanted, every) if len(word) == 3 and word not in taken)
