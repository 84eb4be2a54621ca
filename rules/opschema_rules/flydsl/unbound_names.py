"""Names that a file uses and that no enclosing scope binds."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from opschema_cli.source.python import PythonFile, Scope
from opschema_cli.source.text import SpanSet

_BINDING = frozenset({"exec", "globals", "locals", "vars", "eval"})
"""Functions that may bind a name without a statement."""

_NAMESPACE = re.compile(r"globals(?:__)?\b|\bsys\.modules\b")
"""The names of a module as a dictionary or object, through which code may bind names, under any alias."""

_KNOWN = frozenset(dir(builtins)) | {
    "__file__",
    "__name__",
    "__doc__",
    "__spec__",
    "__package__",
    "__path__",
    "__class__",
    "__builtins__",
    "__cached__",
    "__annotations__",
    "WindowsError",
    "PythonFinalizationError",
}
"""Names that Python always binds, including those of other platforms and Python versions."""

_INNER = (
    re.compile(r"for\s([^\n:]{1,200}?)\sin\b"),
    re.compile(r"lambda\b([^\n:]{0,200}):"),
    re.compile(r"type\s+(\w+)(?:\s|\\\n)*[=\[]"),
)
"""Targets of loops and comprehensions, parameters of lambdas, and `type` statements of Python 3.12. Each pattern begins with a
literal word: `re` finds these some twenty times faster than a word boundary or alternatives.
"""
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPE_PARAMETERS = re.compile(r"(?:\s|\\\n)*\[")
"""The begin of the type parameters after the name of a function, class or type."""

_BRACKET = re.compile(r"[\[\]#]")
_LONGEST = 2_000
"""Maximum number of characters of type parameters."""


def sets_namespace(text: str) -> bool:
    """Whether code may bind names of its module through the module's dictionary or object."""
    return ("globals" in text or "sys.modules" in text) and _NAMESPACE.search(text) is not None


def unbound_names(
    file: PythonFile, found: Sequence[tuple[int, Scope]], used: Iterable[set[str]], called: Collection[str]
) -> list[str]:
    """The first words of the names that functions of a file use, and that no statement of the function, of those around it or of
    the module binds when the code runs. ``found`` are the scopes of the file, those around others before these, ``used`` the
    names that each uses, and ``called`` the last words of what they call.

    Names that any comprehension, loop, lambda or list of type parameters of the file binds are left out, and all of files that
    import `*` or bind names by their text.
    """
    module, text = found[0][1], file.source.text
    if any(item.attr == "*" for item in module.imports) or not _BINDING.isdisjoint(called):
        return []
    shared = {name for _, scope in found for name in scope.deleted}
    visible: dict[int, frozenset[str]] = {}
    unbound: set[str] = set()
    for (start, scope), names in zip(found, used, strict=True):
        own = visible.get(start, frozenset())
        if scope is not module:
            own = own.union(
                [item.name for item in scope.functions],
                [item.name for item in scope.classes],
                [item.name for item in scope.imports],
                [item.target for item in scope.assigns],
            )
            unbound.update({name.partition(".")[0] for name in names - own} - own)
        visible.update((item.start, own | {param.name for param in item.params}) for item in scope.functions)
        visible.update((item.start, own) for item in scope.classes)
    unbound -= _KNOWN | shared | set(_bound_in_module(module))
    if unbound and sets_namespace(text):
        return []
    if unbound:
        inner = [match for pattern in _INNER for match in pattern.finditer(text)]
        ends = [item.end for _, scope in found for part in (scope.functions, scope.classes) for item in part]
        parameters = (_type_parameters(text, end) for end in (*ends, *(match.end(1) for match in inner)))
        parts = [*(match[1] for match in inner), *parameters]
        unbound.difference_update(word for part in parts for word in _WORD.findall(part))
    return sorted(name for name in unbound if name.isidentifier())


def _type_parameters(text: str, at: int) -> str:
    """Return the type parameters that follow a name; a comment in them may hide where they end."""
    match = _TYPE_PARAMETERS.match(text, at)
    part = text[match.end() : match.end() + _LONGEST] if match is not None else ""
    depth = 1
    for mark in _BRACKET.finditer(part):
        if mark[0] == "#":
            return part
        depth += 1 if mark[0] == "[" else -1
        if depth == 0:
            return part[: mark.start()]
    return part


def _bound_in_module(module: Scope) -> Iterator[str]:
    """Yield the names that a module binds at run time, and not only for type checkers."""
    conditions = () if _is_set(module, "TYPE_CHECKING") else module.conditions
    typing = SpanSet(item.body for item in conditions if item.expr.text.rpartition(".")[2] == "TYPE_CHECKING")
    for name, items in module.named.items():
        if any(item.start not in typing for item in items):
            yield name.partition(".")[0]
    yield from (name for item in module.unpacks for name in item.targets)
    yield from (name for item in module.loops for name in item.targets)


def _is_set(module: Scope, name: str) -> bool:
    """Whether a module assigns a variable a value other than `False`."""
    values = (item.value for item in module.assigns if item.target == name)
    return any(value is None or value.kind != "const" or bool(value.value) for value in values)
