"""A function's locals: dropped where nothing reads them, renamed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from opschema_cli.migrate.codemods.assignments import plain_assignments
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import all_parameters, is_write, local_uses


def drop_local(rewrite: Rewrite, function: cst.FunctionDef, name: str, pure: Collection[str] = ()) -> None:
    """Remove the assignments to a local that nothing reads.

    Args:
        rewrite: the round.
        function: where it is assigned.
        name: the local.
        pure: names of functions without effect, that the assigned expressions may call.

    Raises:
        Refused: it is not a local, is read, or is assigned in a way that may have effects.
    """
    tree = rewrite.tree
    uses = local_uses(rewrite, function, name)
    reads = [node for node in uses if not is_write(tree, node)]
    if reads:
        raise Refused(Problem(tree.span(node).start, f"{name} is read") for node in reads)
    if not uses:
        raise Refused([Problem(tree.span(function.name).start, f"{name} is not assigned in {function.name.value}()")])
    rewrite.remove(*plain_assignments(rewrite, uses, pure))


def rename_local(rewrite: Rewrite, function: cst.FunctionDef, old: str, new: str) -> None:
    """Rename a local's or parameter's uses in one function, those in nested functions too; not the parameter itself.

    Raises:
        Refused: the function uses the new name, an import or a definition binds the old one, or an f-string prints it.
    """
    tree = rewrite.tree
    uses = local_uses(rewrite, function, old)
    problems = [*_taken(rewrite, function, new)]
    for node in uses:
        above = tree.parent(node)
        if isinstance(above, cst.ImportAlias | cst.FunctionDef | cst.ClassDef | cst.Attribute) and is_write(tree, node):
            problems.append(Problem(tree.span(node).start, f"{old} is bound by an import or a definition"))
        if any(
            isinstance(item, cst.FormattedStringExpression) and item.equal is not None for item in tree.ancestors(node)
        ):
            problems.append(Problem(tree.span(node).start, f"an f-string prints the name {old}"))
    if problems:
        raise Refused(problems)
    for node in uses:
        rewrite.replace(tree.span(node), new)


def _taken(rewrite: Rewrite, function: cst.FunctionDef, name: str) -> Iterator[Problem]:
    tree = rewrite.tree
    start, end = tree.span(function.body)
    own = [param.name for param in all_parameters(function.params)]
    inside = [node for node in tree.names(name) if start <= tree.span(node).start < end]
    for node in [*(item for item in own if item.value == name), *inside]:
        if not rewrite.is_gone(node):
            yield Problem(tree.span(node).start, f"{function.name.value}() uses {name} already")
