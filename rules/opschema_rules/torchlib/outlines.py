"""The words through which a file may register: those of torch, aliases of them, and helpers that use them.

A call whose last word is none of these is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.python import Class, Expr, Function, PythonFile, Scope
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.dependence import dependent_calls
from opschema_rules.torchlib.mentions import registers_by


class Called(msgspec.Struct, frozen=True, array_like=True):
    """The words that a function calls; ``number`` is its place among the functions of its file."""

    name: str
    words: frozenset[str]
    number: int


class Outline(msgspec.Struct, frozen=True):
    """The parts of a file that determine the words through which it registers: its functions, and methods by class, each with
    the words that it calls; the bases of its classes; its aliases; the names that other files may import, and those of them that
    alias functions; the names that it imports or calls, and those of the latter that an import or an attribute of one may lead
    to; its variables that hold a ``Library``.
    """

    functions: list[Called]
    classes: list[tuple[str, list[Called]]]
    bases: list[tuple[str, frozenset[str]]]
    aliases: list[tuple[str, str]]
    public: frozenset[str]
    renaming: frozenset[str]
    mentions: frozenset[str]
    importable: frozenset[str]
    libraries: frozenset[str]


_User: TypeAlias = "str | tuple[str, Called]"
"""An alias, or a function with its class, empty if it has none."""


class Words:
    """The words of some files of a project, which can be extended; with ``dependent``, only the words of code whose
    registrations depend on its arguments.
    """

    def __init__(self, project: Project, *, dependent: bool = False) -> None:
        self._project = project
        self._dependent = dependent
        self._outlines: dict[str, Outline] = {}
        self._own: dict[str, set[str]] = {}
        self._common: set[str] = set()
        self._found: list[str] = []  # the same, in the order in which they were found
        self._registrars: dict[str, set[str]] = {}
        self._makers: set[str] = set()
        self._handed: set[str] = set()
        self._users: dict[str, dict[str, list[_User]]] = {}
        self._seen: dict[str, set[str]] = {}  # the words of each file whose users have been looked at

    def add(self, files: Iterable[PythonFile]) -> None:
        """Add files, and update the words of all files."""
        new = {file.path: file for file in files if file.path not in self._outlines}
        for path, outline in self._project.file_readings(_OUTLINE, new.values()).items():
            self._outlines[path] = outline
            holds = path in self._handed or apis.mentions_library(new[path].source.text)
            self._own[path] = set(apis.WORDS if holds else apis.STRONG)
        self._add_libraries(new)
        looked_for = {path: self._looked_for(outline) for path, outline in self._outlines.items()}
        learnt: dict[str, tuple[int, int]] = {}
        size = -1
        while size != (size := len(self._common) + sum(map(len, self._own.values()))):
            for path, outline in self._outlines.items():
                own = self._own[path]
                common, before = learnt.get(path, (0, -1))
                # Words are only ever added; what this adds counts the next time.
                learnt[path] = len(self._common), len(own)
                if len(own) != before or not looked_for[path].isdisjoint(self._found[common:]):
                    self._learn(path, outline, own)
            self._share()

    def hand_libraries(self, paths: Iterable[str]) -> None:
        """Record files, before they are added, whose functions get libraries from others: the methods of a library are their
        words.
        """
        self._handed.update(paths)

    def _add_libraries(self, new: Mapping[str, PythonFile]) -> None:
        """Let files that use a library of another file have its methods for words."""
        libraries = set[str]().union(*(outline.libraries for outline in self._outlines.values()))
        for path, file in new.items():
            renamed = {item.name for item in file.body.imports if item.attr in libraries}
            if libraries and registers_by(libraries | renamed, file.source.text):
                self._own[path] |= apis.WORDS

    def of(self, path: str) -> frozenset[str]:
        """The words of one file; empty when it was not added."""
        return frozenset(self._known(self._outlines[path], self._own[path])) if path in self._own else frozenset()

    def registrars(self, name: str) -> frozenset[str] | None:
        """The methods by which classes of a name register; None if they do so when they are made or called."""
        return frozenset(self._registrars.get(name, ())) if name not in self._makers else None

    def _known(self, outline: Outline, own: set[str]) -> set[str]:
        """A file's own words, and those of all files that its imports lead to."""
        return own | (self._common & outline.importable)

    def _learn(self, path: str, outline: Outline, words: set[str]) -> None:
        """Add to a file's words, and to those of all files, the helpers that register through known words."""
        users = self._users_of(path, outline)
        seen = self._seen.setdefault(path, set())
        while True:
            fresh = self._known(outline, words) - seen
            # A helper of a helper is found in the same round: a chain of them takes no longer than as many that are none.
            while fresh:
                seen |= fresh
                found = self._reached(path, outline, users, fresh, seen)
                words |= found
                fresh = found - seen
            for name, bases in outline.bases:
                self._inherit(name, bases, words)
            if self._known(outline, words) <= seen:
                return

    def _reached(
        self, path: str, outline: Outline, users: Mapping[str, list[_User]], fresh: set[str], known: set[str]
    ) -> set[str]:
        """Return the aliases, functions and classes of a file that register through ``fresh`` words, and let all files know those
        that they may use.
        """
        found: set[str] = set()
        for user in {id(user): user for word in fresh for user in users.get(word, ())}.values():
            if isinstance(user, str):
                found.add(user)
                self._share_with_all({user} & outline.renaming)
                continue
            name, item = user
            if not self._registers(path, item, known):
                continue
            if not name:
                found.add(item.name)
                self._share_with_all({item.name} & outline.public)
                continue
            self._registrars.setdefault(name, set()).update({item.name} - {"__init__", "__call__"})
            if item.name.startswith("__"):
                self._makers.add(name)
            found.add(name)
            self._share_with_all({name})
        return found

    def _users_of(self, path: str, outline: Outline) -> dict[str, list[_User]]:
        """The parts of a file that may register, by each word that they use."""
        if path not in self._users:
            users: dict[str, list[_User]] = {}
            for name, value in outline.aliases:
                users.setdefault(value, []).append(name)
            methods = [(name, item) for name, items in outline.classes for item in items]
            for user in [*(("", item) for item in outline.functions), *methods]:
                for word in user[1].words:
                    users.setdefault(word, []).append(user)
            self._users[path] = users
        return self._users[path]

    def _inherit(self, name: str, bases: frozenset[str], words: set[str]) -> None:
        """Let a class register by the methods of its bases."""
        found = set[str]().union(*(self._registrars.get(base, ()) for base in bases))
        if not bases.isdisjoint(self._makers):
            self._makers.add(name)
        if found - self._registrars.get(name, set()) or (name in self._makers and name not in words):
            self._registrars.setdefault(name, set()).update(found)
            words.add(name)
            self._share_with_all({name})

    def _share_with_all(self, words: set[str]) -> None:
        self._found += words - self._common
        self._common |= words

    def _share(self) -> None:
        """Let the methods of classes by which one registers be words of the files that mention the class."""
        for path, outline in self._outlines.items():
            for name in outline.mentions & self._registrars.keys():
                self._own[path] |= self._registrars[name]

    def _registers(self, path: str, item: Called, known: set[str]) -> bool:
        """Whether a function of a file calls a word that is known."""
        if item.words.isdisjoint(known):
            return False
        if not self._dependent:
            return True
        file = self._project.python(path)
        words = self._project.file_readings(_DEPENDENT, [file])[path] if file is not None else []
        return item.number < len(words) and not words[item.number].isdisjoint(known)

    def _looked_for(self, outline: Outline) -> set[str]:
        """The words by which something of a file may register."""
        functions = [*outline.functions, *(item for _, methods in outline.classes for item in methods)]
        bases = (found for _, found in outline.bases)
        return {value for _, value in outline.aliases}.union(*(item.words for item in functions), *bases)


