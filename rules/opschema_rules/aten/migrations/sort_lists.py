"""`sort-lists`: the operators in the lists of a backend's YAML, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_rules.aten.migrations.backend_lists import backends, check_list, moved_comments
from opschema_rules.aten.migrations.list_order import Order, nearest_order, sort_key
from opschema_rules.aten.migrations.list_text import ListText, read_list
from opschema_rules.aten.migrations.scopes import BACKENDS
from opschema_rules.aten.model import BackendFile
from opschema_rules.aten.proofs import SAME


class SortLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``section`` is the list to sort (default: all); ``order`` is ``ascii`` or ``letters`` (default: that of the list)."""

    section: str = ""
    order: Literal["", "ascii", "letters"] = ""


class _List(msgspec.Struct, frozen=True):
    """A list of a file, and the order that it gets."""

    backend: BackendFile
    section: str
    order: Order


def find(draft: Draft, options: SortLists) -> Iterator[Site]:
    """The lists that are not in order."""
    files = backends(draft)
    if options.section:
        check_list(options.section, "section", files)
    for backend in files:
        for section in dict.fromkeys(item.section for item in backend.items):
            pair = backend.node.pair(section)
            if options.section in ("", section) and pair is not None:
                names = _stretches(backend, section)
                order = options.order or nearest_order(names)
                if any(found != sorted(found, key=sort_key(order)) for found in names):
                    title = f"sort `{section}`" + (" by letters" if order == "letters" else "")
                    yield Site(backend.at(pair[0]), title, subject=_List(backend, section, order))


@migration("sort-lists", find=find, options=SortLists, scope=BACKENDS, settled="every list is in order", proof=SAME)
def sort_lists(draft: Draft, sites: Sequence[Site], options: SortLists) -> Iterator[Note]:
    """Sort the lists of operators in a backend's YAML.

    Each list gets the order that it almost has: that of ASCII (`_unsafe_view` before `abs`), or with `-o order=letters`
    that of the letters alone, whatever their case (`_unsafe_view` between `unbind` and `unsqueeze`), which pytorch/xla
    keeps in `full_codegen`.

    An item goes with its options and the comment above it, which is noted. No operator passes a comment that heads a group, or a
    blank line where not all are parted by one: what stands between two of these is sorted by itself. A comment heads a group if
    it is the list's first, speaks of operators "below" or "following", of "these", a "section" or a "Note:", is a line of
    dashes, or has a blank line or an item that is commented out under it, but not if it names its operator.

        opschema migrate sort-lists -o section=full_codegen
    """
    notes: list[tuple[_List, list[str]]] = []
    for site in sites:
        item = site.subject
        if not isinstance(item, _List):
            continue
        try:
            text = read_list(item.backend, item.section)
            if "" in text.names:
                raise YamlEditError("an item names no operator", item.backend.node.span)
        except YamlEditError as error:
            yield Note(site.place, f"sort `{item.section}` by hand: {error}", leaves_site=True)
            continue
        notes.append((item, list(_sort(text, item.order))))
        draft.edit(item.backend.path, text.edits())
    draft.settle()
    for item, names in notes:
        yield from moved_comments(draft, item.backend.path, item.section, names)


def _stretches(backend: BackendFile, section: str) -> list[list[str]]:
    """Return the groups of adjacent operators; a single group if the list's text cannot be parsed."""
    try:
        return [stretch.names for stretch in read_list(backend, section).stretches]
    except YamlEditError:
        return [[item.name for item in backend.section(section)]]


def _sort(text: ListText, order: Order) -> Iterator[str]:
    """Sort a list. Yield the operators with a comment that moved."""
    key = sort_key(order)
    for stretch in text.stretches:
        before = stretch.items
        stretch.items = sorted(before, key=lambda item: key(item.name))
        yield from (
            new.name for old, new in zip(before, stretch.items, strict=True) if new is not old and new.has_comment
        )
