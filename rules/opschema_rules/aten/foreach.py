"""Operators over lists, ``_foreach_``, and whose derivatives torchgen uses for them: those of the operators that they map."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.source.text import Span
from opschema_rules.aten.formulas import saves_of, word
from opschema_rules.aten.signatures import base_name, full_name, kind_of, out_arguments

_PREFIX = "_foreach_"
_OF_INPLACE = "_foreach_zero_"
_WITHOUT_ALPHA = frozenset(
    f"_foreach_{name}.{overload}" for name in ("add", "add_", "sub", "sub_") for overload in ("Scalar", "ScalarList")
)
"""Operators that lack the last argument of those that they map (``torchgen.api.autograd._skip_argument_len_check``)."""

_WITH_TENSOR = frozenset(f"_foreach_{name}.Tensor" for name in ("add", "mul", "div"))
"""Operators that take a tensor for all elements (``_foreach_with_tensor_overload``)."""

_ODD = r"{0}.(?:sym_strides|sym_blocksize)\(\)|(?:to_args_sizes|to_args_sizes_symint|to_args_scalartypes|TensorGeometry)\({0}\)"


def is_foreach(schema: OperatorSchema) -> bool:
    """Whether the operator maps another one over lists."""
    return schema.name.startswith(_PREFIX)


def mapped_name(schema: OperatorSchema) -> str:
    """Return the name of the operator that one maps, without the in-place suffix."""
    return base_name(schema.name).base.rpartition(_PREFIX)[2]


def maps(foreach: OperatorSchema, schema: OperatorSchema) -> bool:
    """Whether the derivative of the second operator is used for the first (``is_reference_for_foreach``)."""
    if mapped_name(foreach) != base_name(schema.name).base:
        return False
    if kind_of(schema) != "functional" and full_name(foreach) != _OF_INPLACE:
        return False
    theirs, own = inputs(foreach), inputs(schema)
    if len(theirs) != len(own) and full_name(foreach) not in _WITHOUT_ALPHA:
        return False
    return all(item.type in (of.type, of.type.inner) for of, item in zip(theirs, own, strict=False))


def unlike(foreach: OperatorSchema, schema: OperatorSchema) -> Iterator[tuple[Argument, Argument]]:
    """Yield the arguments of an in-place operator whose types, with lists replaced by their elements, differ from those of the
    operator that provides its derivative.
    """
    for of, item in zip(inputs(foreach), inputs(schema), strict=False):
        if item.type != (of.type.inner if of.type.is_list else of.type):
            yield of, item


def lone_tensors(foreach: OperatorSchema) -> Iterator[Argument]:
    """The tensors that an operator takes for all elements of its lists, where torchgen expects none."""
    expected = full_name(foreach) in _WITH_TENSOR
    for of in inputs(foreach):
        if of.type.base == "Tensor" and not of.type.is_list and (of.type.inner is not None or not expected):
            yield of


def unmapped(foreach: OperatorSchema, schema: OperatorSchema, text: str) -> Span | None:
    """Return the value that a formula of the second operator saves and torchgen cannot save for the first: it takes the text
    before a dot for the argument.
    """
    for at, item in enumerate(inputs(schema)):
        match = re.search(_ODD.format(item.name), text) if item.name in text else None
        if match is None and at >= len(inputs(foreach)):
            match = saves_of(text, item.name) or word(item.name).search(text)
        if match is not None:
            return Span(*match.span())
    return None


def inputs(schema: OperatorSchema) -> Sequence[Argument]:
    """The arguments without those of an out variant that are written."""
    outs = out_arguments(schema)
    return [item for item in schema.arguments if item not in outs]