def outline_of(file: PythonFile) -> Outline:
    """The outline of one file."""
    found = _Reader(file.source.text)
    mentions = found.read(file.body)
    names = frozenset(item.name for item in public(file))
    mentioned = frozenset(mentions | found.imported)
    return Outline(
        found.functions,
        found.classes,
        found.bases,
        found.aliases,
        names,
        frozenset(renaming(file)),
        mentioned,
        frozenset(found.importable()),
        frozenset(libraries(file)),
    )


_OUTLINE = Reading("torchlib outlines", outline_of, Outline)


def dependent_words(file: PythonFile) -> list[frozenset[str]]:
    """For each function of a file, the words whose calls depend on its arguments. This is not part of the outline, since it takes
    longer and is needed for few files.
    """
    found = _Reader(file.source.text)
    found.read(file.body)
    return [frozenset(map(last_word, calls)) for calls in map(found.dependent, found.scanned)]


_DEPENDENT = Reading("torchlib dependent words", dependent_words, list[frozenset[str]])


class _Reader:
    """Reads the scopes of one file, each once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._bodies: dict[int, Scope] = {}
        self.scanned: list[Function] = []
        self.functions: list[Called] = []
        self.classes: list[tuple[str, list[Called]]] = []
        self.bases: list[tuple[str, frozenset[str]]] = []
        self.aliases: list[tuple[str, str]] = []
        self.imported: set[str] = set()
        self._roots: set[str] = set()
        self._by_root: dict[str, set[str]] = {}

    def importable(self) -> set[str]:
        """The words that are imported, or the attribute of an import; with an import of all names, every word."""
        found = set[str]().union(*(self._by_root.get(name, ()) for name in self._roots))
        return (self.imported | found) if "*" not in self.imported else self.imported.union(*self._by_root.values())

    def read(self, scope: Scope) -> set[str]:
        """Record the contents of a scope. Return the last words of its calls and decorators, including inner scopes."""
        called = {self._word(call.items[0]) for call in scope.calls}
        for function in scope.functions:
            called |= self._function(function)
            called.update(map(self._word, function.decorators))
        for cls in scope.classes:
            start = len(self.functions)
            called |= self.read(cls.body)
            own = {item.name for item in cls.body.functions}
            self.classes.append((cls.name, [item for item in self.functions[start:] if item.name in own]))
            self.imported.add(cls.name)
            if cls.bases:
                self.bases.append((cls.name, frozenset(map(last_word, cls.bases))))
        self._aliases(scope)
        return called

    def _function(self, function: Function) -> set[str]:
        called = self.read(self._body(function))
        self.functions.append(Called(function.name, frozenset(called), len(self.functions)))
        self.scanned.append(function)
        return called

    def dependent(self, function: Function) -> Iterator[Expr]:
        """Yield the calls of a read function that depend on its arguments."""
        return dependent_calls(function, self._text, self._body)

    def _body(self, function: Function) -> Scope:
        """The body of a function of the file, which is kept while the file is read."""
        if id(function) not in self._bodies:
            self._bodies[id(function)] = function.peek_body()
        return self._bodies[id(function)]

    def _aliases(self, scope: Scope) -> None:
        self.imported.update(item.attr or item.name for item in scope.imports)
        self._roots.update(item.name for item in scope.imports)
        self.aliases += [(item.name, item.attr) for item in scope.imports if item.attr != item.name]
        for item in scope.assigns:
            if item.value is not None and item.value.kind in ("name", "attribute", "call"):
                self.aliases.append((item.target.rpartition(".")[2], self._word(_target_of(item.value))))

    def _word(self, callee: Expr) -> str:
        """Return the last word of a callee, recorded under the name with which it begins."""
        word = last_word(callee)
        self._by_root.setdefault(_root(callee), set()).add(word)
        return word


def renaming(file: PythonFile) -> Iterator[str]:
    """The variables of a module that are other names of something: ``add = register``, ``add = partial(register, LIB)``."""
    for item in file.body.assigns:
        value = item.value
        if value is not None and (value.kind in ("name", "attribute") or _target_of(value) is not value):
            yield item.target


def libraries(file: PythonFile) -> Iterator[str]:
    """The variables of a module that hold a ``Library``."""
    for item in file.body.assigns:
        if item.value is not None and item.value.kind == "call" and last_word(item.value) == "Library":
            yield item.target


def public(file: PythonFile) -> Iterator[Function | Class]:
    """The functions and classes that other files may import and call."""
    yield from file.body.functions
    yield from file.body.classes


def last_word(callee: Expr) -> str:
    """Return the last word of a callee; for ``f(...)(...)``, that of the inner call."""
    while callee.kind == "call":
        callee = callee.items[0]
    return callee.text.rpartition(".")[2] if callee.kind in ("name", "attribute") else ""


def _root(callee: Expr) -> str:
    """The name with which a callee begins; of ``a.f(...).g`` it is ``a``."""
    while callee.kind in ("call", "attribute"):
        callee = callee.items[0]
    return callee.text.partition(".")[0] if callee.kind == "name" else ""


def _target_of(value: Expr) -> Expr:
    """The target of ``partial(target, ...)``; the value itself when it is not a partial."""
    partial = value.kind == "call" and last_word(value) == "partial" and len(value.items) > 1
    return value.items[1] if partial else value
