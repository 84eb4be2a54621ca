"""Kinds of the parameters of traced functions, by their annotations."""

from __future__ import annotations

import re

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Param
from opschema_rules.flydsl.model import Kind, Parameter
from opschema_rules.flydsl.names import Names

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_NUMBER = re.compile(r"(?:(?:Int|Uint)\d+|B?Float\d+\w*|TFloat32|Boolean|Index)\Z")
_KINDS = {
    "Tensor": Kind.TENSOR,
    "Constexpr": Kind.CONSTEXPR,
    "Stream": Kind.STREAM,
    "Pointer": Kind.POINTER,
}
_TYPES = ("type", "typing.Type")
_PYTHON = frozenset({"int", "float", "bool", "str", "bytes", "list", "dict", "tuple", "set", "object"})


def parameter(names: Names, body: Body, param: Param) -> Parameter:
    """Return a parameter of a function, with its kind; the function is defined in ``body``."""
    if param.annotation is None:
        return Parameter(param, Kind.NONE)
    text = _head(param.annotation)
    dsl = names.full(body, text).rpartition(".")[2] if text else ""
    return Parameter(param, _of_dsl(dsl) if dsl else _of_others(names, body, text), dsl)


def _head(annotation: Expr) -> str:
    """Return the name in an annotation: the annotation itself, the subscripted name, or the text of a string."""
    if annotation.kind == "subscript":
        return _head(annotation.items[0])
    if annotation.kind == "const" and isinstance(annotation.value, str):
        found = _DOTTED.match(annotation.value.strip())
        return found[0] if found else ""
    return annotation.text if annotation.kind == "name" else ""


def _of_dsl(name: str) -> Kind:
    if name in _KINDS:
        return _KINDS[name]
    return Kind.NUMBER if is_number(name) else Kind.DSL


def is_number(name: str) -> bool:
    """Whether the FlyDSL type of that name is a number type."""
    return _NUMBER.match(name) is not None


def _of_others(names: Names, body: Body, text: str) -> Kind:
    name = names.external(body, text)
    if name in _TYPES:
        return Kind.TYPE
    return Kind.PYTHON if name in _PYTHON else Kind.UNKNOWN
