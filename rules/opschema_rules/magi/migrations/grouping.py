"""The replacement of a group of parameters: a frozen dataclass, its parameter, and the lowered names in their new order."""

from __future__ import annotations

import keyword
from functools import cached_property

import msgspec

from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.python import Param
from opschema_cli.source.resolution import Unresolved
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Leaf


class Grouping(msgspec.Struct, frozen=True, dict=True):
    """Parameters of an op, by their names, into the dataclass ``name``; the op takes it as ``parameter``."""

    op: MagiOp
    names: frozenset[str]
    name: str
    parameter: str

    @cached_property
    def flags(self) -> tuple[Param, ...]:
        """The parameters, in the signature's order."""
        return tuple(item for item in self.op.params if item.name in self.names)

    @property
    def first(self) -> Param:
        """The parameter in whose place the new one comes."""
        return self.flags[0]

    @cached_property
    def fields(self) -> tuple[Param, ...]:
        """The parameters in the order of fields: those with a default last."""
        return tuple(sorted(self.flags, key=lambda item: item.default is not None))

    @property
    def has_default(self) -> bool:
        """Whether the dataclass can be made without arguments, so that the new parameter has a default as well."""
        return all(item.default is not None for item in self.flags)

    @property
    def declaration(self) -> str:
        """The new parameter as written in the op's signature."""
        default = f" = {self.name}()" if self.has_default else ""
        return f"{self.parameter}: {self.name}{default}"

    @cached_property
    def originals(self) -> list[str]:
        """The names of the op's parameters afterwards."""
        return [
            self._renamed(item.name) for item in self.op.params if item.name not in self.names or item is self.first
        ]

    def _renamed(self, name: str) -> str:
        return self.parameter if name in self.names else name

    @cached_property
    def lowered(self) -> list[tuple[Leaf, str]]:
        """The leaves in their new order, each with its new lowered name."""
        found: list[tuple[Leaf, str]] = []
        for node in self.op.lowering.nodes:
            if node.name == self.first.name:
                leaves = [self._leaf(item.name) for item in self.fields]
                found += [(leaf, f"{self.parameter}__{leaf.name}") for leaf in leaves]
            elif node.name not in self.names:
                found += [(leaf, leaf.lowered) for leaf in node.leaves]
        return found

    def _leaf(self, name: str) -> Leaf:
        node = self.op.lowering.node(name)
        assert isinstance(node, Leaf)
        return node

    def refuse(self) -> None:
        """Check that the op's signature can be grouped.

        Raises:
            LeftAlone: it cannot, and where that is seen.
        """
        self._refuse_op()
        for item in self.flags:
            self._refuse_flag(item)
        self._refuse_order()

    def _refuse_op(self) -> None:
        op = self.op
        function, parent = op.body.function, op.body.parent
        decorated = function is not None and any(item.span == op.registration.call.span for item in function.decorators)
        if not decorated or not op.is_plain:
            raise LeftAlone(op.place, "the op is not made by the decorator alone")
        if parent is None or parent.function is not None or parent.cls is not None:
            raise LeftAlone(op.place, "the op is made inside of a function")
        for problem in op.lowering.problems:
            raise LeftAlone(problem.place, f"the op cannot be registered unchanged: {problem.where} is refused")
        if not op.lowering.complete or op.name is None:
            reason = op.lowering.unknown[0] if op.lowering.unknown else "its name"
            raise LeftAlone(op.place, f"not all of the op is known: {reason}")
        posonly = next((item for item in op.params if item.kind == "posonly"), None)
        if posonly is not None:
            raise LeftAlone(
                op.body.at(posonly.span), f"`{posonly.name}` is positional-only, and the op is called by name"
            )
        mutates = op.mutates
        named = set() if isinstance(mutates, Unresolved) else {item.name for item in mutates.names}
        if isinstance(mutates, Unresolved) or named & self.names:
            raise LeftAlone(op.place, "its `mutates_args` are not known, or name one of the parameters")

    def _refuse_flag(self, item: Param) -> None:
        place = self.op.body.at(item.span)
        leaf = self.op.lowering.node(item.name)
        if not isinstance(leaf, Leaf) or leaf.may_be_tensor:
            raise LeftAlone(place, f"`{item.name}` is not a flag, but a tensor or a dataclass")
        if leaf.written.kind != "absent" and not leaf.written.kept:
            raise LeftAlone(place, f"the default of `{item.name}` cannot be kept in a schema")

    def _refuse_order(self) -> None:
        defaulted = ""
        for leaf, name in self.lowered:
            if leaf.default.kind == "absent" and defaulted:
                reason = f"`{name}` has no default and would follow `{defaulted}`, which has one (MAG312)"
                raise LeftAlone(leaf.place, reason)
            if leaf.default.kept:
                defaulted = defaulted or name
        names = [name for _, name in self.lowered]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise LeftAlone(self.op.place, f"there would be two lowered parameters `{twice}`")


def is_name(text: str) -> bool:
    """Whether a text can name a class or a parameter."""
    return text.isidentifier() and not keyword.iskeyword(text)
