"""The pack's operators for the table: kernels and launchers, their parameters, and what each call passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from opschema_cli.operators.model import (
    Argument,
    Declaration,
    Detail,
    Gap,
    Implementation,
    Operator,
    Passed,
    Related,
    Use,
)
from opschema_cli.operators.parameters import argument_of, one_line
from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.arguments import is_read
from opschema_rules.flydsl.contract import Contract
from opschema_rules.flydsl.model import Call, FlyTree, Parameter, Traced

if TYPE_CHECKING:
    from opschema_rules.flydsl.detection import FlydslOptions


def operators(project: Project, options: FlydslOptions) -> Iterator[Operator]:
    """The functions of the workspace that are traced."""
    from opschema_rules.flydsl.code import read_tree

    tree = read_tree(project, options)
    names = _full_names(tree.traced)
    started: dict[int, list[Related]] = {}
    for item in tree.traced:
        for call in item.calls if item.kind == "kernel" else ():
            around = tree.around(call.body)
            started.setdefault(id(around), []).append(Related("launches", item.title, call.place))
    for item in tree.traced:
        yield _operator(tree, item, names[id(item)], started.get(id(item), ()))


def _full_names(traced: Sequence[Traced]) -> dict[int, str]:
    """Return a unique name for each function: its title, with its file and then its line added where titles are equal."""
    titles = Counter(item.title for item in traced)
    found = {
        id(item): item.title if titles[item.title] == 1 else f"{item.body.file.path}:{item.title}" for item in traced
    }
    again = Counter(found.values())
    for item in traced:
        if again[found[id(item)]] > 1:
            found[id(item)] += f":{item.body.file.source.position(item.place.span.start).line}"
    return found


def _operator(tree: FlyTree, traced: Traced, name: str, started: Sequence[Related]) -> Operator:
    kind = "kernel" if traced.kind == "kernel" else "launcher" if started else "function under jit"
    arguments = tuple(_argument(traced, item) for item in traced.call_parameters)
    return Operator(
        name,
        Declaration("defined", traced.place, arguments),
        title=f"{kind} `{traced.title}`",
        aliases=tuple(sorted({traced.title, traced.name} - {name})),
        implementations=(Implementation("kernel", traced.title, traced.place),) if traced.kind == "kernel" else (),
        uses=tuple(use for call in traced.calls for use in _uses(tree, traced, call)),
        related=tuple(started),
        details=tuple(_details(tree.contract, traced)),
        unresolved=() if traced.calls else (Gap("calls", "no call of it can be followed", traced.place),),
    )


def _argument(traced: Traced, item: Parameter) -> Argument:
    note = "" if is_read(traced, item) else "not read"
    return replace(argument_of(traced.body.file, item.param), role=item.kind.value, note=note)


def _details(contract: Contract, traced: Traced) -> Iterator[Detail]:
    decorator = traced.decorator
    if decorator.kind == "call":
        yield Detail("decorator", _text(traced.body, decorator), traced.body.at(decorator))
    yield Detail("contract", f"{contract.name} ({contract.source})" if contract.source else contract.name)


def _uses(tree: FlyTree, traced: Traced, call: Call) -> Iterator[Use]:
    around = tree.around(call.body)
    passed = tuple(filter(None, (_passed(call, item) for item in traced.call_parameters)))
    yield Use("called", call.place, f"in {around.title}" if around is not None else "", passed)
    for launch in call.launches:
        given = ", ".join(
            f"{key}={_text(call.body, value)}" if key else _text(call.body, value) for key, value in launch.args
        )
        yield Use("launched", call.body.at(launch.items[0]), given)
    if traced.kind == "kernel" and not call.launches:
        yield Use("launched", call.place, unresolved="no launch of what it returns can be followed")


def _passed(call: Call, parameter: Parameter) -> Passed | None:
    """Return the values that a call passes; None if they are not known."""
    value = call.argument(parameter.name)
    if value is not None:
        return Passed(parameter.name, _text(call.body, value), call.body.at(value))
    if call.unpacks or not parameter.param.by_name:
        return None
    absent = parameter.param.default is None
    return Passed(parameter.name, "absent" if absent else "default", note="not passed" if absent else "")


def _text(body: Body, expr: Expr) -> str:
    text = one_line(body.file, expr.span)
    return f"({text})" if expr.kind == "tuple" and not text.startswith("(") else text
