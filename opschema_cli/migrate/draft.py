"""The draft: an overlay of the workspace that a migration writes into. The disk is not touched here."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_python, is_yaml
from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.loaded import Loaded
from opschema_cli.project import PYTHON_SYNTAX, YAML_SYNTAX, Project
from opschema_cli.source.text import Edit, EditConflictError, Span, apply_edits
from opschema_cli.workspace import ReadError

if TYPE_CHECKING:
    from opschema_cli.source.python_tree import PythonTree


_LINE_FEED = re.compile(r"(?<!\r)\n")


class DraftError(OpschemaError):
    """A migration's edits overlap, or leave a file that does not parse; nothing was written."""


class Change(msgspec.Struct, frozen=True):
    """A changed file: its text before and after, or None where the file does not exist."""

    path: str
    before: str | None
    after: str | None


class _Step(msgspec.Struct):
    """Edits that are collected until the draft settles."""

    edits: dict[str, set[Edit]]
    created: dict[str, str]
    deleted: set[str]
    moved: dict[str, str]


class Draft:
    """The workspace as a migration has rewritten it so far.

    Edits are collected against the texts of :attr:`project`; :meth:`settle` applies them, parses every changed file
    anew and loads the pack's subjects again, so that a next step sees what the last one left.
    """

    def __init__(self, project: Project, load: Callable[[Project], Loaded]) -> None:
        self.project = project
        self._load = load
        self._loaded: dict[Callable[[Project], Loaded], Loaded] = {}
        self._first = project
        self._step = _Step({}, {}, set(), {})
        self._done: list[_Step] = []
        self._shifts: dict[tuple[int, str], _Shifts] = {}
        self._origins: dict[str, str] = {}

    @property
    def loaded(self) -> Loaded:
        """The pack's subjects, as of the last :meth:`settle`."""
        if self._load not in self._loaded:
            self._loaded[self._load] = self._load(self.project)
        return self._loaded[self._load]

    def use(self, load: Callable[[Project], Loaded]) -> None:
        """Load the subjects of another pack from now on."""
        self._load = load

    def text(self, path: str) -> str:
        """A file's text as of the last :meth:`settle`.

        Raises:
            DraftError: there is no such file, or it cannot be read.
        """
        try:
            return self.project.workspace.source(path).text
        except ReadError as error:
            raise DraftError(str(error)) from None

    def tree(self, path: str) -> PythonTree:
        """A Python file's tree as of the last :meth:`settle`.

        Raises:
            DraftError: there is no such file, or it cannot be read.
            TreeError: it does not parse.
        """
        try:
            return self.project.tree(path)
        except ReadError as error:
            raise DraftError(str(error)) from None

    def edit(self, path: str, edits: Iterable[Edit]) -> None:
        """Collect edits of a file's text; equal ones count once. New lines get the line end that the file uses first.

        Raises:
            DraftError: there is no such file, or an edit reaches past its end.
        """
        text = self.text(path)
        first = text.find("\n")
        crlf = first > 0 and text[first - 1] == "\r"
        for edit in edits:
            if not 0 <= edit.span.start <= edit.span.end <= len(text):
                raise DraftError(f"{path}: an edit of {edit.span} in a text of {len(text)} characters")
            new = Edit(edit.span, _LINE_FEED.sub("\r\n", edit.replacement)) if crlf else edit
            self._step.edits.setdefault(path, set()).add(new)

    def expect(self, path: str, edits: Iterable[Edit]) -> None:
        """Announce the probable edits of a file, so that it can be parsed before the draft settles.

        Raises:
            DraftError: there is no such file, or it cannot be read.
        """
        if is_python(path):
            self.project.expect(apply_edits(self.text(path), edits))

    def create(self, path: str, text: str) -> None:
        """Add a file.

        Raises:
            DraftError: it is there already.
        """
        self._claim(path)
        self._step.created[path] = text

    def delete(self, path: str) -> None:
        """Remove a file.

        Raises:
            DraftError: there is no such file.
        """
        self.text(path)
        self._step.deleted.add(path)

    def move(self, path: str, target: str) -> None:
        """Move a file to another path. Until the draft settles, its edits are collected under its old path.

        Raises:
            DraftError: there is no such file, or one is there already.
        """
        self.text(path)
        self._claim(target)
        self._step.moved[path] = target
        self._step.deleted.add(path)

    def _claim(self, path: str) -> None:
        """Check that a file may be added at ``path``."""
        taken = path in self._step.created or path in self._step.moved.values()
        freed = path in self._step.deleted
        if taken or (not freed and self.project.workspace.is_file(path)):
            raise DraftError(f"{path}: it is there already")

    def settle(self) -> Project:
        """Apply the collected edits and parse again.

        Raises:
            DraftError: edits overlap, or a file that parsed before no longer does; with its place.
        """
        step, self._step = self._step, _Step({}, {}, set(), {})
        texts = self._texts(step)
        texts = {path: text for path, text in texts.items() if text != self._known(path)}
        if not texts:
            return self.project
        after = self.project.with_overlay(texts)
        origins = {target: path for path, target in step.moved.items()}
        self._check(after, texts, origins)
        self._origins = {
            **{path: origin for path, origin in self._origins.items() if path not in step.deleted},
            **{target: self._origins.get(path, path) for target, path in origins.items()},
        }
        self._done.append(step)
        self.project, self._loaded = after, {}
        return after

    def _texts(self, step: _Step) -> dict[str, str | None]:
        """The new texts of all files of a step."""
        edited = {path: self._edited(path, edits) for path, edits in step.edits.items()}
        found: dict[str, str | None] = {**edited, **dict.fromkeys(step.deleted, None)}
        for path, target in step.moved.items():
            found[target] = edited[path] if path in edited else self.text(path)
        return {**found, **step.created}

    def _edited(self, path: str, edits: Iterable[Edit]) -> str:
        try:
            return apply_edits(self.text(path), edits)
        except EditConflictError as error:
            line = self.project.workspace.source(path).position(error.offset).line
            raise DraftError(f"{path}:{line}: {error}") from None

    def _known(self, path: str) -> str | None:
        return _text(self.project, path)

    def _check(self, after: Project, texts: Mapping[str, str | None], origins: Mapping[str, str]) -> None:
        """Check that new files, and those that parsed before, parse."""
        written = [path for path, text in texts.items() if text is not None]
        after.load_python(filter(is_python, written))
        after.load_yaml(filter(is_yaml, written))
        after.settle()
        for path in written:
            problem = after.problems.get((YAML_SYNTAX, path)) or after.problems.get((PYTHON_SYNTAX, path))
            origin = origins.get(path, path)
            new = _text(self.project, origin) is None
            if problem is not None and (new or self.project.parses(origin)):
                line = after.workspace.source(path).position(problem.place.span.start).line
                raise DraftError(f"{path}:{line}: the draft does not parse: {problem.message}")

    @property
    def changes(self) -> list[Change]:
        """Return all files changed as of the last :meth:`settle`, by path, without those whose text is the original one."""
        return self.changes_since(self._first)

    def changes_since(self, project: Project) -> list[Change]:
        """Return the files that differ from an earlier project that this draft settled on."""
        found = (
            Change(path, _text(project, path), _text(self.project, path))
            for path in sorted(self.project.workspace.overlay)
        )
        return [change for change in found if change.before != change.after]

    @property
    def origins(self) -> dict[str, str]:
        """The first path of each file that was moved, by its path now."""
        return dict(self._origins)

    @property
    def revision(self) -> int:
        """Number of times that the draft has settled on something new."""
        return len(self._done)

    def forward(self, place: Place, since: int = 0) -> Place:
        """The current place of a place of revision ``since``; of removed text the place where it was cut out."""
        for number, step in enumerate(self._done[since:], since):
            if place.path in step.edits:
                key = number, place.path
                if key not in self._shifts:
                    self._shifts[key] = _Shifts(step.edits[place.path])
                start, end = map(self._shifts[key].moved, place.span)
                place = Place(place.path, Span(start, max(start, end)))
            place = Place(step.moved.get(place.path, place.path), place.span)
        return place


class _Shifts:
    """The edits of a file in one step, to find where they move an offset to."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        ordered = sorted(edits)
        self._spans = [edit.span for edit in ordered]
        self._ends = [span.end for span in self._spans]
        grown = (len(edit.replacement) - (edit.span.end - edit.span.start) for edit in ordered)
        self._shifts = [0, *accumulate(grown)]

    def moved(self, offset: int) -> int:
        """An offset after the edits; inside replaced text it moves to the beginning."""
        before = bisect.bisect_right(self._ends, offset)
        inside = before < len(self._spans) and self._spans[before].start < offset
        return (self._spans[before].start if inside else offset) + self._shifts[before]


def _text(project: Project, path: str) -> str | None:
    """Return the text of a file, or None if no such file can be read."""
    try:
        return project.workspace.source(path).text
    except ReadError:
        return None
