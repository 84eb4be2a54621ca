"""Instance attributes that methods under ``jit`` compile into their code."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.data_flow import varying
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef, Unresolved
from opschema_cli.source.python import Assign, Use
from opschema_rules.flydsl.helpers import is_compiled
from opschema_rules.flydsl.key import has_computed_key
from opschema_rules.flydsl.model import FlyTree, Traced


class Baked(msgspec.Struct, frozen=True):
    """An attribute that the method ``traced`` reads at ``use`` in ``body``, and the assignment that sets it."""

    traced: Traced
    attribute: str
    body: Body
    use: Use
    written: Assign


def baked_attributes(tree: FlyTree) -> Iterator[Baked]:
    """Yield the instance attributes that compiled methods depend on, each once per method, at its first read."""
    for traced in tree.traced if has_computed_key(tree) else ():
        if traced.kind == "jit" and traced.body.this == "self" and traced.takes_instance and is_compiled(tree, traced):
            yield from _baked(tree, traced)


def _baked(tree: FlyTree, traced: Traced) -> Iterator[Baked]:
    owner = traced.body.owner
    if owner is None or isinstance(tree.bodies.program.mro(owner), Unresolved):
        return
    arguments = _argument_words(tree, traced)
    found: set[str] = set()
    for body, use in _reads(tree, traced):
        attribute = use.name.split(".")[1]
        written = _written(tree, traced, owner, attribute)
        if written is not None and attribute not in found | arguments:
            found.add(attribute)
            yield Baked(traced, attribute, body, use, written)


def _reads(tree: FlyTree, traced: Traced) -> Iterator[tuple[Body, Use]]:
    """Yield the reads of attributes in a method, and in the methods that it calls, directly or indirectly."""
    around = traced.body.parent
    assert around is not None
    methods = {item.function.name: item for item in tree.bodies.within(around) if item.function is not None}
    reached, waiting = {traced.body}, [traced.body]
    while waiting:
        for body in tree.bodies.inside(waiting.pop(0)):
            for use in body.scope.uses:
                if body.this == "self" and use.name.startswith("self."):
                    yield body, use
                    method = methods.get(use.name.split(".")[1])
                    if method is not None and method not in reached:
                        reached.add(method)
                        waiting.append(method)


def _written(tree: FlyTree, traced: Traced, owner: ClassRef, attribute: str) -> Assign | None:
    """Return the only assignment of an attribute, if it depends on the arguments of the constructor."""
    around = traced.body.parent
    assert around is not None
    methods = [item for item in tree.bodies.within(around) if item.function is not None]
    writes = [
        (method, item)
        for method in methods
        for body in tree.bodies.inside(method)
        for item in body.scope.assigns
        if item.target == f"self.{attribute}"
    ]
    in_class = [item for item in around.scope.assigns if item.target == attribute]
    if len(writes) == 1 and not in_class and tree.bodies.program.attribute(owner, attribute) is None:
        method, item = writes[0]
        value = item.value if item.sure else None
        is_made = method.function is not None and method.function.name == "__init__"
        return item if is_made and value is not None and varying(method, value) else None
    if not writes and len(in_class) == 1 and in_class[0].annotation is not None and _is_dataclass(tree, around):
        plain = in_class[0].value is None or in_class[0].value.kind == "const"
        return in_class[0] if plain and "ClassVar" not in around.file.text(in_class[0].annotation) else None
    return None


def _is_dataclass(tree: FlyTree, around: Body) -> bool:
    assert around.cls is not None
    outer = around.parent or around
    names = (item.callee or item.text for item in around.cls.decorators)
    return any(tree.names.external(outer, name) == "dataclasses.dataclass" for name in names)


def _argument_words(tree: FlyTree, traced: Traced) -> set[str]:
    """Return the last words of the callers' arguments, which may be part of the key."""
    calls = [call for call in traced.calls if tree.around(call.body) is None]
    parts = [part for call in calls for item in call.expr.items[1:] for part in item.walk()]
    return {part.text.rpartition(".")[2] for part in parts if part.kind in ("name", "attribute")}
