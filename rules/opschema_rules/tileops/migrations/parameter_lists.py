"""The parameters of a function in another order: each is written where another one stood."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from opschema_cli.migrate.codemods.elements import element_span
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span

STAR = "*"
"""The mark for the bare ``*`` in a list of names."""


def listed_names(function: cst.FunctionDef) -> list[str]:
    """Return the names of the parameters up to ``**kwargs``, including `*`.

    Raises:
        Refused: it has positional-only parameters or ``*args``.
    """
    params = function.params
    if params.posonly_params:
        raise Refused([Problem(0, f"{function.name.value}() has positional-only parameters")])
    if isinstance(params.star_arg, cst.Param):
        name = params.star_arg.name.value
        raise Refused([Problem(0, f"*{name} of {function.name.value}() takes what is passed by position")])
    star = [STAR] if isinstance(params.star_arg, cst.ParamStar) else []
    return [*(item.name.value for item in params.params), *star, *(item.name.value for item in params.kwonly_params)]


def reorder(rewrite: Rewrite, function: cst.FunctionDef, order: Sequence[str]) -> None:
    """Write the parameters in another order; ``order`` holds the same names, with or without `*`.

    Raises:
        Refused: one without default would follow one with a default, or a comment stands among those that move.
    """
    tree, names = rewrite.tree, listed_names(function)
    if list(order) == names:
        return
    nodes = _nodes(function.params)
    by_name = dict(zip(names, nodes, strict=True))
    assert sorted({*names, STAR}) == sorted({*order, STAR})
    _refuse_defaults(tree, [by_name[name] for name in order[: order.index(STAR) if STAR in order else len(order)]])
    if STAR in names and STAR in order:
        _place(tree, rewrite, nodes, [by_name[name] for name in order])
        return
    plain = [by_name[name] for name in order if name != STAR]
    slots = [node for node in nodes if isinstance(node, cst.Param)]
    if STAR in names:
        _place(tree, rewrite, slots, plain)
        last = [function.params.star_kwarg] if function.params.star_kwarg is not None else []
        rewrite.drop([*nodes, *last], names.index(STAR))
    else:
        _place(tree, rewrite, slots, plain, star=order.index(STAR) if STAR in order else -1)


def _nodes(params: cst.Parameters) -> list[cst.Param | cst.ParamStar]:
    star = [params.star_arg] if isinstance(params.star_arg, cst.ParamStar) else []
    return [*params.params, *star, *params.kwonly_params]


def _place(
    tree: PythonTree, rewrite: Rewrite, slots: Sequence[cst.CSTNode], nodes: Sequence[cst.CSTNode], star: int = -1
) -> None:
    """Write each node in the place of another one, with a `*` before the node of number ``star``.

    Raises:
        Refused: a comment stands among those that move.
    """
    moved = [at for at, node in enumerate(nodes) if node is not slots[at]]
    spans = [_span(tree, node) for node in slots]
    between = Span(_top(tree, spans[moved[0]]), tree.line_end(spans[moved[-1]].end)) if moved else Span(0, 0)
    if "#" in tree.text[between.start : between.end]:
        raise Refused([Problem(between.start, "there are comments among the parameters that would move")])
    for at in moved:
        start, end = _span(tree, nodes[at])
        rewrite.replace(spans[at], (_star(tree, spans[at]) if at == star else "") + tree.text[start:end])
    if star >= 0 and star not in moved:
        rewrite.replace(*_star_above(tree, spans[star]))


def _top(tree: PythonTree, slot: Span) -> int:
    """The start of a slot, or of the comments above its line if it begins that line."""
    start = tree.line_start(slot.start)
    return slot.start if tree.text[start : slot.start].strip() else tree.comments_above(start)


def _star(tree: PythonTree, slot: Span) -> str:
    """Return a `*` to write before a slot, on a line of its own if the slot has one."""
    alone = not tree.text[tree.line_start(slot.start) : slot.start].strip()
    return f"*,{_newline(tree, slot.start)}{tree.indent(slot.start)}" if alone else "*, "


def _star_above(tree: PythonTree, slot: Span) -> tuple[Span, str]:
    """A `*` before a slot that keeps its parameter: above the comments that belong to that."""
    above = _top(tree, slot)
    if "#" not in tree.text[above : slot.start]:
        return Span(slot.start, slot.start), _star(tree, slot)
    return Span(above, above), f"{tree.indent(slot.start)}*,{_newline(tree, slot.start)}"


def _newline(tree: PythonTree, offset: int) -> str:
    line = tree.text[tree.line_start(offset) : tree.line_end(offset)]
    return line[len(line.rstrip("\r\n")) :] or "\n"


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
    """Return the list with the wanted names after the `*`."""
    at = names.index(STAR)
    moved = [name for name in names[:at] if wanted(name)]
    return [*(name for name in names[:at] if not wanted(name)), STAR, *moved, *names[at + 1 :]]


def with_star(names: Sequence[str], wanted: Callable[[str], bool], barred: Callable[[str], bool]) -> list[str]:
    """Return the list with a `*` before the names at its end that are wanted after it, or must not precede it."""
    at = len(names)
    while at and (wanted(names[at - 1]) or barred(names[at - 1])):
        at -= 1
    return [*names[:at], STAR, *names[at:]]


def in_order(names: Sequence[str], declared: Sequence[str]) -> list[str]:
    """The names, those that are declared in declared order on the places that they had together."""
    ranked = iter(sorted((name for name in names if name in declared), key=list(declared).index))
    return [next(ranked) if name in declared else name for name in names]
