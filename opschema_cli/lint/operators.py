"""The operator table of a workspace: what its packs fill in, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from opschema_cli.lint.pack import Pack
from opschema_cli.operators.model import Operator
from opschema_cli.project import Project


def operators_of(packs: Iterable[Pack], project: Project, options: Mapping[str, object]) -> Iterator[Operator]:
    """The operators that packs find in a project, each with its pack's name."""
    for pack in packs:
        for operator in pack.operators(project, options[pack.name]):
            yield replace(operator, pack=pack.name)
