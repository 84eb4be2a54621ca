"""Reads descriptions of programs: ``kernel_config.py`` and classes with ``CALLABLE``."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.project import Project
from opschema_rules.pypto.model import Contract, Program


def read_programs(project: Project, paths: Iterable[str], contract: Contract) -> list[Program]:
    """The programs that some Python files describe."""
    return []
