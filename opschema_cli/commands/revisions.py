"""Reads the workspace at commits of its repository, for commands that compare or count revisions."""

from __future__ import annotations

import msgspec

from opschema_cli.config import DiffConfig
from opschema_cli.revision_workspace import RevisionWorkspace
from opschema_cli.session import Session
from opschema_cli.workspace import Asked, Workspace


def revision_of(session: Session, commit: str) -> RevisionWorkspace:
    """The workspace at a commit; it ends with the session.

    Raises:
        OpschemaError: the files of the commit cannot be listed.
    """
    workspace = RevisionWorkspace(session.root, commit, session.config.exclude)
    session.helpers.callback(workspace.close)
    return workspace


def revision_key(session: Session, commit: str) -> str:
    """The key under which a result for a commit is cached."""
    return f"{session.root}\0{commit}\0{session.code_stamp}\0{settings_key(session).decode()}"


def settings_key(session: Session) -> bytes:
    """The settings that decide what is read."""
    return msgspec.json.encode((msgspec.structs.replace(session.config.unplaced, diff=DiffConfig()), session.partial))


def asked_of(workspace: Workspace) -> Asked:
    """Return the inputs of a workspace that can change: the files of a commit cannot."""
    asked = workspace.asked
    if not isinstance(workspace, RevisionWorkspace):
        return asked
    reads = {path: digest for path, digest in asked.reads.items() if path in workspace.admitted}
    return Asked(reads, {}, asked.admitted, asked.environment, {}, {})
