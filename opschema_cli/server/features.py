"""The messages of the protocol that the server takes."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path

from opschema_cli.server import answers
from opschema_cli.server.app import OpschemaServer
from opschema_cli.server.documents import Document

WATCHED = "**/{.gitignore,.opschema-baseline.json,*.{py,pyi,yaml,yml,toml,c,cc,cpp,cxx,cu,cuh,h,hh,hpp,hip}}"
"""Files whose changes on the disk the client reports."""


def make_server() -> OpschemaServer:
    """A server with all that it can do."""
    server = OpschemaServer()
    _take_texts(server)
    answers.register(server)
    return server


def _take_texts(server: OpschemaServer) -> None:
    @server.feature(types.INITIALIZED)
    def initialized(ls: OpschemaServer, params: types.InitializedParams) -> None:
        uris = [folder.uri for folder in ls.workspace.folders.values()] or [ls.workspace.root_uri or ""]
        ls.start({Path(path) for path in map(to_fs_path, uris) if path})
        workspace = ls.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is not None and watching.dynamic_registration:
            options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(WATCHED)])
            registration = types.Registration("opschema-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            ls.client_register_capability(types.RegistrationParams([registration]))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: OpschemaServer, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        ls.put(Document(item.uri, item.version, item.text))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: OpschemaServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.apply(params)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: OpschemaServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.drop(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: OpschemaServer, params: types.DidSaveTextDocumentParams) -> None:
        ls.files_changed([params.text_document.uri])

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(ls: OpschemaServer, params: types.DidChangeWatchedFilesParams) -> None:
        ls.files_changed([event.uri for event in params.changes])

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancelled(ls: OpschemaServer, params: types.WorkDoneProgressCancelParams) -> None:
        ls.worker.cancel()

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: OpschemaServer, params: None) -> None:
        ls.worker.close()
