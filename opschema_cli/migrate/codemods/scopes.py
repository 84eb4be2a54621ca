"""Uses of a function's local variables, and side effects of expressions."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.source.python_tree import PythonTree

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_SCOPES = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef, *_COMPREHENSIONS})
_REFLECTION = ("locals", "vars", "eval", "exec")

PURE_FUNCTIONS = frozenset({
    "all", "any", "bool", "callable", "dict", "float", "frozenset", "getattr", "hasattr", "id", "int", "isinstance",
    "issubclass", "len", "list", "max", "min", "range", "repr", "set", "sorted", "str", "sum", "tuple", "type",
})  # fmt: skip
"""Builtins that only return a value and have no side effects."""

PURE_METHODS = frozenset(
    {"get", "keys", "values", "items", "startswith", "endswith", "split", "strip", "lower", "upper"}
)
"""Methods of builtin types that only return a value and have no side effects."""


def dotted(node: cst.CSTNode | None) -> str:
    """``a.b.c`` of names joined by dots; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    return ".".join([node.value, *reversed(parts)]) if isinstance(node, cst.Name) else ""


def local_uses(rewrite: Rewrite, function: cst.FunctionDef, name: str) -> list[cst.Name]:
    """Return the reads and writes of a function's parameter or local, including nested functions but not removed code.

    The parameter's own name is not among them.

    Raises:
        Refused: ``global`` or ``nonlocal`` names it, a nested class binds it too, or the function looks at its locals by
            reflection.
    """
    tree = rewrite.tree
    inside = [node for node in tree.names(name, function) if not rewrite.is_gone(node)]
    uses = [node for node in inside if _owner(tree, node, name) is function]
    problems = [*_declared(tree, inside), *_class_bound(tree, inside, function), *_reflection(rewrite, function)]
    if problems:
        raise Refused(problems)
    return [node for node in uses if not _is_parameter(tree, node)]


def module_uses(tree: PythonTree, name: str) -> list[cst.Name]:
    """Reads and writes of a module's variable, in functions too.

    Raises:
        Refused: ``global`` or ``nonlocal`` names it.
    """
    nodes = tree.names(name)
    problems = list(_declared(tree, nodes))
    if problems:
        raise Refused(problems)
    return [node for node in nodes if _owner(tree, node, name) is tree.module]


def _is_parameter(tree: PythonTree, node: cst.Name) -> bool:
    above = tree.parent(node)
    return isinstance(above, cst.Param) and above.name is node


_PACKS = frozenset({cst.Element, cst.StarredElement, cst.Tuple, cst.List})
_BINDS: dict[type, str] = {
    **dict.fromkeys((cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.NamedExpr, cst.Del), "target"),
    **dict.fromkeys((cst.FunctionDef, cst.ClassDef, cst.Param, cst.MatchAs, cst.MatchStar), "name"),
    cst.MatchMapping: "rest",
}
"""Field by which each kind of node binds a name."""


def is_write(tree: PythonTree, node: cst.Name) -> bool:
    """Whether a name is bound or deleted at this place."""
    child: cst.CSTNode = node
    above = tree.parent(node)
    while type(above) in _PACKS:
        child, above = above, tree.parent(above)  # type: ignore[assignment, arg-type]  # of these types it is a node
    part = _BINDS.get(type(above))
    if part is not None:
        return getattr(above, part) is child
    if type(above) is cst.ImportAlias:
        return above.asname is None
    if type(above) is cst.Attribute and type(tree.parent(above)) in (cst.ImportAlias, cst.Attribute):
        return tree.enclosing(above, cst.ImportAlias) is not None
    return type(above) in (cst.AssignTarget, cst.AsName)


