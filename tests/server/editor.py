"""A small editor: a client of the language server that types, sees diagnostics and asks questions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path, to_fs_path

from opschema_cli.lint.touched import Change

PATIENCE = 10.0
"""Seconds that the server has for an answer; a busy machine is slow."""


class Editor:
    """An editor with a folder open. Columns count UTF-16 code units, unless the server is offered another ``encoding``."""

    def __init__(self, root: Path, encoding: str | None = None) -> None:
        self.root = root
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self.patience = PATIENCE
        self._loop = asyncio.new_event_loop()
        self._news = asyncio.Event()
        self._client = LanguageClient("tests", "1")
        self._listen()
        self.capabilities = self._run(self._start(encoding)).capabilities

    def _listen(self) -> None:
        @self._client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.published[params.uri] = params
            self._news.set()

        @self._client.feature(types.WINDOW_LOG_MESSAGE)
        def logged(params: types.LogMessageParams) -> None:
            self.messages.append(params.message)
            self._news.set()

        @self._client.feature(types.WINDOW_SHOW_MESSAGE)
        def shown(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self._news.set()

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(work, self.patience))

    async def _start(self, encoding: str | None) -> types.InitializeResult:
        await self._client.start_io(sys.executable, "-m", "opschema_cli", "server")
        uri = from_fs_path(str(self.root)) or ""
        offered = [types.PositionEncodingKind(encoding)] if encoding else None
        capabilities = types.ClientCapabilities(general=types.GeneralClientCapabilities(position_encodings=offered))
        folders = [types.WorkspaceFolder(uri, "tree")]
        found = await self._client.initialize_async(
            types.InitializeParams(capabilities, root_uri=uri, workspace_folders=folders)
        )
        self._client.initialized(types.InitializedParams())
        return found

    @property
    def pid(self) -> int:
        """The server's process."""
        server = self._client._server
        assert server is not None  # it was started
        return server.pid

    def close(self) -> None:
        """Shut the server down."""

        async def stop() -> None:
            await self._client.shutdown_async(None)
            self._client.exit(None)
            await self._client.stop()

        self._run(stop())
        self._loop.close()

    def uri(self, path: str) -> str:
        return from_fs_path(str(self.root / path)) or ""

    # Typing

    def open(self, path: str, text: str | None = None) -> None:
        self.texts[path] = (self.root / path).read_bytes().decode() if text is None else text
        self.versions[path] = 1
        self.published.pop(self.uri(path), None)
        item = types.TextDocumentItem(self.uri(path), "yaml", 1, self.texts[path])
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def replace(self, path: str, old: str, new: str) -> None:
        """Type over the one place that reads ``old``."""
        text = self.texts[path]
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        start = text.index(old)
        wanted = types.Range(self.position(path, start), self.position(path, start + len(old)))
        self.texts[path] = text.replace(old, new)
        self._changed(path, types.TextDocumentContentChangePartial(wanted, new))

    def type(self, path: str, text: str) -> None:
        """Replace the part in which the text differs from a new one."""
        change = Change.between(path, self.texts[path], text)
        wanted = types.Range(self.position(path, change.start), self.position(path, change.old_end))
        self.texts[path] = text
        self._changed(path, types.TextDocumentContentChangePartial(wanted, text[slice(*change.edited)]))

    def write(self, path: str, text: str) -> None:
        """Replace the entire text."""
        self.texts[path] = text
        self._changed(path, types.TextDocumentContentChangeWholeDocument(text))

    def _changed(self, path: str, change: types.TextDocumentContentChangeEvent) -> None:
        self.versions[path] += 1
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(self._versioned(path), [change]))

    def _versioned(self, path: str) -> types.VersionedTextDocumentIdentifier:
        return types.VersionedTextDocumentIdentifier(self.versions[path], self.uri(path))

    def shut(self, path: str) -> None:
        """Close a text without saving it."""
        del self.texts[path], self.versions[path]
        self._client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri(path)))
        )

    def changed_on_disk(self, path: str) -> None:
        event = types.FileEvent(self.uri(path), types.FileChangeType.Changed)
        self._client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    def position(self, path: str, offset: int) -> types.Position:
        """The position of a character, in UTF-16 code units."""
        lines = self.texts[path][:offset].replace("\r\n", "\n").split("\n")
        return types.Position(len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2)

    def at(self, path: str, text: str, inside: int = 0) -> types.TextDocumentPositionParams:
        """The position of the first place that reads ``text``."""
        position = self.position(path, self.texts[path].index(text) + inside)
        return types.TextDocumentPositionParams(types.TextDocumentIdentifier(self.uri(path)), position)

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Apply the edits of open texts, which are for their present versions; those of other files are left."""
        paths = {self.uri(path): path for path in self.texts}
        for document in edit.document_changes or ():
            assert isinstance(document, types.TextDocumentEdit)
            path = paths.get(document.text_document.uri)
            if path is None:
                assert document.text_document.version is None
                continue
            assert document.text_document.version == self.versions[path]
            text = self.texts[path]
            for item in reversed(document.edits):
                assert isinstance(item, types.TextEdit)
                start, end = (self.offset(path, position) for position in (item.range.start, item.range.end))
                text = text[:start] + item.new_text + text[end:]
            self.write(path, text)

    def offset(self, path: str, position: types.Position) -> int:
        """The character at a position."""
        lines = self.texts[path].split("\n")
        before = lines[position.line].encode("utf-16-le")[: 2 * position.character].decode("utf-16-le")
        return sum(len(line) + 1 for line in lines[: position.line]) + len(before)

    # Seeing

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""

        async def until() -> None:
            while not condition():
                self._news.clear()
                await self._news.wait()

        try:
            self._run(until())
        except asyncio.TimeoutError:
            raise AssertionError(f"not so: {sorted(self.found())}, {self.messages}") from None

    def diagnostics(self, path: str) -> list[types.Diagnostic]:
        """The diagnostics of an open text as it is now."""
        self.settle(path)
        return self.first_diagnostics(path)

    def first_diagnostics(self, path: str) -> list[types.Diagnostic]:
        """The first diagnostics that are published of an open text as it is now."""
        uri, version = self.uri(path), self.versions[path]
        self.wait(lambda: uri in self.published and self.published[uri].version == version)
        return list(self.published[uri].diagnostics)

    def settle(self, path: str) -> None:
        """Wait for the run that the present texts need, by a question."""
        head = types.Range(types.Position(0, 0), types.Position(0, 0))
        document = types.TextDocumentIdentifier(self.uri(path))
        self.request(
            types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionParams(document, head, types.CodeActionContext([]))
        )

    def codes(self, path: str) -> list[str]:
        """The codes of what is found in a file, open or not."""
        found = self.diagnostics(path) if path in self.versions else self.published[self.uri(path)].diagnostics
        return [str(item.code) for item in found]

    def found(self) -> set[str]:
        """The codes of all that is found anywhere."""
        return {str(item.code) for shown in self.published.values() for item in shown.diagnostics}

    def reads(self, path: str, found: types.Range) -> str:
        """The text in a range of an open text, or of the file on the disk."""
        text = self.texts[path] if path in self.texts else (self.root / path).read_bytes().decode()
        lines = text.split("\n")
        start, end = (
            (position.line, lines[position.line].encode("utf-16-le")[: 2 * position.character].decode("utf-16-le"))
            for position in (found.start, found.end)
        )
        if start[0] != end[0]:
            return "\n".join(
                [lines[start[0]][len(start[1]) :], *lines[start[0] + 1 : end[0]], lines[end[0]][: len(end[1])]]
            )
        return lines[start[0]][len(start[1]) : len(end[1])]

    def reads_at(self, found: types.Location) -> str:
        """The text at a location of the tree."""
        path = Path(to_fs_path(found.uri) or "").relative_to(self.root).as_posix()
        return self.reads(path, found.range)

    # Asking

    def request(self, method: str, params: object) -> Any:
        """The answer to a request."""

        async def ask() -> Any:
            return await self._client.protocol.send_request_async(method, params)

        return self._run(ask())

    def actions(self, path: str, text: str) -> dict[str, types.CodeAction]:
        """The actions at the first place that reads ``text``, by their titles."""
        at = self.at(path, text)
        wanted = types.Range(at.position, at.position)
        params = types.CodeActionParams(at.text_document, wanted, types.CodeActionContext([]))
        return {item.title: item for item in self.request(types.TEXT_DOCUMENT_CODE_ACTION, params)}
