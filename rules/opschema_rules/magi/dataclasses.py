"""Reads dataclasses without running them: their fields in order, defaults, and how instances are created."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.annotations import Annotations, Hints
from opschema_cli.evaluation.namespaces import Namespace
from opschema_cli.evaluation.type_forms import TypeForm
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Assign, Expr
from opschema_cli.source.resolution import HARMLESS_BASES, ClassRef, External, FunctionRef, Unresolved
from opschema_cli.source.text import Place
from opschema_rules.magi.classes import Classes, truth
from opschema_rules.magi.makers import Maker, Makers


class Field(msgspec.Struct, frozen=True, eq=False):
    """A field, written in the class ``body``.

    ``default`` or ``factory`` is what makes its default value, written in ``value_body``: a base's where the class declares
    the field again without one.

    ``init`` and ``kw_only`` are None when they are not known. ``type`` is its resolved annotation.
    """

    name: str
    owner: ClassRef
    body: Body
    assign: Assign
    type: TypeForm
    default: Expr | None = None
    factory: Expr | None = None
    init: bool | None = True
    kw_only: bool | None = False
    value_body: Body | None = None

    @property
    def place(self) -> Place:
        """The place of its name."""
        return Place(self.body.file.path, self.assign.span)

    @property
    def annotation(self) -> Expr:
        """The annotation as written."""
        return self.assign.annotation or Expr("other", *self.assign.span)

    @property
    def statement(self) -> Place:
        """The entire statement that declares it."""
        return Place(self.body.file.path, self.assign.statement)

    @property
    def has_default(self) -> bool:
        """Whether instances can be made without it."""
        return self.default is not None or self.factory is not None


class Dataclass(msgspec.Struct, frozen=True, eq=False):
    """A dataclass.

    ``fields`` are what ``dataclasses.fields`` gives: inherited ones first, class variables and ``InitVar`` left out; the latter
    are in ``init_vars``. ``frozen`` is None when it is not known. ``maker`` is the decorator that made it, or made the class
    ``made`` that it inherits from. ``post_init`` and ``own_init`` are methods that run when an instance is made; ``init`` is
    false when the dataclass makes no ``__init__``.
    """

    ref: ClassRef
    body: Body
    made: ClassRef
    maker: Expr
    frozen: bool | None
    fields: tuple[Field, ...]
    init_vars: tuple[Field, ...] = ()
    post_init: FunctionRef | None = None
    own_init: FunctionRef | None = None
    init: bool | None = True

    @property
    def name(self) -> str:
        """The class's name."""
        return self.ref.name

    @property
    def place(self) -> Place:
        """The place of its name."""
        return Place(self.ref.file.path, self.ref.cls.span)

    @property
    def maker_place(self) -> Place:
        """The place of the decorator."""
        return Place(self.made.file.path, self.maker.span)

    def field(self, name: str) -> Field | None:
        """The field of that name."""
        return next((item for item in self.fields if item.name == name), None)


class _Draft(msgspec.Struct):
    """The fields while they are collected over the bases."""

    fields: dict[str, Field] = msgspec.field(default_factory=dict)
    init_vars: dict[str, Field] = msgspec.field(default_factory=dict)


