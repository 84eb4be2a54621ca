"""Demands of ``torchgen.model.FunctionSchema`` on a schema beyond the dispatcher's: types, and arguments that fit the returns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.schema.operator_schema import AliasInfo, Argument, OperatorSchema, Return, SchemaType
from opschema_cli.schema.schema_defaults import BASE_TYPES, TORCHGEN_TYPES
from opschema_cli.schema.schema_rules import writes_a_value
from opschema_cli.schema.schema_tokens import SchemaError
from opschema_cli.source.text import Edit, Span

AUGMENTED = frozenset(("iadd", "isub", "imul", "idiv", "imod", "ipow", "ilshift", "irshift", "iand", "ixor", "ior"))
"""The ``__iXXX__`` methods that write in place (``torchgen.model.AUGMENTED_ASSIGNMENT_NAMES``)."""

_ALIAS = re.compile(r"\([a-z](?:\|[a-z])?!?(?: -> (?:\*|[a-z](?:\|[a-z])*))?\)")


def faults_of_torchgen(schema: OperatorSchema, *, whole: bool) -> list[SchemaError]:
    """Yield the parts of a schema that the dispatcher accepts and torchgen rejects; ``whole`` if all of it was parsed."""
    found = [*_form(schema), *_slots(schema), *_options(schema)]
    if any(item.alias is not None for item in schema.slots) or _is_in_place(schema.name):
        found += [*_argument_order(schema), *_aliased_returns(schema)]
        if whole:
            outs = list(_outs(schema))
            found += [*outs, *_returned(schema, judged=bool(outs)), *_in_place(schema), *_functional(schema)]
    return found


def _form(schema: OperatorSchema) -> Iterator[SchemaError]:
    name, span = schema.name, schema.name_span
    if schema.name_only or not name:
        yield SchemaError("syntax", "torchgen takes complete schemas: `name(arguments) -> returns`", span)
    if name.endswith("_out"):
        yield SchemaError(
            "name", f"the name `{name}` ends with `_out`, which is for overloads: `{name[:-4]}.out`", span
        )
    method = _method(name)
    if method[:1] == "i" and method not in AUGMENTED:
        yield SchemaError("name", f"`{name}` is not an in-place operator of Python", span)
    if name.endswith("_functional_"):
        yield SchemaError("name", f"`{name}` cannot be functional and in-place", span)


def _slots(schema: OperatorSchema) -> Iterator[SchemaError]:
    for item in schema.slots:
        if item.type.name in TORCHGEN_TYPES and item.type.alias is None:
            continue
        unknown = {part.name for part in item.type.parts() if part.inner is None and not _is_known(part)}
        for name in sorted(unknown):
            message = f"native_functions.yaml has no type `{name}`" if name != "Tuple" else "torchgen has no tuples"
            yield SchemaError("unknown-type", message, item.type_span)
        if not unknown and not _is_annotated_well(item.type):
            yield SchemaError("alias", f"torchgen takes no annotation such as in `{item.type.text()}`", item.type_span)


def _aliased_returns(schema: OperatorSchema) -> Iterator[SchemaError]:
    """Yield the returns with an alias annotation that torchgen misreads: it takes the text after the last space for the name."""
    for value in schema.returns:
        if value.name is None and value.alias is not None and value.alias.after:
            message = f"torchgen cannot read `{value.type.text()}` without a name after it"
            yield SchemaError("alias", message, value.type_span)


def _is_known(part: SchemaType) -> bool:
    if part.name in TORCHGEN_TYPES or part.name.startswith("__torch__."):
        return True
    composed = bool(part.items) or part.name == "Tuple" or "." in part.name
    return not composed and part.name not in BASE_TYPES  # an unknown one is reported already


def _is_annotated_well(of: SchemaType) -> bool:
    inner = of.inner or of
    if of.annotation is None or writes_a_value(of):  # the latter is reported already
        return True
    shape = inner.name == "Tensor" and of.size is None and (of is inner or of.alias is None)
    return shape and inner.alias is not None and _is_plain(inner.alias)


def _is_plain(alias: AliasInfo) -> bool:
    """Whether the pattern and the limits of ``torchgen.model.Annotation.parse`` accept it."""
    if _ALIAS.fullmatch(str(alias)) is None:
        return False
    return len(alias.before) == 1 or not (alias.write or len(alias.after) > 1)


def _argument_order(schema: OperatorSchema) -> Iterator[SchemaError]:
    out = ""
    for item in schema.kwarg_only:
        if item.is_write:
            out = out or item.name
        elif out:
            yield SchemaError("out", f"`{item.name}` is not written and follows the out argument `{out}`", item.span)
    _, before, _ = _around_self(schema)
    for item in before:
        if item.is_write:
            yield SchemaError("inplace", f"`{item.name}` is written and precedes `self`", item.span)


def _around_self(schema: OperatorSchema) -> tuple[Argument | None, tuple[Argument, ...], tuple[Argument, ...]]:
    """Return ``self`` and the positional arguments before and after it. Without ``self``, all of them are after it."""
    items = schema.positional
    at = next((index for index, item in enumerate(items) if item.name == "self"), None)
    return (None, (), items) if at is None else (items[at], items[:at], items[at + 1 :])


_OPTIONS = (("dtype", "ScalarType"), ("layout", "Layout"), ("device", "Device"), ("pin_memory", "bool"))


def _options(schema: OperatorSchema) -> Iterator[SchemaError]:
    for item in _tensor_options(schema)[1:]:
        yield SchemaError("tensor-options", "dtype, layout, device and pin_memory are given twice", item.span)


def _tensor_options(schema: OperatorSchema) -> list[Argument]:
    """The first argument of each four that make a ``TensorOptions``."""
    items = schema.kwarg_only
    return [item for at, item in enumerate(items) if item.name == "dtype" and _options_at(schema, at)]


def _options_at(schema: OperatorSchema, at: int) -> bool:
    """Whether the four arguments that make a ``TensorOptions`` begin here."""
    items = schema.kwarg_only[at : at + 4]
    return len(items) == 4 and all(
        item.name == name and str(item.type) in (of, f"{of}?") for item, (name, of) in zip(items, _OPTIONS, strict=True)
    )


# -- the whole ---------------------------------------------------------------------------------------------------------


def _written(schema: OperatorSchema) -> tuple[Argument, ...]:
    """Return the out arguments, which are keyword-only and written."""
    return tuple(item for item in schema.kwarg_only if item.is_write)


def _outs(schema: OperatorSchema) -> Iterator[SchemaError]:
    outs = _written(schema)
    if not outs:
        return
    lists = [item for item in outs if str(item.type) != "Tensor"]
    if lists and schema.returns:
        message = f"the out argument `{lists[0].name}` is not a plain Tensor, so that nothing can be returned"
        yield SchemaError("out", message, schema.returns[0].span)
        return
    wanted = [item for item in outs if not item.name.startswith("_scratch_")]
    if not lists and len(wanted) != len(schema.returns):
        message = f"there are {len(wanted)} out arguments and {len(schema.returns)} returns; each is returned, in order"
        yield SchemaError("out", message, _returns_span(schema))
        return
    for item, value in zip(outs, schema.returns, strict=False):
        if item.alias != value.alias:
            message = f"the out argument `{item.name}` is `{item.type.text()}` and must be returned so here"
            yield SchemaError("out", message, value.span, Edit(value.type_span, item.type.text()))


def _returns_span(schema: OperatorSchema) -> Span:
    """The returns, or the last argument where there are none."""
    if schema.returns:
        return Span(schema.returns[0].span.start, schema.returns[-1].span.end)
    return schema.arguments[-1].span


def _returned(schema: OperatorSchema, *, judged: bool) -> Iterator[SchemaError]:
    """Check that a written argument is returned only if it is ``self`` or an out argument, and then alone.

    ``judged`` says that the out arguments are found not to fit the returns.
    """
    _, _, behind = _around_self(schema)
    outs = [*_written(schema), *(item for item in schema.positional if item.name == "self")]
    writes = [value for value in schema.returns if _writes(value)]
    for value in schema.returns:
        source = next((item for item in behind if item.is_write and item.alias == value.alias), None)
        if source is not None:
            message = f"`{source.name}` is written and positional: it cannot be returned; an out argument follows `*`"
            yield SchemaError("out", message, value.span)
        elif judged:
            continue
        elif _writes(value) and all(item.alias != value.alias for item in outs):
            yield SchemaError("out", "neither `self` nor an out argument has this annotation", value.span)
        elif writes and not _writes(value):
            yield SchemaError("out", "either all returns are written arguments or none is", value.span)


def _writes(value: Return) -> bool:
    return value.alias is not None and value.alias.write


def _in_place(schema: OperatorSchema) -> Iterator[SchemaError]:
    if not _is_in_place(schema.name):
        return
    name = schema.name
    own, _, _ = _around_self(schema)
    if own is None or not own.is_write:
        span = own.span if own is not None else schema.name_span
        yield SchemaError("inplace", f"`{name}` is in-place by its name, and no `Tensor(a!) self` is written", span)
    elif str(own.type) == "Tensor":
        if [value.alias for value in schema.returns] != [own.alias]:
            message = f"`{name}` is in-place and must return `{own.type.text()}`"
            yield SchemaError("inplace", message, _returns_span(schema))
    elif schema.returns:
        yield SchemaError("inplace", f"`{name}` writes a `{own.type}` and cannot return it", _returns_span(schema))


def _is_in_place(name: str) -> bool:
    method = _method(name)
    return method in AUGMENTED if method else name.endswith("_")


def _method(name: str) -> str:
    """``and`` of ``__and__``; empty for other names."""
    inner = name[2:-2]
    return inner if name == f"__{inner}__" and "_" not in inner else ""


def _functional(schema: OperatorSchema) -> Iterator[SchemaError]:
    """Operators that must not write anything: factories, and overloads called functional."""
    _, _, behind = _around_self(schema)
    in_place, outs = _is_in_place(schema.name), _written(schema)
    if not (in_place or outs or any(item.is_write for item in behind)):
        return
    for item in _tensor_options(schema)[:1]:
        message = "dtype, layout, device and pin_memory make a factory, which writes nothing"
        yield SchemaError("tensor-options", message, item.span)
    if "functional" in schema.overload:
        message = f"the overload `{schema.overload}` is for functional operators, and this one writes"
        yield SchemaError("overload-name", message, schema.name_span)
