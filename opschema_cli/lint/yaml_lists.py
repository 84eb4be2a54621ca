"""YAML files that list operators, found by what is written in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from opschema_cli.file_kinds import is_yaml
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.yaml import YamlFile

_TEST = re.compile(r"(?:^|/)tests?/")


def yaml_lists(
    project: Project, entries: Reading[bytes, int], is_plain: Callable[[str], bool], *, tests: bool
) -> Iterator[YamlFile]:
    """The YAML files in which ``entries`` counts any; those in test folders only with ``tests``. That a file cannot be parsed is
    reported only if it is plainly a list; another one may be YAML for something else.
    """
    paths = [path for path in project.workspace.files if is_yaml(path) and (tests or not _TEST.search(path))]
    for path, count in project.scan(entries, paths):
        file = (project.yaml(path) if is_plain(path) else project.guess_yaml(path)) if count else None
        if file is not None:
            yield file
