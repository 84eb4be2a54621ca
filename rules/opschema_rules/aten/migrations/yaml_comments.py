"""Comments of YAML files that speak of something."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.mentions import mentions
from opschema_cli.project import Project
from opschema_cli.source.yaml import YamlFile


def in_comments(project: Project, name: str, paths: Iterable[str]) -> Iterator[Place]:
    """Places of comments that have ``name`` as a word."""
    for path in paths:
        file = project.yaml(path)
        found = [item.place for item in mentions(project, [name], [path])]
        if file is not None and found:
            written = _scalars(file)
            yield from (place for place in found if not _is_in(place.span.start, written))


def _scalars(file: YamlFile) -> list[tuple[int, int]]:
    """Spans of the file's scalars, in order."""
    root = file.root
    nodes = root.walk() if root is not None else ()
    return sorted((node.start, node.end) for node in nodes if not node.items and node.end > node.start)


def _is_in(at: int, spans: list[tuple[int, int]]) -> bool:
    number = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return number >= 0 and at < spans[number][1]
