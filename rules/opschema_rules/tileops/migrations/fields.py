"""Fields of entries by path: their places, their removal, and where the tree puts a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError
from opschema_cli.source.text import Edit, Source, apply_edits
from opschema_cli.source.yaml import Data, Node, YamlSyntaxError, scalar_value
from opschema_cli.source.yaml_compose import parse
from opschema_cli.source.yaml_edit import YamlEditError, insert_key, remove_key, set_value
from opschema_rules.tileops.migrations.entries import refusal
from opschema_rules.tileops.migrations.removals import remove_keys
from opschema_rules.tileops.model import OpEntry

Path: TypeAlias = tuple[str | int, ...]

_NAMED = frozenset({"inputs", "outputs", "params", "vars", "kernel_map", "static_dims", "constraints"})
"""Mappings with names as keys, so that one of them shows how any other is written."""


class Slot(NamedTuple):
    """A mapping of an entry that may have the field, and its current value."""

    entry: OpEntry
    path: Path
    owner: Node
    missing: tuple[str, ...]
    node: Node | None

    @property
    def key(self) -> str:
        """The field's own name."""
        return str(self.path[-1])


def read_path(text: str) -> tuple[str, ...]:
    """The steps of a field's path.

    Raises:
        OptionError: it has none, or an empty one.
    """
    steps = tuple(text.split("."))
    if not all(step.strip() for step in steps):
        raise OptionError(f"`{text}` is not a path such as `source.bench`")
    return steps


def read_value(text: str) -> Data:
    """A value as the manifest would read it.

    Raises:
        OptionError: it is not YAML.
    """
    try:
        return parse(Source("value", text)).document.data()
    except YamlSyntaxError as error:
        raise OptionError(f"`{text}` is not a YAML value: {error.reason}") from None


def slots(entry: OpEntry, path: Sequence[str]) -> Iterator[Slot]:
    """Yield the places in an entry that a path refers to; `*` is any key or item, and is never created."""
    yield from _slots(entry, entry.node, (), tuple(path))


def _slots(entry: OpEntry, node: Node, done: Path, left: tuple[str, ...]) -> Iterator[Slot]:
    node = entry.file.document.follow(node)
    step, more = left[0], left[1:]
    if more:
        for name, value in _matching(node, step):
            yield from _slots(entry, value, (*done, name), more)
    if not node.is_mapping or step == "*":
        return
    found = node.get(step)
    if not more:
        yield Slot(entry, (*done, step), node, (), found)
    elif found is None and "*" not in more:
        yield Slot(entry, (*done, *left), node, more, None)


def _matching(node: Node, step: str) -> Iterator[tuple[str | int, Node]]:
    """The values of a mapping or sequence that a step means."""
    named: list[tuple[str | int, Node]] = [(key.value, value) for key, value in node.pairs() if key.kind == "scalar"]
    for name, value in list(enumerate(node.items)) if node.is_sequence else named:
        if step in ("*", str(name)):
            yield name, value


def text_of(slot: Slot) -> str | None:
    """The value of a field, as a condition compares it; None if it is absent or no scalar."""
    found = slot.entry.file.document.follow(slot.node) if slot.node is not None else None
    if found is None or found.kind != "scalar":
        return None
    value = scalar_value(found)
    return value if isinstance(value, str) else found.value


def drop_fields(draft: Draft, entries: Sequence[OpEntry], groups: Iterable[Sequence[Slot]]) -> Iterator[Note]:
    """Draft the removal of fields, those of one mapping in a group; yield notes on groups that cannot be removed, or not
    together with others.
    """
    drafted: dict[str, list[Edit]] = {}
    for group in groups:
        file = group[0].entry.file
        before = drafted.setdefault(file.path, [])
        try:
            edits = field_edits(entries, group)
            apply_edits(file.source.text, [*before, *edits])
        except (YamlEditError, ValueError) as error:
            for slot in group:
                path = ".".join(map(str, slot.path))
                yield refusal(slot.entry.at(slot.node or slot.owner), f"drop `{path}`", error)
            continue
        before += edits
        draft.edit(file.path, edits)


def field_edits(entries: Sequence[OpEntry], group: Sequence[Slot]) -> list[Edit]:
    """Remove fields from one mapping, or the mapping if nothing would be left and the tree does not write it as `{}`.

    Raises:
        YamlEditError, ValueError: the editor refuses.
    """
    entry, owner = group[0].entry, group[0].owner
    parents = group[0].path[:-1]
    emptied = len({slot.key for slot in group}) == len(owner.items) // 2
    if emptied and parents and not _may_be_empty(entries, parents):
        above = entry.get(*parents[:-1])
        if above is not None and above.is_mapping:
            return remove_key(entry.file, above, str(parents[-1]))
    return remove_keys(entry.file, owner, [slot.key for slot in group])


def _may_be_empty(entries: Sequence[OpEntry], path: Path) -> bool:
    """Whether the tree writes the mapping at a path as `{}` instead of omitting it; one that an author named stays."""
    if _is_chosen(path, len(path) - 1):
        return True
    found = [slot.node for entry in entries for slot in slots(entry, [str(step) for step in path])]
    empty = sum(node is not None and node.is_mapping and not node.items for node in found)
    return empty > sum(node is None for node in found) or None not in found


class KeyOrder:
    """The order in which the tree's entries write the keys of their mappings."""

    def __init__(self, entries: Iterable[OpEntry]) -> None:
        self.entries = list(entries)
        self._orders: dict[Path, Counter[tuple[str, str]]] = {}

    def neighbour(self, slot: Slot, key: str) -> tuple[str | None, str | None]:
        """The key of a mapping after or before which ``key`` goes; neither where no entry has it beside one of these."""
        order = self._order(slot.path[: len(slot.path) - len(slot.missing) - 1])
        present = [name.value for name, _ in slot.owner.pairs()]
        above = [name for name in present if order[name, key] > order[key, name]]
        below = [name for name in present if order[key, name] > order[name, key]]
        return (above[-1], None) if above else (None, below[0]) if below else (None, None)

    def _order(self, path: Path) -> Counter[tuple[str, str]]:
        """Counts of each key before each other one in the mappings at a path, without names that an author chose."""
        steps = tuple("*" if _is_chosen(path, at) else str(step) for at, step in enumerate(path))
        if steps not in self._orders:
            order = self._orders[steps] = Counter()
            for entry in self.entries:
                for slot in slots(entry, (*steps, "")):
                    if not slot.missing:
                        order.update(combinations((name.value for name, _ in slot.owner.pairs()), 2))
        return self._orders[steps]


def _is_chosen(path: Path, at: int) -> bool:
    return isinstance(path[at], int) or (at > 0 and path[at - 1] in _NAMED)


def value_edits(order: KeyOrder, slot: Slot, value: Data) -> list[Edit]:
    """Write a value into a slot, with the mappings on its path that are missing.

    Raises:
        YamlEditError, ValueError: the editor refuses.
    """
    file = slot.entry.file
    if slot.node is not None:
        return set_value(file, file.document.follow(slot.node), value)
    for step in reversed(slot.missing):
        value = {step: value}
    key = str(slot.path[len(slot.path) - len(slot.missing) - 1])
    after, before = order.neighbour(slot, key)
    return insert_key(file, slot.owner, key, value, before=before, after=after)
