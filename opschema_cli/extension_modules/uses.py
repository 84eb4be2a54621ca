"""Calls of functions of extension modules in Python, and uses of names that no build of a module has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

import msgspec

from opschema_cli.extension_modules.guards import Guards
from opschema_cli.extension_modules.model import ExtensionModule, M, Target
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Place


class ModuleCall(msgspec.Struct, Generic[M], frozen=True, eq=False):
    """A call of a function; ``unpacked`` are the targets that its result is assigned to, 0 if it is not unpacked."""

    body: Body
    call: Expr
    target: Target[M]
    guards: Guards[M]
    unpacked: int = 0
    starred: bool = False

    @property
    def name(self) -> str:
        """The function, as the code writes it."""
        return " ".join(self.text(self.call.items[0]).split())

    @property
    def place(self) -> Place:
        """The function's name in the call."""
        return self.body.at(self.call.items[0])

    @property
    def may_fail(self) -> bool:
        """Whether the code allows it to fail, or may call another function."""
        other = self.target.is_elsewhere or self.guards.is_replaced(self.target)
        other = other or self.guards.is_mocked(self.body, self.target)
        other = other or self.guards.extensions.may_be_another(self.body.file.path, self.target)
        return other or self.guards.allows_failure(self.body, self.call.start)

    def text(self, expr: Expr) -> str:
        """Return the text of a part of it."""
        return self.body.file.text(expr)


class MissingName(msgspec.Struct, frozen=True, eq=False):
    """A use of a name that no build of a module has."""

    place: Place
    name: str
    modules: tuple[ExtensionModule, ...]


def module_calls(guards: Guards[M], body: Body) -> Iterator[ModuleCall[M]]:
    """The calls in a body."""
    unpacks = {item.value.span: item for item in body.scope.unpacks}
    for target, call in guards.extensions.names.calls(body):
        unpack = unpacks.get(call.span)
        count, starred = (len(unpack.targets), unpack.starred) if unpack else (0, False)
        yield ModuleCall(body, call, target, guards, count, starred)


def missing_names(guards: Guards[M], body: Body) -> Iterator[MissingName]:
    """Yield the uses in a body of names that are known to be missing, if the code does not allow that."""
    extensions, path = guards.extensions, body.file.path
    for target, span in extensions.names.uses(body):
        named = bool(target.name) and not target.name.startswith("__")
        if not named or not target.is_absent or extensions.may_be_another(path, target):
            continue
        if not guards.allows_absence(body, span.start, target):
            yield MissingName(body.at(span), target.name, target.modules)
