"""The language server: its requests, notifications and responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TypeVar

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from opschema_cli import __version__
from opschema_cli.lint.runner import Outcome
from opschema_cli.root import find_root
from opschema_cli.server import documents
from opschema_cli.server.documents import Document
from opschema_cli.server.findings import Converter, config_error
from opschema_cli.server.positions import Encoding
from opschema_cli.server.progress import RunProgress
from opschema_cli.server.rooted import RootedLint
from opschema_cli.server.table import Table
from opschema_cli.server.warm import Superseded, WarmLint
from opschema_cli.server.worker import Listener, Worker
from opschema_cli.source.text import Source

T = TypeVar("T")

PAUSE = 0.05
"""Seconds that the next change is waited for while changes come quickly; a first one is linted at once."""

RAPID = 0.3
"""Seconds between changes that come quickly."""


class Asked(msgspec.Struct, frozen=True):
    """A file that a question is about: its text, the last run, and the versions of open texts by their addresses."""

    warm: WarmLint
    outcome: Outcome
    converter: Converter
    versions: Mapping[str, int]
    source: Source

    @property
    def table(self) -> Table:
        """The operators."""
        return Table(self.warm.operators(), self.warm.entries)


class OpschemaServer(LanguageServer):
    """The server of one client."""

    def __init__(self) -> None:
        super().__init__("opschema", __version__, max_workers=2)
        self.documents: dict[Path, Document] = {}
        self.folders: set[Path] = set()
        self._roots: dict[Path, Path] = {}
        self._published: dict[Path, dict[str, list[types.Diagnostic]]] = {}
        self._last_change = 0.0
        self._waiting: dict[Path, set[Path]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._notified: set[str] = set()
        self.bar = RunProgress(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.worker = Worker(
            Listener(
                self._looked,
                self._linted,
                lambda: self._later(self.bar.end),
                lambda done, total: self._later(self.bar.report, done, total),
                lambda text: self._later(self._log, text),
                lambda text: self._later(self._notify, text),
            )
        )

    # Texts

    @property
    def encoding(self) -> Encoding:
        """The unit in which the client counts columns."""
        return self.server_capabilities.position_encoding or "utf-16"  # type: ignore[return-value]

    def start(self, folders: set[Path]) -> None:
        """Lint the workspaces of these folders."""
        self._loop = asyncio.get_running_loop()
        self.folders = folders
        for folder in sorted(folders):
            self.changed({find_root(folder): set()})

    def root_of(self, path: Path) -> Path:
        """The root of the workspace that a file belongs to."""
        folder = path.parent
        if folder not in self._roots:
            start = next((parent for parent in path.parents if parent.is_dir()), folder)
            self._roots[folder] = find_root(start)
        return self._roots[folder]

    def roots(self) -> list[Path]:
        """The roots of the workspaces that the client has opened."""
        return sorted({*map(find_root, self.folders), *map(self.root_of, self.documents)})

    def path_of(self, uri: str) -> Path | None:
        """Return the file of a URI, or None if the URI is not a file in one of the client's folders."""
        name = to_fs_path(uri)
        path = Path(name) if name else None
        if path is None or (self.folders and not any(path.is_relative_to(folder) for folder in self.folders)):
            return None
        return path

    def put(self, document: Document) -> None:
        """Take a text that was opened or changed."""
        path = self.path_of(document.uri)
        if path is not None:
            self.documents[path] = document
            self.changed({self.root_of(path): {path}})

    def apply(self, params: types.DidChangeTextDocumentParams) -> None:
        """Change an open text."""
        path = self.path_of(params.text_document.uri)
        known = self.documents.get(path) if path is not None else None
        if known is not None:
            self.put(documents.changed(known, params.text_document.version, params.content_changes, self.encoding))

    def drop(self, uri: str) -> None:
        """Forget a text that was closed: the file on the disk counts again."""
        path = self.path_of(uri)
        if path is not None and self.documents.pop(path, None) is not None:
            self.changed({self.root_of(path): {path}})

    def files_changed(self, uris: Iterable[str]) -> None:
        """Lint after changes on the disk; of an open file only its text counts."""
        files: dict[Path, set[Path]] = {}
        for path in filter(None, map(self.path_of, uris)):
            if path not in self.documents:
                files.setdefault(self.root_of(path), set()).add(path)
        if files:
            self.changed(files)

    def changed(self, files: Mapping[Path, set[Path]]) -> None:
        """Lint after changes of files, by root."""
        for root, paths in files.items():
            self._waiting.setdefault(root, set()).update(paths)
        now = time.monotonic()
        pause = PAUSE if now - self._last_change < RAPID else 0.0
        self._last_change = now
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if pause and self._loop is not None:
            self._timer = self._loop.call_later(pause, self.flush)
        else:
            self.flush()

    def flush(self) -> None:
        """Lint the changed files now."""
        waiting, self._waiting = self._waiting, {}
        for root, paths in waiting.items():
            self.worker.update(root, self.documents, paths)

    # Questions

    async def ask(self, uri: str, question: Callable[[Asked], T]) -> T | None:
        """Answer a question about a file, or return None if it is not in a workspace.

        Raises:
            JsonRpcException: the text has changed meanwhile.
        """
        path = self.path_of(uri)
        if path is None:
            return None
        self.flush()

        def answer(rooted: RootedLint) -> T | None:
            warm, outcome = rooted.warm, rooted.outcome
            if warm is None or outcome is None:
                return None
            source = warm.project.source(warm.session.workspace.relative(path))
            versions = {item.uri: item.version for item in rooted.documents.values()}
            return question(Asked(warm, outcome, self.converter(rooted), versions, source)) if source else None

        return await self.ask_root(self.root_of(path), answer)

    async def ask_root(self, root: Path, question: Callable[[RootedLint], T]) -> T:
        """The answer to a question about a workspace.

        Raises:
            JsonRpcException: a text has changed meanwhile.
        """
        try:
            return await asyncio.wrap_future(self.worker.ask(root, question))
        except (Superseded, CancelledError):
            code = types.LSPErrorCodes.ContentModified
            raise JsonRpcException("the text has changed meanwhile", code=code.value) from None

    def uri_of(self, rooted: RootedLint, path: str) -> str:
        """The address of a file of a workspace: as the client writes it if it is open, else that of its path."""
        full = rooted.root / path
        if full in self.documents:
            return self.documents[full].uri
        return from_fs_path(str(full)) or ""

    def converter(self, rooted: RootedLint, outcome: Outcome | None = None) -> Converter:
        """Return the converter for the findings of a workspace: of its last run, or of ``outcome``."""
        warm = rooted.warm
        assert warm is not None  # it was linted
        outcome = outcome or rooted.outcome
        codes = {item.code for item in outcome.diagnostics} if outcome is not None else set()
        pages = {rule.code: page for rule, page in warm.registry.described(codes)}
        return Converter(warm.project.source, lambda path: self.uri_of(rooted, path), self.encoding, pages)

    # What the thread that lints calls

    def _later(self, function: Callable[..., None], *arguments: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _looked(self, rooted: RootedLint, outcome: Outcome, paths: Set[str]) -> None:
        """Publish the first findings in edited files, and in open ones where they have changed; those of the run follow."""
        opened = {path.relative_to(rooted.root).as_posix(): document for path, document in rooted.documents.items()}
        found = self.converter(rooted, outcome).by_file(
            item for item in outcome.diagnostics if item.place.path in opened
        )
        for path, document in opened.items():
            items, edited = found.get(path, []), path in paths
            self._later(self._publish_one, rooted.root, rooted.root / path, document, items, edited)

    def _linted(self, rooted: RootedLint) -> None:
        versions = {item.uri: item.version for item in rooted.documents.values()}
        if rooted.outcome is None:
            found = self._refused(rooted)
        else:
            files = self.converter(rooted).by_file(rooted.outcome.diagnostics)
            found = {self.uri_of(rooted, path): items for path, items in files.items()}
            if rooted.outcome.crashed:
                crashes = [item.message for item in rooted.outcome.diagnostics if item.code == "OPS900"]
                self._later(self._log, "\n".join(crashes))
        self._later(self._publish, rooted.root, found, versions)

    def _refused(self, rooted: RootedLint) -> dict[str, list[types.Diagnostic]]:
        """Return the errors of a rejected configuration at their places in the file. An error without a place is shown to the
        user.
        """
        assert rooted.error is not None  # there is no outcome
        for name in ("opschema.toml", "pyproject.toml"):
            path = rooted.root / name
            text = self.documents[path].text if path in self.documents else _text(path)
            if text is not None and (name in str(rooted.error) or "tool.opschema" in text or name == "opschema.toml"):
                diagnostic = config_error(rooted.error, Source(name, text), self.encoding)
                return {self.uri_of(rooted, name): [diagnostic]}
        self._later(self._notify, str(rooted.error))
        return {}

    # What is sent

    def _publish(self, root: Path, found: Mapping[str, list[types.Diagnostic]], versions: Mapping[str, int]) -> None:
        """Publish the findings of open texts, also where there are none, and of other files if they are others than before."""
        current = {item.uri: item.version for path, item in self.documents.items() if path.is_relative_to(root)}
        before = self._published.get(root, {})
        for uri in {**found, **before, **current}:
            items = found.get(uri, [])
            is_open = uri in current
            # A text that was changed or opened meanwhile is linted again already.
            if versions.get(uri) == current.get(uri) if is_open else items != before.get(uri, []):
                published = types.PublishDiagnosticsParams(uri, items, version=current.get(uri))
                self.text_document_publish_diagnostics(published)
        self._published[root] = dict(found)

    def _publish_one(
        self, root: Path, path: Path, document: Document, items: list[types.Diagnostic], edited: bool
    ) -> None:
        """Publish the findings of an open text, unless it has changed meanwhile. If it was not edited, publish them only if they
        changed.
        """
        known = self._published.setdefault(root, {})
        if self.documents.get(path) is document and (edited or items != known.get(document.uri, [])):
            known[document.uri] = items
            published = types.PublishDiagnosticsParams(document.uri, items, version=document.version)
            self.text_document_publish_diagnostics(published)

    def show_notes(self, notes: Sequence[str]) -> None:
        """Show the user how many places a change leaves to them; the places are logged."""
        places = "1 place needs" if len(notes) == 1 else f"{len(notes)} places need"
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, "\n".join(notes)))
        self.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"{places} manual edits: {notes[0]}"))

    def _log(self, text: str) -> None:
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, text))

    def _notify(self, text: str) -> None:
        """Show the user a message, once."""
        if text not in self._notified:
            self._notified.add(text)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, text))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
