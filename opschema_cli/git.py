"""Queries of git that run no command chosen by the repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.file_listing import git_environment, in_git
from opschema_cli.git_answer import answer_of

_PATIENCE = 120.0
"""Seconds that git may take to compare files with the commit, or to write an archive."""

_FILTERS = {".clean": "", ".smudge": "", ".process": "", ".required": "false"}


def uncommitted(root: Path, touched: Collection[str]) -> list[str] | None:
    """Return the workspace's tracked files with uncommitted changes, and those of ``touched`` that git does not track; None outside
    of git. Paths are relative to ``root``.

    Raises:
        OpschemaError: git cannot tell.
    """
    if not in_git(root):
        return None
    return sorted(path for known, path in _changes(root) if known or path in touched)


def commit_held(root: Path, passed_over: Callable[[str], bool]) -> str:
    """Return the full name of the commit whose files a folder contains unchanged; empty if there is none.

    Files that git ignores may be there besides, and files that it does not know if they are ``passed_over``. Submodules
    are not looked into.

    Raises:
        OpschemaError: git cannot tell.
    """
    # A folder that git ignores has no changes, and no files of a commit, either.
    if not in_git(root) or not git_answer(root, "ls-files", "-z", "--cached", "--", "."):
        return ""
    if any(known or not passed_over(path) for known, path in _changes(root)):
        return ""
    return commit_of(root, "HEAD")


def _changes(root: Path) -> Iterator[tuple[bool, str]]:
    """Yield the files below ``root`` that differ from the commit, and whether git tracks them."""
    prefix = os.fsdecode(git_answer(root, "rev-parse", "--show-prefix")).rstrip("\n")
    known = [*_without_filters(root), "-c", "core.quotePath=false"]
    listed = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all")
    for entry in os.fsdecode(git_answer(root, *known, *listed, "--", ".")).split("\0"):
        if entry:
            yield entry[:2] != "??", entry[3:].removeprefix(prefix)


def commit_of(root: Path, revision: str) -> str:
    """Return the full name of a commit.

    Raises:
        OpschemaError: there is no such commit.
    """
    found = git_answer(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return os.fsdecode(found).strip()


def _without_filters(root: Path) -> Iterator[str]:
    """Yield options that disable the commands which the repository's configuration runs before git reads a file."""
    for name in os.fsdecode(git_answer(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\.")).split(
        "\0"
    ):
        empty = next((value for tail, value in _FILTERS.items() if name.endswith(tail)), None)
        if empty is not None and "=" in name:
            raise OpschemaError(f"git cannot list changes without running the filter {name!r}")
        if empty is not None:
            yield from ("-c", f"{name}={empty}")


_UNCOMMITTED = "git cannot list the uncommitted changes here"


def git_answer(root: Path, *arguments: str, trouble: str = _UNCOMMITTED, nothing_is: Collection[int] = ()) -> bytes:
    """Return the output of a git query. ``trouble`` begins the message of an error; an exit status of ``nothing_is`` is not an
    error.

    Raises:
        OpschemaError: git fails, or does not answer.
    """
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), *arguments]
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        run = subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=pipe, env=git_environment())
    except OSError as error:
        raise OpschemaError(f"{trouble}: {error}") from None
    with run:
        found = answer_of(run, _PATIENCE)
    if found is None:
        raise OpschemaError(f"{trouble}: `git {arguments[0]}` does not answer")
    # To find no such setting is no error.
    if run.returncode and run.returncode not in nothing_is and not (arguments[0] == "config" and run.returncode == 1):
        reason = os.fsdecode(found[1]).strip().partition("\n")[0]
        raise OpschemaError(f"{trouble}: {reason}")
    return found[0]


def archive(root: Path, revision: str, into: Path) -> str:
    """Write what ``root`` held at ``revision`` to the tar file ``into``; the full name of that commit.

    Raises:
        OpschemaError: there is no such revision, or git cannot export it.
    """
    if not in_git(root):
        raise OpschemaError(f"{root} is in no git repository, so it has no revision {revision!r}")
    commit = commit_of(root, revision)
    git_answer(root, *_without_filters(root), "archive", "--format=tar", f"--output={into}", commit)
    return commit


def pinned_submodules(root: Path, commit: str) -> list[tuple[str, str]]:
    """Return the submodules below ``root`` at a commit of its repository: their paths, relative to ``root``, and the commits that
    they are pinned to.

    Raises:
        OpschemaError: git cannot tell.
    """
    found: list[tuple[str, str]] = []
    for entry in os.fsdecode(git_answer(root, "ls-tree", "-r", "-z", commit, "--", ".")).split("\0"):
        kind, _, path = entry.partition("\t")
        if kind.startswith("160000 "):
            found.append((path, kind.split()[2]))
    return found


def is_repository(folder: Path) -> bool:
    """Whether a folder is the root of a git work tree."""
    return (folder / ".git").exists() and in_git(folder)
