"""Renames a function's parameters, with all their uses in it."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_cli.lint.diagnostic import FileEdit
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Scope
from opschema_cli.source.text import Edit, Span


def renaming(bodies: Bodies, function: Body, names: Mapping[str, str]) -> tuple[FileEdit, ...] | None:
    """Return the edits, ``names`` mapping old names to new ones; None if they may change the function's behaviour."""
    scopes = list(function.scope.walk())
    if any(_interferes(scope, names) for scope in scopes) or _is_called_by_name(bodies, function, names):
        return None
    spans = {item.span: names[item.name] for item in function.params if item.name in names}
    for scope in scopes:
        for name, start in _mentions(scope):
            if name in names:
                spans[Span(start, start + len(name))] = names[name]
    if any(function.file.text(span) not in names for span in spans):
        return None
    return tuple(FileEdit(function.file.path, Edit(span, name)) for span, name in sorted(spans.items()))


def _mentions(scope: Scope) -> list[tuple[str, int]]:
    reads = [(use.name.partition(".")[0], use.start) for use in scope.uses]
    return reads + [(item.target.partition(".")[0], item.start) for item in scope.assigns if "." in item.target]


def _interferes(scope: Scope, names: Mapping[str, str]) -> bool:
    """Whether a scope binds one of the names, uses one of the new ones, or may look up names dynamically."""
    bound = {item.target for item in scope.assigns} | {item.name for item in scope.imports} | set(scope.deleted)
    bound |= {item.name for item in scope.functions} | {item.name for item in scope.classes}
    inner = {item.name for function in scope.functions for item in function.params}
    used = {use.name.partition(".")[0] for use in scope.uses}
    return bool((bound | inner) & {*names, *names.values()}) or bool(
        used & {*names.values(), "locals", "vars", "eval", "exec"}
    )


def _is_called_by_name(bodies: Bodies, function: Body, names: Mapping[str, str]) -> bool:
    return any(set(call.keywords) & {*names, "**"} for _, call in bodies.calls_of(function))
