"""References to a function or a constant of a module in the entire workspace, including files that do not use FlyDSL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import External, FunctionRef, ValueRef
from opschema_cli.source.python import Assign, Expr, Function, Import, Use
from opschema_cli.source.resolution import Resolution
from opschema_cli.source.text import Place, Span
from opschema_rules.flydsl.model import FlyTree, Traced


class Reference(msgspec.Struct, frozen=True, eq=False):
    """A read of a dotted name; the words up to index ``word`` name the function or constant in question."""

    body: Body
    use: Use
    word: int

    @property
    def place(self) -> Place:
        """The place of the read."""
        return self.body.at(self.use.span)

    @property
    def named(self) -> Span | None:
        """The place of the word itself; None if there is white space around the dots."""
        words = self.use.name.split(".")
        start = self.use.start + sum(len(word) + 1 for word in words[: self.word])
        whole = self.body.file.source.text[self.use.start : self.use.end] == self.use.name
        return Span(start, start + len(words[self.word])) if whole else None

    @property
    def called(self) -> Expr | None:
        """The call of this name; None if the name is read for something else."""
        calls = (call for call in self.body.scope.calls if call.items[0].span == self.use.span)
        return next(calls, None) if self.word == self.use.name.count(".") else None


_SETTERS = ("setattr", "delattr", "object", "patch")


def _set_by(call: Expr, path: str, name: str) -> str:
    """Return the dotted name of a variable that a call sets, or the variable's own name if that is meant; empty if it sets none."""
    texts = [item.value if item.kind == "const" else None for item in call.items[1:3]]
    if call.items[0].member not in _SETTERS or not texts:
        return ""
    if isinstance(texts[0], str):
        return name if f".{texts[0]}".endswith(f".{PurePosixPath(path).stem}.{name}") else ""
    return f"{call.items[1].text}.{name}" if texts[1:] == [name] and call.items[1].kind == "name" else ""


class References:
    """Finds the references to a function or constant."""

    def __init__(self, draft: Draft, tree: FlyTree) -> None:
        self.draft = draft
        self.tree = tree
        self._others: dict[tuple[str, str], Bodies] = {}

    def of_function(self, path: str, function: Function) -> Iterator[Reference]:
        """Yield the reads of a function of a file."""
        for found, reference in self._reads(path, function.name):
            if isinstance(found, FunctionRef) and found.function is function:
                yield reference

    def of_constant(self, path: str, constant: Assign) -> Iterator[Reference]:
        """Yield the reads of a module variable."""
        for found, reference in self._reads(path, constant.target):
            if isinstance(found, ValueRef) and found.assign is constant:
                yield reference

    def imports_of(self, path: str, constant: Assign) -> Iterator[tuple[Body, Import]]:
        """Yield the imports of a module variable."""
        for body in self._bodies(path, constant.target):
            for item in body.scope.imports:
                if item.attr == constant.target:
                    found = self.tree.bodies.resolve(body, item.name)
                    if isinstance(found, ValueRef) and found.assign is constant:
                        yield body, item

    def writes_of(self, path: str, constant: Assign) -> Iterator[Place]:
        """Yield the places where a module variable is set from outside: by an assignment through the module, by `setattr()`, or
        by a similar function (`monkeypatch.setattr`, `mock.patch`).
        """
        name = constant.target
        for body in self._bodies(path, name):
            for assign in body.scope.assigns:
                found = self.tree.bodies.resolve(body, assign.target) if assign.target.endswith(f".{name}") else None
                if isinstance(found, ValueRef) and found.assign is constant:
                    yield body.at(assign.span)
            for call in body.scope.calls:
                target = _set_by(call, path, name)
                found = self.tree.bodies.resolve(body, target) if "." in target else None
                if (isinstance(found, ValueRef) and found.assign is constant) or target == name:
                    yield body.at(call.span)

    def doubtful(self, path: str, name: str) -> Iterator[Place]:
        """Yield imports and reads from a module outside the workspace that has a file's name: it may be that file."""
        end = f"{PurePosixPath(path).stem}.{name}"
        for body in self._bodies(path, name):
            for item in body.scope.imports:
                found = self.tree.bodies.resolve(body, item.name) if item.attr == name else None
                if isinstance(found, External) and f".{found.name}".endswith(f".{end}"):
                    yield body.at(item.span)
        for found, reference in self._reads(path, name):
            if isinstance(found, External) and f".{found.name}".endswith(f".{end}"):
                yield reference.place

    def traced_through(self, body: Body) -> Traced | None:
        """Return a traced function that runs a body: the body is nested in it, or in a function that it names; None if none is
        known.
        """
        waiting, seen = [body], set[int]()
        while waiting:
            inner = waiting.pop()
            around = self.tree.around(inner)
            if around is not None:
                return around
            for outer in inner.outward():
                if outer.function is not None and id(outer.function) not in seen:
                    seen.add(id(outer.function))
                    named = self._namers(outer)
                    waiting += named
        return None

    def _namers(self, body: Body) -> list[Body]:
        """Return the bodies that name a function; for a method, those that read an attribute of its name."""
        function, path = body.function, body.file.path
        assert function is not None
        if body.parent is None or body.parent.cls is None:
            return [item.body for item in self.of_function(path, function)]
        found = (
            item
            for item in self._bodies(path, function.name)
            if any(_ends(use, function.name) for use in item.scope.uses)
        )
        return [item for item in found if item is not body]

    def _reads(self, path: str, name: str) -> Iterator[tuple[Resolution, Reference]]:
        """Yield the reads of a name and of its aliases, each with its meaning."""
        for body in self._bodies(path, name):
            around = {item.name for outer in body.outward() for item in outer.scope.imports if item.attr == name}
            for use in body.scope.uses:
                words = use.name.split(".")
                named = [at for at, word in enumerate(words) if word == name or (at == 0 and word in around)]
                if named and not is_parameter(body, words[0]):
                    for at in named:
                        yield self.tree.bodies.resolve(body, ".".join(words[: at + 1])), Reference(body, use, at)

    def _bodies(self, path: str, name: str) -> Iterator[Body]:
        """Yield the bodies of all Python files that contain a name of a file as a word."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        for file in self.tree.bodies.files:
            if word.search(file.source.text):
                yield from self.tree.bodies.of(file)
        others = self._elsewhere(path, name)
        for file in others.files:
            if word.search(file.source.text):
                yield from others.of(file)

    def _elsewhere(self, path: str, name: str) -> Bodies:
        """The files without FlyDSL that may import a name from a file: they contain it, and a word of the file's path."""
        if (path, name) not in self._others:
            words = {part for part in PurePosixPath(path).with_suffix("").parts if part != "__init__"}
            sources = [source for source in texts_with(self.draft.project, {name}) if source.path.endswith(".py")]
            paths = [source.path for source in sources if any(word in source.text for word in words)]
            known = set(self.tree.bodies.paths)
            others = [item for item in paths if item not in known]
            self.draft.project.load_python(others)
            self._others[path, name] = Bodies(self.tree.bodies.program, others)
        return self._others[path, name]


def is_parameter(body: Body, name: str) -> bool:
    """Whether a name is a parameter of an enclosing function."""
    binder = body.binder(name)
    return binder is not None and any(item.name == name for item in binder.params)


def _ends(use: Use, name: str) -> bool:
    return use.name.rpartition(".")[2] == name
