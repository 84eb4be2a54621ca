"""Remains of carriers that only a person can judge: tensors not known to be carriers, and methods nothing calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.migration import Note
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body, param_for
from opschema_cli.source.python import Expr, Param
from opschema_rules.tileops.carriers import Carriers
from opschema_rules.tileops.custom_ops import CustomOps
from opschema_rules.tileops.migrations.drop_carrier.groups import Carried


def unseen(carriers: Carriers, subjects: Iterable[Carried]) -> Iterator[Note]:
    """Yield notes on tensors that ops without inputs still pass to custom ops: carriers, except for how they are made."""
    bodies = carriers.bodies
    for subject in subjects:
        if subject.op is None or subject.attributes or len(subject.inputs) != len(subject.op.entry.inputs):
            continue
        forward = bodies.function(subject.inputs[0].forward)
        for body, argument in _handed(carriers.custom_ops, subject, forward):
            text = body.file.text(argument)
            message = (
                f"`{text}` is not known to be a carrier, so it stays: `{subject.op.name}` declares no input any more"
            )
            yield Note(body.at(argument), message)


def _handed(custom_ops: CustomOps, subject: Carried, body: Body | None) -> Iterator[tuple[Body, Expr]]:
    """The tensors that a method without arguments hands to custom ops."""
    if body is None or subject.op is None or len(body.params) != 1:
        return
    for call in body.scope.calls:
        ops = custom_ops.called(body, call.items[0], subject.op.ref)
        for index, argument in enumerate(call.items[1:], start=1):
            taken = [param_for(call, index, op.body.params) for op in ops]
            if taken and all(param is not None and _is_tensor(param) for param in taken):
                yield body, argument


def _is_tensor(param: Param) -> bool:
    return param.annotation is not None and param.annotation.text.rpartition(".")[2] == "Tensor"


def own_calls(body: Body, call: Expr) -> set[str]:
    """The private methods of the instance that the arguments of a call call."""
    holders = (item.callee.rpartition(".") for item in call.walk() if item.kind == "call")
    return {name for holder, _, name in holders if holder and holder == body.this and name.startswith("_")}


def idle(project: Project, bodies: Bodies, names: Collection[str]) -> Iterator[Note]:
    """Notes on methods that nothing but their definitions names any more."""
    defining = re.compile(r"\bdef\s+\Z")
    paths = [path for path in project.workspace.files if path.endswith(".py")]
    for name in sorted(names):
        places = [found.place for found in mentions(project, {name}, paths)]
        if places and all(_is_after(project, place, defining) for place in places):
            mine = [place for place in places if place.path in bodies.paths]
            yield from (Note(place, f"nothing calls `{name}()` any more") for place in mine[:1])


def _is_after(project: Project, place: Place, pattern: re.Pattern[str]) -> bool:
    source = project.source(place.path)
    return source is not None and pattern.search(source.text, 0, place.span.start) is not None