class Dataclasses:
    """The dataclasses of one tree."""

    def __init__(self, bodies: Bodies, classes: Classes, annotations: Annotations) -> None:
        self.bodies = bodies
        self.classes = classes
        self.annotations = annotations
        self.makers = Makers(bodies, classes)
        self._found: dict[tuple[ClassRef, int | None], Dataclass | Unresolved | None] = {}

    def of(self, ref: ClassRef, before: int | None = None) -> Dataclass | Unresolved | None:
        """Return the dataclass of a class; None if it is not one.

        ``before`` is where in the class's own file the op is registered that asks, when that is at module level.
        """
        key = (ref, before)
        if key not in self._found:
            self._found[key] = self._read(ref, before)
        return self._found[key]

    def _read(self, ref: ClassRef, before: int | None) -> Dataclass | Unresolved | None:
        line = self.classes.line(ref)
        if isinstance(line, Unresolved):
            return line
        owners = [item for item in line if isinstance(item, ClassRef)]
        makers = [(owner, self.makers.of(owner)) for owner in owners]
        doubtful = next((maker for _, maker in makers if isinstance(maker, Unresolved)), None)
        made = [(owner, maker) for owner, maker in makers if isinstance(maker, Maker)]
        if not made and doubtful is None:
            return None
        outside = [item.name for item in line if isinstance(item, External) and item.name not in HARMLESS_BASES]
        if doubtful is not None or outside or any(owner.cls.metaclass is not None for owner in owners):
            return doubtful or Unresolved(f"what `{ref.name}` inherits from is not known")
        return self._made(ref, made, owners, before)

    def _made(
        self, ref: ClassRef, made: list[tuple[ClassRef, Maker]], owners: list[ClassRef], before: int | None
    ) -> Dataclass | Unresolved:
        owner, maker = made[0]
        if not all(item.sure for base, _ in made for item in base.cls.body.assigns if item.annotation is not None):
            return Unresolved(f"`{ref.name}` declares fields under a condition")
        draft = _Draft()
        hints = self._hints(owner, owners[owners.index(owner) :], before)
        for base, its_maker in reversed(made):
            self._collect(base, its_maker, hints, owners[owners.index(base) :], draft)
        return Dataclass(
            ref, self.classes.body(ref), owner, maker.expr, maker.flag(self.classes.evaluator, "frozen", default=False),
            tuple(draft.fields.values()), tuple(draft.init_vars.values()), self.classes.method(ref, "__post_init__"),
            self.classes.method(ref, "__init__"), maker.flag(self.classes.evaluator, "init", default=True),
        )  # fmt: skip

    # Fields

    def _hints(self, ref: ClassRef, line: list[ClassRef], before: int | None) -> dict[ClassRef, Hints]:
        """Of each class of the line, its own annotations as ``get_type_hints`` of the first resolves them."""
        written = [
            (f"{index} {item.target}", item.annotation, *self._namespaces(owner, ref, before))
            for index, owner in enumerate(line)
            for item in owner.cls.body.assigns
            if item.annotation is not None
        ]
        alone = Namespace(ref.file, (ref.cls.body,), text=True)
        hints = self.annotations.hints(written, lambda name: alone)
        split: dict[ClassRef, dict[str, TypeForm | None]] = {owner: {} for owner in line}
        for name, form in hints.types.items():
            index, _, target = name.partition(" ")
            split[line[int(index)]][target] = form
        return {owner: Hints(types, frozenset()) for owner, types in split.items()}

    def _namespaces(self, owner: ClassRef, ref: ClassRef, before: int | None) -> tuple[Namespace, Namespace]:
        parent = self.classes.body(owner).parent
        scopes = (owner.cls.body, *(parent.scopes if parent is not None else ()))
        limit = before if owner.file is ref.file else None
        return Namespace(owner.file, scopes), Namespace(owner.file, (), text=True, before=limit)

    def _collect(
        self, ref: ClassRef, maker: Maker, hints: dict[ClassRef, Hints], line: list[ClassRef], draft: _Draft
    ) -> None:
        body = self.classes.body(ref)
        kw_only = maker.flag(self.classes.evaluator, "kw_only", default=False)
        for assign in _declared(ref):
            form = hints[ref].types[assign.target] or TypeForm("unresolved")
            head = form.name
            if head == "dataclasses.KW_ONLY":
                kw_only = True
            elif not head.endswith(".ClassVar"):
                found = self._field(body, assign, form, line, kw_only)
                is_var = head == "dataclasses.InitVar"
                (draft.init_vars if is_var else draft.fields)[assign.target] = found
                (draft.fields if is_var else draft.init_vars).pop(assign.target, None)

    def _field(self, body: Body, assign: Assign, form: TypeForm, line: list[ClassRef], kw_only: bool | None) -> Field:
        ref = line[0]
        plain = Field(assign.target, ref, body, assign, form, kw_only=kw_only)
        value = _value(ref, assign)
        if value is None:
            return self._inherited(plain, line[1:])
        if not self._is_field(body, value):
            return replace(plain, default=value, value_body=body)
        given = value.keyword("kw_only")
        return replace(
            plain,
            default=value.keyword("default"),
            factory=value.keyword("default_factory"),
            value_body=body,
            init=None if "**" in value.keywords else truth(self.classes.evaluator, body, value.keyword("init"), True),
            kw_only=kw_only if given is None else truth(self.classes.evaluator, body, given, False),
        )

    def _inherited(self, plain: Field, bases: list[ClassRef]) -> Field:
        """A field without a value of its own: its default is the attribute of a base, where a ``default_factory`` leaves none."""
        for base in bases:
            value, body = _value(base, plain.assign), self.classes.body(base)
            if value is not None:
                value = value.keyword("default") if self._is_field(body, value) else value
                if value is not None:
                    return replace(plain, default=value, value_body=body)
        return plain

    def _is_field(self, body: Body, value: Expr) -> bool:
        return self.makers.named(body, value) == "dataclasses.field" if value.kind == "call" else False


def _value(ref: ClassRef, assign: Assign) -> Expr | None:
    """The value that a class's body assigns last to the name of a field."""
    return ref.assigned.get(assign.target)


def _declared(ref: ClassRef) -> Iterator[Assign]:
    """The annotated names of a class body, each at its first place with its last annotation."""
    found: dict[str, Assign] = {}
    for item in ref.cls.body.assigns:
        if item.annotation is not None and "." not in item.target:
            found[item.target] = item
    yield from found.values()
