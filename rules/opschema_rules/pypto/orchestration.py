"""Reads what an orchestration source submits."""

from __future__ import annotations

from opschema_cli.project import CppReading
from opschema_cli.source.cpp import CppTree
from opschema_rules.pypto.facts import Orchestration


def read_orchestration(tree: CppTree) -> Orchestration:
    """The entries of one C++ file, with what they submit."""
    return Orchestration()


ORCHESTRATION = CppReading("pypto orchestration", read_orchestration, Orchestration)
