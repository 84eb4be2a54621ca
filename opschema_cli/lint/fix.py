"""Applies fixes to an overlay, round by round, until none is left; nothing is written to disk here."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.project import Project
from opschema_cli.source.text import Edit, apply_edits

MAX_ROUNDS = 10
"""Number of rounds after which recurring fixes count as not converging."""

Reload = Callable[[dict[str, str]], Project]


class Fixed(msgspec.Struct):
    """The texts after fixing, by path, the number of fixed findings, and the files left unchanged because their fixes did not
    settle or would have broken them.
    """

    texts: dict[str, str] = msgspec.field(default_factory=dict)
    count: int = 0
    unsettled: list[str] = msgspec.field(default_factory=list)


def fix_all(
    job: Job, project: Project, outcome: Outcome, reload: Reload, *, unsafe: bool
) -> tuple[Fixed, Outcome, Project]:
    """Apply every fix that may be applied, and lint again, until nothing changes.

    When fixes of a file do not settle within :data:`MAX_ROUNDS`, or leave it without a parse, all begins anew without
    the fixes that touch it: a fix is applied in all its files or in none.
    """
    left_alone: set[str] = set()
    while True:
        fixed, after, result, restless = _attempt(job, project, outcome, reload, unsafe, left_alone)
        if not restless:
            fixed.unsettled = sorted(left_alone)
            return fixed, result, after
        left_alone |= restless


def _attempt(
    job: Job, project: Project, outcome: Outcome, reload: Reload, unsafe: bool, left_alone: set[str]
) -> tuple[Fixed, Project, Outcome, set[str]]:
    """Apply fixes round after round; the files whose fixes do not settle or break them are returned last."""
    fixed = Fixed()
    seen: dict[str, set[str]] = {}
    for _ in range(MAX_ROUNDS):
        changed, count = _round(project, outcome.diagnostics, unsafe, left_alone)
        if not changed:
            return fixed, project, outcome, set()
        for path in changed:
            seen.setdefault(path, set()).add(_text(project, path))
        after = reload({**fixed.texts, **changed})
        broken = {path for path in changed if project.parses(path) and not after.parses(path)}
        restless = broken | {path for path, text in changed.items() if text in seen[path]}
        if restless:
            return fixed, project, outcome, restless
        fixed = Fixed({**fixed.texts, **changed}, fixed.count + count)
        project, outcome = after, run(job, after)
    changed, _ = _round(project, outcome.diagnostics, unsafe, left_alone)
    return fixed, project, outcome, set(changed)


def _text(project: Project, path: str) -> str:
    source = project.source(path)
    return "" if source is None else source.text


def _round(
    project: Project, diagnostics: Iterable[Diagnostic], unsafe: bool, left_alone: set[str]
) -> tuple[dict[str, str], int]:
    """Return new texts of the files that this round changes. If fixes overlap, the first one is applied."""
    edits: dict[str, list[Edit]] = {}
    count = 0
    for diagnostic in diagnostics:
        fix = diagnostic.fix
        if fix is not None and (unsafe or fix.safety == "safe") and _take(project, fix, edits, left_alone):
            count += 1
    texts: dict[str, str] = {}
    for path, found in edits.items():
        text = _text(project, path)
        new = apply_edits(text, found)
        if new != text:
            texts[path] = new
    return texts, count if texts else 0


def _take(project: Project, fix: Fix, edits: dict[str, list[Edit]], left_alone: set[str]) -> bool:
    """Add a fix's edits to those of this round, all or none."""
    if any(item.path in left_alone or project.source(item.path) is None for item in fix.edits):
        return False
    added: list[tuple[list[Edit], Edit]] = []
    for item in fix.edits:
        taken = edits.setdefault(item.path, [])
        at = bisect.bisect_left(taken, item.edit)
        if taken[at : at + 1] == [item.edit]:
            continue
        if not _fits(taken, at, item.edit):
            for earlier, edit in added:
                earlier.remove(edit)
            return False
        taken.insert(at, item.edit)
        added.append((taken, item.edit))
    return True


def _fits(taken: Sequence[Edit], at: int, edit: Edit) -> bool:
    """Whether an edit overlaps none of a sorted list, in which its place is ``at``."""
    around = [*taken[max(at - 1, 0) : at], edit, *taken[at : at + 1]]
    return all(one.span.end <= other.span.start != one.span.start for one, other in pairwise(around))
