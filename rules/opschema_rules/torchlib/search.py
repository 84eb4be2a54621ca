"""Search for the files of a tree that register operators, or call helpers that do, and for the words by which they may."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from opschema_cli.project import Project
from opschema_cli.source.program import FunctionRef, Program
from opschema_cli.source.python import PythonFile
from opschema_rules.torchlib.detection import TorchlibOptions, reaching, registering, sources
from opschema_rules.torchlib.mentions import files_that_mention, files_that_use
from opschema_rules.torchlib.outlines import Words, libraries
from opschema_rules.torchlib.reach import handed_on, reaches
from opschema_rules.torchlib.registrations import helpers

MAX_ROUNDS = 3
"""The most searches for files that call newly found helpers."""


class Search:
    """The search in one tree.

    It begins with the files that get hold of ``torch.library``. Others that hold its words join where they import from a file
    that was found: in many trees ``register_fake`` is another one.
    """

    def __init__(self, project: Project, options: TorchlibOptions) -> None:
        self.project = project
        self.found = _reaching(project, options)
        self.words = Words(project)
        self._dependent = Words(project, dependent=True)
        self._modules = set(sources(project, options))
        self._left = set(registering(project, options)) - set(self.found) if self.found else set[str]()
        self._next, self._rounds = list(self.found), 0
        self._libraries = set[str]()
        self._program = Program(project.workspace.files, project.python)

    def step(self) -> list[str]:
        """Return the next files to examine, after the earlier ones."""
        if self._next and self._rounds < MAX_ROUNDS:
            self.project.load_python(self._next)
            new = [file for file in map(self.project.python, self._next) if file is not None]
            self.words.add(new)
            self._dependent.add(new)
            known = filter(None, map(self.project.python, self.found))
            found = helpers(known, self.words, self._dependent)
            more = set(files_that_use(self.project, found, self._modules - set(self.found)))
            more.update(self._joining(new))
            more.update(self._handed(new))
            self._left -= more
            self._next, self.found = sorted(more), self.found + sorted(more)
            self._rounds += 1
        return self._next if self._rounds < MAX_ROUNDS else []

    def _joining(self, new: Sequence[PythonFile]) -> list[str]:
        """The files that hold words of ``torch.library`` and import from new files."""
        handed = (handed_on(file, self.words.of(file.path)) for file in new)
        return files_that_mention(self.project, set().union(*handed), self._left) if self._left else []

    def _handed(self, new: Sequence[PythonFile]) -> set[str]:
        """Return the files that do not mention torch themselves, but have functions to which new files pass a ``Library``."""
        self._libraries.update(*map(libraries, new))
        found = set[str]()
        for file in new if self._libraries else ():
            held = {item.name for item in file.body.imports if item.attr in self._libraries} | set(libraries(file))
            decorators = [one for function in file.body.functions for one in function.decorators]
            for call in (*file.body.calls, *(item for item in decorators if item.kind == "call")) if held else ():
                if any(item.kind == "name" and item.text in held for item in call.items[1:]):
                    target = self._program.resolve(file, call.items[0].text) if call.items[0].text else None
                    found |= {target.file.path} if isinstance(target, FunctionRef) else set()
        found = (found & self._modules) - set(self.found)
        self.words.hand_libraries(found)
        self._dependent.hand_libraries(found)
        return found

    def finish(self) -> tuple[list[str], Words]:
        """All such files, and their words."""
        while self.step():
            pass
        return sorted(self.found), self.words


def _reaching(project: Project, options: TorchlibOptions) -> list[str]:
    """Return the files that can reach ``torch.library``; many files only mention it in comments."""
    paths = list(reaching(project, options))
    project.load_python(paths)
    return [file.path for file in filter(None, map(project.python, paths)) if reaches(file)]


@lru_cache(maxsize=2)
def search_of(project: Project, options: TorchlibOptions) -> Search:
    """The search in a tree, begun once."""
    return Search(project, options)


def reads_on(project: Project, options: TorchlibOptions) -> list[str]:
    """Return the files that will be requested after the earlier ones are parsed."""
    return search_of(project, options).step()
