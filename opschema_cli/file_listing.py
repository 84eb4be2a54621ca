"""Lists the files of a folder: with git, or by walking and ``.gitignore``."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from opschema_cli.errors import OpschemaError
from opschema_cli.git_answer import answer_of
from opschema_cli.gitignore import IgnoreSpec, glob_spec
from opschema_cli.regular_files import State, read_regular, state_of

_Specs: TypeAlias = tuple[tuple[int, IgnoreSpec], ...]
"""The ``.gitignore`` files of a folder and those above it, the nearest first, each with the length of its folder's path."""

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"})


def git_files(root: Path, entries: Iterable[bytes]) -> dict[str, State | None] | None:
    """Return the files of a folder that git lists, each with its state, without links; None if git lists none."""
    names = [os.fsdecode(name) for name in entries]
    found: dict[str, State | None] = {}
    for name in names:
        path = f"{root}/{name}"
        with suppress(OSError):  # it is gone
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                found[name] = state_of(status)
            elif stat.S_ISLNK(status.st_mode) and os.path.isfile(path):
                found[name] = None
    return found if names else None


# A line of `git ls-files --stage`: a submodule, and not one of the sides of a merge.
_GITLINK = re.compile(rb"160000 ([0-9a-f]{40,64}) 0\t(.+)", re.DOTALL)


def git_pin(root: Path, path: str) -> str | None:
    """Return the commit that the repository's index has for a submodule; None during an unresolved merge."""
    listing = ls_files(root, "--stage", "--", path) if in_git(root) else None
    entries = (entries_of(listing) if listing is not None else None) or []
    match = _GITLINK.fullmatch(entries[0]) if len(entries) == 1 else None
    return match[1].decode() if match is not None and os.fsdecode(match[2]) == path else None


def pin_of_submodule(root: Path, path: str, inside: Callable[[str], str | None]) -> str | None:
    """Return the commit that the submodule at ``path`` is pinned to, by the innermost repository that contains it; None without
    one.

    ``inside`` leads from a path to its place on disk, and is None for one outside of the root.
    """
    repository, inner = ".", path
    for match in re.finditer("/", path):
        folder = os.path.join(root, path[: match.start()])
        if not os.path.isdir(folder):
            break
        if os.path.exists(os.path.join(folder, ".git")):
            repository, inner = path[: match.start()], path[match.end() :]
    target = inside(repository)
    return git_pin(Path(target), inner) if target is not None else None


def ls_files(root: Path, *arguments: str) -> subprocess.Popen[bytes] | None:
    """Start a git process that lists a folder; None if there is no git."""
    command = ["git", "-c", "core.fsmonitor=false", "--literal-pathspecs", "-C", str(root)]
    command += ["ls-files", "-z", *arguments]
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, env=git_environment())
    except (OSError, ValueError):
        return None


def entries_of(listing: subprocess.Popen[bytes]) -> list[bytes] | None:
    """Return the entries that git lists; empty if it cannot list any, None if it does not answer."""
    with listing:
        found = answer_of(listing)
    if found is None:
        return None
    return [] if listing.returncode else [entry for entry in found[0].split(b"\0") if entry]


def pipe_of_git(root: Path) -> str:
    """Return the file that git waits for, if one is found: a `.gitignore` that is not a regular file, otherwise git's
    configuration.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        path = Path(folder, ".gitignore")
        if ".gitignore" in names and not path.is_file() and not path.is_symlink():
            return path.relative_to(root).as_posix()
    return ".git/config"


def git_environment() -> dict[str, str]:
    """An environment in which git lists the folder it is given and runs no command that the repository chose.

    Such commands are ``core.fsmonitor``, and those that fetch the objects which a partial clone lacks. Inside a hook the
    environment names the hook's own repository.
    """
    hook = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
    kept = {name: value for name, value in os.environ.items() if name not in hook}
    return {**kept, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_OPTIONAL_LOCKS": "0"}


def in_git(folder: Path) -> bool:
    """Whether a folder seems to be in a git repository."""
    return any(os.path.exists(parent / ".git") for parent in (folder, *folder.parents))


def walked_files(root: Path) -> list[str]:
    """Return all files below ``root`` that its ``.gitignore`` files do not exclude."""
    found: list[str] = []
    specs: dict[str, _Specs] = {}
    for folder, folders, names in os.walk(root):
        here = Path(folder).relative_to(root).as_posix()
        inside = "" if here == "." else here + "/"
        own = ((len(inside), _gitignore(Path(folder, ".gitignore"))),) if ".gitignore" in names else ()
        near = specs[inside] = (*own, *specs.get(f"{here.rpartition('/')[0]}/".lstrip("/"), ()))
        folders[:] = [
            name for name in folders if name not in SKIPPED_FOLDERS and not _ignored(f"{inside}{name}/", near)
        ]
        found += [
            inside + name for name in names if not _ignored(inside + name, near) and os.path.isfile(f"{folder}/{name}")
        ]
    return found


def _gitignore(path: Path) -> IgnoreSpec:
    """Return the patterns of one file; an unreadable one excludes nothing."""
    try:
        lines = [] if path.is_symlink() else read_regular(path).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    return glob_spec(line for line in lines if _sound(line))


def _sound(pattern: str) -> bool:
    try:
        glob_spec([pattern])
    except OpschemaError:
        return False
    return True


def _ignored(path: str, near: _Specs) -> bool:
    """Whether the nearest ``.gitignore`` with a pattern for ``path`` excludes it; a folder ends with a slash."""
    verdicts = (spec.verdict(path[start:]) for start, spec in near)
    return next((verdict for verdict in verdicts if verdict is not None), False)