def effects(tree: PythonTree, node: cst.CSTNode, pure: Collection[str] = ()) -> Iterator[Problem]:
    """Possible side effects of evaluating an expression.

    Calls count unless their callee is a builtin without effect or is in ``pure`` (dotted, or its last name).
    """
    for item in tree.walk(node):
        if isinstance(item, cst.Call):
            name = dotted(item.func)
            last = item.func.attr.value if isinstance(item.func, cst.Attribute) else name
            known = name in PURE_FUNCTIONS or (isinstance(item.func, cst.Attribute) and last in PURE_METHODS)
            if not known and name not in pure and last not in pure:
                yield Problem(tree.span(item).start, f"{tree.code(item.func)}() may have effects")
        elif isinstance(item, cst.Await | cst.Yield | cst.NamedExpr):
            yield Problem(tree.span(item).start, f"`{tree.code(item)}` has effects")


def _is_in(tree: PythonTree, node: cst.CSTNode, function: cst.FunctionDef) -> bool:
    start, end = tree.outer(function)
    return start <= tree.span(node).start < end


def _scopes(tree: PythonTree, node: cst.Name) -> Iterator[cst.CSTNode]:
    """The scopes around a name in which it may be bound, the nearest first; the module last."""
    path: cst.CSTNode = node
    below: list[int] = [id(node)]
    bound_by = tree.parent(node)
    for above in tree.ancestors(node):
        if type(above) in _SCOPES and _within(above, path, below):
            walrus = isinstance(bound_by, cst.NamedExpr) and bound_by.target is node
            if not (walrus and isinstance(above, _COMPREHENSIONS)):
                yield above
        below.append(id(above))
        path = above
    yield tree.module


def _within(scope: cst.CSTNode, child: cst.CSTNode, below: list[int]) -> bool:
    """Whether a path from below enters a scope, and not its decorators, defaults, annotations or first iterable."""
    if isinstance(scope, cst.FunctionDef | cst.Lambda):
        return child is scope.body or (child is scope.params and _is_parameter_name(scope.params, below))
    if isinstance(scope, cst.ClassDef):
        return child is scope.body
    if isinstance(scope, _COMPREHENSIONS):
        return id(scope.for_in.iter) not in below
    return False


def _is_parameter_name(params: cst.Parameters, below: list[int]) -> bool:
    return any(id(param.name) in below for param in all_parameters(params))


def all_parameters(params: cst.Parameters) -> list[cst.Param]:
    """The parameters in order, ``*args`` and ``**kwargs`` too."""
    star = [params.star_arg] if isinstance(params.star_arg, cst.Param) else []
    last = [params.star_kwarg] if params.star_kwarg is not None else []
    return [*params.posonly_params, *params.params, *star, *params.kwonly_params, *last]


def _owner(tree: PythonTree, node: cst.Name, name: str) -> cst.CSTNode:
    """The scope whose variable a name is."""
    through_function = False
    for scope in _scopes(tree, node):
        if isinstance(scope, cst.ClassDef) and through_function:
            continue
        if _binds(tree, scope, name):
            return scope
        through_function = through_function or not isinstance(scope, cst.ClassDef)
    return tree.module


def _binds(tree: PythonTree, scope: cst.CSTNode, name: str) -> bool:
    return any(is_write(tree, node) and next(_scopes(tree, node)) is scope for node in tree.names(name, scope))


def _declared(tree: PythonTree, names: list[cst.Name]) -> Iterator[Problem]:
    for node in names:
        if isinstance(tree.parent(node), cst.NameItem):
            yield Problem(tree.span(node).start, f"{node.value} is declared global or nonlocal")


def _class_bound(tree: PythonTree, names: list[cst.Name], function: cst.FunctionDef) -> Iterator[Problem]:
    for node in names:
        scope = next(_scopes(tree, node))
        if isinstance(scope, cst.ClassDef) and is_write(tree, node) and _is_in(tree, scope, function):
            yield Problem(tree.span(node).start, f"a nested class binds {node.value} too")


def _reflection(rewrite: Rewrite, function: cst.FunctionDef) -> Iterator[Problem]:
    tree = rewrite.tree
    for name in _REFLECTION:
        for node in tree.names(name, function):
            call = tree.parent(node)
            if isinstance(call, cst.Call) and call.func is node:
                if name == "vars" and call.args:
                    continue
                if not rewrite.is_gone(node):
                    yield Problem(tree.span(node).start, f"{name}() may use any local")
