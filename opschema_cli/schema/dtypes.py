"""Dtype expressions with places: ``"float16 | same_as(x)"`` into tokens, and into the dtypes they allow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.text import Span
from opschema_cli.suggestions import near_name

_SIZES: Mapping[str, int] = {
    **dict.fromkeys(("bool", "int8", "uint8", "bits8", "qint8", "quint8"), 1),
    **dict.fromkeys(("int1", "int2", "int3", "int4", "int5", "int6", "int7"), 1),
    **dict.fromkeys(("uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7"), 1),
    **dict.fromkeys(("bits1x8", "bits2x4", "bits4x2", "quint2x4", "quint4x2", "float4_e2m1fn_x2"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("int16", "uint16", "bits16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "qint32", "float32", "complex32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
"""Bytes per element: ``torch.dtype.itemsize`` of torch 2.13, which is 1 for sub-byte and packed dtypes."""

DTYPES = tuple(_SIZES)
"""The names of the dtypes of PyTorch."""

_ALIASES: Mapping[str, str] = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bit": "uint1",
    "float8_e4m3": "float8_e4m3fn",  # TileOPs' own
}

_SHORTHAND: Mapping[str, str] = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8": "float8_e4m3fn",
}

_PROMOTED = frozenset({"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"})
"""Dtypes that ``promote_int_to_float`` converts to float32. It does not convert bool (TileOPs' manifest.md, R5)."""

_CALL = re.compile(r"(same_as|promote_int_to_float)\(\s*(\w+)\s*\)")
_FUNCTIONS = ("same_as", "promote_int_to_float")

TokenKind: TypeAlias = Literal["dtype", "same_as", "promote_int_to_float", "empty", "malformed"]


class DtypeToken(msgspec.Struct, frozen=True):
    """One alternative of a dtype expression.

    ``name`` is a dtype's name, known or not, or the tensor that a function refers to; ``name_span`` is its
    place within ``span``.
    """

    kind: TokenKind
    name: str
    span: Span
    name_span: Span

    @property
    def refers(self) -> bool:
        """Whether the token takes its dtype from another tensor."""
        return self.kind in _FUNCTIONS


class DtypeExpression(msgspec.Struct, frozen=True):
    """A dtype expression and its alternatives, in the order of the text."""

    text: str
    tokens: tuple[DtypeToken, ...]


class DtypeProblem(msgspec.Struct, frozen=True):
    """The reason why the expression of ``tensor`` has no dtypes of its own; ``token`` is the place.

    ``suggestion`` is the name that was probably meant. ``cycle`` lists the tensors that refer to each other
    in a circle, the first one again at the end.
    """

    kind: Literal["unknown-dtype", "unknown-tensor", "empty", "malformed", "cycle"]
    tensor: str
    token: DtypeToken
    suggestion: str | None = None
    cycle: tuple[str, ...] = ()


class DtypeResolution(msgspec.Struct, frozen=True):
    """The dtypes each tensor allows, in the order of the text, under torch's own names.

    A tensor whose expression has a problem, or refers to one that has, is not in ``dtypes``.
    """

    dtypes: Mapping[str, tuple[str, ...]]
    problems: tuple[DtypeProblem, ...]


def is_dtype(name: str) -> bool:
    """Whether torch has a dtype of this name, aliases such as ``half`` included."""
    return name in _SIZES or name in _ALIASES


def canonical(name: str) -> str:
    """Return torch's own name of a dtype (``float16`` for ``half``), or the name itself if torch has no such dtype."""
    return _ALIASES.get(name, name)


def itemsize(name: str) -> int | None:
    """Bytes per element of a dtype; None if it is not known."""
    return _SIZES.get(canonical(name))


@lru_cache(maxsize=256)
def suggest_dtype(name: str) -> str | None:
    """The dtype that ``name`` was probably meant to be."""
    bare = name.strip().removeprefix("torch.").lower()
    if is_dtype(bare):
        return bare
    return _SHORTHAND.get(bare) or _closest(bare, (*_SIZES, *_ALIASES))


def _closest(name: str, names: tuple[str, ...]) -> str | None:
    return near_name(name, names[:200])


@lru_cache(maxsize=1024)
def parse_dtypes(text: str) -> DtypeExpression:
    """Split a dtype expression at ``|``; an empty alternative is a token too."""
    tokens = []
    start = 0
    for piece in text.split("|"):
        tokens.append(_token(piece, start))
        start += len(piece) + 1
    return DtypeExpression(text, tuple(tokens))


def _token(piece: str, start: int) -> DtypeToken:
    body = piece.strip()
    start += len(piece) - len(piece.lstrip()) if body else 0
    span = Span(start, start + len(body))
    call = _CALL.fullmatch(body)
    if call is not None:
        kind: TokenKind = "same_as" if call[1] == "same_as" else "promote_int_to_float"
        return DtypeToken(kind, call[2], span, Span(start + call.start(2), start + call.end(2)))
    if not body:
        return DtypeToken("empty", "", span, span)
    return DtypeToken("malformed" if "(" in body or ")" in body else "dtype", body, span, span)


def resolve_dtypes(expressions: Mapping[str, DtypeExpression]) -> DtypeResolution:
    """Resolve each tensor's expression to concrete dtypes, through ``same_as`` chains of any length."""
    problems = [problem for tensor in expressions for problem in _own_problems(tensor, expressions)]
    broken = {problem.tensor for problem in problems}
    dtypes: dict[str, tuple[str, ...]] = {}
    for tensor, *circle in _in_order({name: _references(expressions[name]) for name in expressions}):
        expression = expressions[tensor]
        if circle:
            token = next(token for token in expression.tokens if token.refers and token.name == circle[0])
            problems.append(DtypeProblem("cycle", tensor, token, cycle=(tensor, *circle)))
        elif tensor not in broken and all(name in dtypes for name in _references(expression)):
            dtypes[tensor] = tuple(dict.fromkeys(_alternatives(expression, dtypes)))
    place = {tensor: index for index, tensor in enumerate(expressions)}
    problems.sort(key=lambda problem: (place[problem.tensor], problem.token.span))
    found = {tensor: dtypes[tensor] for tensor in expressions if tensor in dtypes}
    return DtypeResolution(found, tuple(problems))


def _references(expression: DtypeExpression) -> tuple[str, ...]:
    return tuple(dict.fromkeys(token.name for token in expression.tokens if token.refers))


def _in_order(references: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Each tensor after those it refers to, ``(x,)``; a circle once, ``(x, y, x)``, and then as resolved."""
    waiting = {name: dict.fromkeys(ref for ref in references[name] if ref in references) for name in references}
    users: dict[str, list[str]] = {}
    for name in waiting:
        for reference in waiting[name]:
            users.setdefault(reference, []).append(name)
    ready = [name for name in waiting if not waiting[name]]
    for start in references:
        while ready or start in waiting:
            group = (ready.pop(),) if ready else _circle(start, waiting)
            yield group
            for name in set(group):
                del waiting[name]
            for done, user in [(name, user) for name in group for user in users.get(name, ())]:
                if waiting.get(user, {}).pop(done, "absent") is None and not waiting[user]:
                    ready.append(user)


def _circle(start: str, waiting: Mapping[str, Mapping[str, None]]) -> tuple[str, ...]:
    path: dict[str, None] = {}
    while start not in path:
        path[start] = None
        start = next(iter(waiting[start]))
    names = list(path)
    return (*names[names.index(start) :], start)


def _own_problems(tensor: str, expressions: Mapping[str, DtypeExpression]) -> Iterator[DtypeProblem]:
    for token in expressions[tensor].tokens:
        if token.kind == "dtype" and not is_dtype(token.name):
            yield DtypeProblem("unknown-dtype", tensor, token, suggest_dtype(token.name))
        elif token.refers and token.name not in expressions:
            yield DtypeProblem("unknown-tensor", tensor, token, _closest(token.name, tuple(expressions)))
        elif token.kind == "empty":
            yield DtypeProblem("empty", tensor, token)
        elif token.kind == "malformed":
            function = _closest(token.name.partition("(")[0], _FUNCTIONS)
            yield DtypeProblem("malformed", tensor, token, function)


def _alternatives(expression: DtypeExpression, dtypes: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for token in expression.tokens:
        if token.kind == "same_as":
            yield from dtypes[token.name]
        elif token.kind == "promote_int_to_float":
            yield from ("float32" if dtype in _PROMOTED else dtype for dtype in dtypes[token.name])
        else:
            yield canonical(token.name)
