"""C++ loops over lists of names: ``for (auto name : {"sin", "cos"}) m.impl(name, ...)`` registers for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from opschema_cli.source.cpp import CppNode, literal
from opschema_cli.source.cpp_blocks import STRINGS
from opschema_cli.source.cpp_strings import Literal
from opschema_cli.source.text import Span
from opschema_rules.torchlib.cpp_facts import CppArgument, CppCall

MAX_NAMES = 500
"""Maximum number of names of a loop to follow."""


class Loop(msgspec.Struct, frozen=True):
    """The variable of a loop, and the texts that it takes, each with its place."""

    variable: str
    texts: tuple[tuple[Span, Literal], ...]


def text_loop(node: CppNode, values: Mapping[str, Sequence[CppNode]]) -> Loop | None:
    """Return the loop over strings in braces, or over an array of strings that is declared once; None for any other loop.

    ``values`` are those that the file's declarations give to names.
    """
    variable, texts = node.field("declarator"), node.field("right")
    if texts is not None and texts.kind == "identifier":
        known = values.get(texts.text, ())
        texts = known[0] if len(known) == 1 else None
    if variable is None or texts is None or texts.kind != "initializer_list":
        return None
    found = list(_texts(texts))
    written = tuple((span, text) for span, text in found if text is not None)
    if not written or len(written) != len(found) or len(written) > MAX_NAMES:
        return None
    return Loop(variable.text.lstrip("*& "), written)


def declared_values(root: CppNode) -> dict[str, list[CppNode]]:
    """Return the values that the declarations of a file assign to names."""
    found: dict[str, list[CppNode]] = {}
    for node in root.walk():
        declarator = node.field("declarator") if node.kind == "init_declarator" else None
        value = node.field("value")
        if declarator is not None and value is not None:
            found.setdefault(declarator.text.lstrip("*& ").partition("[")[0].strip(), []).append(value)
    return found


def _texts(values: CppNode) -> Iterator[tuple[Span, Literal | None]]:
    for item in values.children:
        if item.kind != "comment":
            yield item.span, literal(item) if item.kind in STRINGS else None


def unrolled(call: CppCall, loop: Loop | None) -> Iterable[CppCall]:
    """The calls that a call in a loop makes, each at the place of its text; the call itself if the loop does not name its
    operator.
    """
    first = call.arguments[0].text.removesuffix(".c_str()").removesuffix(".data()") if call.arguments else ""
    if loop is None or loop.variable != first or call.method != "impl":
        return (call,)
    return [
        replace(call, span=span, text="", arguments=(CppArgument(first, span, text), *call.arguments[1:]))
        for span, text in loop.texts
    ]
