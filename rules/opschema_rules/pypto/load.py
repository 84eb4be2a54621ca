"""Loads programs for pypto's runtime: descriptions of kernels, joined with the orchestration that submits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from opschema_cli.lint.loaded import Entry as Declared
from opschema_cli.lint.loaded import Loaded
from opschema_cli.project import Project
from opschema_rules.pypto.contract import find_contract
from opschema_rules.pypto.describe import unresolved
from opschema_rules.pypto.descriptions import read_programs
from opschema_rules.pypto.detection import PyptoOptions, describing, specifying
from opschema_rules.pypto.model import Program
from opschema_rules.pypto.orchestration import ORCHESTRATION
from opschema_rules.pypto.specs import read_entries
from opschema_rules.pypto.templates import ENDING, ORCHESTRATION_TEMPLATE


def load(project: Project, options: PyptoOptions) -> Loaded:
    """All programs of the workspace, and the specs of pypto-lib's entries."""
    paths = list(specifying(project))
    project.load_python([*describing(project), *paths])
    programs = load_programs(project, options)
    entries = read_entries(project, paths)
    loaded = Loaded([*programs, *entries], sum(len(program.kernels) for program in programs) + len(entries))
    loaded.files = sorted({program.file.path for program in programs} | {entry.file.path for entry in entries})
    loaded.unresolved += unresolved(programs)
    loaded.entries += [entry for program in programs for entry in _declared(program)]
    loaded.entries += [Declared(entry.file.path, entry.span, entry.outer) for entry in entries]
    return loaded


def load_programs(project: Project, options: PyptoOptions) -> list[Program]:
    """Return the programs that the workspace describes, each with the submits of its orchestration."""
    paths = list(describing(project))
    project.load_python(paths)
    programs = read_programs(project, paths, find_contract(project, options))
    _join(project, programs)
    return programs


def _join(project: Project, programs: Iterable[Program]) -> None:
    """Find the entry of each program's orchestration."""
    parts = [program.orchestration for program in programs if program.orchestration is not None]
    sources = sorted({part.source for part in parts if part.source is not None})
    project.claim(sources)
    templates = [source for source in sources if source.endswith(ENDING)]
    found = project.cpp_readings(ORCHESTRATION, [source for source in sources if not source.endswith(ENDING)])
    found.update(project.readings(ORCHESTRATION_TEMPLATE, templates))
    users = Counter(part.source for part in parts)
    for part in parts:
        part.shared = users[part.source] > 1
        entries = found[part.source].entries if part.source in found else ()
        part.entry = next((entry for entry in entries if entry.name == part.function), None)


def _declared(program: Program) -> Iterable[Declared]:
    for kernel in program.kernels:
        yield Declared(program.file.path, kernel.expr.span, kernel.expr.span, kernel.title)
