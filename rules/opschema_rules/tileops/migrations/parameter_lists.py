"""The parameters of a function in another order: each is written where another one stood."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from opschema_cli.migrate.codemods.elements import element_span
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span

STAR = "*"
"""What stands for the bare ``*`` in a list of names."""


def listed_names(function: cst.FunctionDef) -> list[str]:
    """The names of the parameters up to ``**kwargs``, and `*` where it stands.

    Raises:
        Refused: it has positional-only parameters or ``*args``.
    """
    params = function.params
    if params.posonly_params or isinstance(params.star_arg, cst.Param):
        raise Refused([Problem(0, f"{function.name.value}() has positional-only parameters or *args")])
    star = [STAR] if isinstance(params.star_arg, cst.ParamStar) else []
    return [*(item.name.value for item in params.params), *star, *(item.name.value for item in params.kwonly_params)]


def reorder(rewrite: Rewrite, function: cst.FunctionDef, order: Sequence[str]) -> None:
    """Write the parameters in another order; ``order`` holds the same names, and `*` as one of them.

    Raises:
        Refused: one without default would follow one with a default, or a comment stands among those that move.
    """
    tree, names = rewrite.tree, listed_names(function)
    params = function.params
    star = [params.star_arg] if isinstance(params.star_arg, cst.ParamStar) else []
    nodes: list[cst.CSTNode] = [*params.params, *star, *params.kwonly_params]
    by_name = dict(zip(names, nodes, strict=True))
    assert sorted(names) == sorted(order)
    moved = [at for at, name in enumerate(order) if name != names[at]]
    if not moved:
        return
    _refuse_defaults(tree, [by_name[name] for name in order[: order.index(STAR) if STAR in order else len(order)]])
    spans = [_span(tree, node) for node in nodes]
    between = Span(spans[moved[0]].start, tree.line_end(spans[moved[-1]].end))
    if "#" in tree.text[between.start : between.end]:
        raise Refused([Problem(between.start, "comments stand among the parameters that would move")])
    for at in moved:
        start, end = _span(tree, by_name[order[at]])
        rewrite.replace(spans[at], tree.text[start:end])


def _span(tree: PythonTree, node: cst.CSTNode) -> Span:
    start, end = element_span(tree, node)
    return Span(start, start + 1) if isinstance(node, cst.ParamStar) else Span(start, end)


def _refuse_defaults(tree: PythonTree, nodes: Sequence[cst.CSTNode]) -> None:
    defaulted = ""
    for node in nodes:
        if isinstance(node, cst.Param) and node.default is None and defaulted and node.name.value != "self":
            text = f"{node.name.value} has no default and would follow {defaulted}, which has one"
            raise Refused([Problem(tree.span(node).start, text)])
        if isinstance(node, cst.Param) and node.default is not None:
            defaulted = node.name.value


def with_positional(
    names: Sequence[str], wanted: Callable[[str], bool], barred: Callable[[str], bool], declared: Sequence[str]
) -> list[str]:
    """The list with the wanted keyword-only names before the `*`.

    The `*` moves down over what stands before the last wanted one, as far as nothing barred is met; wanted ones behind that
    move up. Names that become positional and are declared stand in declared order.
    """
    at = names.index(STAR)
    before, behind = list(names[:at]), list(names[at + 1 :])
    stop = next((index for index, name in enumerate(behind) if barred(name)), len(behind))
    last = max((index for index, name in enumerate(behind[:stop]) if wanted(name)), default=-1)
    passed = behind[: last + 1]
    lifted = [name for name in behind[last + 1 :] if wanted(name)]
    left = [name for name in behind[last + 1 :] if not wanted(name)]
    return [*before, *in_order([*passed, *lifted], declared), STAR, *left]


def with_keyword_only(names: Sequence[str], wanted: Callable[[str], bool]) -> list[str]:
    """The list with the wanted names behind the `*`."""
    at = names.index(STAR)
    moved = [name for name in names[:at] if wanted(name)]
    return [*(name for name in names[:at] if not wanted(name)), STAR, *moved, *names[at + 1 :]]


def in_order(names: Sequence[str], declared: Sequence[str]) -> list[str]:
    """The names, those that are declared in declared order on the places that they had together."""
    ranked = iter(sorted((name for name in names if name in declared), key=list(declared).index))
    return [next(ranked) if name in declared else name for name in names]
