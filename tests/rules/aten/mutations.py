"""Seeded mutations of torchgen's files: each changes a few characters of a sound tree, and knows which.

A *mutator* takes the places of a file (:class:`Layout`) and draws what to change; :func:`mutate` applies it. Most of
what comes out is wrong, some is right, some is wrong in a way that torchgen does not see: that is for the test to tell.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import yaml

from tests.rules.aten import mutated_values as values
from tests.rules.aten.oracle import BACKEND, DERIVATIVES, NATIVE, TAGS, installed
from tests.rules.aten.plots import NEIGHBOURS


class Range(NamedTuple):
    """Characters of a text."""

    start: int
    end: int

    def touches(self, other: Range) -> bool:
        """Whether they share a character, or meet."""
        return self.start <= other.end and other.start <= self.end


class Change(NamedTuple):
    """Characters and what stands there instead."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Mutant:
    """A changed tree. ``regions`` are the changed characters, ``fields`` the fields that they are in, ``entries`` the
    entries, all in the changed text of ``path``. ``changes`` are what was done to the text before.
    """

    kind: str
    path: str
    files: Mapping[str, str]
    changes: tuple[Change, ...]
    regions: tuple[Range, ...]
    fields: tuple[Range, ...]
    entries: tuple[Range, ...]

    @property
    def text(self) -> str:
        """The changed file."""
        return self.files[self.path]


@dataclass(frozen=True)
class Field:
    """A field of an entry: where its key and its value stand, and the value."""

    name: str
    key: Range
    value: Range
    node: Any

    @property
    def whole(self) -> Range:
        """Key and value."""
        return Range(self.key.start, max(self.key.end, self.value.end))


@dataclass(frozen=True)
class Item:
    """An entry: where it stands, the blank lines behind it left out, and its fields."""

    whole: Range
    fields: tuple[Field, ...]

    def get(self, name: str) -> Field | None:
        """A field by its name."""
        return next((item for item in self.fields if item.name == name), None)


@dataclass(frozen=True)
class Layout:
    """A file and where everything in it stands. A backend's file has one entry, which is all of it."""

    path: str
    text: str
    items: tuple[Item, ...]
    extra: dict[str, str] = field(default_factory=dict)

    def written(self, place: Range) -> str:
        """The characters at a place."""
        return self.text[place.start : place.end]


def _end(node: Any) -> int:
    """Where what is written of a node ends: a block's own mark lies behind the comments after it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _field(pair: tuple[Any, Any]) -> Field:
    key, value = pair
    return Field(
        str(key.value),
        Range(key.start_mark.index, key.end_mark.index),
        Range(value.start_mark.index, _end(value)),
        value,
    )


@cache
def layout(path: str, text: str) -> Layout:
    """The places of a sound file."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if isinstance(root, yaml.MappingNode):
        return Layout(path, text, (Item(Range(0, len(text)), tuple(map(_field, root.value))),))
    items = []
    for node in root.value:
        start = text.rfind("\n", 0, node.start_mark.index) + 1
        items.append(Item(Range(start, _end(node)), tuple(map(_field, node.value))))
    return Layout(path, text, tuple(items))


Mutator: TypeAlias = Callable[[Layout, random.Random], Sequence[Change]]
"""Draws what to change; nothing where the file has no place for it."""


def mutate(files: Mapping[str, str], path: str, kind: str, changes: Sequence[Change]) -> Mutant:
    """The tree with the changes made."""
    ordered = sorted(changes)
    text, places = files[path], layout(path, files[path])
    pieces: list[str] = []
    regions: list[Range] = []
    at = length = 0
    for change in ordered:
        assert change.start >= at, f"{kind}: overlapping changes {ordered}"
        pieces += [text[at : change.start], change.text]
        start = length + change.start - at
        length = start + len(change.text)
        regions.append(Range(start, length))
        at = change.end
    pieces.append(text[at:])

    def moved(place: Range) -> Range:
        start = end = 0
        for index, (change, region) in enumerate(zip(ordered, regions, strict=True)):
            shift = region.end - change.end
            if change.end <= place.start and not change.start == change.end == place.start:
                start = shift
            if change.end <= place.end or (index == 0 and change.start <= place.end):
                end = shift
        return Range(max(0, place.start + start), max(0, place.start + start, place.end + end))

    def within(candidates: Iterator[Range]) -> tuple[Range, ...]:
        return tuple(
            moved(place)
            for place in candidates
            if any(place.touches(Range(change.start, change.end)) for change in ordered)
        )

    fields = within(item.whole for entry in places.items for item in entry.fields)
    entries = within(entry.whole for entry in places.items)
    return Mutant(kind, path, {**files, path: "".join(pieces)}, tuple(ordered), tuple(regions), fields, entries)


