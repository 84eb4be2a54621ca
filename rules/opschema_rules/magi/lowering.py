"""The lowering of MagiCompiler's dataclass support (e68e0b0), done without running it.

RESOLVE the annotations, FLATTEN frozen dataclasses into their fields, NORMALISE kinds, types and defaults, EMIT both signatures
and the tree that maps one to the other. Where the real one raises, there is a :class:`Problem`, in the order in which it would
get to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from opschema_cli.evaluation.annotations import Annotations, Hints
from opschema_cli.evaluation.namespaces import Namespace, closure
from opschema_cli.evaluation.type_forms import STR, TypeForm, unresolved
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.resolution import ClassRef, Unresolved
from opschema_cli.source.text import Place
from opschema_rules.magi.classes import Classes, EnumKind
from opschema_rules.magi.dataclasses import Dataclass, Dataclasses, Field
from opschema_rules.magi.defaults import ABSENT, Default, Defaults
from opschema_rules.magi.signature import Branch, Leaf, Lowering, Node, Problem, ProblemKind

MAX_NODES = 2000
"""Maximum number of nodes of a parameter mapping tree."""


class Lowerer(msgspec.Struct):
    """Lowers the ops of one tree."""

    bodies: Bodies
    annotations: Annotations
    classes: Classes
    dataclasses: Dataclasses
    defaults: Defaults

    def lower(self, function: Body, before: int | None) -> Lowering:
        """The lowering of a function; ``before`` is where in its module it is registered, None if that is in a function."""
        return _Run(self, function, before).lowering()

    def hints(self, function: Body, before: int | None) -> Hints:
        """Return the function's resolved annotations; the result's is under ``return``."""
        plain, text, alone = _namespaces(function, before)
        written: list[tuple[str, Expr | None]] = [(item.name, item.annotation) for item in function.params]
        written.append(("return", function.function.returns if function.function is not None else None))
        return self.annotations.hints([(name, expr, plain, text) for name, expr in written], lambda name: alone)


def _namespaces(function: Body, before: int | None) -> tuple[Namespace, Namespace, Namespace]:
    parent = function.parent or function
    scopes = ((parent.scope,) if parent.cls is not None else ()) + parent.scopes
    text = Namespace(function.file, (), text=True, before=before)
    alone = Namespace(function.file, parent.scopes, only=closure(function), text=True, before=before)
    return Namespace(function.file, scopes), text, alone


class _Run(msgspec.Struct):
    """One function's lowering. The real one validates all before it lowers, so problems are kept apart until the end."""

    tools: Lowerer
    function: Body
    before: int | None
    validation: list[Problem] = msgspec.field(default_factory=list)
    normalisation: list[Problem] = msgspec.field(default_factory=list)
    unknown: list[str] = msgspec.field(default_factory=list)
    nodes: int = 0

    @property
    def name(self) -> str:
        return self.function.function.name if self.function.function is not None else ""

    def lowering(self) -> Lowering:
        hints = self.tools.hints(self.function, self.before)
        nodes = [self._param(item, hints.types[item.name]) for item in self.function.params]
        returns = hints.types["return"]
        self._returned(returns)
        kept = tuple(node for node in nodes if node is not None)
        leaves = [leaf for node in kept for leaf in node.leaves]
        problems = (*self.validation, *self.normalisation, *self._clashes(leaves))
        return Lowering(self.function, kept, returns, problems, tuple(self.unknown), hints)

    def _param(self, item: Param, form: TypeForm | None) -> Node | None:
        place = self.function.at(item.span)
        if not item.by_name:
            self.validation.append(
                Problem("variadic", self.function.at(item.full_span), "TypeError", self.name, item.name)
            )
            return None
        if form is None:
            self.validation.append(Problem("no-annotation", place, "TypeError", self.name, item.name))
        return self._node((item.name,), self.name, item, place, form, ())

    def _node(
        self, path: tuple[str, ...], owner: str, source: Param | Field, place: Place, form: TypeForm | None,
        above: tuple[ClassRef, ...],
    ) -> Node:  # fmt: skip
        self.nodes += 1
        found = self._dataclass(form)
        is_field = isinstance(source, Field)
        if is_field and form is not None and form.kind == "text":
            self.validation.append(Problem("text-field", place, "TypeError", owner, path[-1], True, form))
        if isinstance(found, Unresolved) or (form is not None and not form.is_known):
            reason = found.reason if isinstance(found, Unresolved) else "its type is not known"
            self.unknown.append(f"{'.'.join(path)}: {reason}")
        if isinstance(found, Dataclass) and found.frozen:
            if found.ref in above or self.nodes > MAX_NODES:
                return self._endless(path, owner, source, place, form, found, above)
            return self._branch(path, source, place, found, above)
        if isinstance(found, Dataclass) and found.frozen is False:
            problem = Problem("mutable-dataclass", place, "TypeError", owner, path[-1], is_field, form, found)
            self.validation.append(problem)
        elif isinstance(found, Dataclass):
            self.unknown.append(f"{'.'.join(path)}: whether `{found.name}` is frozen is not known")
        if form is not None and form.origin in ("tuple", "dict"):
            kind: Literal["tuple", "dict"] = "tuple" if form.origin == "tuple" else "dict"
            self.validation.append(Problem(kind, place, "TypeError", owner, path[-1], is_field, form))
        return self._leaf(path, owner, source, place, form)

    def _dataclass(self, form: TypeForm | None) -> Dataclass | Unresolved | None:
        if form is None or form.kind != "class" or form.ref is None or form.args:
            return None
        local = form.ref.file is self.function.file
        return self.tools.dataclasses.of(form.ref, self.before if local else None)

    def _endless(
        self, path: tuple[str, ...], owner: str, source: Param | Field, place: Place, form: TypeForm | None,
        found: Dataclass, above: tuple[ClassRef, ...],
    ) -> Leaf:  # fmt: skip
        if found.ref in above:
            is_field = isinstance(source, Field)
            self.validation.append(
                Problem("recursive", place, "RecursionError", owner, path[-1], is_field, form, found)
            )
        else:
            self.unknown.append(f"{'.'.join(path)}: too many fields")
        return self._leaf(path, owner, source, place, unresolved("it holds itself, or too much"))

    def _branch(
        self, path: tuple[str, ...], source: Param | Field, place: Place, found: Dataclass, above: tuple[ClassRef, ...]
    ) -> Branch:
        children = [
            self._node((*path, item.name), found.name, item, item.place, item.type, (*above, found.ref))
            for item in found.fields
        ]
        return Branch(path, source, place, found, tuple(children))

    def _leaf(
        self, path: tuple[str, ...], owner: str, source: Param | Field, place: Place, form: TypeForm | None
    ) -> Leaf:
        written = self._default(source)
        enum = self.tools.classes.enum(form.ref) if form is not None and form.ref is not None else None
        lowered = self._downgraded(form, enum, place, owner, path[-1], isinstance(source, Field))
        kept = written if written.kept is not False else ABSENT
        return Leaf(path, "__".join(path), source, place, form, lowered, written, kept, enum)

    def _default(self, source: Param | Field) -> Default:
        if isinstance(source, Field):
            return self.tools.defaults.of_field(source)
        return self.tools.defaults.of(self.function.parent or self.function, source.default)

    def _downgraded(
        self, form: TypeForm | None, enum: EnumKind | None, place: Place, owner: str, name: str, is_field: bool
    ) -> TypeForm | None:
        strings: bool | None
        if form is not None and form.kind == "literal":
            strings = (
                None if form.values is None else bool(form.values) and all(isinstance(v, str) for v in form.values)
            )
        elif enum is not None:
            strings = None if enum.values == "unknown" else enum.values == "str"
        else:
            return form
        if strings is False:
            kind: Literal["enum", "literal"] = "literal" if enum is None else "enum"
            self.normalisation.append(Problem(kind, place, "TypeError", owner, name, is_field, form))
        elif strings is None:
            self.unknown.append(f"{name}: the values of `{form}` are not known")
        return STR if strings else form

    def _returned(self, form: TypeForm | None) -> None:
        function = self.function.function
        if function is None:
            return
        if form is None:
            self.validation.append(Problem("no-return", self.function.at(function.span), "TypeError", self.name, ""))
            return
        place = self.function.at(function.returns.span if function.returns is not None else function.span)
        found = self._dataclass(form)
        if isinstance(found, Dataclass):
            self.validation.append(Problem("dataclass-return", place, "TypeError", self.name, "", False, form, found))

    def _clashes(self, leaves: Sequence[Leaf]) -> Iterator[Problem]:
        """Clashes that ``inspect.Signature`` refuses."""
        seen: dict[str, Leaf] = {}
        before: Leaf | None = None
        for leaf in leaves:
            if leaf.default.kind == "absent" and before is not None:
                yield self._clash("default-order", leaf, before)
            elif leaf.default.kept:
                before = before or leaf
            if leaf.lowered in seen:
                yield self._clash("duplicate-name", leaf, seen[leaf.lowered])
            seen[leaf.lowered] = leaf

    def _clash(self, kind: ProblemKind, leaf: Leaf, other: Leaf) -> Problem:
        is_field = isinstance(leaf.source, Field)
        return Problem(kind, leaf.place, "ValueError", self.name, leaf.lowered, is_field, leaf.type, None, leaf, other)
