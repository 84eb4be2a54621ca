"""Loads programs for pypto's runtime: descriptions of kernels, joined with the orchestration that submits them."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.lint.pack import Entry as Declared
from opschema_cli.lint.pack import Loaded, Pack, collect_migrations, collect_rules
from opschema_cli.project import Project
from opschema_rules.pypto import migrations, rules
from opschema_rules.pypto.contract import find_contract
from opschema_rules.pypto.descriptions import read_programs
from opschema_rules.pypto.examples import example_files
from opschema_rules.pypto.head import PyptoOptions, describing, detect, specifying
from opschema_rules.pypto.model import Program
from opschema_rules.pypto.orchestration import ORCHESTRATION
from opschema_rules.pypto.specs import read_pairs


def load(project: Project, options: PyptoOptions) -> Loaded:
    """All programs of the workspace, and the specs of pypto-lib's entries."""
    programs = load_programs(project, options)
    pairs = read_pairs(project, list(specifying(project)))
    loaded = Loaded([*programs, *pairs], sum(len(program.kernels) for program in programs))
    loaded.files = sorted({program.file.path for program in programs} | {pair.file.path for pair in pairs})
    loaded.entries += [entry for program in programs for entry in _declared(program)]
    return loaded


def load_programs(project: Project, options: PyptoOptions) -> list[Program]:
    """The programs that the workspace describes, each with what its orchestration submits."""
    paths = list(describing(project))
    project.load_python(paths)
    programs = read_programs(project, paths, find_contract(project, options))
    _join(project, programs)
    return programs


def _join(project: Project, programs: Iterable[Program]) -> None:
    """Find the entry of each program's orchestration."""
    parts = [program.orchestration for program in programs if program.orchestration is not None]
    sources = sorted({part.source for part in parts if part.source is not None})
    found = project.cpp_readings(ORCHESTRATION, sources)
    for part in parts:
        entries = found[part.source].entries if part.source in found else ()
        part.entry = next((entry for entry in entries if entry.name == part.function), None)


def _declared(program: Program) -> Iterable[Declared]:
    for kernel in program.kernels:
        yield Declared(program.file.path, kernel.expr.span, kernel.expr.span, kernel.title)


PACK = Pack(
    name="pypto",
    summary="kernels of pypto's runtime: signatures against the orchestration that submits them",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=PyptoOptions,
    example=example_files,
    migrations=collect_migrations(migrations),
)
