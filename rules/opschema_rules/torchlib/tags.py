"""The effect of the tags ``inplace`` and ``out`` on an inferred schema, and their demands on any.

Source: ``infer_schema`` in ``torch/_library/infer_schema.py``, ``_validate_inplace_schema`` and ``_validate_out_schema`` in
``torch/library.py`` of torch 2.13. As torch does, each reports the first fault only.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Place
from opschema_cli.schema.operator_schema import AliasInfo, Argument, OperatorSchema, Return, SchemaType
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.annotations import PythonType
from opschema_rules.torchlib.inference import NO_TYPE, Inference, Mutates
from opschema_rules.torchlib.model import Problem, ProblemKind

TENSOR = SchemaType("Tensor")
_PYTHON_TENSOR = PythonType("name", "torch.Tensor")


def tagged(found: Inference, function: Body, mutates: Mutates, tags: frozenset[str] | None) -> Inference:
    """Return an inferred schema with the additions of the tags; unchanged if ``infer_schema`` rejects the function anyway."""
    known = (tags or frozenset()) & {"inplace", "out"}
    if found.problems or not known:
        return found
    if len(known) > 1:
        return replace(found, problems=[Problem("inplace", _name(function), "", "inplace, out", "one of the tags")])
    demands = _inplace if known == {"inplace"} else _out
    problem = next(demands(found, function, mutates), None)
    if problem is not None:
        return replace(found, problems=[problem])
    written = found.schema.positional[:1] if known == {"inplace"} else found.schema.mutated
    return replace(found, schema=replace(found.schema, returns=_aliases(written, found.schema)))


def _aliases(written: tuple[Argument, ...], schema: OperatorSchema) -> tuple[Return, ...]:
    """Return the returned values, each as the argument that it aliases; unchanged if it is not known which arguments are
    written.
    """
    if len(written) != len(schema.returns):
        return schema.returns
    names = [item.alias or AliasInfo((f"a{schema.arguments.index(item)}",), True) for item in written]
    pairs = zip(schema.returns, names, strict=True)
    return tuple(replace(item, type=item.type.aliased(name)) for item, name in pairs)


def _inplace(found: Inference, function: Body, mutates: Mutates) -> Iterator[Problem]:
    first = next(iter(found.schema.positional), None)
    if first is None:
        yield Problem("inplace", _name(function), "", "", "a positional Tensor")
        return
    if first.type == NO_TYPE:
        return
    if first.type != TENSOR:
        yield Problem("inplace", function.at(first.type_span), first.name, str(first.type), "Tensor")
    if mutates.unknown or (mutates.names is not None and set(mutates.names) != {first.name}):
        place = Place(mutates.path, mutates.expr.span) if mutates.expr is not None else _name(function)
        yield Problem("inplace", place, first.name, "mutates_args", f'("{first.name}",)')
    yield from _returned(found, function, "inplace", (_PYTHON_TENSOR,))


def _out(found: Inference, function: Body, mutates: Mutates) -> Iterator[Problem]:
    if (mutates.names is None and not mutates.unknown) or any(item.type == NO_TYPE for item in found.schema.arguments):
        return
    for item in found.schema.mutated:
        if not item.kwarg_only:
            yield Problem("out", function.at(item.name_span), item.name, "positional", "keyword-only")
        if item.type != TENSOR:
            yield Problem("out", function.at(item.type_span), item.name, str(item.type), "Tensor")
    if not found.schema.mutated:
        yield Problem("out", _name(function), "", "", "a keyword-only Tensor in `mutates_args`")
    yield from _returned(found, function, "out", (_PYTHON_TENSOR,) * len(found.schema.mutated))


def _returned(
    found: Inference, function: Body, kind: ProblemKind, tensors: tuple[PythonType, ...]
) -> Iterator[Problem]:
    """Yield a problem if the return annotation is not that of these tensors, alone or in a tuple."""
    returned, expr = found.returned, function.function.returns if function.function is not None else None
    if returned is None or expr is None or not returned.is_known:
        return
    alike = returned == tensors[0] if len(tensors) == 1 else returned.kind == "tuple" and returned.items == tensors
    if not alike:
        wanted = "Tensor" if len(tensors) == 1 else f"tuple[{', '.join(['Tensor'] * len(tensors))}]"
        yield Problem(kind, function.at(expr), "", function.file.text(expr), wanted)


def _name(function: Body) -> Place:
    assert function.function is not None
    return function.at(function.function.span)


# Schemas that are written


def refused(schema: OperatorSchema, tags: frozenset[str] | None, place: Place) -> tuple[Problem, ...]:
    """Return the problems for which ``define`` rejects a schema string with its tags: the argument, its kind, and the tag's
    requirement.
    """
    found: list[Problem] = []
    if "out" in (tags or ()):
        found += [Problem("out", place, *told) for told in _first(_out_schema(schema))]
    if "inplace" in (tags or ()) and not found:
        found += [Problem("inplace", place, *told) for told in _first(_inplace_schema(schema))]
    return tuple(found)


def _first(found: Iterator[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [item for item in [next(found, None)] if item is not None]


def _inplace_schema(schema: OperatorSchema) -> Iterator[tuple[str, str, str]]:
    first = next(iter(schema.positional), None)
    if first is None:
        yield "", "", "a positional Tensor(a!)"
        return
    if first.alias is None or not first.is_write or first.type != TENSOR:
        yield first.name, first.type.text(), "Tensor(a!)"
    if len(schema.returns) != 1:
        yield "", f"{len(schema.returns)} returns", f"the one argument `{first.name}`"
    for returned in schema.returns:
        if returned.type != TENSOR or not _is_alias(returned, first):
            yield "", returned.type.text(), first.type.text()
    for item in schema.mutated:
        if item is not first:
            yield item.name, item.type.text(), item.type.text(annotated=False)


def _out_schema(schema: OperatorSchema) -> Iterator[tuple[str, str, str]]:
    if not schema.mutated:
        yield "", "", "a keyword-only Tensor(a!)"
    for item in schema.mutated:
        if not item.kwarg_only:
            yield item.name, "positional", "keyword-only"
    for item in schema.mutated:
        if item.type != TENSOR:
            yield item.name, item.type.text(), "Tensor(a!)"
    if len(schema.returns) != len(schema.mutated):
        yield "", f"{len(schema.returns)} returns", f"{len(schema.mutated)} returns"
    for returned, item in zip(schema.returns, schema.mutated, strict=False):
        if not _is_alias(returned, item):
            yield item.name, returned.type.text(), item.type.text()


def _is_alias(returned: Return, argument: Argument) -> bool:
    """Whether the returned value is a written argument."""
    alias, written = returned.alias, argument.alias
    return alias is not None and written is not None and alias.write and set(alias.before) == set(written.before)
