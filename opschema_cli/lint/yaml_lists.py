"""Finds YAML files that list operators, by their content."""

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
    """Return the YAML files in which ``entries`` counts any; those in test folders only with ``tests``. Only a file that is
    clearly a list is reported if it cannot be parsed; another one may be YAML for something else.
    """
    paths = [path for path in project.workspace.files if is_yaml(path) and (tests or not _TEST.search(path))]
    for path, count in project.scan(entries, paths):
        file = (project.yaml(path) if is_plain(path) else project.guess_yaml(path)) if count else None
        if file is not None:
            yield file
