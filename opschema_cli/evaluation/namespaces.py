"""Namespaces of annotations, and names that do not exist in them at run time."""

from __future__ import annotations

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Program
from opschema_cli.source.python import PythonFile, Scope
from opschema_cli.source.resolution import Missing, Resolution


class UndefinedNameError(Exception):
    """A string annotation uses a name that its namespace lacks: ``eval`` would raise ``NameError``."""


class Namespace(msgspec.Struct, frozen=True):
    """The namespace of an annotation: ``scopes``, then the module.

    ``only`` limits the names that the scopes give (a closure). ``text`` is true for what is evaluated at run time from a string:
    names that are imported for type checking alone do not exist, nor do those that the module binds below ``before``.
    """

    file: PythonFile
    scopes: tuple[Scope, ...] = ()
    only: frozenset[str] | None = None
    text: bool = False
    before: int | None = None


def look_up(program: Program, dotted: str, names: Namespace) -> Resolution:
    """Return the meaning of a dotted name in a namespace.

    Raises:
        UndefinedNameError: the namespace is one of strings, and lacks it.
    """
    first = dotted.partition(".")[0]
    given = names.only is None or first in names.only
    found = program.resolve(names.file, dotted, names.scopes if given else ())
    if not names.text:
        return found
    inner = given and any(_binds(scope, first) for scope in names.scopes)
    if isinstance(found, Missing) or (not inner and _absent(names, first)):
        raise UndefinedNameError(dotted)
    return found


def postponed(file: PythonFile) -> bool:
    """Whether a module's annotations remain strings."""
    return any(item.module == "__future__" and item.attr == "annotations" for item in file.body.imports)


@cached_on_argument
def closure(body: Body) -> frozenset[str]:
    """Return the names of enclosing functions that a function uses and so closes over."""
    used = {use.name.partition(".")[0] for scope in body.scope.walk() for use in scope.uses}
    outer = body.parent.scopes if body.parent is not None else ()
    own = {item.name for item in body.params}
    free = (name for name in used if name not in own and not _binds(body.scope, name))
    return frozenset(name for name in free if any(_binds(scope, name) for scope in outer))


def _binds(scope: Scope, name: str) -> bool:
    names = {*(item.name for item in scope.classes), *(item.name for item in scope.functions)}
    names |= {*(item.name for item in scope.imports), *(item.target for item in scope.assigns)}
    return name in names


def _absent(names: Namespace, name: str) -> bool:
    """Whether a module binds a name only for type checking, or later."""
    file = names.file
    imports = file.imports.get(name, [])
    starts = [
        item.start for item in (*file.classes.get(name, ()), *file.functions.get(name, ()), *file.assigns.get(name, ()))
    ]
    starts += [item.start for item in imports]
    checking = [item.body for item in file.body.conditions if item.expr.text.rpartition(".")[2] == "TYPE_CHECKING"]
    starts = [at for at in starts if not any(body.start <= at < body.end for body in checking)]
    if not starts:
        return bool(imports)
    return names.before is not None and min(starts) > names.before
