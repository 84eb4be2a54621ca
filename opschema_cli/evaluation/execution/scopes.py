"""Variables of functions: local names, and the meaning of a name where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.values import Environment, Names, ParameterNames
from opschema_cli.evaluation.statements import all_statements, bound_by, targets
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Param, Statement


def names_in(body: Body) -> Names:
    """Return the names of a function, as its statements bind and declare them; cached per function."""
    if body.function is None:
        return _names_in(body)
    known: dict[str, Names] = vars(body.function)
    if _KEY not in known:
        known[_KEY] = _names_in(body)
    return known[_KEY]


_KEY = "names of executed code"


def _names_in(body: Body) -> Names:
    own = {item.name for item in body.params}
    top: set[str] = set()
    shared: set[str] = set()
    yields = False
    for statement in all_statements(body.statements):
        if statement.kind in ("import", "def", "class", "except", "case"):
            own.update(statement.names)
        elif statement.kind == "global":
            top.update(statement.names)
        elif statement.kind == "nonlocal":
            shared.update(statement.names)
        own.update(name for target in targets(statement) for name in bound_by(target))
        for expr in _in_statement(statement):
            if expr.kind == "walrus":
                own.add(expr.items[0].text)
            yields = yields or expr.kind in ("yield", "yield-from")
    params = _parameter_names(body.params)
    return Names(frozenset(own - top - shared), frozenset(top), frozenset(shared), yields, _is_async(body), params)


def _parameter_names(params: Sequence[Param]) -> ParameterNames:
    names: dict[str, list[str]] = {kind: [] for kind in ("posonly", "normal", "kwonly", "vararg", "kwarg")}
    for item in params:
        names[item.kind].append(item.name)
    placed = (*names["posonly"], *names["normal"])
    named = frozenset([*names["normal"], *names["kwonly"]])
    return ParameterNames(placed, named, "".join(names["vararg"]), "".join(names["kwarg"]))


def _is_async(body: Body) -> bool:
    function = body.function
    if function is None:
        return False
    before = body.file.source.text[function.outer.start : function.start]
    return before.rstrip().endswith("def") and before.split()[-2:-1] == ["async"]


def _in_statement(statement: Statement) -> Iterator[Expr]:
    """Yield the expressions of a statement that run in the function itself."""
    waiting = list(statement.exprs)
    while waiting:
        expr = waiting.pop()
        yield expr
        if expr.kind != "lambda":
            waiting += expr.items


def find(machine: Machine, scope: Environment, name: str) -> object:
    """Return the value of a name where it is read."""
    current: Environment | None = scope
    while current is not None:
        if name in current.variables:
            return current.variables[name]
        names = current.names
        if name in names.own:
            known = current.frame is None and current.body.cls is None
            return _unbound(machine, current, name, scope) if known else machine.framed(current, name)
        if name in names.top:
            break
        current = current.parent
    return machine.module_name(scope.body.file, name)


def _unbound(machine: Machine, holder: Environment, name: str, scope: Environment) -> object:
    if holder.inner:
        return machine.opaque(f"`{name}` is not bound")
    if holder is scope:
        machine.throw("UnboundLocalError", None)
    return machine.throw("NameError", None)


def holder_of(scope: Environment, name: str) -> Environment | None:
    """Return the variables that an assignment to a name writes to; None for a module name."""
    current = scope
    while current.inner and current.parent is not None and name not in current.names.own:
        current = current.parent
    if name in current.names.top:
        return None
    if name in current.names.shared:
        outer = current.parent
        while outer is not None and name not in outer.names.own:
            outer = outer.parent
        return outer or current
    return current


def bind_name(machine: Machine, scope: Environment, name: str, value: object) -> None:
    """Assign to a name."""
    if name in scope.names.own and not scope.inner:
        scope.variables[name] = value
        return
    holder = holder_of(scope, name)
    if holder is None:
        machine.globals[scope.body.file.path, name] = machine.written(value)
    else:
        holder.variables[name] = value if holder is scope else machine.written(value)
