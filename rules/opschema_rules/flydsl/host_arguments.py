"""Describes host arguments that a launcher does not accept."""

from __future__ import annotations

from opschema_rules.flydsl.arguments import Argument
from opschema_rules.flydsl.model import FlyTree, Kind
from opschema_rules.flydsl.tensors import attribute_of_tensor, is_complex, is_no_scalar, what_it_is

_DISPLAYS = ("list", "tuple", "set", "dict")
_STREAMS = frozenset({"torch.cuda.Stream", "torch.cuda.ExternalStream", "torch.Stream"})
_UNFIT = frozenset({"const", "literal", "fstring", *_DISPLAYS})


def is_none(item: Argument) -> bool:
    """Whether an argument is `None`."""
    return item.value.kind == "const" and item.call.body.file.text(item.value) == "None"


def what_is_unfit(tree: FlyTree, item: Argument) -> str:
    """Describe a launcher's argument that is neither a tensor nor a number, or is a tensor for a number; empty for any other."""
    value = item.value
    if item.parameter.kind is Kind.NUMBER and is_no_scalar(tree, item.call.body, item.expr):
        return "a tensor"
    if item.parameter.kind is Kind.TENSOR and is_complex(tree, item.call.body, item.expr):
        return "a tensor of complex numbers"
    if value.kind not in _UNFIT:
        word = attribute_of_tensor(tree, item.call.body, item.expr)
        return f"the `{word}` of a tensor" if word else what_it_is(tree, item.call.body, value)
    text = value.kind in ("literal", "fstring") or isinstance(value.value, str)
    return "`None`" if is_none(item) else "a string" if text else f"a {value.kind}" if value.kind in _DISPLAYS else ""


def what_is_no_stream(tree: FlyTree, item: Argument) -> str:
    """Return why an argument is not a stream: a string, a float, a collection, or a class instead of an instance; empty if it may
    be one.
    """
    value = item.value
    if isinstance(value.value, str | float) or value.kind in _DISPLAYS:
        return f"`{item.text}` is not one"
    if value.kind == "name" and tree.names.external(item.call.body, value.text) in _STREAMS:
        return f"`{item.text}` is a class: write `{item.text}()`"
    return ""
