"""Changes many files atomically, and completes or reverts the rest of a killed run.

New files are staged beside their targets and old ones kept beside them; then the journal says *commit*; then each new file
takes its place. A run that fails on the way undoes it; of one that is killed, :func:`recover` completes what said commit and
discards the rest. While the journal is locked, no other run writes here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.regular_files import content_digest
from opschema_cli.transaction import JOURNAL
from opschema_cli.transaction.disk import Conflict
from opschema_cli.transaction.journal import Journal, Plan, Step, locked, parse, quoted, read_journal
from opschema_cli.transaction.steps import Work, Write


def write_files(root: Path, writes: Sequence[Write]) -> None:
    """Change all files, or none.

    Raises:
        OSError, Conflict: something failed, or a file changed meanwhile; then no file was changed.
        OpschemaError: another run is at work, or a failure could not be undone; the message says what to do.
    """
    plan = _plan(root, writes)
    with locked(root) as journal:
        if os.fstat(journal).st_size:
            raise Conflict(f"{JOURNAL} was left by another run meanwhile; run again")
        work = Work(root, plan, journal)
        work.check()
        try:
            work.stage(writes)
        except BaseException:
            work.clean(made=True)
            raise
        taken: set[Step] = set()
        try:
            work.mark("commit")
            work.forward(taken)
        except BaseException:
            work.undo(taken)
            raise
        work.finish()


def recover(root: Path) -> str:
    """Complete or revert an earlier run that was killed. Return a description, or an empty text if there was nothing to do.

    Raises:
        OpschemaError: the journal is not this user's, another run is at it, or files changed meanwhile.
    """
    if read_journal(root) is None:
        return ""
    try:
        with locked(root) as journal:
            found = parse(root / JOURNAL, os.read(journal, os.fstat(journal).st_size))
            return _recover(root, found, journal)
    except (OSError, Conflict) as error:
        hint = f"mend that and try again, or see to the tree with git and delete {JOURNAL}"
        raise OpschemaError(f"the changes of an earlier run cannot be completed: {error}; {hint}") from None


def _recover(root: Path, found: Journal, journal: int) -> str:
    work = Work(root, found.plan or Plan("0" * 16, [], []), journal)
    if found.state == "commit":
        work.forward()
    elif found.state == "abort":
        work.backward()
    work.clean(made=found.state != "commit")
    if found.plan is None:
        return ""
    files = f"{len(work.plan.steps)} file{'s' * (len(work.plan.steps) != 1)}"
    return (
        f"{'completed' if found.state == 'commit' else 'discarded'} the changes that an earlier run had begun ({files})"
    )


def check_finished(root: Path) -> None:
    """Refuse a workspace in which an earlier run has changed only some files. A run that has not changed any file is ignored.

    Raises:
        OpschemaError: it is so, or may be so.
    """
    found = read_journal(root)
    if found is not None and found.state != "staging":
        hint = "`opschema migrate --recover` completes it"
        raise OpschemaError(f"an apply is unfinished here, so files may be half old, half new; {hint}")


def _plan(root: Path, writes: Iterable[Write]) -> Plan:
    steps: list[Step] = []
    folders: dict[str, None] = {}
    for write in writes:
        name = quoted(write.target.relative_to(root).as_posix())
        steps.append(Step(name, _digest(write.before), _digest(write.after)))
        missing = [folder for folder in write.target.parents if root in folder.parents and not folder.exists()]
        folders.update((quoted(folder.relative_to(root).as_posix()), None) for folder in reversed(missing))
    return Plan(os.urandom(8).hex(), steps, [*folders])


def _digest(data: bytes | None) -> str:
    return "" if data is None else content_digest(data)
