"""Names of other modules that a file may rebind at run time, as tests do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from opschema_cli.source.python import Expr, Scope
from opschema_cli.source.word_index import called_word

_SETTING = frozenset({"setattr", "setitem", "delattr", "delitem", "patch", "object", "multiple"})
"""Last words of functions that set or patch the attribute or item named by a string: ``mock.patch.object(ops, "launch")``."""

_FIXTURES = frozenset({"monkeypatch", "mocker"})
"""Test fixtures that set names for the functions that receive them."""

_NAMESPACES = frozenset({"globals", "vars", "locals", "exec"})
"""Functions that may rebind any name."""


def setting_calls(scope: Scope) -> list[Expr]:
    """Return the calls of a scope that may set a name of an object other than an instance of the enclosing class."""
    return [call for call in scope.calls if _sets(call)]


def may_set(text: str, called: Collection[str]) -> bool:
    """Whether a file has such calls at all, by its text and the last words of the functions that it calls."""
    return any(word in called for word in _SETTING) or "dict" in called or any(word in text for word in _FIXTURES)


def replaced_names(scopes: Sequence[Scope], setting: Sequence[Expr]) -> set[str]:
    """Return the last words of the names that some scopes and their :func:`setting_calls` set in other modules."""
    items = (item for scope in scopes for item in scope.items if _is_namespace(item.target))
    found = set(_written(scopes)).union(*map(_named, setting), (item.key.rpartition(".")[2] for item in items))
    return found | _strings(scopes) if _sets_computed(scopes, setting) else found


def computed_names(scopes: Sequence[Scope], setting: Iterable[Expr], called: Collection[str]) -> set[str]:
    """Return all strings of some scopes that may be names, if their code sets computed names; otherwise none. ``called`` are the
    last words of the functions that they call.
    """
    computes = any(word in called for word in _NAMESPACES) or not all(map(_named, setting))
    return _strings(scopes) if computes else set()


def _strings(scopes: Sequence[Scope]) -> set[str]:
    return {word for scope in scopes for word in scope.strings}


def _sets_computed(scopes: Sequence[Scope], setting: Iterable[Expr]) -> bool:
    """Whether code sets names of imported modules that it computes."""
    imported = {item.name for scope in scopes for item in scope.imports}
    calls = (call for call in setting if not _named(call))
    return any(item.text.partition(".")[0] in imported for call in calls for item in call.items[1:2])


def _written(scopes: Iterable[Scope]) -> Iterator[str]:
    """Yield the attributes of imported objects that are assigned."""
    imported = {item.name for scope in scopes for item in scope.imports}
    for scope in scopes:
        targets = [item.target for item in scope.assigns] + [name for item in scope.unpacks for name in item.targets]
        yield from (name.rpartition(".")[2] for name in targets if "." in name and name.partition(".")[0] in imported)


def _sets(call: Expr) -> bool:
    """Whether a call may set an attribute of an object other than an instance of the enclosing class, or passes on a function that
    may.
    """
    word = called_word(call.items[0])
    if word == "dict":
        return call.callee.endswith("patch.dict")
    if word not in _SETTING and not any(item.text in _FIXTURES for item in call.items[1:]):
        return False
    return len(call.items) < 2 or call.items[1].text not in ("self", "cls")


def _named(call: Expr) -> set[str]:
    """Return the last words of the string arguments of a call that sets names, and its keywords, if these are the names to set."""
    strings = (part.value for item in call.items[1:] for part in item.walk() if isinstance(part.value, str))
    keywords = call.keywords if called_word(call.items[0]) in ("multiple", "dict") else ()
    return {text.rpartition(".")[2] for text in (*strings, *keywords)}


def _is_namespace(target: str) -> bool:
    return target == "sys.modules" or target.endswith("__dict__")
