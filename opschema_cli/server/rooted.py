"""One workspace that the server keeps warm: its open texts, its session and its last outcome.

All of it is used by the one thread that lints.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Set
from functools import partial
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.baseline import DEFAULT_NAME
from opschema_cli.lint.runner import Outcome
from opschema_cli.server.documents import Document
from opschema_cli.server.warm import WarmLint
from opschema_cli.session import open_session
from opschema_cli.workspace import Workspace

SETTINGS = frozenset({"opschema.toml", "pyproject.toml", DEFAULT_NAME, ".gitignore"})
"""Names of files after whose change a workspace is opened anew."""


class RootedLint:
    """The workspace at ``root``. ``checkpoint`` can abort a run, ``progress`` receives the numbers of parsed files and of all
    files, and ``looked`` receives the probable findings of edited files before a run ends.
    """

    def __init__(
        self,
        root: Path,
        checkpoint: Callable[[], None],
        progress: Callable[[int, int], None],
        notify: Callable[[str], None],
        looked: Callable[[RootedLint, Outcome, Set[str]], None],
    ) -> None:
        self.root = root
        self.outcome: Outcome | None = None
        self.error: OpschemaError | None = None
        """Why there is no outcome: the configuration is wrong, or refused."""
        self._checkpoint, self._progress, self._notify = checkpoint, progress, notify
        self._looked = looked
        self.documents: Mapping[Path, Document] = {}
        """The open texts of the last run."""
        self._texts: dict[Path, str] = {}
        self._pending: set[Path] = set()
        self._ignored: set[Path] = set()
        self._warm: WarmLint | None = None

    @property
    def warm(self) -> WarmLint | None:
        """The runs so far, or None if the workspace cannot be opened."""
        return self._warm

    def close(self) -> None:
        """Stop everything that runs for the workspace."""
        if self._warm is not None:
            self._warm.session.close()
            self._warm = None

    def lint(self, documents: Mapping[Path, Document], changed: set[Path]) -> None:
        """Lint with these open texts; ``changed`` are files that have changed on the disk or in the editor.

        Raises:
            Superseded: the run was given up; its changes are taken up by the next.
        """
        self._pending |= changed
        self.documents = documents
        self._texts = {path: item.text for path, item in documents.items()}
        self.error = None
        try:
            self._lint()
        except OpschemaError as error:
            self.close()
            self.outcome, self.error = None, error
        self._pending.clear()

    def _lint(self) -> None:
        warm = self._warm
        if warm is None or self._begins_anew(warm):
            self.close()
            warm = self._opened()
        workspace = warm.session.workspace
        names = {path: workspace.relative(path) for path in {*self._texts, *self._pending}}
        files = warm.project.workspace.file_set  # which an ignored file is not one of
        overlay = {names[path]: text for path, text in self._texts.items() if names[path] in files}
        gc.disable()  # a run makes half a million objects, nearly all of which live on
        try:
            self.outcome = warm.run(overlay, {names[path] for path in self._pending}, partial(self._looked, self))
        finally:
            gc.enable()

    def _begins_anew(self, warm: WarmLint) -> bool:
        """Whether a change concerns more than the content of files."""
        return any(path.name in SETTINGS or self._comes_or_goes(warm, path) for path in self._pending)

    def _comes_or_goes(self, warm: WarmLint, path: Path) -> bool:
        """Whether a file is added to those of the workspace, or removed."""
        name = warm.session.workspace.relative(path)
        if name in warm.project.workspace.file_set:
            return path not in self._texts and not path.is_file()
        if path.is_file() and path not in self._ignored:
            listed = Workspace(self.root, exclude=warm.session.config.exclude).file_set
            self._ignored |= {path} if name not in listed else set()
        return (path in self._texts or path.is_file()) and path not in self._ignored

    def _opened(self) -> WarmLint:
        new = {path: text for path, text in self._texts.items() if not path.exists() or path.name in SETTINGS}
        session = open_session(self.root, new)
        try:
            _ = session.plugins
        except OpschemaError as error:  # one that is not allowed does not keep the others from being linted
            self._notify(str(error))
            session.close()
            session = open_session(self.root, new, run_plugins=False)
        session.threaded = True
        self._ignored.clear()
        self._warm = WarmLint(session, self._checkpoint, self._progress)
        self._pending |= self._texts.keys()
        return self._warm
