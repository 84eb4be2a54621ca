"""Differences between a kernel's arguments and result and those that its operator requires.

With ``any_version`` types that releases of PyTorch write for one type of a schema make no difference.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.cpp_functions import CppFunction, CppParameterText
from opschema_cli.source.text import Span
from opschema_rules.aten.cpp_types import CppParameter, CppSignature


def is_same(signature: CppSignature, method: CppFunction, *, any_version: bool = False) -> bool:
    """Whether a method's types equal those of a signature, and all of them are known."""
    written = _written(method, any_version)
    return not method.unsure and None not in (*written[0], written[1]) and _spelt(signature, any_version) == written


def fits(signature: CppSignature, method: CppFunction, *, any_version: bool = False) -> bool:
    """Whether no known type of a method differs from a signature."""
    (wanted, returned), (types, returns) = _spelt(signature, any_version), _written(method, any_version)
    pairs = [*zip(wanted, types, strict=False), (returned, returns)]
    return len(wanted) == len(types) and all(one == other for one, other in pairs if one and other)


def is_twin(one: CppFunction, other: CppFunction) -> bool:
    """Whether two definitions have the same types, as those for different builds have."""
    return _written(one, False)[0] == _written(other, False)[0]


def likeness(signature: CppSignature, method: CppFunction) -> float:
    """The share of a signature that a method has: up to 1 for its types, and up to 1 for its names."""
    (wanted, _), (types, _) = _spelt(signature, False), _written(method, False)
    names = {item.name for item in signature.parameters} & {item.name for item in method.parameters}
    return difflib.SequenceMatcher(None, wanted, types, autojunk=False).ratio() + len(names) / max(len(wanted), 1)


def _spelt(signature: CppSignature, any_version: bool) -> tuple[list[str | None], str | None]:
    types = [spelling(item.type, any_version=any_version) for item in signature.parameters]
    return types, spelling(signature.returns)


def _written(method: CppFunction, any_version: bool) -> tuple[list[str | None], str | None]:
    return [spelling(item.type, any_version=any_version) for item in method.parameters], spelling(method.returns)


def differences(
    signature: CppSignature, method: CppFunction, *, any_version: bool = False
) -> Iterator[tuple[Span, str]]:
    """Differences of a kernel, with their places."""
    if len(signature.parameters) == len(method.parameters):
        for wanted, written in zip(signature.parameters, method.parameters, strict=True):
            if _differ(wanted.type, written.type, any_version):
                name = f" as `{written.name}`" if written.name else ""
                yield written.span, f"takes `{written.type}`{name}, not `{wanted.type}`"
    else:
        yield from _moves(signature, method, any_version)
    if _differ(signature.returns, method.returns, False):
        span = Span(method.span.start, method.name_span.start)
        yield span, f"returns `{method.returns}`, not `{signature.returns}`"


def _differ(one: str, other: str, any_version: bool) -> bool:
    spelt, written = spelling(one, any_version=any_version), spelling(other, any_version=any_version)
    return spelt is not None and written is not None and spelt != written


def _moves(signature: CppSignature, method: CppFunction, any_version: bool) -> Iterator[tuple[Span, str]]:
    """The parameters that are too many, and those that lack."""
    wanted, written = _aligned(signature.parameters, method.parameters, any_version)
    if not wanted and not written:
        return
    end = method.parameters[-1].span.end if method.parameters else method.span.end
    for item in written:
        yield item.span, f"takes `{item.type} {item.name}`, which the operator does not have"
    if wanted:
        lacking = ", ".join(f"`{item.type} {item.name}`" for item in wanted)
        yield Span(method.name_span.end, max(end, method.span.end)), f"lacks {lacking}"


def _aligned(
    wanted: tuple[CppParameter, ...], written: tuple[CppParameterText, ...], any_version: bool
) -> tuple[list[CppParameter], list[CppParameterText]]:
    """Arguments of both sides without a counterpart: by name where most names agree, others then by type."""
    names, others = [item.name for item in wanted], [item.name for item in written]
    by_name = 2 * len(set(names) & set(others)) >= min(len(names), len(others))
    one = names if by_name else [spelling(item.type, any_version=any_version) for item in wanted]
    other = others if by_name else [spelling(item.type, any_version=any_version) for item in written]
    lacking: list[CppParameter] = []
    extra: list[CppParameterText] = []
    for tag, at, end, to, until in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            lacking += wanted[at:end]
            extra += written[to:until]
    for item in [item for item in lacking if by_name]:
        renamed = next((text for text in extra if not _differ(item.type, text.type, any_version)), None)
        if renamed is not None:
            lacking.remove(item)
            extra.remove(renamed)
    return lacking, extra
