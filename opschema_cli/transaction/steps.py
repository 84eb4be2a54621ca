"""The steps of a plan, forward and backward. Each can be repeated after a run was killed in the middle of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.transaction.disk import Conflict, append, create, digest_at, keep, remove, sync_folders
from opschema_cli.transaction.journal import Plan, State, Step, head


class Write(msgspec.Struct, frozen=True):
    """One file: where it lies, its bytes before and after (None: no file), and whose owner and mode it gets."""

    target: Path
    before: bytes | None
    after: bytes | None
    like: os.stat_result | None = None


class Work(msgspec.Struct, frozen=True):
    """A plan being carried out under the lock of the journal, which is open as ``journal``."""

    root: Path
    plan: Plan
    journal: int

    def _files(self) -> Iterator[tuple[Step, Path, Path, Path]]:
        """Each step with its target, its staged new file and the kept old one."""
        for number, step in enumerate(self.plan.steps):
            target = self.root / step.name
            stem = f".opschema-{self.plan.token}-{number}"
            yield step, target, target.with_name(f"{stem}.new"), target.with_name(f"{stem}.old")

    def _folders(self) -> list[Path]:
        return [self.root / Step(name, "", "").name for name in self.plan.folders]

    def stage(self, writes: Iterable[Write]) -> None:
        """Write the journal's header, then all files that the steps need, and flush them to disk."""
        append(self.journal, head(self.plan))
        sync_folders([self.root])
        for folder in self._folders():
            os.mkdir(folder)
        for write, (_, target, new, old) in zip(writes, self._files(), strict=True):
            if write.after is not None:
                create(new, write.after, write.like)
            if write.before is not None:
                keep(target, old, write.before, write.like)
        sync_folders([*self._folders(), *(target.parent for _, target, _, _ in self._files())])

    def mark(self, state: State) -> None:
        """Write the state that is reached."""
        append(self.journal, f"{state}\n".encode())

    def check(self) -> None:
        """Check that all files are as they were when they were read.

        Raises:
            Conflict: one is not.
        """
        for step, target, _, _ in self._files():
            if digest_at(target) != step.before:
                raise Conflict(f"{step.name} changed on disk since it was read")

    def forward(self, taken: set[Step] | None = None) -> None:
        """Take all steps that are not taken yet, and add them to ``taken``.

        Raises:
            Conflict: a file is neither as it was before the step nor as it is after it.
        """
        for step, target, new, _ in self._files():
            _check_before(step, target, new)
        for step, target, new, _ in self._files():
            open_step = new.exists() if step.after else os.path.lexists(target)
            if open_step:
                _check_before(step, target, new)
                (taken if taken is not None else set()).add(step)
                os.replace(new, target) if step.after else os.unlink(target)
        sync_folders(target.parent for _, target, _, _ in self._files())

    def backward(self, taken: Container[Step] | None = None) -> None:
        """Revert all steps, or those that this run made. Steps that were not made or are already reverted stay.

        Raises:
            Conflict: a file is not as the step left it.
        """
        for step, target, new, old in self._files():
            found = digest_at(target)
            if found == step.before or (taken is not None and step not in taken):
                continue
            if not step.before:
                if found == step.after and not new.exists():
                    os.unlink(target)
            elif not step.after:
                if found == "" and old.exists():
                    os.replace(old, target)
            elif old.exists() and not new.exists():
                if found != step.after:
                    raise Conflict(f"{step.name} changed since it was replaced")
                os.replace(old, target)

    def finish(self) -> None:
        """Clean up after everything was written.

        Raises:
            OpschemaError: that failed.
        """
        try:
            self.clean()
        except OSError as error:
            hint = "`opschema migrate --recover` tries again"
            raise OpschemaError(f"all is written, but {error} while cleaning up; {hint}") from None

    def undo(self, taken: Container[Step]) -> None:
        """Restore the state before this run.

        Raises:
            OpschemaError: that failed too.
        """
        try:
            # A disk that takes no more may still give back what it has.
            with contextlib.suppress(OSError):
                self.mark("abort")
            self.backward(taken)
            self.clean(made=True)
        except (OSError, Conflict) as error:
            hint = "`opschema migrate --recover` tries again"
            raise OpschemaError(f"the changes could not be reverted: {error}; {hint}") from None

    def clean(self, *, made: bool = False) -> None:
        """Remove the files of the steps, the created folders if requested, and the journal last."""
        for _, _, new, old in self._files():
            # In this order: a new file that is gone means that it took its place, as long as the old one is kept.
            remove(old)
            remove(new)
        for folder in reversed(self._folders()) if made else ():
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        with contextlib.suppress(OSError):
            sync_folders(folder for folder in (*(target.parent for _, target, _, _ in self._files()), self.root))
        os.ftruncate(self.journal, 0)


def _check_before(step: Step, target: Path, new: Path) -> None:
    """Check that a step is done, or can be."""
    found = digest_at(target)
    if found == "" if not step.after else not new.exists() and found != step.before:
        return
    if found != step.before:
        raise Conflict(f"{step.name} changed on disk since it was read")
    if step.after and digest_at(new) != step.after:
        raise Conflict(f"the new text of {step.name} differs from the text that was written")
