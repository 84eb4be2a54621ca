"""Verifies pending changes of a command: the current workspace against the draft."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import click
import msgspec

from opschema_cli.commands.affected import affected, changes_code
from opschema_cli.commands.output import ProgressBar
from opschema_cli.commands.plugins import open_workspace
from opschema_cli.file_kinds import is_python
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Result
from opschema_cli.phrases import count, some
from opschema_cli.reporters.escape import visible
from opschema_cli.session import Session
from opschema_cli.verify.gathering import ResultOptions
from opschema_cli.verify.model import Limits, Plan
from opschema_cli.verify.prepare import Asked, Tree, make_plans, prepare
from opschema_cli.verify.results import Results, Version
from opschema_cli.verify.run import Run
from opschema_cli.verify.scratch import scratch_folder


class Subject(msgspec.Struct):
    """The ops that migrations concern, by their present names; ``renamed`` maps some of these to the old names."""

    ops: set[str] = msgspec.field(default_factory=set)
    renamed: dict[str, str] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Result]) -> Subject:
        """Results of migrations, in order."""
        found = cls()
        for site in (chosen.site for result in results for chosen in result.sites if chosen.status == "migrated"):
            found.ops.update(site.ops)
            if site.renamed:
                (old,) = site.ops
                found.ops = {site.renamed if op == old else op for op in found.ops}
                found.renamed[site.renamed] = found.renamed.pop(old, old)
        return found


def verify_draft(
    session: Session,
    draft: Draft,
    results: Sequence[Result],
    *,
    cells: int | None = None,
    allow_unverified: bool = False,
) -> bool:
    """Run the ops that a draft changes, before and after, at most ``cells`` of each, and print the results. Return whether nothing
    failed, and something of each op was run unless ``allow_unverified``.

    Raises:
        OpschemaError: PyTorch is missing, or the trees cannot be run.
    """
    from opschema_cli.verify.sides import draft_of

    subject = Subject.of(results)
    with (
        draft_of(draft.project.workspace) as tree,
        closing(open_workspace(tree, no_plugins=not session.run_plugins, cache=False)) as after,
    ):
        limits = Limits() if cells is None else Limits(cells=cells)
        every = make_plans(after, (), limits)
        plans = _plans(after, every, draft, subject.ops, limits)
        if not plans and not subject.ops:
            click.echo("opschema: no op is affected that could be verified", err=True)
            return True
        names = {plan.op for plan in plans}
        others = len(names - subject.ops)
        more = f", {others} of them because a file changes that they run" if others else ""
        click.echo(f"opschema: verifying {count(len(plans), 'op')}{more}", err=True)
        renamed = {new: old for new, old in subject.renamed.items() if new in names}
        started = time.perf_counter()
        with scratch_folder() as folder:
            sides = Tree(after, Version(name="the draft")), Tree(session, Version(name="."))
            found = _run(
                prepare(plans, *sides, Asked(renamed=renamed, limits=limits), Path(folder), {plan.op for plan in every})
            )
    _print(found, time.perf_counter() - started)
    wanted = subject.ops.union(plan.op for plan in plans if plan.implemented)
    return not found.failed and (_verified(found, wanted) or allow_unverified)


def _verified(results: Results, ops: Iterable[str]) -> bool:
    """Whether something of each op was run, on both sides or against a reference; prints the ops that were not run."""
    ran = {cell.op for cell in results.cells.values() if cell.verdict != "not-checked"}
    missed = sorted(set(ops) - ran)
    if missed:
        what = some([visible(op) for op in missed], 4)
        click.echo(f"opschema: nothing was checked of {what}; --allow-unverified writes anyway", err=True)
    return not missed


def _plans(after: Session, every: Sequence[Plan], draft: Draft, ops: Iterable[str], limits: Limits) -> list[Plan]:
    """Return the plans of the ops that a draft concerns, then of those that run a changed file."""
    wanted = set(ops)
    # An op that is not implemented has cells only if it is named.
    unnamed = sorted(plan.op for plan in every if plan.op in wanted and not plan.cells)
    named = {plan.op: plan for plan in (make_plans(after, unnamed, limits) if unnamed else ())}
    touched = [
        change.path
        for change in draft.changes
        if not is_python(change.path) or changes_code(change.before, change.after)
    ]
    others = set(affected(draft.project, every, touched, draft.loaded.files)) - wanted
    about = sorted((plan for plan in every if plan.op in wanted), key=lambda plan: plan.op)
    return [named.get(plan.op, plan) for plan in about] + [plan for plan in every if plan.op in others]


def _run(run: Run) -> Results:
    from opschema_cli.verify.session import run_cells

    with ProgressBar("verifying", "cells", quiet=0, lines=True) as progress:
        return run_cells(run, options=ResultOptions(progress=progress))


def _print(results: Results, seconds: float) -> None:
    from opschema_cli.reporters.text import open_console
    from opschema_cli.reporters.verification import text

    text.write(results, open_console(sys.stderr), seconds)
