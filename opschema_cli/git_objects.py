"""Reads files of a revision from git's object store: nothing is checked out, and no command from the repository runs."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.file_listing import git_environment, in_git
from opschema_cli.git import commit_of, git_answer

MAIN_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Names of the main branch, the likeliest first."""

_PATIENCE = 300.0
"""Seconds after which a process that reads objects is killed."""

_TROUBLE = "git cannot read the revision"


class TreeEntry(msgspec.Struct, frozen=True):
    """A file of a revision; ``size`` is None if its object is missing."""

    mode: str
    oid: str
    size: int | None = None

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.mode == "120000"

    @property
    def is_submodule(self) -> bool:
        """Whether it is a submodule, whose ``oid`` is a commit of another repository."""
        return self.mode == "160000"


def find_commit(root: Path, revision: str, noun: str = "commit") -> str:
    """Return the full name of a commit; ``noun`` says what else ``revision`` may have been.

    Raises:
        OpschemaError: there is no such commit here.
    """
    _check_repository(root)
    with suppress(OpschemaError):
        return commit_of(root, revision)
    hint = "; this clone is shallow, so older commits are missing: `git fetch --unshallow`" if is_shallow(root) else ""
    raise OpschemaError(f"`{revision}` is not a {noun} in {root}{hint}")


def merge_base(root: Path, main: str = "") -> tuple[str, str]:
    """The last common commit of HEAD and the main branch, and the name of that branch.

    Raises:
        OpschemaError: there is none, or no main branch.
    """
    _check_repository(root)
    branch = main or _main_branch(root)
    if not branch:
        hint = ", or fetch the main branch: this clone is shallow" if is_shallow(root) else ""
        raise OpschemaError(
            f"no main branch is found in {root} ({', '.join(MAIN_BRANCHES)}); name a revision, as in `opschema diff HEAD~1`, "
            f"or set `main-branch` in `[tool.opschema.diff]`{hint}"
        )
    return common_commit(root, "HEAD", branch), branch


def common_commit(root: Path, one: str, other: str) -> str:
    """The last common commit of two revisions.

    Raises:
        OpschemaError: there is none, or no such revision.
    """
    commits = find_commit(root, other), find_commit(root, one)
    found = os.fsdecode(git_answer(root, "merge-base", *commits, trouble=_TROUBLE, nothing_is=(1,))).split()
    if not found:
        hint = "; this clone is shallow: fetch more of its history, or name a revision" if is_shallow(root) else ""
        raise OpschemaError(f"`{one}` and `{other}` have no common commit in {root}{hint}")
    return found[0]


def history(root: Path, number: int, since: str = "") -> list[tuple[str, int]]:
    """Commits of HEAD and its first parents that change files below ``root``, each with its time in seconds since 1970, the oldest
    first: the last ones, or with ``since`` as many, spread evenly over those after it.

    Raises:
        OpschemaError: there is no such revision, or no commit.
    """
    if not in_git(root):
        raise OpschemaError(f"{root} is in no git repository, so it has no history")
    head = find_commit(root, "HEAD")
    wanted = [f"{find_commit(root, since)}..{head}"] if since else [f"--max-count={number}", head]
    query = ("rev-list", "--first-parent", "--timestamp", "--reverse", *wanted, "--", ".")
    lines = os.fsdecode(git_answer(root, *query, trouble=_TROUBLE)).splitlines()
    found = [(commit, int(time)) for time, commit in map(str.split, lines)]
    if len(found) <= number:
        return found
    last = len(found) - 1
    return [found[last - at * last // max(1, number - 1)] for at in reversed(range(number))]


def is_shallow(root: Path) -> bool:
    """Whether the repository is a shallow clone."""
    with suppress(OpschemaError):
        return git_answer(root, "rev-parse", "--is-shallow-repository", trouble=_TROUBLE).strip() == b"true"
    return False


def tree_of(root: Path, commit: str) -> dict[str, TreeEntry]:
    """The files and submodules below ``root`` at a commit, by their paths relative to ``root``.

    Raises:
        OpschemaError: the objects that list them are missing.
    """
    try:
        listed = git_answer(root, "ls-tree", "-r", "-z", "--long", commit, "--", ".", trouble=_TROUBLE)
    except OpschemaError as error:
        if not _is_partial(root):
            raise
        raise OpschemaError(
            f"objects of {commit[:10]} are missing in {root}, since it is a partial clone; have git fetch them, "
            f"for example with `git archive {commit[:10]} > /dev/null`"
        ) from error
    found: dict[str, TreeEntry] = {}
    for entry in os.fsdecode(listed).split("\0"):
        facts, _, path = entry.partition("\t")
        if path:
            mode, _, oid, size = facts.split()
            found[path] = TreeEntry(mode, oid, int(size) if size.isdigit() else None)
    return found


def _is_partial(root: Path) -> bool:
    with suppress(OpschemaError):
        query = ("config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$")
        return bool(git_answer(root, *query, trouble=_TROUBLE).strip())
    return False


def _main_branch(root: Path) -> str:
    for name in MAIN_BRANCHES:
        with suppress(OpschemaError):
            commit_of(root, name)
            return name
    return ""


def _check_repository(root: Path) -> None:
    if not in_git(root):
        raise OpschemaError(
            f"{root} is in no git repository, so it has no earlier revision; compare with a folder or a lock file: --against"
        )


class ObjectReader:
    """A process of git that returns the contents of objects."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: threading.Timer | None = None

    def read(self, oid: str) -> bytes | None:
        """Return the content of an object; None if it is missing or damaged, or git does not answer."""
        process = self._started()
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(f"{oid}\n".encode())
            process.stdin.flush()
            words: Sequence[bytes] = process.stdout.readline().split()
            if len(words) != 3:  # `<oid> missing`, or git has stopped at a damaged object
                return None
            size = int(words[2])
            found = process.stdout.read(size + 1)
        except (OSError, ValueError):
            return None
        return found[:-1] if len(found) == size + 1 else None

    def _started(self) -> subprocess.Popen[bytes] | None:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            command = ["git", "-c", "core.fsmonitor=false", "-C", str(self._root), "cat-file", "--batch"]
            pipe = subprocess.PIPE
            with suppress(OSError):
                self._process = subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=git_environment()
                )
                self._watch = threading.Timer(_PATIENCE, self._process.kill)
                self._watch.daemon = True
                self._watch.start()
        return self._process

    def close(self) -> None:
        """Stop the process."""
        if self._watch is not None:
            self._watch.cancel()
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = self._watch = None
