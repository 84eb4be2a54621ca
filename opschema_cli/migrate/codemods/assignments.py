"""Assignments that are statements of their own, so that they can be removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import effects


def plain_assignments(
    rewrite: Rewrite, targets: Iterable[cst.BaseExpression], pure: Collection[str] = ()
) -> list[cst.BaseSmallStatement]:
    """Return the statements ``target = value`` for these targets.

    Raises:
        Refused: a target is written in another way, or beside others, or the value may have effects.
    """
    tree = rewrite.tree
    found: list[cst.BaseSmallStatement] = []
    problems: list[Problem] = []
    for target in targets:
        above = tree.parent(target)
        statement = tree.parent(above) if isinstance(above, cst.AssignTarget) else above
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1 and isinstance(above, cst.AssignTarget):
            problems += effects(tree, statement.value, pure)
            found.append(statement)
        elif isinstance(statement, cst.AnnAssign) and statement.target is target:
            problems += effects(tree, statement.value, pure) if statement.value is not None else ()
            found.append(statement)
        else:
            at = tree.span(target).start
            problems.append(Problem(at, f"{tree.code(target)} is written other than by a plain assignment of its own"))
    if problems:
        raise Refused(problems)
    return found
