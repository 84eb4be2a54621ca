"""Finds what torchgen takes and does not read: a value is changed or left out, and all that it writes stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import yaml

from opschema_rules.aten.examples import SOUND_NATIVE, SOUND_TAGS

NOT_READ_HERE = ("ir_gen", "non_native", "desc")
"""Fields that other generators read, and the words that describe a tag."""


class Change(NamedTuple):
    """A place in a text, its name, and texts to put there, each of which must change something."""

    name: str
    start: int
    end: int
    texts: tuple[str, ...]


def unread_values(tree: Mapping[str, str], result: str, outcome: Callable[[Mapping[str, str]], str]) -> Iterator[str]:
    """The values without effect; ``outcome`` digests what torchgen writes, and is empty where it refuses."""
    for name, text in tree.items():
        for change in _changes(text):
            trials = ({**tree, name: text[: change.start] + other + text[change.end :]} for other in change.texts)
            if all(outcome(trial) == result for trial in trials):
                yield f"{change.name} in {name}"


def _changes(text: str) -> Iterator[Change]:
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if isinstance(root, yaml.MappingNode):
        yield from _of_mapping(text, "the file", root)
    for item in root.value if isinstance(root, yaml.SequenceNode) else ():
        if isinstance(item, yaml.MappingNode) and not _is_sound(item):
            yield from _of_mapping(text, f"line {item.start_mark.line + 1}", item)


def _is_sound(item: Any) -> bool:
    """Whether an entry is one of those around the examples, which are not examined each time."""
    return _said(item) in _sound()


@cache
def _sound() -> frozenset[str]:
    """The entries around the examples."""
    roots = (yaml.compose(text, Loader=yaml.CSafeLoader) for text in (SOUND_NATIVE, SOUND_TAGS))
    return frozenset(_said(item) for root in roots for item in root.value)


def _said(node: Any) -> str:
    """Keys and values, however they are written."""
    if isinstance(node, tuple):
        return f"{_said(node[0])}: {_said(node[1])}"
    return node.value if isinstance(node.value, str) else repr([_said(item) for item in node.value])


def _of_mapping(text: str, where: str, node: Any) -> Iterator[Change]:
    for key, value in node.value:
        name = f"{where}: {key.value}"
        if key.value in NOT_READ_HERE:
            continue
        if isinstance(value, yaml.MappingNode):
            yield from _of_mapping(text, name, value)
        elif isinstance(value, yaml.SequenceNode):
            yield from _of_list(text, name, value)
        else:
            yield from _of_scalar(text, name, value)


def _of_list(text: str, name: str, node: Any) -> Iterator[Change]:
    """Each item changed, and left out of the list."""
    written = [text[item.start_mark.index : item.end_mark.index].rstrip() for item in node.value]
    for at, item in enumerate(node.value):
        if isinstance(item, yaml.ScalarNode):
            start, end = _span(item)
            yield Change(f"{name}: {item.value}", start, end, (f'"{item.value}x"',))
            if len(written) > 1 and all(isinstance(other, yaml.ScalarNode) for other in node.value):
                rest = [other for number, other in enumerate(written) if number != at]
                yield Change(f"{name}: {item.value} (left out)", *_list_span(text, node), (f"[{', '.join(rest)}]",))


def _list_span(text: str, node: Any) -> tuple[int, int]:
    if node.flow_style:
        return node.start_mark.index, node.end_mark.index
    last = _span(node.value[-1])[1]
    return node.start_mark.index, last


def _of_scalar(text: str, name: str, node: Any) -> Iterator[Change]:
    start, end = _span(node)
    parts = [part.strip() for part in node.value.split(",")] if not name.endswith("func") else []
    if node.value in ("True", "False") and not node.style:
        yield Change(name, start, end, ("False" if node.value == "True" else "True",))
        return
    yield Change(name, start, end, (f'"{node.value}x"'.replace("\n", " "), '""'))
    if len(parts) > 1 and name.endswith(("variants", "autogen")):
        for at, part in enumerate(parts):
            rest = ", ".join(other for number, other in enumerate(parts) if number != at)
            yield Change(f"{name}: {part} (left out)", start, end, (f'"{rest}"',))


def _span(node: Any) -> tuple[int, int]:
    return int(node.start_mark.index), int(node.end_mark.index)
