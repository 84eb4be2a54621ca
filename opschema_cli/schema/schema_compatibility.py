"""Backward and forward compatibility of two schemas, as torch's C++ defines them.

These are ``FunctionSchema.is_backward_compatible_with`` and ``check_forward_compatible_with``
(aten/src/ATen/core/function_schema.cpp), by which PyTorch holds its own operators to their promise: calls and programs that
were saved with the old schema work with the new one, and those saved with the new one work with the old.
:mod:`opschema_cli.schema.schema_changes` lists all that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return, SchemaType
from opschema_cli.schema.schema_subtypes import is_subtype
from opschema_cli.schema.schema_values import Alias, Constant, alias_values, default_value, is_container


class Slot(msgspec.Struct, frozen=True):
    """An argument or a return, in the form used for comparison."""

    name: str
    type: SchemaType
    alias: Alias | None
    default: Constant | None = None
    kwarg_only: bool = False

    @property
    def size(self) -> int | None:
        """The size of a list or of an optional list."""
        of = self.type.inner if self.type.optional and self.type.inner is not None else self.type
        return of.size

    @property
    def is_out(self) -> bool:
        """Whether it is an out argument."""
        return self.kwarg_only and self.alias is not None and self.alias[0]


class ComparedSchema(msgspec.Struct, frozen=True, dict=True):
    """A schema in the form used for comparison."""

    schema: OperatorSchema

    @cached_property
    def slots(self) -> tuple[list[Slot], list[Slot]]:
        """The arguments and the returns."""
        aliases = alias_values(self.schema.slots)
        arguments, returns = self.schema.arguments, self.schema.returns
        return (
            [_argument(item, alias) for item, alias in zip(arguments, aliases, strict=False)],
            [_return(item, alias) for item, alias in zip(returns, aliases[len(arguments) :], strict=True)],
        )

    @cached_property
    def first_out(self) -> int:
        """The position of the first out argument; the number of arguments without any."""
        arguments, _ = self.slots
        return next((index for index, item in enumerate(arguments) if item.is_out), len(arguments))


def _argument(item: Argument, alias: Alias | None) -> Slot:
    return Slot(item.name, item.type, alias, default_value(item), item.kwarg_only)


def _return(item: Return, alias: Alias | None) -> Slot:
    return Slot(item.name or "", item.type, alias)


def backward_incompatibility(old: OperatorSchema, new: OperatorSchema) -> str:
    """The first reason why calls with the old schema may fail with the new one; empty if they all work."""
    before, now = ComparedSchema(old), ComparedSchema(new)
    (old_arguments, old_returns), (arguments, returns) = before.slots, now.slots
    reason = _heads(old, new)
    if reason:
        return reason
    if len(arguments) < len(old_arguments):
        return f"it takes {len(arguments)} arguments, and took {len(old_arguments)}"
    for mine, other in zip(old_returns, returns, strict=True):
        if not is_backward_compatible(mine, other):
            return f"the return `{other.type}` does not fit the earlier `{mine.type}`"
    for mine, other in zip(arguments, old_arguments[: before.first_out], strict=False):
        if not is_backward_compatible(mine, other):
            return f"`{mine.name}` does not take what the earlier `{other.name}` took"
    for item in arguments[before.first_out : now.first_out]:
        if item.default is None:
            return f"the new argument `{item.name}` has no default"
    return _outs(before, now, is_backward_compatible)


def forward_incompatibility(old: OperatorSchema, new: OperatorSchema) -> str:
    """The first reason why calls with the new schema may fail with the old one; empty if they all work."""
    before, now = ComparedSchema(old), ComparedSchema(new)
    (old_arguments, _), (arguments, _) = before.slots, now.slots
    reason = _heads(old, new)
    if reason:
        return reason
    if len(old_arguments) - before.first_out != len(arguments) - now.first_out:
        return "the number of out arguments is another one"
    positional = zip(arguments[: now.first_out], old_arguments[: before.first_out], strict=False)
    for mine, other in positional:
        if not is_forward_compatible(mine, other):
            return f"the earlier `{other.name}` does not take what `{mine.name}` takes"
    for item in arguments[before.first_out : now.first_out]:
        if item.default is None:
            return f"the new argument `{item.name}` has no default"
        if is_container(item.default):
            return f"the default of the new argument `{item.name}` is a list"
    return _outs(before, now, is_forward_compatible)


def _heads(old: OperatorSchema, new: OperatorSchema) -> str:
    """Return the first difference in the parts that must be equal for both kinds of compatibility."""
    if (old.namespace, old.name, old.overload) != (new.namespace, new.name, new.overload):
        return f"the name is `{new.qualified_name}`, and was `{old.qualified_name}`"
    if (old.vararg, old.varret) != (new.vararg, new.varret):
        return "only one of both has `...`"
    if len(old.returns) != len(new.returns):
        return f"it returns {len(new.returns)} values, and returned {len(old.returns)}"
    return ""


def _outs(before: ComparedSchema, now: ComparedSchema, is_compatible: Callable[[Slot, Slot], bool]) -> str:
    old, new = _tail(before), _tail(now)
    if len(new) < len(old):
        return "an out argument was removed"
    for mine, other in zip(new, old, strict=False):
        if not is_compatible(mine, other):
            return f"the out argument `{mine.name}` differs from the earlier `{other.name}`"
    return ""


def _tail(of: ComparedSchema) -> Sequence[Slot]:
    return of.slots[0][of.first_out :]


def slot_of(item: Argument | Return) -> Slot:
    """An argument or return on its own."""
    alias = alias_values((item,))[0]
    return _argument(item, alias) if isinstance(item, Argument) else _return(item, alias)


def is_backward_compatible(mine: Slot, old: Slot) -> bool:
    """Whether an argument accepts everything that the ``old`` one accepted."""
    return _are_alike(mine, old) and is_subtype(old.type, mine.type)


def is_forward_compatible(mine: Slot, old: Slot) -> bool:
    """Whether the ``old`` argument accepts everything that this one accepts."""
    added = mine.default is not None and old.default is None
    return _are_alike(mine, old) and not added and is_subtype(mine.type, old.type)


def _are_alike(mine: Slot, old: Slot) -> bool:
    """All but the types."""
    if (mine.name, mine.size, mine.alias) != (old.name, old.size, old.alias):
        return False
    if mine.kwarg_only and not old.kwarg_only:
        return False
    return old.default is None or mine.default == old.default
