"""Mentions of the files of old tests in a workspace, and links to them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_rules.pypto.migrations.old_statements import Unclear

_MENTION = re.compile(r"(?P<path>[\w./-]*\b(?:kernel_config|golden)\.py)\b")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:[\w.]*\.)?(?P<name>kernel_config|golden)\b", re.MULTILINE)
_UP = re.compile(r"\A(?:\.{0,2}/)+")


class Mentions(msgspec.Struct, frozen=True):
    """The places where files of a workspace name a ``kernel_config.py`` or ``golden.py``, and the name as written."""

    found: Sequence[tuple[Place, str]]

    @classmethod
    def of(cls, project: Project) -> Mentions:
        """Find all mentions; a module imported from the importing file's own folder counts as its file."""
        found: list[tuple[Place, str]] = []
        for source in texts_with(project, ["kernel_config", "golden"]):
            matches = [(match.span("path"), match["path"]) for match in _MENTION.finditer(source.text)]
            if source.path.endswith(".py"):
                matches += [(match.span("name"), f"{match['name']}.py") for match in _IMPORT.finditer(source.text)]
            found += ((Place(source.path, Span(*span)), written) for span, written in matches)
        return cls(found)

    def of_files(self, paths: Iterable[str]) -> Iterator[tuple[Place, str]]:
        """Yield the mentions of some files: by a path from the mentioning file or from the root, or by the end of a path that
        contains the name of the program's folder.
        """
        wanted = list(paths)
        for place, written in self.found:
            near = posixpath.normpath(posixpath.join(posixpath.dirname(place.path), written))
            end = _UP.sub("", written)
            for path in wanted:
                folder = path.removesuffix("/kernel_config.py").removesuffix("/kernels").removesuffix("/golden.py")
                named = end.count("/") >= path.count("/") - folder.count("/")
                if near == path or (named and f"/{path}".endswith(f"/{end}")):
                    yield place, path
                    break


def check_links(project: Project, paths: Sequence[str]) -> None:
    """Check that files are not links, and that no links of the same names lead to them.

    Raises:
        Unclear: there is one.
    """
    names = {posixpath.basename(path) for path in paths}
    for path in project.workspace.files:
        if posixpath.basename(path) in names and (real := _link(project, path)) and {path, real} & {*paths}:
            raise Unclear(f"`{path}` is a link to `{real}`")


def _link(project: Project, path: str) -> str:
    """Return the file that a link in the workspace leads to; empty for anything else, and for a link that leads out of it."""
    workspace = project.workspace
    try:
        real = workspace.relative(workspace.locate(path))
    except OpschemaError:
        return ""
    return real if real != path else ""
