"""The names of other modules that a file may give other values when it runs, as tests do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opschema_cli.source.python import Expr, Scope
from opschema_cli.source.word_index import called_word

_SETTING = frozenset({"setattr", "setitem", "delattr", "delitem", "patch", "object", "multiple"})
"""Last words of what sets or patches the attribute or item that a string names: ``mock.patch.object(ops, "launch")``."""

_NAMESPACES = frozenset({"globals", "vars", "locals", "exec"})
"""Functions behind which any name may be set."""


def replaced_names(scopes: Sequence[Scope]) -> set[str]:
    """The last words of the names that the code of some scopes may set in other modules, or in its own by their text."""
    calls = [call for scope in scopes for call in scope.calls]
    named = [set(_strings(call)) | _keywords(call) for call in calls if _sets(call)]
    found = set(_written(scopes)).union(*named)
    found |= {item.key.rpartition(".")[2] for scope in scopes for item in scope.items if _is_namespace(item.target)}
    anything = any(called_word(call.items[0]) in _NAMESPACES for call in calls)
    if anything or not all(named):
        found.update(word for scope in scopes for word in scope.strings)
    return found


def _written(scopes: Iterable[Scope]) -> Iterator[str]:
    """The attributes that are assigned of what is imported."""
    imported = {item.name for scope in scopes for item in scope.imports}
    for scope in scopes:
        targets = [item.target for item in scope.assigns] + [name for item in scope.unpacks for name in item.targets]
        yield from (name.rpartition(".")[2] for name in targets if "." in name and name.partition(".")[0] in imported)


def _sets(call: Expr) -> bool:
    """Whether a call may set something of another object than an instance of the class around."""
    first = call.items[1].text if len(call.items) > 1 else ""
    return called_word(call.items[0]) in _SETTING and first not in ("self", "cls")


def _strings(call: Expr) -> Iterator[str]:
    """The last words of the strings among the arguments of a call."""
    for part in (part for item in call.items[1:] for part in item.walk()):
        if isinstance(part.value, str):
            yield part.value.rpartition(".")[2]


def _keywords(call: Expr) -> set[str]:
    return (
        {word for word in call.keywords if word.isidentifier()} if called_word(call.items[0]) == "multiple" else set()
    )


def _is_namespace(target: str) -> bool:
    return target == "sys.modules" or target.endswith("__dict__")
