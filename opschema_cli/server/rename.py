"""Renaming of operators and their arguments, by the migrations of the packs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from lsprotocol import types

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.pack_calls import loaded_by
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Change, Draft
from opschema_cli.migrate.engine import Ground, MigrationFailure, Result, Task, load_migrations, migrate_all
from opschema_cli.migrate.migration import OPERATOR, Migration
from opschema_cli.migrate.options import fill
from opschema_cli.operators.model import Operator
from opschema_cli.server.edits import difference
from opschema_cli.server.findings import Converter
from opschema_cli.server.table import Hit
from opschema_cli.server.warm import WarmLint
from opschema_cli.source.text import Source, Span


class Renaming(msgspec.Struct, frozen=True):
    """A name that can be changed: the operator, its argument or none, the span of the name, and the migration."""

    operator: Operator
    argument: str
    span: Span
    migration: Migration

    @property
    def name(self) -> str:
        """The current name."""
        return self.argument or self.operator.name


def renaming_at(warm: WarmLint, hit: Hit, source: Source) -> Renaming:
    """Return the renaming of the symbol under the cursor.

    Raises:
        OpschemaError: no migration serves it; the message says why.
    """
    written = source.text[slice(*hit.span)].strip("'\"")
    for operator in hit.operators:
        pack, _, _ = warm.pack_of(operator)
        kind = _role(operator, hit.argument) if hit.argument else OPERATOR
        known = next((item for item in load_migrations(pack) if item.renames and item.renames == kind), None)
        if known is not None and written == (hit.argument or operator.name):
            return Renaming(operator, hit.argument, hit.span, known)
    operator = hit.operators[0]
    what = f"the argument `{hit.argument}`" if hit.argument else f"`{operator.name}`"
    raise OpschemaError(f"{what} cannot be renamed here: the pack `{operator.pack}` has no migration for it")


def _role(operator: Operator, argument: str) -> str:
    leaves = (leaf for item in operator.declaration.arguments or () for leaf in item.leaves())
    return next((leaf.role for leaf in leaves if leaf.name == argument), "")


def renamed(warm: WarmLint, renaming: Renaming, name: str) -> tuple[Sequence[Change], Result]:
    """The changes of a renaming, and its result with the places that are left to the user.

    Raises:
        OpschemaError: the name is refused, or the migration fails.
    """
    pack, project, job = warm.pack_of(renaming.operator)
    migration, options = renaming.migration, job.settings.pack_options[pack.name]
    given = [f"old={renaming.name}", f"new={name}"]
    given += [f"op={renaming.operator.name}"] if renaming.argument else []
    task = Task(migration, fill([migration], given)[migration.name], lambda loaded: loaded_by(pack, loaded, options))
    draft = Draft(project, task.load)
    try:
        (result,) = migrate_all(draft, [task], Ground(job.registry, job.settings, Choice()))
    except MigrationFailure as error:
        raise OpschemaError(str(error)) from error
    return draft.changes, result


def edit_of(changes: Sequence[Change], converter: Converter, versions: Mapping[str, int]) -> types.WorkspaceEdit:
    """Changes of files as an edit: texts that change, and files that are created and deleted."""
    found: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    for change in changes:
        uri = converter.uri_of(change.path)
        document = types.OptionalVersionedTextDocumentIdentifier(uri, versions.get(uri))
        if change.after is None:
            found.append(types.DeleteFile(uri))
        elif change.before is None:
            found += [types.CreateFile(uri), types.TextDocumentEdit(document, [types.TextEdit(start, change.after)])]
        else:
            source = Source(change.path, change.before)
            edits = [converter.edit(source, edit) for edit in difference(source, change.after)]
            found.append(types.TextDocumentEdit(document, edits))
    return types.WorkspaceEdit(document_changes=found)
