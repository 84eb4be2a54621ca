"""Entries that are meant as variants of one operator and whose signatures differ: which they are, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return
from opschema_cli.source.text import Span
from opschema_cli.suggestions import nearest
from opschema_rules.aten.autogen import listed_names
from opschema_rules.aten.groups import Group, Groups
from opschema_rules.aten.model import NativeEntry
from opschema_rules.aten.python_functions import lone_groups
from opschema_rules.aten.signatures import (
    BaseName,
    base_name,
    full_name,
    options_of,
    out_arguments,
    type_text,
    written_unreturned,
)
from opschema_rules.aten.traits import is_structured

_MOST_SOUGHT = 100
"""Groups of one file for which a functional operator of nearly their name or signature is sought, and overloads tried."""

_MOST = 3
"""Maximum number of differences of two schemas to report one by one."""


class Difference(msgspec.Struct, frozen=True):
    """A difference between two schemas; ``here`` and ``there`` are spans of the two."""

    message: str
    here: Span
    there: Span


class Pair(msgspec.Struct, frozen=True):
    """Two entries of different groups that should be in one; ``odd`` is probably the wrong one."""

    odd: NativeEntry
    other: NativeEntry


@cached_on_argument
def pairs_of(groups: Groups) -> list[Pair]:
    """The variants that differ, each two groups once."""
    found: dict[frozenset[int], Pair] = {}
    for group, entry, sibling in _candidates(groups):
        other = groups.by_entry[sibling]
        key = frozenset((id(group), id(other)))
        if other is not group and key not in found and not groups.doubled & {group, other}:
            here_is_odd = len(group.variants) <= len(other.variants)
            found[key] = Pair(entry, sibling) if here_is_odd else Pair(sibling, entry)
    return list(found.values())


@cached_on_argument
def torn(groups: Groups) -> frozenset[Group]:
    """The groups of such pairs, and of names that are declared twice: a missing variant may be in the other group."""
    return groups.doubled.union(groups.by_entry[entry] for pair in pairs_of(groups) for entry in (pair.odd, pair.other))


def _candidates(groups: Groups) -> Iterator[tuple[Group, NativeEntry, NativeEntry]]:
    for entry, group in groups.by_entry.items():
        if "structured_delegate" in entry.fields:
            sibling = groups.named.get(entry.text_of("structured_delegate"))
            if sibling is None or "out" in group.variants:
                continue
            if groups.by_entry[sibling].key[1:] == group.key[1:] or _same_base(entry, sibling):
                yield group, entry, sibling
    sought = 0
    for group in groups.all if groups.complete else ():  # else what it needs may stand where nothing can be read
        if "functional" in group.variants:
            yield from _taken(groups, group) if "out" not in group.variants else ()
            continue
        siblings = list(_taken(groups, group))
        if not siblings and (needs_functional(group) or group in lone_groups(groups)) and sought < _MOST_SOUGHT:
            sought += 1
            siblings = [*_same_name(groups, group)] or [*_misnamed(groups, group)]
        yield from siblings


def needs_functional(group: Group) -> bool:
    """Whether torchgen refuses a group that has no functional operator for that."""
    if is_lone_out(group):
        return True
    out = group.variants.get("out")
    if any(item.kind == "functional" for item in group.generated):
        named = any(item.kind == "functional" and item.name in listed_names(group) for item in group.generated)
        return (out is not None and is_structured(out)) or not named
    return len(group.variants) > 1


def _misnamed(groups: Groups, group: Group) -> Iterator[tuple[Group, NativeEntry, NativeEntry]]:
    """A functional operator without out variant that has the rest of the group's signature and nearly its name."""
    known = {
        other.key[0].base: other.variants["functional"]
        for other in groups.without_out.get(group.key[1:], ())
        if not other.variants.keys() & group.variants.keys()
    }
    base = group.key[0].base
    near = base if base in known else nearest(base, known, 0.6)
    if near is not None:
        yield group, next(iter(group.variants.values())), known[near]


def _same_name(groups: Groups, group: Group) -> Iterator[tuple[Group, NativeEntry, NativeEntry]]:
    """The functional operator that bears the name."""
    if any(item.kind == "functional" for item in group.generated):
        return
    for kind in ("out", "inplace", "mutable"):
        entry = group.variants.get(kind)
        if entry is not None:
            sibling = _functional_of(groups, entry)
            if sibling is not None:
                yield group, entry, sibling
                return


def _taken(groups: Groups, group: Group) -> Iterator[tuple[Group, NativeEntry, NativeEntry]]:
    """Yield the entries with the names of operators that torchgen would generate."""
    if "out" not in group.variants and not any("autogen" in entry.fields for entry in group.variants.values()):
        return
    for item in group.wanted:
        sibling = groups.named.get(item.name)
        if sibling is not None:
            yield group, item.base, sibling


def is_lone_out(group: Group) -> bool:
    """Whether it is an out variant alone that torchgen refuses."""
    out = group.variants.get("out")
    if out is None or len(group.variants) > 1 or out.name in out.owner.torchgen.exceptions.lone_outs:
        return False
    return out.owner.torchgen.exceptions.known and group.skipped == "it has an out variant alone"


def _same_base(entry: NativeEntry, other: NativeEntry) -> bool:
    if entry.schema is None or other.schema is None:
        return False
    return base_name(entry.schema.name).base == base_name(other.schema.name).base


