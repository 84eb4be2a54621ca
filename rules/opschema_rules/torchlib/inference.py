"""``torch.library.infer_schema`` without running it: the schema of a function's signature, and the errors it would raise.

Where it raises, the schema goes on, so that one fault does not hide the next: an argument whose type is refused, or cannot
be followed, has a type without a name.
"""

from __future__ import annotations

import re

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.calls import SIGNATURE_ATTRIBUTES
from opschema_cli.requirements import Version
from opschema_cli.schema.operator_schema import AliasInfo, Argument, OperatorSchema, Return, SchemaType
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Param, PythonFile
from opschema_rules.torchlib.annotations import NONE, Annotations, PythonType
from opschema_rules.torchlib.model import Problem, ProblemKind
from opschema_rules.torchlib.type_table import (
    list_instead,
    parameter_type,
    return_type,
    spelled,
    type_table,
    written,
)

NO_TYPE = SchemaType()
"""The type of an annotation that is rejected or cannot be resolved."""


class Mutates(msgspec.Struct, frozen=True):
    """The value of ``mutates_args``: names, each with where it is written; ``names`` is None when they are not known.

    ``unknown`` is true of the string ``"unknown"``; ``string`` is any other string. ``expr`` stands in the file ``path``.
    """

    names: dict[str, Expr | None] | None
    expr: Expr | None = None
    unknown: bool = False
    string: str | None = None
    path: str = ""


class Inference(msgspec.Struct):
    """The result of ``infer_schema`` for a function: the schema, the rejected parts, and the function's return type."""

    schema: OperatorSchema
    problems: list[Problem] = msgspec.field(default_factory=list)
    returned: PythonType | None = None


