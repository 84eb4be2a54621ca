"""Pages of migrations as Markdown: the output of ``opschema migrate NAME --explain`` and the files in ``docs/migrations``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from opschema_cli.lint.docs import write_pages
from opschema_cli.migrate.engine import load_migrations
from opschema_cli.migrate.migration import Migration


def migration_page(migration: Migration) -> str:
    """Return the page of a migration: its docstring, with its options after the first line."""
    head, _, rest = migration.doc.partition("\n")
    body = rest.strip("\n")
    proof = [f"Proof: {migration.proof}."] if migration.proof else []
    parts = [f"# {migration.name}", head, *_options(migration), *proof, *([body] if body else [])]
    return "\n\n".join(parts) + "\n"


def _options(migration: Migration) -> Iterator[str]:
    fields = msgspec.structs.fields(migration.options)
    if fields:
        usage = " ".join(
            f"-o {item.encode_name}=…" if item.required else f"[-o {item.encode_name}=…]" for item in fields
        )
        yield f"```\nopschema migrate {migration.name} {usage}\n```"
        yield inspect.cleandoc(migration.options.__doc__ or "")


def doc_files(migrations: Iterable[Migration]) -> dict[str, str]:
    """Every file of ``docs/migrations`` by name."""
    found = sorted(migrations, key=lambda item: item.name)
    rows = [f"| [{item.name}]({item.name}.md) | {item.summary} | {item.proof} |" for item in found]
    index = (
        "# Migrations\n\nGenerated from the migrations' docstrings by `python -m opschema_cli.migrate.docs`; do not edit.\n\n"
        + "\n".join(["| Name | What it does | Proof |", "| --- | --- | --- |", *rows])
        + "\n"
    )
    return {"README.md": index, **{f"{item.name}.md": migration_page(item) for item in found}}


def catalogue_text(migrations: Iterable[Migration]) -> str:
    """Text of the catalogue of a pack with these migrations: their names and summaries."""
    rows = [msgspec.json.encode((item.name, item.summary)).decode() for item in migrations]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def main() -> None:
    """Write ``docs/migrations`` of the project in the current folder, and the catalogues of its packs."""
    from opschema_cli.lint.lazy_pack import MIGRATIONS, LazyPack
    from opschema_cli.lint.registry import load_registry

    registry = load_registry()
    write_pages(Path("docs/migrations"), doc_files(item for pack in registry.packs for item in load_migrations(pack)))
    for pack in registry.all_packs:
        if isinstance(pack, LazyPack):
            path = pack.catalogue.with_name(MIGRATIONS)
            path.write_text(catalogue_text(load_migrations(pack.pack)), encoding="utf-8")


if __name__ == "__main__":
    main()
