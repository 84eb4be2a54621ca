"""``opschema show`` of a kernel or launcher: its parameters, what they take, and what each call passes, with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.lint.names import closest_names
from opschema_cli.lint.pack import Shown, ShowRow
from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Place
from opschema_rules.flydsl.arguments import is_read
from opschema_rules.flydsl.contract import Contract
from opschema_rules.flydsl.model import Call, FlyTree, Parameter, Traced

if TYPE_CHECKING:
    from opschema_rules.flydsl.detection import FlydslOptions

MOST = 8
"""How many names or calls are shown."""


def show(project: Project, options: FlydslOptions, name: str) -> Shown | Sequence[str]:
    """The one kernel or launcher of a name; the names of those that it may mean, or that are close, when it is not one."""
    from opschema_rules.flydsl.reader import read_tree

    tree = read_tree(project, options)
    names = _full_names(tree.traced)
    found = [item for item in tree.traced if name in (names[id(item)], item.title)]
    found = found or [item for item in tree.traced if name == item.name]
    if len(found) == 1:
        return _shown(tree, found[0])
    several = [names[id(item)] for item in found][:MOST]
    return several or _close(name, tree.traced, names)


def _full_names(traced: Sequence[Traced]) -> dict[int, str]:
    """A name for each function that no other has: its title, and where others have that its file, and then its line."""
    titles = Counter(item.title for item in traced)
    found = {
        id(item): item.title if titles[item.title] == 1 else f"{item.body.file.path}:{item.title}" for item in traced
    }
    again = Counter(found.values())
    for item in traced:
        if again[found[id(item)]] > 1:
            found[id(item)] += f":{_line(item.body, item.place)}"
    return found


def _close(name: str, traced: Sequence[Traced], names: dict[int, str]) -> list[str]:
    keys: dict[str, str] = {}
    for item in traced:
        keys.setdefault(item.name, names[id(item)])
        keys.setdefault(item.title, names[id(item)])
    return list(dict.fromkeys(keys[key] for key in closest_names(name, keys, cutoff=0.5)))


def _shown(tree: FlyTree, traced: Traced) -> Shown:
    kind = "kernel" if traced.kind == "kernel" else "launcher" if _starts(tree, traced) else "function under jit"
    rows = [_row(traced, item) for item in traced.call_parameters]
    return Shown(f"{kind} `{traced.title}`", list(_places(tree, traced)), rows, ("parameter", "declared", "passed"))


def _places(tree: FlyTree, traced: Traced) -> Iterator[tuple[str, str]]:
    yield "defined", _at(traced.body, traced.place)
    decorator = traced.decorator
    if decorator.kind == "call":
        yield "decorator", f"{_at(traced.body, traced.body.at(decorator))} {_text(traced.body, decorator)}"
    yield "contract", _told(tree.contract)
    for call in traced.calls[:MOST]:
        around = tree.around(call.body)
        where = f" in {around.title}" if around is not None else ""
        yield "called", f"{_at(call.body, call.place)}{where}"
        for launch in call.launches:
            given = ", ".join(
                f"{key}={_text(call.body, value)}" if key else _text(call.body, value) for key, value in launch.args
            )
            yield "launched", f"{_at(call.body, call.body.at(launch.items[0]))} {given}"
        if traced.kind == "kernel" and not call.launches:
            yield "launched", "unresolved"
    if len(traced.calls) > MOST:
        yield "called", f"{len(traced.calls) - MOST} times more"
    if not traced.calls:
        yield "called", "unresolved"
    for other, call in _started(tree, traced):
        yield "launches", f"{_at(call.body, call.place)} {other.title}"


def _told(contract: Contract) -> str:
    return f"{contract.name} ({contract.source})" if contract.source else contract.name


def _starts(tree: FlyTree, traced: Traced) -> bool:
    return any(call.launches for _, call in _started(tree, traced))


def _started(tree: FlyTree, traced: Traced) -> Iterator[tuple[Traced, Call]]:
    """The kernels that a function calls."""
    for other in tree.traced:
        for call in other.calls if other.kind == "kernel" else ():
            if tree.around(call.body) is traced:
                yield other, call


def _row(traced: Traced, parameter: Parameter) -> ShowRow:
    given = [_given(traced, call, parameter) for call in traced.calls]
    shown = [item for item in given if item][:MOST]
    notes = [] if is_read(traced, parameter) else ["not read"]
    if given and "absent" in given:
        notes.append("not passed")
    declared = f"{_text_of(traced, parameter)}   {parameter.kind.value}"
    return ShowRow(parameter.name, declared, "\n".join(shown), ", ".join(notes))


def _given(traced: Traced, call: Call, parameter: Parameter) -> str:
    """What a call passes, with its place; empty when that cannot be told."""
    value = call.argument(parameter.name)
    if value is not None:
        return f"{_text(call.body, value)}   {_line(call.body, call.body.at(value))}:{_column(call.body, call.body.at(value))}"
    if call.unpacks or not parameter.param.by_name:
        return ""
    return "absent" if parameter.param.default is None else "default"


def _text_of(traced: Traced, parameter: Parameter) -> str:
    stars = {"vararg": "*", "kwarg": "**"}.get(parameter.param.kind, "")
    written = " ".join(traced.body.file.text(parameter.param.full_span).split())
    return stars + written


def _text(body: Body, expr: Expr) -> str:
    text = " ".join(body.file.text(expr).split())
    return f"({text})" if expr.kind == "tuple" and not text.startswith("(") else text


def _line(body: Body, place: Place) -> int:
    return body.file.source.position(place.span.start).line


def _column(body: Body, place: Place) -> int:
    return body.file.source.position(place.span.start).column


def _at(body: Body, place: Place) -> str:
    return f"{place.path}:{_line(body, place)}"
