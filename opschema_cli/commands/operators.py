"""The operator table of the workspace that a command runs in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from opschema_cli.commands.output import WHAT_IS_FOUND, ProgressBar, report_broken, report_missing
from opschema_cli.commands.plugins import open_workspace
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.operators import operators_of
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.settings import pack_options
from opschema_cli.operators.model import Operator
from opschema_cli.project import Project
from opschema_cli.session import Session


class Table(msgspec.Struct, frozen=True):
    """The operators of a workspace, and the packs that found them."""

    session: Session
    project: Project
    packs: tuple[Pack, ...]
    operators: list[Operator]


@contextmanager
def operator_table(no_plugins: bool) -> Iterator[Table]:
    """Read the table; packs and files that cannot be used are named on standard error. Its parser processes end with the block.

    Raises:
        OpschemaError: no pack finds anything.
    """
    with closing(open_workspace(Path.cwd(), no_plugins=no_plugins)) as session:
        yield _read(session)


def _read(session: Session) -> Table:
    options = pack_options(session.config, session.registry)
    with ProgressBar("reading", "files") as progress:
        project = session.project(progress=progress)
        registry = session.registry_for(project)
        packs = registry.packs
        operators = list(operators_of(packs, project, options))
    report_broken(registry)
    report_missing(project)
    if not packs:
        raise OpschemaError(f"nothing to show in {session.root}: opschema reads no operator here; {WHAT_IS_FOUND}")
    return Table(session, project, packs, operators)