def _functional_of(groups: Groups, entry: NativeEntry) -> NativeEntry | None:
    """The functional entry that an out or in-place one is named after: of those without out variant the most similar."""
    schema = entry.schema
    if schema is None:
        return None
    name = base_name(schema.name)
    known = {
        item: (abs(len(_inputs(schema)) - len(_inputs(item.schema))), len(differences(schema, item.schema, "")))
        for item in groups.of_name(str(BaseName(name.base, dunder=name.dunder)))[:_MOST_SOUGHT]
        if item.schema is not None and _has_no_out(groups.by_entry[item], item)
    }
    named = schema.overload.removesuffix("out").removesuffix("_")
    return min(
        known, key=lambda item: (known[item], item.schema is None or item.schema.overload != named), default=None
    )


def _has_no_out(group: Group, entry: NativeEntry) -> bool:
    return group.variants.get("functional") is entry and "out" not in group.variants


def differences(schema: OperatorSchema, other: OperatorSchema, name: str, *, is_copy: bool = False) -> list[Difference]:
    """Differences of the signature of ``schema`` from that of ``other``, which is called ``name``.

    ``is_copy`` says that it is called otherwise by right.
    """
    mine, theirs = _inputs(schema), _inputs(other)
    found = [*_names(schema, other, mine, theirs, name), *_common(mine, theirs, name)]
    bases = base_name(schema.name), base_name(other.name)
    if not is_copy and bases[0][::2] != bases[1][::2]:  # in name, or in being a method such as `__and__`
        message = f"`{schema.name}` is another name than that of `{name}`"
        found.insert(0, Difference(message, schema.name_span, other.name_span))
    elif not found:
        found += _order(mine, theirs, name)
    found += _returns(schema, other, name)
    if len(found) <= _MOST:
        return found
    return [Difference(f"nearly all differs from `{name}`", schema.name_span, other.name_span)]


def has_twice(schema: OperatorSchema) -> bool:
    """Whether two arguments have one name."""
    return len({item.name for item in schema.arguments}) < len(schema.arguments)


def _inputs(schema: OperatorSchema) -> list[Argument]:
    dropped = (*options_of(schema), *out_arguments(schema))
    return [item for item in schema.arguments if item not in dropped]


def _names(
    schema: OperatorSchema, other: OperatorSchema, mine: Sequence[Argument], theirs: Sequence[Argument], name: str
) -> Iterator[Difference]:
    known, needed = {item.name for item in mine}, {item.name for item in theirs}
    renamed: set[str] = set()
    if len(mine) == len(theirs):
        for item, twin in zip(mine, theirs, strict=True):
            if item.name not in needed and twin.name not in known:
                renamed.add(twin.name)
                yield Difference(f"`{item.name}` is called `{twin.name}` in `{name}`", item.name_span, twin.name_span)
    for item in mine:
        if item.name not in needed and not (len(mine) == len(theirs) and renamed):
            yield Difference(f"`{name}` has no argument `{item.name}`", item.span, other.name_span)
    for twin in theirs:
        if twin.name not in known and twin.name not in renamed:
            yield Difference(f"`{twin}`, an argument of `{name}`, is missing", schema.name_span, twin.span)


def _common(mine: Sequence[Argument], theirs: Sequence[Argument], name: str) -> Iterator[Difference]:
    by_name = {item.name: item for item in theirs}
    for item in mine:
        twin = by_name.get(item.name)
        if twin is None:
            continue
        here, there = type_text(item.type), type_text(twin.type)
        if here != there:
            message = f"`{item.name}` is `{here}`, in `{name}` it is `{there}`"
            yield Difference(message, item.type_span, twin.type_span)
        if item.kwarg_only != twin.kwarg_only:
            words = ("keyword-only", "positional") if item.kwarg_only else ("positional", "keyword-only")
            message = f"`{item.name}` is {words[0]}, in `{name}` it is {words[1]}"
            yield Difference(message, item.name_span, twin.name_span)
        if (item.default or None) != (twin.default or None):
            yield Difference(
                f"`{item.name}` has {_default(item)}, in `{name}` it has {_default(twin)}",
                item.default_span or item.name_span,
                twin.default_span or twin.name_span,
            )


def _default(item: Argument) -> str:
    return f"the default `{item.default}`" if item.default else "no default"


def _order(mine: Sequence[Argument], theirs: Sequence[Argument], name: str) -> Iterator[Difference]:
    for item, twin in zip(mine, theirs, strict=False):
        if item.name != twin.name:
            yield Difference(f"`{item.name}` stands where `{name}` has `{twin.name}`", item.span, twin.span)
            return


def _returns(schema: OperatorSchema, other: OperatorSchema, name: str) -> Iterator[Difference]:
    mine, theirs = _outputs(schema), _outputs(other)
    if len(mine) != len(theirs):
        message = f"the results are {_results(mine)}, those of `{name}` are {_results(theirs)}"
        yield Difference(message, _span_of_returns(schema), _span_of_returns(other))
        return
    for item, twin in zip(mine, theirs, strict=True):
        if item[0] != twin[0]:
            yield Difference(f"the result is `{item[0]}`, in `{name}` it is `{twin[0]}`", item[1], twin[1])


def _outputs(schema: OperatorSchema) -> list[tuple[str, Span]]:
    slots: list[Argument | Return] = [*schema.returns, *written_unreturned(schema)]
    return [(type_text(item.type), item.type_span) for item in slots]


def _results(slots: Sequence[tuple[str, Span]]) -> str:
    return f"`({', '.join(text for text, _ in slots)})`"


def _span_of_returns(schema: OperatorSchema) -> Span:
    if schema.returns:
        return Span(schema.returns[0].span.start, schema.returns[-1].span.end)
    return schema.name_span


def name_of(entry: NativeEntry) -> str:
    """The entry's operator, without namespace."""
    return full_name(entry.schema) if entry.schema is not None else entry.name
