"""Assignments that are statements of their own, and taking them out."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import effects
from opschema_cli.source.python_tree import Definition


def drop_assignments(rewrite: Rewrite, owner: Definition, target: str, pure: Collection[str] = ()) -> None:
    """Take out the statements below a definition that assign ``target`` and nothing else.

    Args:
        rewrite: the round.
        owner: the class or function to look in.
        target: the target's code, ``_OP_REGISTRY[self._instance_key]``; white space apart.
        pure: names of functions without effect, that the assigned expressions may call.

    Raises:
        Refused: nothing assigns it, or an assignment has other targets or may have effects.
    """
    tree = rewrite.tree
    wanted = "".join(target.split())
    targets = [
        node.target
        for node in tree.walk(owner)
        if isinstance(node, cst.AssignTarget | cst.AnnAssign | cst.AugAssign)
        and "".join(tree.code(node.target).split()) == wanted
        and not rewrite.is_gone(node)
    ]
    if not targets:
        raise Refused([Problem(tree.span(owner.name).start, f"nothing in {owner.name.value} assigns {target}")])
    rewrite.remove(*plain_assignments(rewrite, targets, pure))


def plain_assignments(
    rewrite: Rewrite, targets: Iterable[cst.BaseExpression], pure: Collection[str] = ()
) -> list[cst.BaseSmallStatement]:
    """The statements ``target = value`` of these targets.

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
