"""A lowered signature: the leaves that an op's parameters become, the tree that maps them, and why it is refused.

Data only; :mod:`opschema_rules.magi.lowering` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.annotations import Hints
from opschema_cli.evaluation.type_forms import TypeForm
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_cli.source.text import Place
from opschema_rules.magi.classes import EnumKind
from opschema_rules.magi.dataclasses import Dataclass, Field
from opschema_rules.magi.defaults import Default

ProblemKind: TypeAlias = Literal[
    "variadic", "no-annotation", "mutable-dataclass", "tuple", "dict", "text-field", "recursive", "no-return", "dataclass-return",
    "literal", "enum", "default-order", "duplicate-name",
]  # fmt: skip
Path: TypeAlias = Literal["simple", "signature", "flatten"]


class Leaf(msgspec.Struct, frozen=True, eq=False):
    """One parameter of the lowered signature.

    ``path`` leads to it from the op's parameter through fields; ``lowered`` is its name. ``type`` is the resolved annotation, None
    without one, ``lowered_type`` what the schema gets; so are ``written`` and ``default`` for the default value. ``source`` is the
    op's parameter or the field; ``enum`` the enumeration that its type is.
    """

    path: tuple[str, ...]
    lowered: str
    source: Param | Field
    place: Place
    type: TypeForm | None
    lowered_type: TypeForm | None
    written: Default
    default: Default
    enum: EnumKind | None = None

    @property
    def name(self) -> str:
        """The parameter's or field's own name."""
        return self.path[-1]

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, and nothing but one."""
        return self.lowered_type is not None and self.lowered_type.is_tensor

    @property
    def may_be_tensor(self) -> bool:
        """Whether it may hold a tensor: one, an optional one, or an unknown value."""
        form = self.lowered_type
        return form is None or any(item.is_tensor or item.kind in ("unresolved", "text") for item in form.walk())

    @property
    def downgraded(self) -> bool:
        """Whether a ``Literal`` or an enumeration became ``str``."""
        return self.type != self.lowered_type

    @property
    def scrubbed(self) -> bool:
        """Whether it has a default value that the lowered signature lacks."""
        return self.written.kind != "absent" and self.written.kept is False

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Itself."""
        return (self,)


class Branch(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A parameter or field that is a frozen dataclass, and the nodes of its fields."""

    path: tuple[str, ...]
    source: Param | Field
    place: Place
    dataclass: Dataclass
    children: tuple[Node, ...]

    @property
    def name(self) -> str:
        """The parameter's or field's own name."""
        return self.path[-1]

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The lowered parameters that it becomes."""
        return tuple(leaf for child in self.children for leaf in child.leaves)


Node: TypeAlias = "Leaf | Branch"


class Problem(msgspec.Struct, frozen=True, eq=False):
    """A place where the real lowering raises ``error``.

    It concerns the parameter or field ``name`` of ``owner``, the op's function or a dataclass; ``name`` is empty for what is
    returned. Its type is ``type``. ``dataclass`` is the one to blame; the lowered parameters ``leaf`` and ``other`` clash.
    """

    kind: ProblemKind
    place: Place
    error: Literal["TypeError", "ValueError", "RecursionError"]
    owner: str
    name: str
    is_field: bool = False
    type: TypeForm | None = None
    dataclass: Dataclass | None = None
    leaf: Leaf | None = None
    other: Leaf | None = None

    @property
    def where(self) -> str:
        """The name in messages."""
        if not self.name:
            return f"the return value of `{self.owner}()`"
        return f"field `{self.owner}.{self.name}`" if self.is_field else f"parameter `{self.name}` of `{self.owner}()`"


class Lowering(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The result of lowering an op's signature.

    ``nodes`` is the parameter mapping tree, one node for each original parameter. ``returns`` is the resolved return annotation.
    ``unknown`` says what could not be resolved; where it is not empty, a parameter may have to be flattened that is a leaf here.
    """

    function: Body
    nodes: tuple[Node, ...]
    returns: TypeForm | None
    problems: tuple[Problem, ...]
    unknown: tuple[str, ...]
    hints: Hints

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The lowered signature's parameters."""
        return tuple(leaf for node in self.nodes for leaf in node.leaves)

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """Every dataclass in the tree, outer ones first."""
        return tuple(_branches(self.nodes))

    @property
    def returns_none_type(self) -> bool:
        """Whether the lowered signature returns ``NoneType``, which torch refuses, where ``None`` is written."""
        return self.returns is not None and self.returns.kind == "none" and self.hints.whole

    @property
    def flattens(self) -> bool:
        """Whether a parameter is a frozen dataclass."""
        return any(isinstance(node, Branch) for node in self.nodes)

    @property
    def complete(self) -> bool:
        """Whether every parameter's type is known."""
        return not self.unknown

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The names of the lowered parameters that are tensors, which ``infer_output_meta_fn`` may list."""
        return tuple(leaf.lowered for leaf in self.leaves if leaf.is_tensor)

    def leaf(self, lowered: str) -> Leaf | None:
        """The lowered parameter of that name."""
        return next((leaf for leaf in self.leaves if leaf.lowered == lowered), None)

    def node(self, name: str) -> Node | None:
        """The node of an original parameter."""
        return next((node for node in self.nodes if node.name == name), None)

    @cached_property
    def path(self) -> Path | None:
        """The path, of the three, that a call takes; None if that is not known."""
        if self.flattens:
            return "flatten"
        kinds = any(isinstance(leaf.source, Param) and leaf.source.kind != "normal" for leaf in self.leaves)
        if kinds or self.hints.rewritten or any(leaf.downgraded or leaf.scrubbed for leaf in self.leaves):
            return None if self.unknown else "signature"
        return None if self.unknown or any(leaf.written.kept is None for leaf in self.leaves) else "simple"

    def expand_mutates(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the lowered names that entries of ``mutates_args`` stand for, and the entries that name nothing.

        Only the flattening path expands them; the others hand them to torch as they are.
        """
        if not self.flattens:
            return tuple(names), ()
        found: dict[str, None] = {}
        wrong: list[str] = []
        for name in names:
            node = self.node(name)
            if node is not None:
                found.update(dict.fromkeys(leaf.lowered for leaf in node.leaves))
            elif self.leaf(name) is not None:
                found[name] = None
            else:
                wrong.append(name)
        return tuple(found), tuple(wrong)


def _branches(nodes: Sequence[Node]) -> Iterator[Branch]:
    for node in nodes:
        if isinstance(node, Branch):
            yield node
            yield from _branches(node.children)
