"""Shell completion of rules, packs and migrations, from the catalogues of installed packs, so that no pack is imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from opschema_cli.cache import Cache
from opschema_cli.lint.installed import InstalledPack, installed_packs
from opschema_cli.lint.lazy_pack import CATALOGUE, MIGRATIONS
from opschema_cli.root import find_root

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_rules(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete codes and names of rules, ignoring case; in a list with commas, the last one."""
    # Not at the top: it imports what a catalogue does without.
    from opschema_cli.lint.builtin import BUILTIN_RULES

    before, comma, word = incomplete.rpartition(",")
    rules = [(item.code, item.name, item.summary) for item in BUILTIN_RULES]
    rules += [(row[0], row[1], row[3]) for row in _rows(CATALOGUE, 4)]
    found = [(code, f"{name}: {summary}") for code, name, summary in rules if code.startswith(word.upper())]
    found += [(name, f"{code}: {summary}") for code, name, summary in rules if name.startswith(word.lower())]
    return _items((f"{before}{comma}{value}", text) for value, text in sorted(found))


def complete_packs(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of installed packs."""
    names = sorted(point.name for point in _installed())
    return _items((name, "") for name in names if name.startswith(incomplete.lower()))


def complete_migrations(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of migrations of the installed packs."""
    found = sorted({(row[0], row[1]) for row in _rows(MIGRATIONS, 2)})
    return _items((name, text) for name, text in found if name.startswith(incomplete.lower()))


def _items(found: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(value, help=text or None) for value, text in found]


def _installed() -> list[InstalledPack]:
    """Return the installed packs, as cached for a run in this workspace: looking for them would take longer than everything else
    here.
    """
    return installed_packs(Cache.for_workspace(find_root(Path.cwd())))


def _rows(name: str, length: int) -> Iterator[list[str]]:
    """The rows of the catalogues with a name, as far as they can be read."""
    for point in _installed():
        folder = _folder(point)
        try:
            rows = msgspec.json.decode((folder / name).read_bytes(), type=list[list[str]]) if folder else []
        except (OSError, msgspec.DecodeError):
            continue
        yield from (row for row in rows if len(row) >= length)


def _folder(point: InstalledPack) -> Path | None:
    """The folder of a pack's module, found without importing it."""
    top, *inner = point.where.partition(":")[0].split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent.joinpath(*inner[:-1])
