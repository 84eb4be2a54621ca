"""The keys of an entry's inputs and parameters in the order in which the code takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_places import aliases, begins_line, column, entry, lead, tail
from opschema_rules.tileops.drift import method_of
from opschema_rules.tileops.model import OpEntry, OpImplementation

_SECTIONS = (("inputs", "forward"), ("params", "__init__"))


def misordered(op: OpImplementation) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections with keys in another order than a method's positional parameters, with the keys in that order."""
    for section, name in _SECTIONS:
        owner, method = op.entry.get("signature", section), method_of(op, name)
        if owner is None or method is None or not owner.is_mapping:
            continue
        taken = [param.name for param in method.params if param.kind == "normal"]
        keys = [key.value for key, _ in owner.pairs()]
        ranked = iter(sorted((key for key in keys if key in taken), key=taken.index))
        order = [next(ranked) if key in taken else key for key in keys]
        if order != keys and len(set(keys)) == len(keys):
            yield section, order


def reorder_keys(draft: Draft, item: OpEntry, section: str, order: Sequence[str]) -> Iterator[Note]:
    """Write the keys of a section in an order, each with its value and comments on the place of another."""
    owner = item.get("signature", section)
    if owner is None:
        return
    if aliases(item.file) or not _is_separate(item.file, owner):
        yield Note(item.place, f"write `{section}` in the order {', '.join(order)} by hand", leaves_site=True)
        return
    spans = [_stretch(item.file, owner, number) for number in range(len(owner.items) // 2)]
    keys = [key.value for key, _ in owner.pairs()]
    text = item.file.source.text
    for at, name in enumerate(order):
        if keys[at] != name:
            start, end = spans[keys.index(name)]
            draft.edit(item.file.path, [Edit(spans[at], text[start:end])])


def _is_separate(file: YamlFile, owner: Node) -> bool:
    """Whether each key of a block has lines of its own."""
    return owner.style == "flow" or all(begins_line(file, key.start) for key, _ in owner.pairs())


def _stretch(file: YamlFile, owner: Node, number: int) -> Span:
    """The text of one key: in a block entire lines, with the comments that belong to it."""
    span = entry(file, owner, number)
    if owner.style == "flow":
        return span
    floor = entry(file, owner, number - 1).end if number else 0
    return Span(lead(file, span.start, floor), tail(file, span.end, column(file, span.start)))
