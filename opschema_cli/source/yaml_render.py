"""Data as YAML text that a YAML 1.1 reader reads back as exactly that data.

Scalars, flow collections on one line, and block collections as lines without their base indentation.
``models`` are nodes that stand where the new text goes: it takes their style, block or flow, and quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.yaml import Data, Node, scalar_value
from opschema_cli.source.yaml_places import values
from opschema_cli.source.yaml_scalars import TIMESTAMP, plain_value

Context: TypeAlias = Literal["block", "flow"]
Scalar: TypeAlias = "bool | int | float | str | None"

MAX_KEY = 1000
"""Maximum length of a key as written; YAML readers reject more than 1,024 characters."""

_NUMBER_LIKE = re.compile(
    r"[-+]?(?:0[box][0-9a-f_]*|[0-9._:]+(?:e[-+]?[0-9_]*)?|\.(?:inf|nan))", re.IGNORECASE | re.ASCII
)
_INDICATOR = re.compile(r"[,\[\]{}#&*!|>'\"%@`?:]|-(?: |$|--)|\.\.\.")
_ENDS_PLAIN = {"block": re.compile(r": | #|:$"), "flow": re.compile(r" #|[,\[\]{}:?]")}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


class Layout(msgspec.Struct, frozen=True):
    """The indentation of block collections, in columns."""

    step: int = 2
    """From a key to the keys of its block mapping."""
    offset: int = 2
    """From a key to the dashes of its block sequence."""
    dash: str = "- "
    """A dash and the spaces after it."""


def render_scalar(value: Scalar, context: Context = "block", style: str = "") -> str:
    """One line of text that PyYAML's ``safe_load`` reads as ``value``; ``style`` is the quote to prefer.

    Raises:
        ValueError: the text holds a lone surrogate, which no YAML file can.
    """
    if isinstance(value, str):
        return _string(value, context, style)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _float(value) if isinstance(value, float) else f"{value:d}"


def _float(value: float) -> str:
    if not math.isfinite(value):
        return f"{'-' if value < 0 else ''}.{'nan' if math.isnan(value) else 'inf'}"
    # YAML 1.1 wants a dot: to PyYAML 1e-06 is text.
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"


def _string(text: str, context: Context, style: str) -> str:
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    if style != '"' and _is_plain(text, context):
        return text
    return double_quoted(text)


def _is_plain(text: str, context: Context) -> bool:
    return (
        text.isprintable()
        and text == text.strip(" ")
        and text not in {"=", "<<"}
        and isinstance(plain_value(text), str)
        and not _NUMBER_LIKE.fullmatch(text)
        and not TIMESTAMP.fullmatch(text)
        and not _INDICATOR.match(text)
        and not _ENDS_PLAIN[context].search(text)
    )


def double_quoted(text: str) -> str:
    """``text`` as one double-quoted line.

    Raises:
        ValueError: the text holds a lone surrogate.
    """
    return '"' + "".join(_ESCAPES.get(char) or _escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"the lone surrogate U+{code:04X} cannot be written in YAML")
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def literal_lines(text: str) -> list[str] | None:
    """Return the header and lines of a literal block scalar for ``text``; None if such a scalar cannot hold it."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    if not lines[-1] or body.lstrip("\n").startswith(" ") or not all(map(_is_literal_line, lines)):
        return None
    return ["|" if text.endswith("\n") else "|-", *lines]


def _is_literal_line(line: str) -> bool:
    return line.isprintable() and (not line or not line.isspace())


def is_block(value: Data, models: Iterable[Node], default: bool = True) -> bool:
    """Whether ``value`` is written as a block, as ``models`` are; ``default`` if these do not show it."""
    if not isinstance(value, list | dict) or not value:
        return False
    like = next((node for node in models if node.kind == _kind(value) and node.items), None)
    return like.style == "block" if like else default


def flow_text(value: Data, models: Sequence[Node] = (), context: Context = "flow") -> str:
    """One line of text for ``value``: a flow collection, or a scalar for ``context``.

    Raises:
        ValueError: a key is longer than :data:`MAX_KEY`, or a text holds a lone surrogate.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(flow_entries(value, models)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow_entries(value, models)) + "]"
    return render_scalar(value, context, _quote(models))


def flow_entries(value: dict[Data, Data] | list[Data], models: Sequence[Node] = ()) -> Iterator[str]:
    """Yield the text of each entry of a flow collection.

    Raises:
        ValueError: see :func:`flow_text`.
    """
    if isinstance(value, list):
        below = _children(models, "sequence")
        yield from (flow_text(item, below) for item in value)
        return
    for key, child in value.items():
        yield f"{key_text(key, 'flow', models)}: {flow_text(child, _children(models, 'mapping', key))}"


def block_lines(value: dict[Data, Data] | list[Data], layout: Layout, models: Sequence[Node] = ()) -> Iterator[str]:
    """Yield the lines of a block collection, without its base indentation.

    Raises:
        ValueError: see :func:`flow_text`.
    """
    if isinstance(value, list):
        below = _children(models, "sequence")
        for item in value:
            first, *rest = _value_lines(item, layout, below)
            yield layout.dash + first
            yield from (" " * len(layout.dash) + line for line in rest)
        return
    for key, child in value.items():
        name, below = key_text(key, "block", models), _children(models, "mapping", key)
        if is_block(child, below):
            yield f"{name}:"
            indent = " " * (layout.step if isinstance(child, dict) else layout.offset)
            yield from (indent + line for line in _value_lines(child, layout, below))
        else:
            yield f"{name}: {flow_text(child, below, 'block')}"


def _value_lines(value: Data, layout: Layout, models: Sequence[Node]) -> Iterator[str]:
    if isinstance(value, list | dict) and is_block(value, models):
        return block_lines(value, layout, models)
    return iter([flow_text(value, models, "block")])


def key_text(key: Data, context: Context, models: Sequence[Node] = (), style: str = "") -> str:
    """A mapping's key as text, quoted as the keys of ``models`` are.

    Raises:
        ValueError: the key is longer than :data:`MAX_KEY`, no scalar, or holds a lone surrogate.
    """
    if isinstance(key, list | dict):
        raise ValueError(f"a {_kind(key)} cannot be written as a key")
    like = next((node.items[0] for node in models if node.is_mapping and node.items), None)
    text = render_scalar(key, context, style or (like.style if like else ""))
    if len(text) > MAX_KEY:
        raise ValueError(f"a key of {len(text):,} characters is longer than a YAML reader takes")
    return text


def _kind(value: Data) -> str:
    return "mapping" if isinstance(value, dict) else "sequence" if isinstance(value, list) else "scalar"


def _children(models: Sequence[Node], kind: str, key: Data = None) -> list[Node]:
    """Return the nodes below ``models`` that show how a child is written: those of the same key, otherwise all."""
    like = [node for node in models if node.kind == kind]
    named = [pair[1] for node in like if isinstance(key, str) and (pair := node.pair(key))]
    return named or [child for node in like for child in values(node)]


def _quote(models: Iterable[Node]) -> str:
    like = (node for node in models if node.kind == "scalar" and isinstance(scalar_value(node), str))
    return next((node.style for node in like), "")
