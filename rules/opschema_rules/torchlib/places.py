"""Places of a schema's arguments, and how findings name several things."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.schema.operator_schema import NOWHERE, Argument
from opschema_cli.source.text import Span
from opschema_rules.torchlib.model import Operator


def argument_place(operator: Operator, argument: Argument) -> Place:
    """The declaration of an argument: in the function's signature, or in the schema string where its name occurs once; the
    operator's name where torch infers the schema from a C++ function.
    """
    definition = operator.definition
    written = definition.written
    if not definition.explicit and argument.name_span == NOWHERE:
        return written
    if not definition.explicit:
        return Place(written.path, argument.name_span)
    source = operator.tree.project.source(written.path)
    text = source.text[written.span.start : written.span.end] if source is not None else ""
    found = list(re.finditer(rf"\b{re.escape(argument.name)}\b(?=\s*[,)=])", text))
    if len(found) != 1:
        return written
    start, end = found[0].span()
    return Place(written.path, Span(written.span.start + start, written.span.start + end))


def declared(operator: Operator, arguments: Iterable[Argument]) -> tuple[Related, ...]:
    """The arguments on the schema's side."""
    places = dict.fromkeys(argument_place(operator, item) for item in arguments)
    return tuple(Related(place, f"the schema of `{operator.title}`") for place in places)