def _at(place: Range, text: str) -> list[Change]:
    return [Change(place.start, place.end, text)]


# --- of any text


def _typo(text: str, place: Range, chance: random.Random) -> list[Change]:
    """One wrong character: lost, doubled, swapped with the next, another one, or one too many."""
    if place.end <= place.start:
        return _at(place, chance.choice(values.CHARACTERS))
    at = chance.randrange(place.start, place.end)
    here = text[at]
    how = chance.randrange(6)
    if how == 0:
        return [Change(at, at + 1, "")]
    if how == 1:
        return [Change(at, at + 1, here * 2)]
    if how == 2 and at + 1 < place.end and text[at + 1] != here:
        return [Change(at, at + 2, text[at + 1] + here)]
    if how == 3:
        return [Change(at, at + 1, here.swapcase() if here.swapcase() != here else chance.choice(values.CHARACTERS))]
    if how == 4:
        return [Change(at, at + 1, chance.choice(values.CHARACTERS))]
    return [Change(at, at, chance.choice(values.CHARACTERS))]


def _identifier(text: str, place: Range, chance: random.Random) -> Range | None:
    """One of the words at a place."""
    words = [match.span() for match in re.finditer(r"[^\W\d]\w*", text[place.start : place.end])]
    if not words:
        return None
    start, end = chance.choice(words)
    return Range(place.start + start, place.start + end)


# --- of the entries of a file


def _some(layout: Layout, chance: random.Random) -> Item:
    """An entry, not of the neighbours."""
    return layout.items[chance.randrange(_own(layout), len(layout.items))]


def _own(layout: Layout) -> int:
    """The first entry that is not of the plot's neighbours."""
    names = "|".join(NEIGHBOURS)
    count = sum(
        1
        for item in layout.items
        if re.match(rf"- (?:func|name): (?:{names})_?(?:_copy)?[.(]", layout.written(item.whole))
    )
    return count if count < len(layout.items) else 0


def _some_field(layout: Layout, chance: random.Random, *names: str) -> Field | None:
    """A field of an entry of the plot, of those that have one of these names."""
    own = layout.items[_own(layout) :]
    found = [item for entry in own for item in entry.fields if not names or item.name in names]
    return chance.choice(found) if found else None


