"""The baseline after a migration, without findings on removed lines, so that new ones there are reported."""

from __future__ import annotations

from collections.abc import Mapping

import click

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.baseline import pruned, read_baseline, render_baseline
from opschema_cli.reporters.escape import visible
from opschema_cli.session import Session


def pruned_baseline(session: Session, texts: Mapping[str, str | None]) -> dict[str, str]:
    """Return the baseline's path and new text; nothing if it is unchanged or must not be written."""
    try:
        path = session.baseline_path()
        if path is None:
            return {}
        name, baseline = session.workspace.relative(path), read_baseline(path)
    except OpschemaError:  # `opschema lint` reports what is wrong with it
        return {}
    kept = pruned(baseline, texts)
    removed = len(baseline.findings) - len(kept)
    if not removed:
        return {}
    click.echo(f"opschema: removed {removed} {'entry' if removed == 1 else 'entries'} from {visible(name)}", err=True)
    return {name: render_baseline((), lambda path: None, kept)}
