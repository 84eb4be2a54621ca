"""``opschema schema``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from opschema_cli.commands.output import write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.config_schema import config_schema
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import pack_options
from opschema_cli.session import Session
from opschema_cli.suggestions import did_you_mean, nearest

CONFIG = "config"


@click.command(short_help="Print a JSON Schema: of the configuration, or of files of a pack.")
@click.argument("name", required=False)
@no_plugins_option
def schema(name: str | None, no_plugins: bool) -> int:
    """Print the JSON Schema (draft 2020-12) NAME, for editors; without NAME, list the names.

    `config` is the schema of opschema.toml; the others are of files of packs, such as `tileops/manifest`. A pack with one schema
    may be named alone. They are made from the data that `opschema lint` checks with.
    """
    with closing(open_workspace(Path.cwd(), no_plugins=no_plugins)) as session:
        # Which packs have schemas is only known when all are imported.
        registry = session.registry
        names = [CONFIG, *(f"{pack.name}/{item.name}" for pack in registry.packs for item in pack.schemas)]
        if name is None:
            write_text("".join(f"{item}\n" for item in names), None)
            return 0
        write_text(_text_of(session, registry, name, names).decode(), None)
    return 0


def _text_of(session: Session, registry: Registry, name: str, names: list[str]) -> bytes:
    if name == CONFIG:
        return config_schema(registry)
    found = [item for item in names if name in (item, item.partition("/")[0])]
    if len(found) != 1:
        owners = {item.partition("/")[0] for item in names}
        known = f"; `{name}` has {', '.join(found)}" if found else did_you_mean(nearest(name, [*names, *owners]))
        raise OpschemaError(f"no schema is called `{name}`{known or '; there are ' + ', '.join(names)}")
    owner, _, kind = found[0].partition("/")
    pack = next(pack for pack in registry.packs if pack.name == owner)
    chosen = next(item for item in pack.schemas if item.name == kind)
    return chosen.text(session.project(), pack_options(session.config, registry)[owner])
