"""A dataclass with its subclasses, and the obstacles to freezing it."""

from __future__ import annotations

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.resolution import ClassRef, Unresolved
from opschema_cli.source.text import Place
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.makers import Maker
from opschema_rules.magi.migrations.trees import naming
from opschema_rules.magi.model import MagiTree

_WRITERS = ("__setattr__", "__delattr__")


def family_of(draft: Draft, tree: MagiTree, item: Dataclass) -> list[ClassRef]:
    """The class that is made a dataclass, and every class of the workspace that inherits from it."""
    found = [item.made]
    at = 0
    while at < len(found):
        ref = found[at]
        at += 1
        for file in naming(draft, tree.bodies, ref.name, lambda meant, ref=ref: meant == ref):  # type: ignore[misc]
            for body in tree.bodies.of(file):
                if body.cls is None or not body.cls.bases:
                    continue
                below = ClassRef(file, body.cls)
                heads = [base.items[0] if base.kind == "subscript" else base for base in body.cls.bases]
                meant = [tree.lowerer.classes.resolve(body, head.text) for head in heads if head.text]
                if ref in meant and below not in found:
                    found.append(below)
    return found


def refuse_family(tree: MagiTree, item: Dataclass, family: list[ClassRef]) -> None:
    """Check that the class can be frozen on its own.

    Raises:
        LeftAlone: a class above or below it is a dataclass that is not frozen, or what it defines stands against it.
    """
    classes, makers = tree.lowerer.classes, tree.lowerer.dataclasses.makers
    line = classes.line(item.made)
    above = [] if isinstance(line, Unresolved) else [ref for ref in line if isinstance(ref, ClassRef)][1:]
    for ref, word in [*((ref, "inherits from") for ref in above), *((ref, "is inherited by") for ref in family[1:])]:
        maker = makers.of(ref)
        if isinstance(maker, Unresolved) or (
            isinstance(maker, Maker) and maker.flag(tree.evaluator, "frozen", default=False) is not True
        ):
            known = "is not frozen" if isinstance(maker, Maker) else "may be a dataclass"
            raise LeftAlone(_place(ref), f"`{item.made.name}` {word} `{ref.name}`, which {known}")
    for ref in [item.made, *above, *family[1:]]:
        for name in _WRITERS:
            function = ref.cls.body.function(name)
            if function is not None:
                raise LeftAlone(Place(ref.file.path, function.span), f"`{ref.name}` defines `{name}()`")
    _refuse_hash(tree, item)


def _refuse_hash(tree: MagiTree, item: Dataclass) -> None:
    """A dataclass that is frozen and compares gets a hash of all its fields."""
    own = item.made.cls.body
    equal = own.function("__eq__")
    hashed = own.function("__hash__") is not None or any(assign.target == "__hash__" for assign in own.assigns)
    if equal is None or hashed:
        return
    maker = tree.lowerer.dataclasses.makers.of(item.made)
    flags = (
        [maker.flag(tree.evaluator, name, default=name == "eq") for name in ("eq", "unsafe_hash")]
        if isinstance(maker, Maker)
        else [None, None]
    )
    if flags[0] is not False and flags[1] is not True:
        reason = f"`{item.made.name}` compares by an `__eq__()` of its own; frozen, it would get a `__hash__()` of all fields"
        raise LeftAlone(Place(item.made.file.path, equal.span), reason)


def _place(ref: ClassRef) -> Place:
    return Place(ref.file.path, ref.cls.span)
