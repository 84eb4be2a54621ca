"""``--only`` and ``--skip``: select sites by op, by a pattern of ops, by path, or by line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Site
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_cli.workspace import Workspace, join

_LINE = re.compile(r"(.+):(\d{1,9})\Z")


class Choice(msgspec.Struct):
    """The patterns of one run, and the ops and files of the workspace that they may refer to.

    Paths may be absolute, or relative to the root or to ``cwd``, a folder below it.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    cwd: str = "."
    _ops: set[str] = msgspec.field(default_factory=set)
    _paths: dict[str, int] = msgspec.field(default_factory=dict)
    _workspace: Workspace | None = None

    def learn(self, draft: Draft, sites: Iterable[Site]) -> None:
        """Record the ops and files that a migration looks at."""
        workspace = self._workspace = draft.project.workspace
        for entry in draft.loaded.entries:
            text = workspace.source(entry.path).text
            self._ops.add(text[entry.key.start : entry.key.end].strip("'\""))
        self._ops.update(op for site in sites for op in site.ops)
        for path in workspace.files:
            self._paths.setdefault(path, 0)
        for site in sites:
            source = draft.project.source(site.place.path)
            self._paths[site.place.path] = source.line_count if source is not None else 0

    def takes(self, draft: Draft, site: Site) -> bool:
        """Whether a site is to be migrated.

        Raises:
            OpschemaError: a path leads out of the root.
        """
        if self.only and not any(self._matches(draft, pattern, site) for pattern in self.only):
            return False
        return not any(self._matches(draft, pattern, site) for pattern in self.skip)

    def _matches(self, draft: Draft, pattern: str, site: Site) -> bool:
        if any(fnmatchcase(op, pattern) for op in site.ops):
            return True
        path, line = _split(pattern)
        if not any(_covers(candidate, site.place.path) for candidate in self._candidates(path)):
            return False
        source = draft.project.source(site.place.path)
        if line is None or source is None:
            return line is None
        first, last = (source.position(offset).line for offset in site.place.span)
        return first <= line <= last

    def _candidates(self, path: str) -> list[str]:
        """Readings of a path relative to the root.

        Raises:
            OpschemaError: it is absolute, and leads out of the root.
        """
        if self._workspace is not None and Path(path).is_absolute():
            return [self._workspace.relative(Path(path))]
        plain = path.removeprefix("./").rstrip("/")
        if not plain or plain == ".":
            return [self.cwd] if path else []
        return [plain, join(self.cwd, plain)]

    def check(self) -> None:
        """Refuse patterns that match nothing in this workspace.

        Raises:
            OpschemaError: naming the first, with a suggestion.
        """
        for option, pattern in [*(("--only", item) for item in self.only), *(("--skip", item) for item in self.skip)]:
            if not self._means_something(pattern):
                known = [*sorted(self._ops), *sorted(self._paths)]
                hint = did_you_mean(near_name(pattern, known))
                raise OpschemaError(f"{option} {pattern}: there is no such op, file or line here{hint}")

    def _means_something(self, pattern: str) -> bool:
        if any(fnmatchcase(op, pattern) for op in self._ops):
            return True
        path, line = _split(pattern)
        found = [known for known in self._paths if any(_covers(item, known) for item in self._candidates(path))]
        return any(line is None or 1 <= line <= (self._paths[known] or line) for known in found)


def _split(pattern: str) -> tuple[str, int | None]:
    """Split a pattern into a path and the line after it."""
    match = _LINE.match(pattern)
    return (match.group(1), int(match.group(2))) if match else (pattern, None)


def _covers(pattern: str, path: str) -> bool:
    """Whether a path is the file, is in the folder, or matches the glob."""
    return pattern in (".", path) or path.startswith(f"{pattern}/") or fnmatchcase(path, pattern)
