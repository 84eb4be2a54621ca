"""The changes of ``opschema diff`` as findings, for all report formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from opschema_cli.commands.diff_sides import TableSide
from opschema_cli.config import Allowance
from opschema_cli.diff.model import AUDIENCES, KINDS, Change, Level, Unclear
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.builtin import BUILTIN_RULES
from opschema_cli.lint.diagnostic import Diagnostic, NotUnderstood, Place, Related, Severity
from opschema_cli.phrases import joined
from opschema_cli.reporters import Report, RuleInfo, Summary
from opschema_cli.source.text import Source, Span

PAGE: Final = "https://github.com/opschema/opschema/blob/main/docs/diff.md"
UNUSED: Final = "DIF901"
EXPIRED: Final = "DIF902"
STALE_LOCK: Final = "DIF903"
_NOTES = {
    UNUSED: RuleInfo("unused-allowance", "An entry of `diff.allow` accepts no change.", ""),
    EXPIRED: RuleInfo("expired-allowance", "An entry of `diff.allow` has expired.", ""),
    STALE_LOCK: RuleInfo("stale-lock", "The lock file differs from the operators of the tree.", ""),
}


_NAMES = {rule.code: rule.name for rule in BUILTIN_RULES}


class Found(msgspec.Struct, frozen=True):
    """Everything that a comparison found, before it is printed."""

    changes: Sequence[Change]
    unclear: Sequence[Unclear]
    operators: int
    accepted: int
    allowances: Sequence[Diagnostic]
    problems: Sequence[Diagnostic]


class Sides(msgspec.Struct, frozen=True):
    """Both sides, and the packs whose operators a migration renames. With ``in_tree`` each finding is at a file of the tree, for
    formats that annotate files.
    """

    old: TableSide
    new: TableSide
    renaming: frozenset[str] = frozenset()
    in_tree: bool = False


def finding(change: Change, level: Level, sides: Sides) -> Diagnostic:
    """Convert a change to a finding: at its new place, or else at the old one; the old place is the other side."""
    old = sides.old.place(change.old)
    place = sides.new.place(change.new) or _of_removed(change, sides) or old or Place(".", Span(0, 0))
    related = (Related(old, f"`{change.operator}` in {sides.old.label}"),) if old is not None and old != place else ()
    severity = Severity.INFO
    if change.hits:
        severity = Severity.ERROR if change.breaks(level) else Severity.WARNING
    kind = KINDS[change.kind]
    return Diagnostic(
        _message(change) + _advice(change, sides),
        place,
        related,
        None,
        (change.operator,),
        kind.code,
        change.kind,
        severity,
    )


def _message(change: Change) -> str:
    named = (
        change.message
        if change.message.startswith(f"`{change.operator}`")
        else f"`{change.operator}`: {change.message}"
    )
    shown = [item for item in change.hits if item != "new-graphs" or "graphs" not in change.hits]
    names = [AUDIENCES[item] for item in shown]
    # A comma sets the last one off where a name has an `and` of its own.
    word = ", and" if len(names) > 1 and any(" and " in name for name in names) else "and"
    hits = joined(names, word).replace(" , ", ", ")
    return f"{named} (affects {hits})" if hits else named


def _of_removed(change: Change, sides: Sides) -> Place | None:
    """Return the head of the file that contained a removed operator."""
    return Place(change.old.path, Span(0, 0)) if sides.in_tree and change.old is not None else None


def _advice(change: Change, sides: Sides) -> str:
    """Return the command that renames an operator for its users, if a migration of its pack does."""
    names = change.message.split("`")[1::2]
    if change.kind != "operator-renamed" or change.pack not in sides.renaming or "callers" not in change.hits:
        return ""
    return f"; rename it in code that uses it: `opschema migrate rename-op -o old={names[0]} -o new={names[1]}`"


def allowance_findings(
    unused: Sequence[Allowance], expired: Sequence[Allowance], path: str, text: str
) -> list[Diagnostic]:
    """A warning at each entry of the configuration that accepts nothing or has expired."""
    found = [_allowance(UNUSED, item, f"`{item.operator}` accepts no change; delete it", path, text) for item in unused]
    message = "`{}` was accepted until {}, and counts again: {}"
    return found + [
        _allowance(EXPIRED, item, message.format(item.operator, item.expires, item.reason), path, text)
        for item in expired
    ]


def _allowance(code: str, item: Allowance, message: str, path: str, text: str) -> Diagnostic:
    start = max(text.find(item.operator), 0)
    span = Span(start, start + len(item.operator)) if start else Span(0, 0)
    return Diagnostic(message, Place(path, span), code=code, name=_NOTES[code].name, severity=Severity.WARNING)


def stale_lock(path: str) -> Diagnostic:
    """A warning at a lock file that differs from the tree."""
    message = "this lock file differs from the operators of the tree; `opschema diff --lock` writes it"
    name = _NOTES[STALE_LOCK].name
    return Diagnostic(message, Place(path, Span(0, 0)), code=STALE_LOCK, name=name, severity=Severity.WARNING)


def problems_of(old: TableSide, new: TableSide) -> list[Diagnostic]:
    """Return the files that could not be read on one side. One that is the same on both sides hides the same operators on both,
    and a link out of the tree is not part of it.
    """
    same = {_identity(old, item) for item in old.problems} & {_identity(new, item) for item in new.problems}
    return [
        msgspec.structs.replace(item, place=side.place(item.place) or item.place, name=_NAMES.get(item.code, ""))
        for side in (old, new)
        for item in side.problems
        if _identity(side, item) not in same and not _leads_out(side, item.place.path)
    ]


def _leads_out(side: TableSide, path: str) -> bool:
    try:
        side.project.workspace.locate(path)
    except OpschemaError:
        return True
    return False


def _identity(side: TableSide, item: Diagnostic) -> tuple[str, str, str]:
    return item.code, item.place.path, side.project.workspace.digest(item.place.path)


def report_of(
    found: Found, sides: Sides, level: Level, sources: Callable[[str], Source | None], seconds: float
) -> Report:
    """The report of a comparison."""
    diagnostics = [finding(item, level, sides) for item in found.changes]
    diagnostics += [*found.allowances, *found.problems]
    diagnostics.sort(key=lambda item: (item.place.path, item.place.span, item.code, item.message))
    levels = [item.severity for item in diagnostics]
    rules = {kind.code: RuleInfo(name, kind.summary, kind.summary, uri=PAGE) for name, kind in KINDS.items()}
    unresolved = [_unclear(item, sides) for item in found.unclear]
    return Report(
        diagnostics,
        Summary(
            levels.count(Severity.ERROR),
            levels.count(Severity.WARNING),
            levels.count(Severity.INFO),
            suppressed=found.accepted,
            baselined=0,
            ops=found.operators,
            files=len(sides.new.project.inputs),
            seconds=seconds,
            unresolved=len(unresolved),
            mostly=unresolved[0].reason if unresolved else "",
        ),
        sources,
        {**rules, **_NOTES},
        sides.new.project.workspace.root,
        unresolved=unresolved,
    )


def _unclear(item: Unclear, sides: Sides) -> NotUnderstood:
    side = sides.new if item.on_new_side else sides.old
    return NotUnderstood(side.place(item.place) or Place(".", Span(0, 0)), item.reason)
