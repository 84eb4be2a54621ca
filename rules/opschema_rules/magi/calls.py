"""Finds the calls of ops: by the name that holds one, in its own file or in one that imports it, and through ``torch.ops``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Literal

import msgspec

from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import FunctionRef, ValueRef
from opschema_cli.source.text import Place
from opschema_rules.magi.registrations import Registration


class OpCall(msgspec.Struct, frozen=True, eq=False):
    """A call of an op: through its ``handle`` it takes the original parameters, through ``torch.ops`` the lowered ones."""

    place: Place
    body: Body
    call: Expr
    through: Literal["handle", "torch.ops"]


class Calls:
    """The calls of one tree's ops. Of the files, those are parsed that hold an op's name and where it comes from."""

    def __init__(self, project: Project, bodies: Bodies) -> None:
        self.project = project
        self.bodies = bodies
        self._wanted: set[bytes] = set()
        self._calls: dict[str, dict[str, list[tuple[Body, Expr]]]] = {}

    def expect(self, registration: Registration, names: frozenset[str] | None) -> None:
        """Register an op whose calls are searched for when those of any op are first requested."""
        qualified = (part for name in names or () for part in name.split("::"))
        words = {registration.handle, *self._origins(registration), *qualified}
        self._wanted.update(word.encode() for word in words)

    def of(self, registration: Registration, names: frozenset[str] | None) -> list[OpCall]:
        """The calls of an op that was expected."""
        found = [self._made(body, call, "handle") for body, call in self._by_handle(registration)]
        for name in names or ():
            space, _, op = name.partition("::")
            for body, call in self._called(op, self._holding(op) & self._holding(space)):
                target = self.bodies.external(body, call.callee)
                if target in (f"torch.ops.{space}.{op}", f"torch.ops.{space}.{op}.default"):
                    found.append(self._made(body, call, "torch.ops"))
        return found

    def _made(self, body: Body, call: Expr, through: Literal["handle", "torch.ops"]) -> OpCall:
        return OpCall(body.at(call), body, call, through)

    def _by_handle(self, registration: Registration) -> Iterator[tuple[Body, Expr]]:
        folder = registration.outer.file.path.rpartition("/")[0]
        origins = frozenset[str]().union(*map(self._holding, self._origins(registration)))
        holding = self._holding(registration.handle) if registration.handle else frozenset()
        near = {path for path in holding if path.rpartition("/")[0] == folder}
        for body, call in self._called(registration.handle, near | (holding & origins)):
            if self._is_handle(body, call.callee, registration):
                yield body, call

    def _origins(self, registration: Registration) -> set[str]:
        """Return the first and last part of the module's name: a file that imports from it or its package contains one of them."""
        parts = self.bodies.program.module_name(registration.outer.file.path).split(".")
        return {parts[0], parts[-1]}

    def _is_handle(self, body: Body, dotted: str, registration: Registration) -> bool:
        found = self.bodies.resolve(body, dotted)
        if isinstance(found, FunctionRef):
            decorated = registration.function.function
            return found.function is decorated and registration.call in (decorated.decorators if decorated else ())
        value = found.assign.value if isinstance(found, ValueRef) else None
        same = isinstance(found, ValueRef) and found.file is registration.outer.file
        return same and value is not None and value.span == registration.call.span

    def _called(self, name: str, paths: AbstractSet[str]) -> Iterator[tuple[Body, Expr]]:
        """Every call in these files whose callee ends with ``name``, or with another name under which the file imports it."""
        for path in sorted(paths):
            yield from self._in(path).get(name, ())

    def _holding(self, word: str) -> frozenset[str]:
        return self._index.get(word.encode(), frozenset())

    @cached_property
    def _index(self) -> dict[bytes, frozenset[str]]:
        """The Python files that hold each of the wanted words."""
        found: dict[bytes, set[str]] = {}
        for path in self.project.workspace.files:
            if path.endswith(".py"):
                for word in self._wanted.intersection(_WORD.findall(self.project.workspace.peek(path))):
                    found.setdefault(word, set()).add(path)
        return {word: frozenset(paths) for word, paths in found.items()}

    def _in(self, path: str) -> dict[str, list[tuple[Body, Expr]]]:
        if path not in self._calls:
            found: dict[str, list[tuple[Body, Expr]]] = {}
            file = self.project.python(path)
            imports = [item for scope in file.body.walk() for item in scope.imports] if file is not None else []
            imported = {item.name: item.attr for item in imports if item.attr}
            for body in self.bodies.of(file) if file is not None else ():
                for call in body.scope.calls:
                    last = call.callee.removesuffix(".default").rpartition(".")[2]
                    for word in {last, imported.get(call.callee, last)}:
                        found.setdefault(word, []).append((body, call))
            self._calls[path] = found
        return self._calls[path]


_WORD = re.compile(rb"[A-Za-z_]\w*")
