"""Templates of descriptions and of their C++: ``kernel_config.py.in``, with placeholders ``{{name}}`` that a program fills in.

They are read as they are. A source whose name is a placeholder is the template beside the description that is called like it:
``{{kernel_name}}.cpp`` is ``kernel.cpp.in``.
"""

from __future__ import annotations

import re

from opschema_cli.readings import Reading
from opschema_cli.source.cpp import CppError, CppUnavailableError, parse_cpp
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.facts import Orchestration
from opschema_rules.pypto.orchestration import read_orchestration

ENDING = ".in"
_NAME = re.compile(r"(?:\A|/)\{\{(\w+)\}\}(\.\w+)\Z")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def template_of(workspace: Workspace, description: str, source: str) -> str | None:
    """Return the template of a source; None if there is none, or several."""
    match = _NAME.search(source) if description.endswith(ENDING) else None
    if match is None:
        return None
    folder, found = description.rpartition("/")[0], list[str]()
    for path in workspace.files:
        around, _, name = path.rpartition("/")
        stem = name.removesuffix(f"{match[2]}{ENDING}")
        if around == folder and stem != name and (match[1] == stem or match[1].startswith(f"{stem}_")):
            found.append(path)
    return found[0] if len(found) == 1 else None


def _read(text: str) -> Orchestration:
    """Return the entries of a template, whose placeholders count as names of the same length."""
    try:
        return read_orchestration(parse_cpp(_PLACEHOLDER.sub(r"__\1__", text)))
    except (CppError, CppUnavailableError):
        return Orchestration()


ORCHESTRATION_TEMPLATE = Reading("pypto orchestration template", _read, Orchestration)
