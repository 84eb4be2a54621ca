"""The thread that lints and answers requests. Runs are aborted for newer texts; requests wait for the run of their texts."""

from __future__ import annotations

import gc
import threading
import traceback
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from opschema_cli.lint.runner import Outcome
from opschema_cli.server.documents import Document
from opschema_cli.server.rooted import RootedLint
from opschema_cli.server.warm import Superseded

T = TypeVar("T")

TIDY = 2.0
"""Seconds without a change after which garbage is collected, which takes a tenth of a second."""


class Listener(msgspec.Struct, frozen=True):
    """Functions that the thread calls: after a first look at edited files, with a workspace that was linted, when a run has
    ended, with numbers of parsed files, and with messages for the log and for the user.
    """

    looked: Callable[[RootedLint, Outcome, Set[str]], None]
    linted: Callable[[RootedLint], None]
    ended: Callable[[], None]
    progress: Callable[[int, int], None]
    log: Callable[[str], None]
    notify: Callable[[str], None]


class Worker:
    """Lints workspaces by their roots."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._pool = ThreadPoolExecutor(1, "opschema")
        self._lock = threading.Lock()
        self._documents: dict[Path, Document] = {}
        self._changed: dict[Path, set[Path]] = {}
        self._generation = self._running = 0
        self._queued = self._closed = False
        self._roots: dict[Path, RootedLint] = {}
        self._tidying: threading.Timer | None = None

    # Called by the thread of the protocol

    def update(self, root: Path, documents: Mapping[Path, Document], changed: set[Path]) -> None:
        """Lint a workspace with the open texts of all workspaces, and abort a run in progress."""
        with self._lock:
            self._documents = dict(documents)
            self._changed.setdefault(root, set()).update(changed)
            self._generation += 1
            queued, self._queued = self._queued, True
        if not queued:
            self._submit(self._guarded)

    def cancel(self) -> None:
        """Give up the run that is going on, until the next change."""
        with self._lock:
            self._generation += 1
            self._changed.clear()

    def ask(self, root: Path, question: Callable[[RootedLint], T]) -> Future[T]:
        """Answer a question about a workspace, linted with the current texts.

        Raises:
            Superseded: they change meanwhile.
        """
        return self._pool.submit(self._answer, root, question)

    def close(self) -> None:
        """End the thread and all that runs for it."""
        if self._closed:
            return
        self._closed = True
        self.cancel()
        if self._tidying is not None:
            self._tidying.cancel()
        self._pool.submit(self._close_all)
        self._pool.shutdown()

    # Called by the thread itself

    def _close_all(self) -> None:
        for rooted in self._roots.values():
            rooted.close()

    def _submit(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # it was closed meanwhile
            self._pool.submit(work)

    def _guarded(self) -> None:
        self._queued = False
        try:
            self._lint()
        except Superseded:
            with self._lock:
                again = bool(self._changed) and not self._queued
                self._queued = self._queued or again
            if again:
                self._submit(self._guarded)
        except Exception:  # a defect of opschema, which must not end the server
            self._listener.log(traceback.format_exc())

    def _answer(self, root: Path, question: Callable[[RootedLint], T]) -> T:
        self._lint()
        return question(self._rooted(root))

    def _rooted(self, root: Path) -> RootedLint:
        if root not in self._roots:
            listener = self._listener
            self._roots[root] = RootedLint(root, self._check, listener.progress, listener.notify, listener.looked)
        return self._roots[root]

    def _check(self) -> None:
        if self._generation != self._running:
            raise Superseded

    def _lint(self) -> None:
        """Lint the changed files."""
        while True:
            with self._lock:
                if not self._changed:
                    break
                root, self._running = next(iter(self._changed)), self._generation
                changed, documents = self._changed.pop(root), self._documents
            self._lint_one(self._rooted(root), documents, changed)

    def _lint_one(self, rooted: RootedLint, documents: Mapping[Path, Document], changed: set[Path]) -> None:
        own = {path: item for path, item in documents.items() if path.is_relative_to(rooted.root)}
        first = rooted.warm is None
        try:
            rooted.lint(own, changed)
        except Superseded:
            with self._lock:
                self._changed.setdefault(rooted.root, set()).update(changed)
            raise
        finally:
            self._listener.ended()
        self._listener.linted(rooted)
        self._tidy_later(first=first)

    def _tidy_later(self, *, first: bool) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        generation = self._generation
        self._tidying = threading.Timer(TIDY, self._submit, (lambda: self._tidy(generation, first=first),))
        self._tidying.daemon = True
        self._tidying.start()

    def _tidy(self, generation: int, *, first: bool) -> None:
        if generation == self._generation:
            gc.collect()
            if first:
                gc.freeze()  # facts and packs, which live on