class Inferrer:
    """Infers the schemas of one tree for one version of torch."""

    def __init__(self, annotations: Annotations, torch: Version) -> None:
        self.annotations = annotations
        self.torch = torch
        self._inferred: dict[tuple[Body, frozenset[str] | None, bool, int | None], Inference] = {}

    def infer(self, function: Body, mutates: Mutates, at: int | None = None) -> Inference:
        """Return the schema of a function, without a name; a caller that passes ``mutates`` adds its problems with its own place.

        ``at`` is where the function's module is when ``infer_schema`` runs; None when that is not known.
        """
        names = frozenset(mutates.names) if mutates.names is not None else None
        key = (function, names, mutates.unknown, at)
        if key not in self._inferred:
            self._inferred[key] = self._infer(function, mutates, at)
        return self._inferred[key]

    def _infer(self, function: Body, mutates: Mutates, at: int | None) -> Inference:
        problems: list[Problem] = []
        params = [item for item in function.params if _is_plain(function, item, problems)]
        types = [self._type(function, item, problems, at) for item in params]
        arguments = [
            self._argument(function, index, item, types[index], mutates, problems) for index, item in enumerate(params)
        ]
        returned = self._returned(function, problems, at)
        returns = self._returns(function, returned, problems) if returned is not None else ()
        return Inference(OperatorSchema("", tuple(arguments), returns), problems, returned)

    def _argument(
        self, function: Body, index: int, param: Param, schema: SchemaType, mutates: Mutates, problems: list[Problem]
    ) -> Argument:
        tensor = schema.base == "Tensor"
        named = mutates.names is not None and param.name in mutates.names
        if named and schema != NO_TYPE and not tensor:
            problems.append(Problem("mutates-type", function.at(param.span), param.name, str(schema)))
        if tensor and (named or mutates.unknown):
            schema = _written(schema, AliasInfo((f"a{index}",), True))
        default, span = self._default(function, param, problems), param.default.span if param.default else None
        place = param.annotation.span if param.annotation is not None else param.span
        return Argument(param.name, schema, param.full_span, param.span, place, default, span, param.kind == "kwonly")

    def _type(self, function: Body, param: Param, problems: list[Problem], at: int | None) -> SchemaType:
        if param.annotation is None:
            problems.append(Problem("annotation", function.at(param.span), param.name))
            return NO_TYPE
        type_ = self.annotations.read(function.parent or function, param.annotation, at)
        schema = parameter_type(type_, self.torch) if type_.is_known else None
        if schema is None and self._is_refused(type_):
            kind, instead = self._refusal(type_)
            text = function.file.text(param.annotation)
            problems.append(Problem(kind, function.at(param.annotation), param.name, text, instead))
        return schema or NO_TYPE

    def _is_refused(self, type_: PythonType) -> bool:
        """Whether a type that the table lacks is sure to be refused: an opaque class is since torch has such."""
        return (
            type_.is_known or type_.is_missing or (type_.kind == "opaque" and not type_table(self.torch).takes_opaque)
        )

    def _refusal(self, type_: PythonType) -> tuple[ProblemKind, str]:
        if type_.is_missing:
            return "string-annotation", ""
        instead = list_instead(type_) if type_.kind == "tuple" else spelled(type_)
        taken = parameter_type(instead, self.torch) is not None
        return "tuple" if type_.kind == "tuple" else "type", written(instead) if taken else ""

    def _default(self, function: Body, param: Param, problems: list[Problem]) -> str | None:
        """The default as the schema writes it, as the code does when its value is not known; None without."""
        expr = param.default
        if expr is None:
            return None
        outer = function.parent or function
        text = function.file.text(expr)
        if expr.kind in ("list", "tuple", "dict", "set", "lambda"):
            problems.append(Problem("default", function.at(expr), param.name, text))
            return text
        found = self.annotations.evaluator.fold(outer, expr)
        if not isinstance(found, Folded):
            return text
        if found.symbol:
            return found.symbol.removeprefix("torch.")
        if isinstance(found.value, list | tuple):
            problems.append(Problem("default", function.at(expr), param.name, text))
            return text
        return f'"{found.value}"' if isinstance(found.value, str) else str(found.value)

    def _returned(self, function: Body, problems: list[Problem], at: int | None) -> PythonType | None:
        assert function.function is not None
        expr = function.function.returns
        if expr is None:
            problems.append(Problem("return-annotation", function.at(function.function.span)))
            return None
        return self.annotations.read(function.parent or function, expr, at)

    def _returns(self, function: Body, type_: PythonType, problems: list[Problem]) -> tuple[Return, ...]:
        assert function.function is not None
        assert function.function.returns is not None
        expr = function.function.returns
        if type_ == NONE or type_ == PythonType("tuple"):  # `Tuple[()]`
            return ()
        plain = type_.kind == "tuple" and not type_.name and type_.items
        parts = type_.items if plain else (type_,)
        found = [return_type(item, self.torch) if item.is_known else None for item in parts]
        refused = [item for item, schema in zip(parts, found, strict=True) if schema is None]
        if any(map(self._is_refused, refused)):
            kind: ProblemKind = "string-annotation" if type_.is_missing else "return-type"
            problems.append(Problem(kind, function.at(expr), "", function.file.text(expr)))
        return tuple(Return(item or NO_TYPE, expr.span) for item in found)


def _written(type_: SchemaType, alias: AliasInfo) -> SchemaType:
    """A type whose tensors the operator writes."""
    if type_.inner is None:
        return type_.aliased(alias)
    return msgspec.structs.replace(type_, inner=_written(type_.inner, alias))


def is_restated(function: Body) -> bool:
    """Whether code sets the signature, the annotations or the defaults of a function, which its ``def`` then does not show."""
    return function.function is not None and function.function.name in _restated(function.file)


@cached_on_argument
def _restated(file: PythonFile) -> frozenset[str]:
    text = file.source.text
    return frozenset(_RESTATES.findall(text) if any(name in text for name in SIGNATURE_ATTRIBUTES) else ())


_RESTATES = re.compile(rf"(?<![\w.])(\w+)\.(?:{'|'.join(SIGNATURE_ATTRIBUTES)})")


def _is_plain(function: Body, param: Param, problems: list[Problem]) -> bool:
    """Whether a parameter takes part in the schema; a refused kind is a problem, and of those a positional-only one takes part."""
    if param.kind not in ("normal", "kwonly"):
        problems.append(Problem("kind", function.at(param.span), param.name, param.kind))
    return param.by_name
