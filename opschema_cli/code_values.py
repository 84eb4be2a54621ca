"""Values that packs compute by following code through several files, cached with the files that were read for them.

A reading (:mod:`opschema_cli.readings`) depends on one file. What evaluating or executing code gives depends on every module that
the code leads to. So the values of one *group*, such as the operators of one file, are computed with a program of their own, which
records the files that are loaded. A stored group is valid while each of these files has the same content, and the workspace the
same list of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Generic, TypeVar

import msgspec

from opschema_cli.cache import decoded
from opschema_cli.project import Project
from opschema_cli.readings import Shelf
from opschema_cli.regular_files import content_digest
from opschema_cli.source.program import Program
from opschema_cli.source.traced_program import TracedProgram

T = TypeVar("T")

_VALUE = "\0"
"""Prefix of the names of dependencies other than files, in :attr:`Stored.files`."""

SPARE = 64
"""Maximum number of values of a group to keep although this run did not request them."""


class Stored(msgspec.Struct, array_like=True):
    """The values of a group by key, and the state of each file read for them."""

    files: dict[str, str]
    values: dict[str, msgspec.Raw]


class CodeValues(Generic[T]):
    """Values of the type ``kind``, which msgspec can encode; ``name`` is unique among all readings. ``value_state`` identifies
    other dependencies of values, by name: see :meth:`Group.reads_value`.
    """

    def __init__(
        self,
        project: Project,
        program: Program,
        name: str,
        kind: type[T],
        value_state: Callable[[str], str] = lambda name: "",
    ) -> None:
        self.project = project
        self.main = program
        self.kind = kind
        self._value_state = value_state
        self._groups: dict[str, Group[T]] = {}
        self._states: dict[str, str] = {}
        self.shelf: Shelf[Stored] = project.shelf(name, Stored)
        self._puts_before = self.shelf.puts

    def group(self, name: str) -> Group[T]:
        """The values of one group."""
        if name not in self._groups:
            self._groups[name] = Group(self, content_digest(f"{self._listing} {name}".encode()))
        return self._groups[name]

    @cached_property
    def _listing(self) -> str:
        return content_digest("\0".join(self.main.all_files).encode("utf-8", "surrogatepass"))

    def is_valid(self, key: str, stored: Stored) -> bool:
        """Whether all dependencies of a stored group are unchanged. A group put on the shelf after this object was created,
        by any process of the run, is valid, and its recorded states are current.
        """
        if self.shelf.is_put_after(key, self._puts_before):
            self._states.update(stored.files)
            return True
        return all(self.state(path) == state for path, state in stored.files.items())

    def state(self, path: str) -> str:
        """Return a digest of everything that loading a file provides: its content, and the writes of other files to its classes."""
        if path not in self._states and path.startswith(_VALUE):
            self._states[path] = self._value_state(path.removeprefix(_VALUE))
        if path not in self._states:
            outside = self.main.patches.outside_by_file.get(path, "")
            self._states[path] = f"{self.project.workspace.digest(path)}{outside}"
        return self._states[path]


class Group(Generic[T]):
    """Values that are computed with one program."""

    def __init__(self, owner: CodeValues[T], key: str) -> None:
        self._owner = owner
        self._key = key
        self._more: dict[str, bool] = {}
        self._asked: dict[str, msgspec.Raw] = {}
        self._changed = False
        self._put: tuple[Stored, int] | None = None
        self._checked: Stored | None = None
        self._valid = False

    @cached_property
    def program(self) -> TracedProgram:
        """The program to compute values with."""
        return TracedProgram(self._owner.main)

    @property
    def _stored(self) -> Stored:
        found = self._owner.shelf.get(self._key)
        if found is None:
            return Stored({}, {})
        if found is not self._checked:  # another process may have put other values
            self._checked = found
            self._valid = self._owner.is_valid(self._key, found)
        return found if self._valid else Stored({}, {})

    def reads(self, paths: Iterable[str]) -> None:
        """Record files of other kinds that the values depend on."""
        self._more.update(dict.fromkeys(paths, True))

    def reads_value(self, name: str) -> None:
        """Record another dependency of the values, by name: a part of a file of another kind."""
        self._more[f"{_VALUE}{name}"] = True

    def get(self, key: str) -> T | None:
        """A stored value; None if there is none."""
        data = self._stored.values.get(key)
        found = decoded(data, self._owner.kind)
        if found is not None and data is not None:
            self._keep(key, data)
        return found

    def put(self, key: str, value: T) -> None:
        """Store a value, which was computed with :attr:`program`, unless a file could not be read, so that this is reported
        again.
        """
        self._changed = True
        self._keep(key, msgspec.Raw(msgspec.msgpack.encode(value)))

    def _keep(self, key: str, data: msgspec.Raw) -> None:
        self._asked[key] = data
        if not self._changed:
            return
        read = {**self.program.read, **self._more}
        if not all(read.values()):
            return
        known = self._stored
        if self._put is not None and self._put[0] is known and self._put[1] == len(read):  # nothing more was read since
            known.values[key] = data
        else:
            files = {**known.files, **{path: self._owner.state(path) for path in read}}
            others = [(key, data) for key, data in known.values.items() if key not in self._asked]
            known = Stored(files, {**dict(others[-SPARE:]), **self._asked})
            self._put = known, len(read)
        self._owner.shelf.put(self._key, known)


def kept_value(group: Group[bytes], key: str, kind: type[T], find: Callable[[], T]) -> T:
    """Return a value from a group of encoded values; if it is missing, ``find`` computes it, and the group stores it."""
    found = decoded(group.get(key), kind)
    if found is None:
        found = find()
        group.put(key, msgspec.msgpack.encode(found))
    return found
