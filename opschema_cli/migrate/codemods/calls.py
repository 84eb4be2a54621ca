"""Arguments at call sites."""

from __future__ import annotations

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.source.python_tree import PythonTree


def drop_argument(rewrite: Rewrite, call: cst.Call, keyword: str, position: int | None = None) -> None:
    """Remove an argument from a call; do nothing if the call does not pass it.

    Args:
        rewrite: the round.
        call: the call.
        keyword: the parameter's name.
        position: its place from 0 among the arguments, where it may be passed by position (``self`` left out for a method).

    Raises:
        Refused: ``*`` or ``**`` may pass it.
    """
    index = _argument(rewrite.tree, call, keyword, position)
    if index is not None:
        rewrite.drop(call.args, index)


def rename_keyword(rewrite: Rewrite, call: cst.Call, old: str, new: str) -> None:
    """Rename a keyword argument of a call; do nothing if the call does not pass it by name.

    Raises:
        Refused: ``**`` may pass it, or the call passes the new name already.
    """
    tree = rewrite.tree
    named = {arg.keyword.value: arg.keyword for arg in call.args if arg.keyword is not None}
    if old in named:
        if new in named:
            raise Refused([Problem(tree.span(named[new]).start, f"the call passes {new} already")])
        rewrite.replace(tree.span(named[old]), new)
    else:
        _refuse_unpacked(tree, call, old, "**")


def _argument(tree: PythonTree, call: cst.Call, keyword: str, position: int | None) -> int | None:
    for index, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == keyword:
            return index
    if position is not None:
        before = call.args[: position + 1]
        if any(arg.star == "*" for arg in before):
            _refuse_unpacked(tree, call, keyword, "*")
        if len(before) > position and before[position].keyword is None and not before[position].star:
            _refuse_shift(tree, call, position, keyword)
            return position
    _refuse_unpacked(tree, call, keyword, "**")
    return None


def _refuse_shift(tree: PythonTree, call: cst.Call, position: int, keyword: str) -> None:
    """Refuse if arguments after it would move up, unless the parameter itself is removed; unpacked ones are unknown."""
    for arg in call.args[position + 1 :]:
        if arg.star == "*":
            raise Refused(
                [Problem(tree.span(arg).start, f"what `{tree.code(arg)}` passes behind {keyword} is not known")]
            )


def _refuse_unpacked(tree: PythonTree, call: cst.Call, keyword: str, star: str) -> None:
    for arg in call.args:
        if arg.star == star:
            raise Refused([Problem(tree.span(arg).start, f"`{tree.code(arg)}` may pass {keyword}")])
