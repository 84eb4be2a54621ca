"""Mentions in an entry of one of its tensors: keys, and names inside dtypes, shapes, rules and formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.schema.dtypes import parse_dtypes
from opschema_cli.schema.expression import Reference
from opschema_cli.schema.shapes import parse_shape
from opschema_cli.source.text import Edit, Span, apply_edits
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import parsed, statement

_COMMENT = re.compile(r"(?m)(?:^|(?<=[ \t]))#[^\r\n]*")


class TensorText(msgspec.Struct, frozen=True):
    """A scalar that names a tensor, and the stretches of its value that do."""

    node: Node
    text: str
    spans: tuple[Span, ...]

    def renamed(self, new: str) -> str:
        """The text with another name of the tensor."""
        return apply_edits(self.text, [Edit(span, new) for span in self.spans])


def tensor_texts(entry: OpEntry, name: str) -> Iterator[TensorText]:
    """Yield the scalars of an entry that name the tensor ``name``, without dimensions or variables of the same name."""
    for node, text, spans in _found(entry, name):
        if spans:
            yield TensorText(node, text, tuple(spans))


def _found(entry: OpEntry, name: str) -> Iterator[tuple[Node, str, list[Span]]]:
    for tensor in entry.tensors:
        for node, text in _text(entry, tensor.attribute("dtype")):
            yield node, text, _in_dtype(text, name)
        for node, text in _text(entry, tensor.attribute("shape")):
            yield node, text, _in_shape(text, name)
    for _, value in _combo_pairs(entry):
        for node, text in _text(entry, value):
            yield node, text, _in_dtype(text, name)
    for rule in entry.shape_rules:
        yield rule.node, rule.text, _in_expression(entry, rule.text, name)
    for node in _values(entry.get("signature", "static_dims")):
        for found, text in _text(entry, node):
            yield found, text, _in_expression(entry, text, name)
    yield from _in_roofline(entry, name)


def _in_roofline(entry: OpEntry, name: str) -> Iterator[tuple[Node, str, list[Span]]]:
    variables = entry.get("roofline", "vars")
    for value in _values(variables):
        for node, text in _text(entry, value):
            yield node, text, _in_expression(entry, text, name)
    if variables is None or variables.pair(name) is None:
        for key in ("flops", "bytes"):
            for node, text in _text(entry, entry.get("roofline", key)):
                yield node, text, _in_expression(entry, text, name)


def combo_rows(entry: OpEntry) -> list[Node]:
    """The rows of ``dtype_combos`` that are mappings."""
    owner = entry.get("signature", "dtype_combos")
    rows = [entry.file.document.follow(item) for item in owner.items] if owner is not None and owner.is_sequence else []
    return [row for row in rows if row.is_mapping]


def _combo_pairs(entry: OpEntry) -> Iterator[tuple[Node, Node]]:
    for row in combo_rows(entry):
        yield from row.pairs()


def _values(owner: Node | None) -> Sequence[Node]:
    return [value for _, value in owner.pairs()] if owner is not None else []


def _text(entry: OpEntry, node: Node | None) -> Iterator[tuple[Node, str]]:
    found = entry.file.document.follow(node) if node is not None else None
    value = entry.data_of(found) if found is not None and found.kind == "scalar" else None
    if found is not None and isinstance(value, str):
        yield found, value


def _in_dtype(text: str, name: str) -> list[Span]:
    return [token.name_span for token in parse_dtypes(text).tokens if token.refers and token.name == name]


def _in_shape(text: str, name: str) -> list[Span]:
    shape = parse_shape(text)
    uses = [*shape.symbols, *([shape.alias] if shape.alias is not None else [])]
    return [use.span for use in uses if use.name == name and (use == shape.alias or _has_attribute(text, use))]


def _in_expression(entry: OpEntry, text: str, name: str) -> list[Span]:
    expression = parsed(text)
    uses = [use for use in expression.names() if use.name == name] if expression is not None else []
    if name in statement(entry).sizes:
        uses = [use for use in uses if _has_attribute(text, use)]
    return [use.span for use in uses]


def _has_attribute(text: str, use: Reference) -> bool:
    return text[use.span.end :].lstrip()[:1] == "."


def code_like(text: str, name: str) -> Iterator[Span]:
    """Places where prose means the identifier ``name``: in backticks or asterisks, with an attribute or index, as an argument."""
    word = re.escape(name)
    pattern = (
        rf"(?<!\w)(?:(?<=`){word}(?=`)|(?<=[^*]\*){word}(?=\*[^*])|{word}(?=\.[a-z_]|\[)|(?<=same_as\(){word}(?=\)))"
    )
    for match in re.finditer(pattern, text):
        yield Span(*match.span())


def comments(entry: OpEntry) -> Iterator[Span]:
    """The comments between an entry's key and its end, and those directly above its key."""
    source = entry.file.source
    scalars = [node for node in entry.node.walk() if node.kind == "scalar"]
    for match in _COMMENT.finditer(source.text, _head(entry), entry.node.end):
        if not any(node.start <= match.start() < node.end for node in scalars):
            yield Span(*match.span())


def _head(entry: OpEntry) -> int:
    source = entry.file.source
    line = source.position(entry.key.start).line
    while source.line_text(line - 1).lstrip().startswith("#"):
        line -= 1
    return source.line_span(line).start
