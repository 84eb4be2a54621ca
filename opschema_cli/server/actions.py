"""Quick fixes: the fixes of findings, suppressions, and all safe fixes at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lsprotocol import types

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.runner import Outcome
from opschema_cli.lint.suppression_edit import suppressing_edit
from opschema_cli.server.edits import difference, workspace_edit
from opschema_cli.server.findings import Converter
from opschema_cli.server.warm import WarmLint
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, YamlSyntaxError
from opschema_cli.source.yaml_compose import compose

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.opschema"


class Actions:
    """The actions on the findings of a workspace. ``versions`` are those of the open texts, by address."""

    def __init__(self, warm: WarmLint, outcome: Outcome, converter: Converter, versions: Mapping[str, int]) -> None:
        self._warm, self._outcome, self._converter, self._versions = warm, outcome, converter, versions

    def at(self, path: str, span: Span, only: Sequence[str]) -> list[types.CodeAction]:
        """The actions on findings that a span of a file touches, of the kinds ``only``, if some are named."""
        here = [item for item in self._outcome.diagnostics if item.place.path == path]
        touched = [item for item in here if item.place.span.start <= span.end and item.place.span.end >= span.start]
        actions = [action for item in touched for action in (*self._fixes(item), *self._suppressions(item))]
        if any(item.fix is not None and item.fix.safety == "safe" for item in here):
            actions.append(
                types.CodeAction(
                    "Fix all safe findings (opschema)", FIX_ALL, data={"uri": self._converter.uri_of(path)}
                )
            )
        return [action for action in actions if not only or any(_is_of(action, kind) for kind in only)]

    def _fixes(self, item: Diagnostic) -> Iterator[types.CodeAction]:
        fix = item.fix
        if fix is None:
            return
        edits: dict[str, list[Edit]] = {}
        for part in fix.edits:
            edits.setdefault(part.path, []).append(part.edit)
        is_safe = fix.safety == "safe"
        title = fix.title[:1].upper() + fix.title[1:]
        yield from self._quick(
            item, title if is_safe else f"{title} (unsafe: {fix.why_unsafe})", edits, preferred=is_safe
        )

    def _suppressions(self, item: Diagnostic) -> Iterator[types.CodeAction]:
        project = self._warm.project
        source = project.source(item.place.path)
        if source is not None:
            edit = suppressing_edit(
                source, item.place.span.start, item.code, self._warm.registry, project.yaml_root, _root
            )
            if edit is not None:
                yield from self._quick(item, f"Suppress {item.code} ({item.name}) on this line", {source.path: [edit]})

    def _quick(
        self, item: Diagnostic, title: str, edits: Mapping[str, Sequence[Edit]], *, preferred: bool = False
    ) -> Iterator[types.CodeAction]:
        found = workspace_edit(self._converter, edits, self._versions)
        if found is not None:
            kind = types.CodeActionKind.QuickFix
            diagnostics = [self._converter.diagnostic(item)]
            yield types.CodeAction(title, kind, diagnostics, is_preferred=preferred or None, edit=found)

    def fixed(self) -> types.WorkspaceEdit | None:
        """The edit that applies all safe fixes of the workspace."""
        fixed = self._warm.fixed(self._outcome)
        edits: dict[str, list[Edit]] = {}
        for path, text in fixed.items():
            source = self._warm.project.source(path)
            if source is not None:
                edits[path] = difference(source, text)
        return workspace_edit(self._converter, edits, self._versions)


def _is_of(action: types.CodeAction, kind: str) -> bool:
    """Whether an action is of a kind or a kind below it."""
    own = getattr(action.kind, "value", action.kind)
    return f"{own}.".startswith(f"{kind}.")


def _root(text: str) -> Node | None:
    try:
        return compose(text).root
    except YamlSyntaxError:
        return None