def entry_deleted(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some(layout, chance)
    return [Change(item.whole.start, item.whole.end + 1, "")]


def entry_doubled(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some(layout, chance)
    at = chance.choice([item.whole.end + 1, len(layout.text)])
    return [Change(at, at, layout.written(item.whole) + "\n")]


def entry_replaced(layout: Layout, chance: random.Random) -> Sequence[Change]:
    return _at(_some(layout, chance).whole, "- " + chance.choice(values.SCALARS + values.COLLECTIONS))


def entry_added(layout: Layout, chance: random.Random) -> Sequence[Change]:
    at = _some(layout, chance).whole.start
    return [Change(at, at, "- " + chance.choice(values.SCALARS + values.COLLECTIONS) + "\n")]


def entry_aliased(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """The same entry once more, by an alias."""
    item = _some(layout, chance)
    return [
        Change(item.whole.start + 2, item.whole.start + 2, "&one\n  "),
        Change(item.whole.end + 1, item.whole.end + 1, "- *one\n"),
    ]


def entry_merged(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """An entry takes another's fields by a merge key."""
    first, other = _some(layout, chance), _some(layout, chance)
    if first.whole.start >= other.whole.start or not other.fields:
        return []
    lead = Change(first.whole.start + 2, first.whole.start + 2, "&one\n  ")
    kept = [other.fields[0]] + ([other.fields[-1]] if len(other.fields) > 1 and chance.random() < 0.5 else [])
    text = "- <<: *one\n" + "".join(f"  {layout.written(item.whole)}\n" for item in kept)
    return [lead, Change(other.whole.start, other.whole.end, text.rstrip("\n"))]


def entry_indented(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """A line of an entry moves right or left, or begins with a tab."""
    item = _some(layout, chance)
    lines = [at.end() for at in re.finditer("\n", layout.written(item.whole))]
    if not lines:
        return []
    at = item.whole.start + chance.choice(lines)
    return chance.choice([[Change(at, at, " ")], [Change(at, at, "\t")], [Change(at, at + 1, "")]])


def document(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """The text around the entries."""
    end = len(layout.text)
    first = ["---\n", "\ufeff", "%YAML 1.1\n---\n", "%TAG ! x:\n---\n", "x: 1\n", "\t\n"]
    last = ["...\n", "---\n", "--- \n- a\n", "x: 1\n", "\x00", "- \n"]
    changes = [[Change(0, 0, chance.choice(first))], [Change(end, end, chance.choice(last))]]
    if layout.path == NATIVE:  # another file in which nothing is left could be anybody's
        whole = ["", "{}\n", "null\n", "text\n", "1\n", "# nothing\n", "---\n", "- a\n", "a: 1\n", "? x\n"]
        changes.append([Change(0, end, chance.choice(whole))])
    return chance.choice(changes)


# --- of the fields of an entry


def _line(layout: Layout, item: Field) -> Range:
    """A field with the space and line end before it; the first one of an entry without."""
    start = layout.text.rfind("\n", 0, item.key.start)
    lead = layout.text[start + 1 : item.key.start]
    return Range(start, item.whole.end) if lead.strip() == "" and start >= 0 else item.whole


def field_deleted(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some_field(layout, chance)
    return _at(_line(layout, item), "") if item else []


def field_doubled(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some_field(layout, chance)
    if item is None:
        return []
    again = layout.written(item.whole) if chance.random() < 0.5 else f"{item.name}: {chance.choice(values.SCALARS)}"
    return [Change(item.whole.end, item.whole.end, f"\n{_margin(layout)}{again}")]


def _margin(layout: Layout) -> str:
    return "" if layout.path == BACKEND else "  "


def field_added(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """A field that the entry lacks, as other entries have it."""
    item = _some(layout, chance)
    name, value = chance.choice(_fields_of(layout.path))
    if item.get(name) is not None:
        return []
    end = item.fields[-1].whole.end
    return [Change(end, end, f"\n{_margin(layout)}{name}: {value}")]


def field_invented(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """A field that there is not, or that there is, with a value of any kind."""
    item = _some(layout, chance)
    known = sorted({name for name, _ in _fields_of(layout.path)})
    name = chance.choice([*known, *known, *values.KEYS])
    end = item.fields[-1].whole.end
    return [Change(end, end, f"\n{_margin(layout)}{name}: {chance.choice(values.SCALARS + values.COLLECTIONS)}")]


@cache
def _fields_of(path: str) -> tuple[tuple[str, str], ...]:
    """Fields and values that occur; values of several lines are left out."""
    if path == BACKEND:
        return values.BACKEND_FIELDS
    found = layout(path, installed(path))
    pairs = {(item.name, found.written(item.value)) for entry in found.items for item in entry.fields}
    written = sorted(pair for pair in pairs if "\n" not in pair[1] and pair[0] not in ("func", "name", "tag"))
    return tuple(written) or tuple((name, "text") for name in sorted({name for name, _ in pairs}))


def key_respelt(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some_field(layout, chance)
    if item is None:
        return []
    how = chance.randrange(5)
    if how == 0:
        return _at(item.key, chance.choice(values.KEYS))
    if how == 1:
        return _at(item.key, chance.choice([name for name, _ in _fields_of(layout.path)]))
    if how == 2:
        return [Change(item.key.end, item.key.end, chance.choice(["s", "_", " ", "\t", ",", "\u00a0", "\u200b"]))]
    return _typo(layout.text, item.key, chance)


def value_retyped(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """A value of another type."""
    item = _some_field(layout, chance)
    return _at(item.value, chance.choice(values.SCALARS + values.COLLECTIONS)) if item else []


def value_exchanged(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """The value of another entry's field of that name, or of any field."""
    item = _some_field(layout, chance)
    if item is None:
        return []
    like = [value for name, value in _fields_of(layout.path) if name == item.name or chance.random() < 0.01]
    return _at(item.value, chance.choice(like)) if like else []


def value_respelt(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some_field(layout, chance)
    return _typo(layout.text, item.value, chance) if item else []


def value_wrapped(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """The same value, written otherwise: in quotes, in a list, behind a tag or an anchor, over several lines."""
    item = _some_field(layout, chance)
    if item is None or not isinstance(item.node, yaml.ScalarNode) or item.node.style:
        return []
    text = layout.written(item.value)
    return _at(item.value, chance.choice(values.WRAPPERS).replace("@", text))


def values_swapped(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """Two fields of an entry exchange their values."""
    item = _some(layout, chance)
    if len(item.fields) < 2:
        return []
    one, other = chance.sample(item.fields, 2)
    return [
        Change(one.value.start, one.value.end, layout.written(other.value)),
        Change(other.value.start, other.value.end, layout.written(one.value)),
    ]


def fields_exchanged(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """Two entries exchange the values of a field."""
    one = _some_field(layout, chance)
    others = [item for entry in layout.items for item in entry.fields if one and item.name == one.name and item != one]
    if one is None or not others:
        return []
    other = chance.choice(others)
    return [
        Change(one.value.start, one.value.end, layout.written(other.value)),
        Change(other.value.start, other.value.end, layout.written(one.value)),
    ]


# --- of what stands in lists and tables


def _parts(item: Field) -> list[Range]:
    """The items of a list, the keys and values of a table, or the words of a text."""
    if isinstance(item.node, yaml.SequenceNode):
        return [Range(node.start_mark.index, _end(node)) for node in item.node.value]
    if isinstance(item.node, yaml.MappingNode):
        return [Range(node.start_mark.index, _end(node)) for pair in item.node.value for node in pair]
    return []


def part_changed(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """An item of a list, or a key or value of a table."""
    own = [item for entry in layout.items[_own(layout) :] for item in entry.fields if _parts(item)]
    if not own:
        return []
    item = chance.choice(own)
    parts = _parts(item)
    place = chance.choice(parts)
    how = chance.randrange(6)
    if how == 0:
        return _at(place, chance.choice(values.SCALARS + values.COLLECTIONS))
    if how == 1:
        return _at(place, layout.written(chance.choice(parts)))
    if how == 2:
        return _at(place, chance.choice(values.PARTS))
    if how == 3:
        return [Change(place.end, place.end, chance.choice([", CUDA", ",CUDA", ",", " ", "::x", ".out", ", add", "!"]))]
    return _typo(layout.text, place, chance)


def part_deleted(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some_field(layout, chance)
    if item is None or not isinstance(item.node, yaml.SequenceNode | yaml.MappingNode) or item.node.flow_style:
        return []
    node = chance.choice(item.node.value)
    first, last = node if isinstance(node, tuple) else (node, node)
    start = layout.text.rfind("\n", 0, first.start_mark.index)
    return [Change(start, _end(last), "")]


def part_doubled(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some_field(layout, chance)
    if item is None or not isinstance(item.node, yaml.SequenceNode | yaml.MappingNode) or item.node.flow_style:
        return []
    node = chance.choice(item.node.value)
    first, last = node if isinstance(node, tuple) else (node, node)
    start = layout.text.rfind("\n", 0, first.start_mark.index)
    text = layout.text[start : _end(last)]
    if isinstance(node, tuple) and chance.random() < 0.6:
        text = text.replace(first.value, chance.choice(values.DISPATCH_KEYS))
    return [Change(_end(last), _end(last), text)]


def part_added(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """One more line in a dispatch table, a made one if there is none."""
    item = _some(layout, chance)
    key, value = chance.choice(values.DISPATCH_KEYS), chance.choice(values.KERNELS)
    table = item.get("dispatch")
    if table is None:
        end = item.fields[-1].whole.end
        return [Change(end, end, f"\n  dispatch:\n    {key}: {value}")]
    return [Change(table.whole.end, table.whole.end, f"\n    {key}: {value}")]


# --- of the fields of native_functions.yaml


ONLY_STRUCTURED = ("precomputed", "ufunc_inner_loop", "structured_inherits")
"""Fields that only structured entries may have."""


def _drawn(name: str) -> Mutator:
    pool = values.FIELDS[name]

    def change(layout: Layout, chance: random.Random) -> Sequence[Change]:
        fitting = [
            item for item in layout.items if item.get(name) or (name in ONLY_STRUCTURED and item.get("structured"))
        ]
        item = chance.choice(fitting) if fitting and chance.random() < 0.7 else _some(layout, chance)
        own = item.get(name)
        text = chance.choice(pool)
        if own is not None:
            return _at(own.value, text)
        end = item.fields[-1].whole.end
        return [Change(end, end, f"\n  {name}: {text}")]

    change.__name__ = f"field_{name}"
    return change


# --- of schemas


def _schema(layout: Layout, chance: random.Random) -> Range | None:
    found = _some_field(layout, chance, "func", "name")
    plain = found is not None and isinstance(found.node, yaml.ScalarNode) and not found.node.style
    return found.value if found is not None and plain and "(" in layout.written(found.value) else None


def _inside(layout: Layout, schema: Range) -> Range:
    """The text between the parentheses of the arguments."""
    text = layout.written(schema)
    arrow = text.rindex(") ->")
    return Range(schema.start + text.index("(") + 1, schema.start + arrow)


def _arguments(layout: Layout, schema: Range) -> list[Range]:
    inside = _inside(layout, schema)
    found, depth, start = [], 0, inside.start
    for at in range(inside.start, inside.end):
        depth += layout.text[at] in "([" and 1
        depth -= layout.text[at] in ")]" and 1
        if layout.text.startswith(", ", at) and depth == 0:
            found.append(Range(start, at))
            start = at + 2
    return [*found, Range(start, inside.end)] if inside.end > inside.start else []


_ARGUMENT = re.compile(r"(?P<type>[^ ]+(?: -> [^ ]+)?) (?P<name>\w+)(?P<default>=.*)?")


def _argument(layout: Layout, chance: random.Random, part: str) -> Range | None:
    """The type, name or default of some argument; of a default that is not there, where it would be."""
    schema = _schema(layout, chance)
    arguments = [place for place in _arguments(layout, schema) if layout.written(place) != "*"] if schema else []
    if not arguments:
        return None
    place = chance.choice(arguments)
    match = _ARGUMENT.fullmatch(layout.written(place))
    if match is None:
        return None
    start, end = match.span(part) if match[part] is not None else (match.end(), match.end())
    return Range(place.start + start, place.start + end)


def schema_argument_deleted(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    arguments = _arguments(layout, schema) if schema else []
    if not arguments:
        return []
    at = chance.randrange(len(arguments))
    end = arguments[at + 1].start if at + 1 < len(arguments) else arguments[at].end
    start = arguments[at].start if at + 1 < len(arguments) or at == 0 else arguments[at - 1].end
    return [Change(start, end, "")]


def schema_argument_doubled(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    arguments = _arguments(layout, schema) if schema else []
    if not arguments:
        return []
    place, behind = chance.choice(arguments), chance.choice(arguments)
    return [Change(behind.end, behind.end, ", " + layout.written(place))]


def schema_arguments_swapped(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    arguments = _arguments(layout, schema) if schema else []
    if len(arguments) < 2:
        return []
    one, other = chance.sample(arguments, 2)
    return [Change(*one, layout.written(other)), Change(*other, layout.written(one))]


def schema_argument_added(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    if schema is None:
        return []
    text = chance.choice(values.ARGUMENTS)
    arguments = _arguments(layout, schema)
    if not arguments:
        return [Change(*_inside(layout, schema), text)]
    place = chance.choice(arguments)
    return (
        [Change(place.start, place.start, text + ", ")]
        if chance.random() < 0.5
        else [Change(place.end, place.end, ", " + text)]
    )


def schema_star(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """The ``*`` goes, comes, or comes twice."""
    schema = _schema(layout, chance)
    arguments = _arguments(layout, schema) if schema else []
    stars = [place for place in arguments if layout.written(place) == "*"]
    if stars and chance.random() < 0.5:
        return [Change(stars[0].start, min(stars[0].end + 2, arguments[-1].end), "")]
    if not arguments:
        return []
    place = chance.choice(arguments)
    return chance.choice([[Change(place.start, place.start, "*, ")], [Change(place.end, place.end, ", *")]])


def _part(part: str, pool: Sequence[str]) -> Mutator:
    def change(layout: Layout, chance: random.Random) -> Sequence[Change]:
        place = _argument(layout, chance, part)
        return _at(place, chance.choice(pool)) if place else []

    change.__name__ = f"schema_argument_{part}"
    return change


def schema_name(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    if schema is None:
        return []
    text = layout.written(schema).partition("(")[0]
    base, _, overload = text.partition(".")
    made = chance.choice(values.NAMES).replace("@", base).replace("%", overload).replace("#", text)
    return [Change(schema.start, schema.start + len(text), made)]


def schema_returns(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    if schema is None:
        return []
    start = schema.start + layout.written(schema).rindex(") -> ") + 5
    return [Change(start, schema.end, chance.choice(values.RETURNS))]


def schema_arrow(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    if schema is None:
        return []
    start = schema.start + layout.written(schema).rindex(") -> ")
    return [Change(start, start + 5, chance.choice(values.ARROWS))]


def schema_annotation(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """An alias annotation goes, comes, or becomes another one."""
    schema = _schema(layout, chance)
    if schema is None:
        return []
    text = layout.written(schema)
    found = [match.span() for match in re.finditer(r"(?<=Tensor)\([^)]*\)", text)]
    bare = [(match.end(), match.end()) for match in re.finditer(r"\bTensor(?!\()", text)]
    places = found if found and (not bare or chance.random() < 0.6) else bare
    if not places:
        return []
    start, end = chance.choice(places)
    return [Change(schema.start + start, schema.start + end, chance.choice(values.ANNOTATIONS))]


def schema_token(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """A word or sign goes, comes twice, or changes places with the next."""
    schema = _schema(layout, chance)
    if schema is None:
        return []
    tokens = [match.span() for match in re.finditer(r"\w+|->|\s+|[^\w\s]", layout.written(schema))]
    at = chance.randrange(len(tokens) - 1)
    (start, end), (_, after) = tokens[at], tokens[at + 1]
    one, two = layout.written(schema)[start:end], layout.written(schema)[end:after]
    how = chance.randrange(3)
    if how == 2:
        return [Change(schema.start + start, schema.start + after, two + one)] if one != two else []
    return [Change(schema.start + start, schema.start + end, "" if how == 0 else one * 2)]


def schema_typo(layout: Layout, chance: random.Random) -> Sequence[Change]:
    schema = _schema(layout, chance)
    return _typo(layout.text, schema, chance) if schema else []


# --- of derivatives.yaml


def _formula(layout: Layout, chance: random.Random) -> Field | None:
    own = [
        item
        for entry in layout.items[_own(layout) :]
        for item in entry.fields
        if item.name not in ("name", "dispatch", "output_differentiability")
    ]
    return chance.choice(own) if own else None


def formula_replaced(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _formula(layout, chance)
    return _at(item.value, chance.choice(values.FORMULAS)) if item else []


def formula_word(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """Another word in a formula."""
    item = _formula(layout, chance)
    place = _identifier(layout.text, item.value, chance) if item else None
    return _at(place, chance.choice(values.FORMULA_WORDS)) if place else []


def formula_suffix(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """Something is asked of a word of a formula."""
    item = _formula(layout, chance)
    place = _identifier(layout.text, item.value, chance) if item else None
    return [Change(place.end, place.end, chance.choice(values.FORMULA_SUFFIXES))] if place else []


def formula_typo(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _formula(layout, chance)
    return _typo(layout.text, item.value, chance) if item else []


def formula_key(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """The arguments that a formula is for."""
    item = _formula(layout, chance)
    return _at(item.key, chance.choice(values.FORMULA_KEYS).replace("@", item.name)) if item else []


def formula_added(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some(layout, chance)
    end = item.fields[-1].whole.end
    key, value = chance.choice(values.FORMULA_KEYS).replace("@", "self"), chance.choice(values.FORMULAS)
    return [Change(end, end, f"\n  {key}: {value}")]


def differentiability(layout: Layout, chance: random.Random) -> Sequence[Change]:
    item = _some(layout, chance)
    own, text = item.get("output_differentiability"), chance.choice(values.DIFFERENTIABILITY)
    if own is not None:
        return _at(own.value, text)
    end = item.fields[0].whole.end
    return [Change(end, end, f"\n  output_differentiability: {text}")]


def by_dispatch_key(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """The formulas of an entry under a dispatch key."""
    item = _some(layout, chance)
    own = [each for each in item.fields if each.name not in ("name", "output_differentiability", "dispatch")]
    if not own or any("\n" in layout.written(each.value) for each in own):
        return []
    key = chance.choice(values.AUTOGRAD_KEYS)
    lines = "".join(f"\n      {layout.written(each.whole)}" for each in own)
    rest = [Change(_line(layout, each).start, each.whole.end, "") for each in own[1:]]
    return [Change(own[0].whole.start, own[0].whole.end, f"dispatch:\n    {key}:{lines}"), *rest]


# --- of a backend's file


def _names(layout: Layout) -> list[Range]:
    """The operators of the lists."""
    return [
        Range(node.start_mark.index, node.end_mark.index)
        for item in layout.items[0].fields
        if isinstance(item.node, yaml.SequenceNode)
        for node in item.node.value
    ]


def backend_name(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """An operator by another name, or as something else."""
    found = _names(layout)
    if not found:
        return []
    place = chance.choice(found)
    base, _, overload = layout.written(place).partition(".")
    pool = chance.choice([values.LISTED, values.SCALARS + values.COLLECTIONS])
    return _at(place, chance.choice(pool).replace("@", base).replace("%", overload))


def backend_name_typo(layout: Layout, chance: random.Random) -> Sequence[Change]:
    found = _names(layout)
    return _typo(layout.text, chance.choice(found), chance) if found else []


def backend_name_doubled(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """An operator stands in a list a second time, or in another list."""
    found = _names(layout)
    if not found:
        return []
    one, other = chance.choice(found), chance.choice(found)
    return [Change(other.end, other.end, f"\n  - {layout.written(one)}")]


def backend_head(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """Which backend it is, and where its code is."""
    item = _some_field(layout, chance, "backend", "cpp_namespace")
    return _at(item.value, chance.choice(values.HEADS[item.name])) if item else []


def backend_field(layout: Layout, chance: random.Random) -> Sequence[Change]:
    """A field of a backend's file, of the kinds that there are, with all sorts of values."""
    name, value = chance.choice(values.BACKEND_FIELDS)
    own = layout.items[0].get(name)
    if own is not None:
        return _at(own.value, value)
    end = len(layout.text)
    return [Change(end, end, f"{name}: {value}\n")]


# --- all of them

_ANY: tuple[Mutator, ...] = (
    entry_deleted,
    entry_doubled,
    entry_replaced,
    entry_added,
    entry_aliased,
    entry_merged,
    entry_indented,
    document,
    field_deleted,
    field_doubled,
    field_added,
    field_invented,
    key_respelt,
    value_retyped,
    value_exchanged,
    value_respelt,
    value_wrapped,
    values_swapped,
    fields_exchanged,
)

_LISTS: tuple[Mutator, ...] = (part_changed, part_deleted, part_doubled)

_SCHEMAS: tuple[Mutator, ...] = (
    schema_argument_deleted,
    schema_argument_doubled,
    schema_arguments_swapped,
    schema_argument_added,
    schema_star,
    _part("type", values.TYPES),
    _part("name", values.ARGUMENT_NAMES),
    _part("default", values.DEFAULTS),
    schema_name,
    schema_returns,
    schema_arrow,
    schema_annotation,
    schema_token,
    schema_typo,
)

_FORMULAS: tuple[Mutator, ...] = (
    formula_replaced,
    formula_word,
    formula_suffix,
    formula_typo,
    formula_key,
    formula_added,
    differentiability,
    by_dispatch_key,
)

_BACKEND: tuple[Mutator, ...] = (backend_name, backend_name_typo, backend_name_doubled, backend_head, backend_field)

MUTATORS: Mapping[str, tuple[Mutator, ...]] = {
    NATIVE: (*_ANY, *_LISTS, part_added, *_SCHEMAS, *_SCHEMAS, *(_drawn(name) for name in sorted(values.FIELDS))),
    DERIVATIVES: (*_ANY, *_LISTS, *_SCHEMAS, *_FORMULAS, *_FORMULAS, *_FORMULAS),
    TAGS: _ANY,
    BACKEND: (
        *(each for each in _ANY if not each.__name__.startswith("entry_") or each is entry_indented),
        *_LISTS,
        *_BACKEND,
        *_BACKEND,
        *_BACKEND,
    ),
}
"""The mutators of each file; one that stands there twice is drawn twice as often."""


def mutants(files: Mapping[str, str], path: str, chance: random.Random) -> Iterator[Mutant]:
    """Mutants of one file of a tree, without end."""
    places = layout(path, files[path])
    while True:
        mutator = chance.choice(MUTATORS[path])
        changes = mutator(places, chance)
        if any(places.text[change.start : change.end] != change.text for change in changes):
            yield mutate(files, path, mutator.__name__, changes)
