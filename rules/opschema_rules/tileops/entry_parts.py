"""The parts of an entry: tensors, parameters, workload rows and shape rules, each with its node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from opschema_cli.source.yaml import Data, Node, scalar_value
from opschema_rules.tileops.doubtful_keys import is_doubtful, repeated


class Tensor(msgspec.Struct, frozen=True, dict=True):
    """An input or output as declared. ``node`` is its mapping of attributes."""

    name: str
    direction: str
    key: Node
    node: Node

    def attribute(self, name: str) -> Node | None:
        """The node of one attribute."""
        return self.node.get(name)

    def text(self, name: str) -> str | None:
        """The text of a string attribute; None when absent or not a string."""
        found = self.node.get(name)
        if found is None or found.kind != "scalar" or self.doubtful(name):
            return None
        value = scalar_value(found)
        return value if isinstance(value, str) else None

    @cached_property
    def dtype(self) -> str | None:
        """The dtype expression."""
        return self.text("dtype")

    @cached_property
    def shape(self) -> str | None:
        """The shape declaration; a legacy list reads as its string form."""
        found = self.node.get("shape")
        if found is not None and found.is_sequence and all(item.kind == "scalar" for item in found.items):
            return "[" + ", ".join(item.value for item in found.items) + "]" if not self.doubtful("shape") else None
        return self.text("shape")

    def flag(self, name: str) -> bool:
        """Whether an attribute is literally true."""
        found = self.node.get(name)
        return found is not None and found.kind == "scalar" and scalar_value(found) is True

    def doubtful(self, name: str) -> bool:
        """Whether the meaning of an attribute is unclear: see :func:`is_doubtful`."""
        return is_doubtful(self.node, name)

    def misstates(self, name: str) -> bool:
        """Whether a flag is present and not literally true, or misspelt, so that its meaning is unclear."""
        return (self.node.get(name) is not None and not self.flag(name)) or self.doubtful(name)

    @property
    def optional(self) -> bool:
        """Whether a call may leave the input out."""
        return self.flag("optional")

    @property
    def mutated(self) -> bool:
        """Whether the op may write the input."""
        return self.flag("mutated")


class ParamDecl(msgspec.Struct, frozen=True):
    """A parameter as declared."""

    name: str
    key: Node
    node: Node
    default: Data = None
    has_default: bool = False

    @property
    def type(self) -> str | None:
        """The type expression."""
        found = self.node.get("type")
        value = scalar_value(found) if found is not None and found.kind == "scalar" else None
        return value if isinstance(value, str) else None

    def doubtful(self, name: str) -> bool:
        """Whether the meaning of an attribute is unclear: see :func:`is_doubtful`."""
        return is_doubtful(self.node, name)

    @property
    def kw_only(self) -> bool | None:
        """Whether a caller must pass it by name; None if its value does not show that."""
        found = self.node.get("kw_only")
        value = False if found is None else scalar_value(found) if found.kind == "scalar" else None
        return value if isinstance(value, bool) and not self.doubtful("kw_only") else None


class Row(msgspec.Struct, frozen=True):
    """One workload row."""

    index: int
    node: Node
    data: Mapping[str, Data]

    @property
    def dtypes(self) -> list[str]:
        """The dtype names it lists."""
        found = self.data.get("dtypes")
        return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []

    @property
    def repeated(self) -> set[str]:
        """Return the keys with two values."""
        return repeated(self.node) if len(self.node.items) // 2 > len(self.data) else set()

    def value(self, key: str) -> Node | None:
        """The node of one value."""
        return self.node.get(key)


class Rule(msgspec.Struct, frozen=True):
    """One shape rule: its text and the node that holds it."""

    index: int
    node: Node
    text: str
