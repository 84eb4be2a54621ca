"""Verifies what a command is about to write: the workspace as it is against the draft of what it would be."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import click

from opschema_cli.commands.plugins import open_workspace
from opschema_cli.session import Session
from opschema_cli.verify.model import Limits, Plan, Target
from opschema_cli.verify.prepare import Asked, Tree, make_plans, prepare
from opschema_cli.verify.results import Results
from opschema_cli.verify.run import Run
from opschema_cli.workspace import Workspace


def verify_draft(session: Session, draft: Workspace, touched: frozenset[str], ops: Iterable[str]) -> bool:
    """Run the ops that a draft touches, before and after, and print what came of it; whether nothing failed.

    ``touched`` are the files that change, ``ops`` the operators that the change is about.

    Raises:
        OpschemaError: PyTorch is missing, or the trees cannot be run.
    """
    from opschema_cli.verify.sides import draft_of

    with (
        draft_of(draft) as tree,
        closing(open_workspace(tree, no_plugins=not session.run_plugins, cache=False)) as after,
    ):
        names = list(_affected(after, touched, ops))
        if not names:
            click.echo("opschema: no op is affected that could be verified", err=True)
            return True
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="opschema-", ignore_cleanup_errors=True) as folder:
            asked = Asked(ops=names)
            results = _run(prepare(Tree(after, "the draft"), Tree(session, "."), asked, Path(folder)))
    _print(results, time.perf_counter() - started)
    return not results.failed


def _affected(after: Session, touched: frozenset[str], ops: Iterable[str]) -> Iterator[str]:
    """The ops that a change is about, and those whose own module changes."""
    asked = set(ops)
    plans: list[Plan] = []
    if asked:
        # An op that is not implemented has a plan only if it is named.
        plans = [plan for plan in make_plans(after, sorted(asked), Limits()) if plan.op in asked]
    known = [plan.op for plan in plans]
    yield from known
    for plan in make_plans(after, (), Limits()):
        if plan.op not in known and not touched.isdisjoint(_files(plan.target)):
            yield plan.op


def _files(target: Target) -> set[str]:
    """Where a target's module may lie, relative to its root."""
    stem = target.module.replace(".", "/")
    folders = ["" if path == "." else f"{path}/" for path in target.paths or (".",)]
    return {f"{folder}{stem}{tail}" for folder in folders for tail in (".py", "/__init__.py")}


def _run(run: Run) -> Results:
    from opschema_cli.commands.verify import CellProgress
    from opschema_cli.verify.session import run_cells

    with CellProgress() as progress:
        return run_cells(run, progress=progress)


def _print(results: Results, seconds: float) -> None:
    from opschema_cli.reporters.text import open_console
    from opschema_cli.reporters.verification import text

    text.write(results, open_console(sys.stderr), seconds)
