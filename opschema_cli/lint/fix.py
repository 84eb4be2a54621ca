"""Applies fixes to an overlay, round by round, until none is left; the disk is not touched here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.project import Project
from opschema_cli.source.text import Edit, EditConflictError, apply_edits

MAX_ROUNDS = 10
"""Rounds after which fixes that keep coming count as not converging."""


@dataclass
class Fixed:
    """The texts after fixing, by path, how many findings were fixed, and the files left alone since fixes did not settle."""

    texts: dict[str, str] = field(default_factory=dict)
    count: int = 0
    unsettled: list[str] = field(default_factory=list)


def fix_all(
    job: Job, project: Project, outcome: Outcome, reload: Callable[[dict[str, str]], Project], *, unsafe: bool
) -> tuple[Fixed, Outcome, Project]:
    """Apply every fix that may be applied, and lint again, until nothing changes.

    A round that breaks a file's syntax or makes new syntax findings is dropped. When fixes do not settle within
    :data:`MAX_ROUNDS`, the files that still change keep their old text.
    """
    fixed = Fixed()
    seen = [dict(fixed.texts)]
    for _ in range(MAX_ROUNDS):
        changed, count = _round(project, outcome.diagnostics, unsafe)
        if not changed:
            return fixed, outcome, project
        texts = {**fixed.texts, **changed}
        if texts in seen:
            return _unsettled(job, fixed, set(changed), reload)
        after = reload(texts)
        result = run(job, after)
        broken = {path for _, path in after.problems} & set(changed)
        if broken:
            return _unsettled(job, fixed, broken, reload)
        seen.append(texts)
        fixed = Fixed(texts, fixed.count + count)
        outcome, project = result, after
    changed, _ = _round(project, outcome.diagnostics, unsafe)
    return _unsettled(job, fixed, set(changed), reload) if changed else (fixed, outcome, project)


def _unsettled(
    job: Job, fixed: Fixed, paths: set[str], reload: Callable[[dict[str, str]], Project]
) -> tuple[Fixed, Outcome, Project]:
    texts = {path: text for path, text in fixed.texts.items() if path not in paths}
    project = reload(texts)
    return Fixed(texts, fixed.count, sorted(paths)), run(job, project), project


def allowed(fix: Fix | None, unsafe: bool) -> bool:
    """Whether a fix may be applied."""
    return fix is not None and (unsafe or fix.safety == "safe")


def _round(project: Project, diagnostics: Iterable[Diagnostic], unsafe: bool) -> tuple[dict[str, str], int]:
    """New texts of the files that this round changes. Of fixes that overlap, the first is taken."""
    edits: dict[str, list[Edit]] = {}
    count = 0
    for diagnostic in diagnostics:
        if diagnostic.fix is not None and allowed(diagnostic.fix, unsafe) and _take(project, diagnostic.fix, edits):
            count += 1
    texts: dict[str, str] = {}
    for path, found in edits.items():
        source = project.source(path)
        if source is not None:
            text = apply_edits(source.text, found)
            if text != source.text:
                texts[path] = text
    return texts, count if texts else 0


def _take(project: Project, fix: Fix, edits: dict[str, list[Edit]]) -> bool:
    trial = {path: list(found) for path, found in edits.items()}
    for item in fix.edits:
        trial.setdefault(item.path, []).append(item.edit)
    for path in {item.path for item in fix.edits}:
        source = project.source(path)
        if source is None:
            return False
        try:
            apply_edits(source.text, trial[path])
        except EditConflictError:
            return False
    edits.update(trial)
    return True
